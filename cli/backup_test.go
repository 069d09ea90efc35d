package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/storage/backup"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// TestABackupSaysHowMany: one of something is no several.
func TestABackupSaysHowMany(t *testing.T) {
	m := backup.Manifest{Files: make([]backup.File, 2), Tables: []backup.Table{{Name: "run_status", Rows: 1},
		{Name: "test_templates", Rows: 1}, {Name: "users", Rows: 21}}}
	if got := backupSummary(m); got != "1 run, 1 template, 0 connections, 21 users, 2 files of executions" {
		t.Error(got)
	}
}

// TestWhatRestsIsNamed: who restores a backup is told which continuous queries do not run any more, and the cure.
func TestWhatRestsIsNamed(t *testing.T) {
	t.Parallel()
	from, to := postgrestest.NewControl(t), pgtest.Start(t).NewDatabase(t)
	conn, err := pgx.Connect(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), `INSERT INTO queries (id, name, statement, execution_state, desired_state,
		state_since, created_at) VALUES (1, 'slow', 'SELECT', 'RUNNING', 'RUNNING', now(), now()),
		(2, 'busy', 'SELECT', 'PENDING', 'RUNNING', now(), now()),
		(3, 'over', 'SELECT', 'TERMINATED', 'RUNNING', now(), now()),
		(4, 'dropped', 'SELECT', 'STOPPING', 'STOPPED', now(), now())`)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out, message bytes.Buffer
	e := &terminal.Env{Ctx: t.Context(), Stdout: &out, Stderr: &message, Log: zerolog.Nop()}
	flags := func(url string) (f wiring.StoreFlags) {
		f.DatabaseURL, f.DataDir = url, t.TempDir()
		return f
	}
	file := filepath.Join(t.TempDir(), "b")
	if err := (&BackupCommand{Out: file, StoreFlags: flags(from)}).Run(e); err != nil {
		t.Fatal(err)
	}
	if err := (&RestoreCommand{File: file, StoreFlags: flags(to)}).Run(e); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\nVoid: 0 sessions, 0 sign-in links, ") {
		t.Errorf("what is void is not said: %s", out.String())
	}
	if !strings.Contains(out.String(), "does not know which users were locked") {
		t.Errorf("that an empty store has nothing to compare with is not said: %s", out.String())
	}
	if text := voidedSummary(backup.Voided{NoAdmin: true}, false); !strings.Contains(text, "No admin may sign in") ||
		!strings.Contains(text, "`loadstone signin`") {
		t.Errorf("nobody may sign in, and that is not said: %s", text)
	}
	for _, out := range []string{filepath.Join(t.TempDir(), "nowhere", "b"), filepath.Join(t.TempDir(), "new") + "/"} {
		err := (&BackupCommand{Out: out, StoreFlags: flags(from)}).Run(e)
		if err == nil || !strings.Contains(err.Error(), "does not exist") || strings.Contains(err.Error(), ".part") {
			t.Errorf("%s: %v", out, err)
		}
	}
	if !strings.Contains(message.String(), "Left stopped, 2 of the continuous queries: busy, slow. DROP ") {
		t.Errorf("told: %s", message.String())
	}
}

// TestTheKeyOfABackupIsCompared: a backup of before a rotation is restored beside a key file that has both keys.
func TestTheKeyOfABackupIsCompared(t *testing.T) {
	t.Setenv(keyring.KeyEnv, "")
	file := filepath.Join(t.TempDir(), keyFileName)
	ring, err := keyring.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	next, err := ring.AddKey()
	if err == nil {
		err = ring.MoveFirst(next)
	}
	if err != nil {
		t.Fatal(err)
	}
	both, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !holdsKeys(both, before) || !holdsKeys(before, before) {
		t.Error("the key of before is refused")
	}
	if holdsKeys(before, both) {
		t.Error("a key is missing, and that is not noticed")
	}
}
