package postgres_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
)

// listener hangs up on everybody who calls it.
type listener struct {
	net.Listener
	from chan string
}

func listen(t *testing.T) listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	heard := listener{l, make(chan string, 100)}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			heard.from <- c.RemoteAddr().String()
			_ = c.Close()
		}
	}()
	return heard
}

// callers is how many have called so far. A call waits to be accepted, possibly after the caller has gone: ours is the
// last in that line.
func (l listener) callers(t *testing.T) (n int) {
	t.Helper()
	own, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Close() }()
	for <-l.from != own.LocalAddr().String() {
		n++
	}
	return n
}

// TestOnlyWhatMayBeReached: by the address that a name has led to, and by the name; nobody else hears a byte. Each case
// has a listener of its own: of a connection that was cut off the driver takes leave by another one, in its own time.
func TestOnlyWhatMayBeReached(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list    []string
		host    string
		reached bool
	}{
		{nil, "127.0.0.1", true}, {[]string{"10.0.0.0/8"}, "127.0.0.1", false}, {[]string{"10.0.0.0/8"}, "localhost", false},
		{[]string{"127.0.0.0/8"}, "localhost", true}, {[]string{"localhost:PORT"}, "localhost", true},
		{[]string{"localhost:1"}, "localhost", false}, {nil, "169.254.169.254", false}, {nil, "[::ffff:169.254.1.1]", false},
	} {
		l := listen(t)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		for i, rule := range c.list {
			c.list[i] = strings.ReplaceAll(rule, "PORT", port)
		}
		p, err := egress.Parse(c.list)
		if err != nil {
			t.Fatal(err)
		}
		db, err := postgres.NewStrictDriver(nil, p).Open(target.Config{ConnectTimeout: 3 * time.Second,
			DSN: secret.New("postgres://u:p@" + c.host + ":" + port + "/d?sslmode=disable")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Check(t.Context())
		refused := err != nil && (strings.Contains(err.Error(), "not among the addresses") ||
			strings.Contains(err.Error(), "of the link"))
		_ = db.Close()
		if n := l.callers(t); !engine.HasCode(err, engine.CodeTarget) || refused == c.reached || (n > 0) != c.reached {
			t.Errorf("%v %s: %v, %d callers", c.list, c.host, err, n)
		}
	}
}

// TestWhereNobodyIsSpokenWithIsRefusedWhereItIsWritten: addresses of the link and of a cloud's keys are refused when a
// connection is saved, too, each of its hosts, whatever is listed. A name is judged by what it leads to, when it is
// dialled.
func TestWhereNobodyIsSpokenWithIsRefusedWhereItIsWritten(t *testing.T) {
	t.Parallel()
	for _, p := range []*egress.Policy{allowed(t), allowed(t, "0.0.0.0/0", "::/0", "metadata.google.internal")} {
		server, ok := postgres.NewStrictDriver(nil, p).(target.SecretRedactor)
		if !ok {
			t.Fatal("it validates no connection")
		}
		for dsn, refused := range map[string]bool{"postgres://u@169.254.169.254/d": true,
			"postgres://u@[::ffff:169.254.1.1]:5432/d": true, "postgres://u@db.example,[fe80::1%25eth0]/d": true,
			"host=metadata.google.internal user=u": true, "host=db.example hostaddr=fd00:ec2::254 user=u": true,
			"host=a,b hostaddr=10.0.0.7,169.254.1.1 user=u": true, "postgres://u@db.example,10.0.0.7,127.0.0.1/d": false,
			"host=db.example hostaddr=10.0.0.7 user=u": false} {
			if err := server.Validate(dsn); errors.Is(err, egress.ErrRefused) != refused ||
				refused && strings.Contains(err.Error(), "invalid") {
				t.Errorf("%s: %v", dsn, err)
			}
		}
	}
}

// TestSocketsAreReachedWhereTheyAreListed: when a connection is written, and again when it is dialled, where a link may
// lead elsewhere by then.
func TestSocketsAreReachedWhereTheyAreListed(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "reach") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, name := range []string{"listed", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, name, ".s.PGSQL.5432"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = c.Close()
			}
		}()
	}
	dsn := func(name string) string { return "host=" + filepath.Join(dir, name) + " user=u dbname=d" }
	refused := func(err error) bool {
		return errors.Is(err, egress.ErrRefused) && engine.HasCode(err, engine.CodeTarget)
	}
	check := func(list []string, dsn string) error {
		p, err := egress.Parse(list)
		if err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(dir, "listed", "link")
		_ = os.Remove(link)
		if err := os.Symlink(filepath.Join(dir, "listed"), link); err != nil {
			t.Fatal(err)
		}
		db, err := postgres.NewStrictDriver(nil, p).Open(target.Config{DSN: secret.New(dsn), ConnectTimeout: 3 * time.Second})
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		// Between writing and dialling a link is made to lead elsewhere.
		_ = os.Remove(link)
		if err := os.Symlink(filepath.Join(dir, "other"), link); err != nil {
			t.Fatal(err)
		}
		_, err = db.Check(t.Context())
		return err
	}
	listed := "unix:" + filepath.Join(dir, "listed")
	for _, c := range []struct {
		list    []string
		dsn     string
		reached bool
	}{
		{nil, dsn("listed"), false}, {[]string{"0.0.0.0/0", "::/0"}, dsn("listed"), false},
		{[]string{listed}, dsn("listed"), true}, {[]string{listed}, dsn("other"), false},
		{[]string{listed}, dsn("listed/../other"), false}, {[]string{listed}, dsn("listed/link"), false},
		{[]string{listed}, "host=" + filepath.Join(dir, "listed") + "," + filepath.Join(dir, "other") + " user=u", false},
		{[]string{listed}, "host=@" + dir + " user=u", false},
	} {
		if err := check(c.list, c.dsn); err == nil || refused(err) == c.reached && !strings.Contains(c.dsn, "@") {
			t.Errorf("%v %s: %v", c.list, c.dsn, err)
		}
	}
}
