package postgres

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres/dsn"
)

// TestTheCanaryGetsNoConnection sends what joins a saved password to a listener
// that nothing may reach, through every spelling that an attacker has.
func TestTheCanaryGetsNoConnection(t *testing.T) {
	t.Parallel()
	canary, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	called := make(chan string, 100)
	go func() {
		for {
			c, err := canary.Accept()
			if err != nil {
				close(called)
				return
			}
			called <- c.RemoteAddr().String()
			_ = c.Close()
		}
	}()
	there := canary.Addr().String()
	_, port, _ := net.SplitHostPort(there)
	closed := "127.0.0.1:1"
	stored := "postgres://bench:secret@" + closed + "/d?sslmode=disable"
	d := driver{dsn.Reader{Strict: true}}
	for _, dsn := range []string{
		"postgres://bench:***@" + there + "," + closed + "/d?sslmode=disable",
		"postgres://bench:***@" + closed + "," + there + "/d?sslmode=disable",
		"postgres://bench:***@" + there + ",x@" + closed + "/d?sslmode=disable",
		"postgres://bench:***@" + closed + "/d?sslmode=disable&host=127.0.0.1&port=" + port,
		"postgres://bench:***@" + closed + "/d?sslmode=disable&hostaddr=127.0.0.1&port=" + port,
		"postgres://" + there + "/d?sslmode=disable&application_name=x:***@" + closed,
		"host=127.0.0.1\vport=" + port + "\vuser=bench password=*** sslmode=disable",
		"host=127.0.0.1 port=1 user=bench password=*** sslmode=disable port=" + port,
		"host=127.0.0.1,127.0.0.1 port=1," + port + " user=bench password=*** sslmode=disable",
	} {
		joined, err := d.RestoreSecrets(dsn, stored)
		if err != nil {
			continue
		}
		db, err := d.Open(target.Config{DSN: secret.New(joined), ConnectTimeout: time.Second})
		if err != nil {
			continue
		}
		_, _ = db.Check(t.Context())
		_ = db.Close()
		t.Errorf("%s was joined with the saved password", dsn)
	}
	time.Sleep(10 * time.Millisecond)
	if n := len(called); n > 0 {
		t.Errorf("the canary was called %d times", n)
	}
	// The canary would have noticed: a connection of its own arrives.
	db, err := d.Open(
		target.Config{DSN: secret.New("postgres://x@" + there + "/d?sslmode=disable"), ConnectTimeout: time.Second},
	)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = db.Check(t.Context())
	_ = db.Close()
	_ = canary.Close()
	n := 0
	for range called {
		n++
	}
	if n == 0 {
		t.Error("the canary does not notice calls")
	}
}

func TestAServerIsNoTargetOfItself(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "run")
	elsewhere := filepath.Join(dir, "elsewhere")
	for _, d := range []string{own, elsewhere} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	socket, err := net.Listen("unix", filepath.Join(own, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(own, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(own, ".s.PGSQL.5432"), filepath.Join(elsewhere, ".s.PGSQL.5432")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(own, ".s.PGSQL.5432"), filepath.Join(elsewhere, ".s.PGSQL.7777")); err != nil {
		t.Fatal(err)
	}
	d := driver{dsn.Reader{Strict: true, Own: func() []engine.OwnDatabase {
		return []engine.OwnDatabase{{Sealed: true, Socket: own, Guests: []string{"playground"}}}
	}}}
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	up, err := filepath.Rel(cwd, own)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, host := range []string{own, own + "/", own + "/.", own + "/../run", dir + "//run", link, link + "/",
		"/proc/self/root" + own, "/proc/self/cwd/run",
		"db.example," + own, own + ",db.example", "db.example," + link, up, "@" + own, "./run"} {
		for _, as := range []string{"user=loadstone dbname=loadstone", "user=loadstone dbname=playground",
			"user=playground dbname=loadstone", "user=snowsim dbname=snowsim", "user=playground dbname=postgres"} {
			if err := d.Validate("host='" + host + "' " + as); !engine.HasCode(err, engine.CodeTarget) {
				t.Errorf("%s %s is taken: %v", host, as, err)
			}
		}
	}
	for _, dsn := range []string{"host=" + elsewhere + " user=loadstone dbname=loadstone",
		"host=" + elsewhere + " port=7777 user=loadstone dbname=loadstone",
		"postgres://loadstone@" + strings.ReplaceAll(own, "/", "%2F") + "/loadstone",
		"postgres:///loadstone?user=loadstone&host=" + own} {
		if err := d.Validate(dsn); err == nil {
			t.Errorf("%s is taken", dsn)
		}
	}
	for _, dsn := range []string{"host=" + own + " user=playground dbname=playground", "postgres://u@db.example/loadstone",
		"host=" + dir + " user=u dbname=d"} {
		if err := d.Validate(dsn); err != nil {
			t.Errorf("%s is refused: %v", dsn, err)
		}
	}
	// What was harmless when it was opened is looked at again when it connects.
	later := filepath.Join(dir, "later")
	db, err := d.Open(target.Config{DSN: secret.New("host=" + later + " user=loadstone dbname=loadstone"),
		ConnectTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := os.Symlink(own, later); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "own Postgres") {
		t.Errorf("a link that came later was followed: %v", err)
	}
}
