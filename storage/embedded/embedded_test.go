package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
)

// victimEnv makes the test binary a process that starts Postgres and waits to be killed.
const victimEnv = "LOADSTONE_TEST_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimEnv); dir != "" {
		pg, err := Start(context.Background(), Options{DataDir: dir, Log: zerolog.Nop(), Throwaway: true})
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println("pid:", pg.PID())
		_, _ = io.Copy(io.Discard, os.Stdin)
		select {}
	}
	goleak.VerifyTestMain(m)
}

// folder is reachable for the user that runs Postgres, unlike t.TempDir as root.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "loadstone-embedded-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func begin(t *testing.T, dir string) *Postgres {
	t.Helper()
	pg, err := Start(t.Context(), Options{DataDir: dir, Log: zerolog.New(zerolog.NewTestWriter(t)), Throwaway: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, pg) })
	return pg
}

func end(t *testing.T, pg *Postgres) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := pg.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func query(t *testing.T, dsn, sql string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var text string
	err = conn.QueryRow(ctx, sql).Scan(&text)
	return text, err
}

func TestStartStopAndStartAgain(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	pg := begin(t, dir)
	for _, database := range []string{ControlDatabase, PlaygroundDatabase} {
		got, err := query(t, pg.DSN(database), "SELECT current_database() || ' ' || current_user")
		if want := database + " " + database; err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", database, got, err, want)
		}
	}
	if got, err := query(t, pg.DSN(ControlDatabase), "SHOW listen_addresses"); err != nil || got != "" {
		t.Errorf("listen_addresses is %q, %v; there must be no TCP", got, err)
	}
	for _, guest := range guestDatabases {
		if got, err := query(t, pg.DSN(guest), "SELECT current_user || '@' || current_database()"); err != nil ||
			got != guest+"@"+guest {
			t.Errorf("%s is opened as %q, %v", guest, got, err)
		}
		for _, other := range append([]string{ControlDatabase, "postgres"}, guestDatabases...) {
			_, err := query(t, pg.place.dsn(other, guest), "SELECT 'in'")
			if (err == nil) != (other == guest) {
				t.Errorf("the role %s in the database %s: %v", guest, other, err)
			}
		}
	}
	end(t, pg)
	end(t, pg) // twice is safe
	if left := runningProcesses(pg.place.cluster); len(left) > 0 {
		t.Errorf("processes after Stop: %v", left)
	}
	second := begin(t, dir)
	if _, err := query(t, second.DSN(ControlDatabase), "SELECT 'back'"); err != nil {
		t.Error(err)
	}
}

func TestKilledPostmasterComesBack(t *testing.T) {
	t.Parallel()
	pg := begin(t, folder(t))
	for range 2 {
		old := pg.PID()
		if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for begun := time.Now(); pg.PID() == old; time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > 30*time.Second {
				t.Fatal("not restarted")
			}
		}
		if _, err := query(t, pg.DSN(ControlDatabase), "SELECT 'back'"); err != nil {
			t.Error(err)
		}
	}
}

// A supervisor that is killed, and a postmaster that does not get its
// parent-death signal because it is stopped at that moment, leave an orphan.
func TestOrphanIsStoppedOnStart(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	victim := exec.Command(self)
	victim.Env = append(os.Environ(), victimEnv+"="+dir)
	stdin, err := victim.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "pid: ") {
		_ = victim.Process.Kill()
		t.Fatalf("the victim said %q, %v", line, err)
	}
	orphan, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "pid: ")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{DataDir: dir, Log: zerolog.Nop()}); !engine.HasCode(err, engine.CodeConflict) {
		t.Errorf("a second start on the same folder: %v, want a conflict", err)
	}
	// Frozen, the orphan survives the death signal until we let it go on.
	_ = syscall.Kill(orphan, syscall.SIGSTOP)
	_ = victim.Process.Kill()
	_ = victim.Wait()
	thaw := time.AfterFunc(300*time.Millisecond, func() { _ = syscall.Kill(orphan, syscall.SIGCONT) })
	defer thaw.Stop()
	pg := begin(t, dir)
	if pg.PID() == orphan {
		t.Error("the orphan was taken for our own child")
	}
	if _, err := query(t, pg.DSN(ControlDatabase), "SELECT 'mine'"); err != nil {
		t.Error(err)
	}
}

// A killed container leaves a pid file whose number belongs to someone else in the next one.
func TestStalePidFile(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	pg := begin(t, dir)
	end(t, pg)
	for _, path := range []string{filepath.Join(pg.place.cluster, "postmaster.pid"),
		filepath.Join(pg.SocketDir(), ".s.PGSQL.5432.lock")} {
		if err := os.WriteFile(path, fmt.Appendf(nil, "%d\n%s\n", os.Getpid(), pg.place.cluster), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := pg.id.chown(path); err != nil {
			t.Fatal(err)
		}
	}
	begin(t, dir)
}

func TestLongPathMovesTheSocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(folder(t), strings.Repeat("long-name-", 12), "it's a \\ folder")
	pg := begin(t, dir)
	if len(pg.SocketDir()) > maxSocketDir || strings.HasPrefix(pg.SocketDir(), dir) {
		t.Errorf("socket folder %s", pg.SocketDir())
	}
	t.Cleanup(func() { os.RemoveAll(pg.SocketDir()) })
	if _, err := query(t, pg.DSN(PlaygroundDatabase), "SELECT 'short'"); err != nil {
		t.Error(err)
	}
}

func TestUnreachableFolderMovesTheCluster(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs Postgres as another user")
	}
	dir := folder(t)
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	pg := begin(t, dir)
	if strings.HasPrefix(pg.Dir(), dir) {
		t.Errorf("the cluster is in %s, which its user cannot enter", pg.Dir())
	}
	t.Cleanup(func() { os.RemoveAll(pg.Dir()) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	end(t, pg)
	if second := begin(t, dir); second.Dir() != pg.Dir() {
		t.Errorf("once the folder could be entered, an empty cluster was made in %s", second.Dir())
	}
}

func TestClusterThatCannotBeReachedAnyMore(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs Postgres as another user")
	}
	dir := folder(t)
	end(t, begin(t, dir))
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{DataDir: dir, Log: zerolog.Nop()}); !engine.HasCode(err,
		engine.CodeUnavailable) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want an error that names the folder", err)
	}
}

func TestMissingBinaries(t *testing.T) {
	t.Setenv(BinEnv, t.TempDir())
	_, err := Start(t.Context(), Options{DataDir: folder(t), Log: zerolog.Nop()})
	var e *engine.Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, BinEnv) {
		t.Errorf("got %v, want an error that names %s", err, BinEnv)
	}
	if e := missing("", nil); !strings.Contains(e.Hint, "install") {
		t.Errorf("the hint %q does not say how to install", e.Hint)
	}
	if e := missing("", []install{{version: "13.2"}}); !strings.Contains(e.Message, "13.2 is too old") {
		t.Errorf("the message %q does not name the old version", e.Message)
	}
}

func TestUnusableFolders(t *testing.T) {
	t.Parallel()
	file := filepath.Join(folder(t), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below"), "/proc/loadstone"} {
		_, err := Start(t.Context(), Options{DataDir: dir, Log: zerolog.Nop()})
		if !engine.HasCode(err, engine.CodeUnavailable) {
			t.Errorf("%s: got %v, want a user-facing error", dir, err)
		}
	}
	for cause, want := range map[error]string{syscall.ENOSPC: "full", syscall.EROFS: "read-only",
		os.ErrPermission: "may not write"} {
		if err := unusable("/data", fmt.Errorf("writing: %w", cause)); !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %q does not say %q", cause, err, want)
		}
	}
}

func TestClusterOfAnotherMajor(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	if err := os.Mkdir(filepath.Join(dir, "postgres"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "postgres", "PG_VERSION"), []byte("97\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{DataDir: dir, Log: zerolog.Nop()})
	if err == nil || !strings.Contains(err.Error(), "Postgres 97") {
		t.Errorf("got %v, want an error that names version 97", err)
	}
}

func TestBrokenConfigurationIsExplained(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{DataDir: folder(t), Log: zerolog.Nop(), Throwaway: true,
		Settings: map[string]string{"shared_buffers": "much"}})
	if !engine.HasCode(err, engine.CodeUnavailable) || !strings.Contains(err.Error(), "postgres.log") {
		t.Errorf("got %v, want an error that names the log", err)
	}
}

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n": 15,
		"postgres (PostgreSQL) 18beta1\n":                        18,
		"postgres (PostgreSQL) 17.2\n":                           17,
		"postgres (PostgreSQL) ":                                 0,
		"PostgreSQL":                                             0,
		"postgres (PostgreSQL) devel":                            0,
	} {
		_, major, err := parseVersion(text)
		if major != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %d, %v, want %d", text, major, err, want)
		}
	}
}

// BenchmarkStart measures a start with an existing data directory, which the
// server's own start waits for.
func BenchmarkStart(b *testing.B) {
	dir, err := os.MkdirTemp("", "loadstone-embedded-")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	once := func() {
		pg, err := Start(b.Context(), Options{DataDir: dir, Log: zerolog.Nop()})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := pg.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	once()
	b.ResetTimer()
	for range b.N {
		once()
	}
}
