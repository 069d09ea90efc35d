package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
	storagepostgres "github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// rotatedSecrets is how many secrets the test rotates.
const rotatedSecrets = 10_000

// TestKeysAreRotatedWhileServing replaces the key of two servers under a run: a server that lacks the new key holds it
// up, a kill in the middle loses nothing, and a backup of before opens with the key of before.
func TestKeysAreRotatedWhileServing(t *testing.T) {
	clitest.Long(t, "two servers, a run, and 10 000 secrets")
	t.Parallel()
	c := newCluster(t)
	control := c.control.Config().ConnString()
	rotate := func(dir string, args ...string) []string {
		return append([]string{"keys", "rotate", "--data-dir", dir, "--database-url", control}, args...)
	}
	p := &clitest.Program{T: t, Dir: t.TempDir()}

	keyFile := func(i int) string { return filepath.Join(c.dirs[i], keyring.FileName) }
	earlier, err := os.ReadFile(keyFile(0))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keyring.Open(keyFile(0))
	if err != nil {
		t.Fatal(err)
	}
	first := ring.FirstID()
	var rows [][]any
	for i := range rotatedSecrets {
		id := fmt.Sprintf("many-%05d", i)
		rows = append(rows, []any{id, id, "postgres", "postgres://u:***@h/d",
			ring.Seal([]byte("postgres://u:pw@h/d"), "connection:"+id)})
	}
	if _, err := c.control.CopyFrom(
		t.Context(),
		pgx.Identifier{"connections"},
		[]string{
			"connection_id",
			"connection_name",
			"driver",
			"dsn_redacted",
			"dsn_sealed",
		},
		pgx.CopyFromRows(rows),
	); err != nil {
		t.Fatal(err)
	}
	var shop struct {
		ID string `json:"connection_id"`
	}
	c.proxies[0].Do(
		"POST",
		"/api/connections",
		map[string]string{"name": "shop", "driver": "postgres", "dsn": c.load},
		&shop,
	)
	before := p.Path("before.backup")
	if code, text := p.Command("backup", "--data-dir", c.dirs[0], "--database-url", control, "--out", before); code != 0 {
		t.Fatalf("backup: %d\n%s", code, text)
	}
	run := c.start(0, 45, time.Second)

	// Both servers open secrets all the while.
	var tested, failed atomic.Int64
	var testing sync.WaitGroup
	stop := make(chan struct{})
	for i := range c.proxies {
		testing.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(200 * time.Millisecond):
				}
				tested.Add(1)
				status, err := c.proxies[i].Try("POST", "/api/connections/"+shop.ID+"/test", nil, nil)
				if err != nil || status != http.StatusOK {
					failed.Add(1)
					t.Logf("server %d: %d %v", i, status, err)
				}
			}
		})
	}

	// A stranger's key opens nothing, and nothing is done.
	stranger := p.Path("stranger")
	if _, err := keyring.Open(filepath.Join(stranger, keyring.FileName)); err != nil {
		t.Fatal(err)
	}
	if code, text := p.Command(rotate(stranger)...); code == 0 || !strings.Contains(text, "under the key "+first) {
		t.Errorf("with a wrong key: %d\n%s", code, text)
	}
	if code, text := p.Command(rotate(c.dirs[0], "--dry-run")...); code != 0 ||
		!strings.Contains(text, "10001 sealed under "+first+": connections") {
		t.Errorf("dry run: %d\n%s", code, text)
	}
	// The other server has the old file alone.
	if code, text := p.Command(
		rotate(c.dirs[0], "--wait", "3s")...); code == 0 ||
		!strings.Contains(text, "have the key") {
		t.Errorf("without the other server: %d\n%s", code, text)
	}
	both, err := os.ReadFile(keyFile(0))
	if err != nil || bytes.Equal(both, earlier) {
		t.Fatalf("the key file: %v", err)
	}
	if err := os.WriteFile(keyFile(1), both, 0o600); err != nil {
		t.Fatal(err)
	}
	left := func() (n int) {
		prefix := sealedPrefix(t, ring, first)
		if err := c.control.QueryRow(t.Context(), "SELECT count(*) FROM connections WHERE dsn_sealed LIKE $1 || '%'", prefix).
			Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// It is killed in the middle …
	working := clitest.Launch(t, rotate(c.dirs[0])...)
	clitest.Until(t, time.Minute, func() bool { n := left(); return n > 0 && n < rotatedSecrets-500 }, working.Out.String)
	c.kill(working)
	middle := left()
	if middle == 0 {
		t.Error("it was killed too late to be in the middle")
	}
	// … and goes on.
	began := time.Now()
	code, text := p.Command(rotate(c.dirs[0])...)
	took := time.Since(began)
	if code != 0 || !strings.Contains(text, "Going on with the rotation") || left() != 0 {
		t.Fatalf("going on: %d, %d left\n%s", code, left(), text)
	}
	t.Logf("%d of %d secrets were left after the kill; the rest took %s", middle, rotatedSecrets, took)
	close(stop)
	testing.Wait()
	if tested.Load() < 20 || failed.Load() > 0 {
		t.Errorf("%d of %d tests of a connection failed", failed.Load(), tested.Load())
	}

	// The earlier key is needed no more, by anybody who runs.
	for i := range c.dirs {
		text, err := os.ReadFile(keyFile(0))
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		if err := os.WriteFile(keyFile(i), []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	clitest.Until(t, 30*time.Second, func() bool {
		_, text := p.Command("keys", "status", "--data-dir", c.dirs[0], "--database-url", control)
		return !strings.Contains(text, first)
	}, func() string { return c.servers[0].Out.String() })
	for i, session := range c.proxies {
		if status, err := session.Try("POST", "/api/connections/"+shop.ID+"/test", nil, nil); err != nil ||
			status != http.StatusOK {
			t.Errorf("server %d without the earlier key: %d %v", i, status, err)
		}
	}
	if d := c.proxies[0].AwaitEnd(run.RunID, c.servers[0]); d.Status != engine.StatusCompleted {
		t.Errorf("the run is %s: %v", d.Status, d.CancellationReason)
	}

	// A backup of before opens with the key of before.
	c.kill(c.servers[0])
	c.kill(c.servers[1])
	again := t.TempDir()
	if err := os.WriteFile(filepath.Join(again, keyring.FileName), earlier, 0o600); err != nil {
		t.Fatal(err)
	}
	restored := pgtest.Start(t).NewDatabase(t)
	if code, text := p.Command("restore", before, "--data-dir", again, "--database-url", restored); code != 0 {
		t.Fatalf("restore: %d\n%s", code, text)
	}
	code, text = p.Command("keys", "status", "--data-dir", again, "--database-url", restored)
	if code != 0 || !strings.Contains(text, "10001 sealed under "+first+": connections") ||
		strings.Contains(text, "not here") {
		t.Errorf("the backup of before: %d\n%s", code, text)
	}
}

// TestALostKeyIsGivenUpByARestore: a backup without its key is restored with --lost-key, and a server starts then.
// Without it the command says that the key is missing, or that another one is there, and names the flag.
func TestALostKeyIsGivenUpByARestore(t *testing.T) {
	t.Setenv(keyring.KeyEnv, "")
	var out bytes.Buffer
	e := &terminal.Env{Ctx: t.Context(), Stdout: &out, Stderr: &out, Log: zerolog.Nop()}
	flags := func(dsn, dir string) (f wiring.StoreFlags) {
		f.DataDir, f.DatabaseURL = dir, dsn
		return f
	}
	open := func(dsn, dir string) (*storagepostgres.Store, error) {
		keys, err := keyring.Open(filepath.Join(dir, keyring.FileName))
		if err != nil {
			return nil, err
		}
		s, err := storagepostgres.Open(t.Context(), dsn, keys)
		if err == nil {
			t.Cleanup(s.Close)
		}
		return s, err
	}
	empty := func() string {
		return postgrestest.NewControl(t)
	}
	from, dir := empty(), t.TempDir()
	s, err := open(from, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveConnection(t.Context(), store.Connection{Name: "shop", Driver: "postgres",
		DSN: "postgres://a:b@db/shop"}); err != nil {
		t.Fatal(err)
	}
	plain, keyed := filepath.Join(t.TempDir(), "plain"), filepath.Join(t.TempDir(), "keyed")
	for _, c := range []*BackupCommand{{Out: plain, StoreFlags: flags(from, dir)},
		{Out: keyed, WithKey: true, StoreFlags: flags(from, dir)}} {
		if err := c.Run(e); err != nil {
			t.Fatal(err)
		}
	}
	to := empty()
	for name, c := range map[string]RestoreCommand{
		"a key that is not lost": {File: keyed, LostKey: true},
		"tokens of a lost key":   {File: plain, LostKey: true, KeepTokens: true},
	} {
		c.StoreFlags = flags(to, t.TempDir())
		if err := c.Run(e); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := t.TempDir()
	if _, err := keyring.Open(filepath.Join(other, keyring.FileName)); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]string{"no key": t.TempDir(), "another key": other, "its key": dir} {
		out.Reset()
		c := RestoreCommand{File: plain, Replace: true, StoreFlags: flags(to, at)}
		if err := c.Run(e); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if named := strings.Contains(out.String(), "--lost-key"); named != (at != dir) {
			t.Errorf("restored beside %s: %s", name, out.String())
		}
		server, err := open(to, at)
		if (err == nil) != (at == dir) {
			t.Errorf("a server starts beside %s: %v", name, err)
		}
		if err == nil {
			server.Close() // the next restore asks that no server uses the control store
		}
	}
	for name, at := range map[string]string{"no key": t.TempDir(), "another key": other} {
		out.Reset()
		c := RestoreCommand{File: plain, Replace: true, LostKey: true, StoreFlags: flags(empty(), at)}
		if err := c.Run(e); err != nil || !strings.Contains(out.String(), "have to be entered again") {
			t.Errorf("given up beside %s: %v\n%s", name, err, out.String())
		}
		restored, err := open(c.DatabaseURL, at)
		if err != nil {
			t.Fatalf("after the key was given up beside %s: %v", name, err)
		}
		if all, err := restored.ListConnections(t.Context()); err != nil || len(all) != 1 || all[0].Name != "shop" {
			t.Errorf("connections: %+v, %v", all, err)
		}
	}
}

// TestKeysOfAnotherPlaceChangeNothing: `keys status` makes no key and writes nothing; a key that is lost is given up by
// word alone, and servers start with the new one then.
func TestKeysOfAnotherPlaceChangeNothing(t *testing.T) {
	t.Setenv(keyring.KeyEnv, "")
	dsn, dir := postgrestest.NewControl(t), t.TempDir()
	open := func(dir string) error {
		keys, err := keyring.Open(filepath.Join(dir, keyring.FileName))
		if err != nil {
			return err
		}
		s, err := storagepostgres.Open(t.Context(), dsn, keys)
		if err == nil {
			s.Close()
		}
		return err
	}
	var out bytes.Buffer
	e := &terminal.Env{Ctx: t.Context(), Stdout: &out, Stderr: &out, Log: zerolog.Nop()}
	flags := func(dir string) (f wiring.StoreFlags) {
		f.DataDir, f.DatabaseURL = dir, dsn
		return f
	}
	laptop := t.TempDir()
	if err := (&KeysStatusCommand{flags(laptop)}).Run(e); !engine.HasCode(err, engine.CodeNotFound) {
		t.Errorf("status without a key: %v", err)
	}
	if !missingParts(filepath.Join(laptop, keyring.FileName)) {
		t.Error("status has made a key")
	}
	if _, err := keyring.Open(filepath.Join(laptop, keyring.FileName)); err != nil {
		t.Fatal(err)
	}
	// Before any server of this version, and with another key.
	if err := (&KeysStatusCommand{flags(laptop)}).Run(
		e,
	); err != nil ||
		!strings.Contains(out.String(), "seals: none yet") {
		t.Errorf("status before any server: %v\n%s", err, out.String())
	}
	if err := open(dir); err != nil {
		t.Fatalf("the status of another key had a say: %v", err)
	}
	if err := (&KeysStatusCommand{flags(laptop)}).Run(
		e,
	); err != nil ||
		!strings.Contains(out.String(), "which is not here") {
		t.Errorf("status of another key: %v\n%s", err, out.String())
	}
	if err := open(laptop); err == nil {
		t.Error("a server starts with another key")
	}
	if err := (&KeysRotateCommand{StoreFlags: flags(laptop), Wait: time.Second}).Run(e); err == nil {
		t.Error("another key rotates")
	}
	if err := (&KeysRotateCommand{StoreFlags: flags(laptop), Wait: time.Second, LostKey: true}).Run(e); err != nil {
		t.Errorf("the key is given up: %v\n%s", err, out.String())
	}
	if err := open(laptop); err != nil {
		t.Errorf("after the key was given up: %v", err)
	}
	if err := open(dir); err == nil {
		t.Error("a server starts with the key that was given up")
	}
	// A rotation to a key that is lost is given up, too.
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), "UPDATE key_rotation SET next_key = 'deadbeef'"); err != nil {
		t.Fatal(err)
	}
	rotate := KeysRotateCommand{StoreFlags: flags(laptop), Wait: time.Second}
	if err := rotate.Run(e); !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("a rotation to a lost key: %v", err)
	}
	rotate.LostKey = true
	if err := rotate.Run(e); err != nil || open(laptop) != nil {
		t.Errorf("a rotation to a lost key is given up: %v\n%s", err, out.String())
	}
}

// sealedPrefix is how texts begin that are sealed under the first key of a ring.
func sealedPrefix(t *testing.T, ring *keyring.Keyring, id string) string {
	t.Helper()
	sealed := ring.Seal(nil, "")
	if got, _ := keyring.KeyID(sealed); got != id {
		t.Fatalf("it seals under %s", got)
	}
	return sealed[:6]
}
