package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

func openDSN(t testing.TB, dsn string, timeout time.Duration) target.Database {
	t.Helper()
	db, err := postgres.NewDriver().
		Open(target.Config{DSN: secret.New(dsn), ConnectTimeout: 2 * time.Second, StatementTimeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

const password = "s3cr3t-pa55word"

// serve runs a server that treats each connection with handle, until the test ends.
func serve(t *testing.T, handle func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			go handle(c)
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-over })
	return l.Addr().String()
}

func TestCheckSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := closed.Addr().String()
	_ = closed.Close()
	server := pgtest.Start(t)
	real := server.DSN("loadstone")
	for name, c := range map[string]struct{ dsn, message string }{
		"refused": {"postgres://u:" + password + "@" + refused + "/d", "Nothing accepts connections at " + refused},
		"dns": {"postgres://u:" + password + "@no-such-host.invalid/d",
			`The host name "no-such-host.invalid" cannot be found`},
		"socket": {"host=/nowhere user=u password=" + password + " dbname=d",
			"There is no PostgreSQL socket in /nowhere for port 5432"},
		"silent": {"postgres://u:" + password + "@" + serve(t, func(net.Conn) {}) + "/d?sslmode=disable",
			"did not answer within 2s"},
		"hangs up": {"postgres://u:" + password + "@" +
			serve(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 100)); _ = c.Close() }) + "/d?sslmode=disable",
			"closed the connection while it was being set up"},
		"not pg": {"postgres://u:" + password + "@" +
			serve(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }) + "/d?sslmode=disable",
			"is not PostgreSQL"},
		"no tls": {"postgres://u:" + password + "@" +
			serve(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 8)); _, _ = c.Write([]byte("N")) }) + "/d?sslmode=require",
			"does not offer TLS"},
		"bad tls": {"postgres://u:" + password + "@" +
			serve(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 8)); _, _ = c.Write([]byte("SHTTP/1.1 400\r\n")) }) +
			"/d?sslmode=require", "TLS with"},
		"no such": {with(t, real, "nosuch"), `There is no database "nosuch"`},
		// With sslmode=prefer, the default, the want of TLS is not the reason.
		"silent, prefer": {"postgres://u:" + password + "@" + serve(t, func(net.Conn) {}) + "/d", "did not answer within 2s"},
		"hangs up, prefer": {"postgres://u:" + password + "@" + serve(t,
			func(c net.Conn) { _, _ = c.Read(make([]byte, 100)); _ = c.Close() }) + "/d",
			"closed the connection while it was being set up"},
		"not pg, prefer": {"postgres://u:" + password + "@" + serve(t,
			func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }) + "/d", "is not PostgreSQL"},
		"key value": {"host=" + strings.Split(refused, ":")[0] + " port=" + strings.Split(refused, ":")[1] +
			" password=" + password, "Nothing accepts connections"},
	} {
		t.Run(name, func(t *testing.T) {
			db := openDSN(t, c.dsn, 0)
			_, err := db.Check(t.Context())
			explain(t, err, c.message)
			// Load connections and the cold ones say the same.
			_, err = db.Connect(t.Context(), nil)
			explain(t, err, c.message)
			_, err = db.Query(t.Context(), "SELECT 1")
			explain(t, err, c.message)
		})
	}
	for _, dsn := range []string{"", "postgres://u:" + password + "@host:99999999/d", "postgres://u:" + password + "@[::1/d",
		"what is " + password, "postgres://u:" + password + "@h/d?sslmode=sometimes"} {
		_, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn)})
		explain(t, err, "connection")
	}
}

func explain(t *testing.T, err error, message string) {
	t.Helper()
	var e *engine.Error
	if !errors.As(err, &e) || e.Code != engine.CodeTarget || e.Hint == "" || !strings.Contains(e.Message, message) {
		t.Errorf("%v\n\tdoes not say %q: %v", err, message, errors.Unwrap(err))
		return
	}
	if strings.Contains(err.Error()+e.Message+e.Hint+fmt.Sprint(e.Cause), password) {
		t.Errorf("the password is in %q, %q", err, e.Cause)
	}
}

// with returns a DSN for another database of the same server.
func with(t *testing.T, dsn, database string) string {
	t.Helper()
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		u.Path = "/" + database
		return u.String()
	}
	return dsn + " dbname=" + database
}

func TestLogInFailures(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"28P01": `The password for user "u" is wrong`, "53300": "has no connections left",
		"57P03": "is starting, stopping or recovering", "28000": `does not let user "u" in`,
	} {
		t.Run(code, func(t *testing.T) {
			address := serve(t, func(c net.Conn) {
				_, _ = c.Read(make([]byte, 1000))
				body := "SFATAL\x00VFATAL\x00C" + code + "\x00Msorry\x00\x00"
				_, _ = c.Write(append([]byte{'E', 0, 0, 0, byte(len(body) + 4)}, body...))
				_ = c.Close()
			})
			_, err := openDSN(t, "postgres://u:"+password+"@"+address+"/d?sslmode=disable", 0).Check(t.Context())
			explain(t, err, want)
		})
	}
}

// behind returns the socket of the test cluster, and a function that makes the
// URL under which it is reached through another address.
func behind(t *testing.T) (socket string, through func(address, sslmode string) string) {
	t.Helper()
	cfg, err := pgconn.ParseConfig(pgtest.Start(t).DSN("loadstone"))
	if err != nil {
		t.Fatal(err)
	}
	network, socket := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	if network != "unix" {
		t.Fatalf("the test cluster listens on %s %s, not on a unix socket", network, socket)
	}
	return socket, func(address, sslmode string) string {
		u := url.URL{Scheme: "postgres", User: url.User(cfg.User), Host: address, Path: "/" + cfg.Database,
			RawQuery: "sslmode=" + sslmode}
		return u.String()
	}
}

// proxy stands between the driver and a real server; rewrite may replace what the server sends.
func proxy(t *testing.T, rewrite func(n int, p []byte) []byte) string {
	t.Helper()
	socket, through := behind(t)
	address := serve(t, func(c net.Conn) {
		s, err := net.Dial("unix", socket)
		if err != nil {
			t.Error(err)
			return
		}
		go func() { _, _ = io.Copy(s, c); _ = s.Close() }()
		buf := make([]byte, 64<<10)
		for n := 0; ; n++ {
			k, err := s.Read(buf)
			if err != nil {
				_ = c.Close()
				return
			}
			if _, err := c.Write(rewrite(n, buf[:k])); err != nil {
				return
			}
		}
	})
	return through(address, "disable")
}

func lookup() []engine.Statement {
	return []engine.Statement{{ID: "s", SQL: "SELECT $1::bigint", Binds: []engine.Bind{{Type: engine.TypeI64}}}}
}

func TestGarbageAndSilenceOnTheLoadPath(t *testing.T) {
	t.Parallel()
	var garble, mute atomic.Bool
	through := proxy(t, func(_ int, p []byte) []byte {
		if garble.Load() {
			return bytes.Repeat([]byte{0xfe}, len(p))
		}
		if mute.Load() {
			return nil
		}
		return p
	})
	db := openDSN(t, through, 100*time.Millisecond)
	run := func(set *atomic.Bool) (engine.ExecutionError, bool) {
		c, err := db.Connect(t.Context(), lookup())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		b, op := targettest.Batch(0, int64(1))
		var res target.Result
		if err := c.Exec(t.Context(), b, op, &res); err != nil || res.Rows != 1 {
			t.Fatalf("%d rows, %v", res.Rows, err)
		}
		set.Store(true)
		defer set.Store(false)
		err = c.Exec(t.Context(), b, op, &res)
		if err == nil {
			t.Fatal("no error")
		}
		return db.Classify(err), c.Broken()
	}
	if e, broken := run(&garble); !broken || e.Code != "protocol_error" || e.Class != engine.ErrClassConnection {
		t.Errorf("garbage: %+v, broken %v", e, broken)
	}
	begin := time.Now()
	if e, broken := run(&mute); !broken || e.Class != engine.ErrClassTimeout || time.Since(begin) > 30*time.Second {
		t.Errorf("silence: %+v, broken %v after %v", e, broken, time.Since(begin))
	}
}

// TestServerTypes binds each plugin type to each server type that the adapter
// lists, and compares with what the server itself makes of the text.
func TestServerTypes(t *testing.T) {
	t.Parallel()
	db := openDSN(t, pgtest.Start(t).NewDatabase(t), 0)
	at := time.Date(2031, 5, 17, 13, 14, 15, 678000, time.UTC)
	uuid := "6f8a1c1e-3b0e-4f2b-9d27-0a3d6a2f7c11"
	if err := db.Exec(t.Context(), "CREATE TYPE mood AS ENUM ('sad', 'happy')"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		typ   string
		value any
		want  string
	}{
		{"int2", int64(-7), "-7"}, {"int4", int64(-70000), "-70000"}, {"int8", int64(1) << 60, "1152921504606846976"},
		{"oid", int64(4e9), "4000000000"}, {"numeric", int64(12), "12"}, {"text", int64(12), "12"},
		{"float8", int64(12), "12"},
		{"float4", 1.25, "1.25"}, {"float8", 1e-9, "1e-09"}, {"numeric", 0.1, "0.1"},
		{"numeric", 1e21, "1000000000000000000000"}, {"int4", 3.0, "3"},
		{"text", "x", "x"}, {"varchar(9)", "x", "x"}, {"char(3)", "x", "x"}, {"name", "x", "x"},
		{"numeric", "12.50", "12.50"},
		{"uuid", uuid, uuid}, {"json", `{"a":1}`, `{"a":1}`}, {"jsonb", `{"a":1}`, `{"a": 1}`},
		{"date", "2031-05-17", "2031-05-17"},
		{"timestamptz", "2031-05-17 13:14:15.000678+00", "2031-05-17 13:14:15.000678+00"},
		{"inet", "10.0.0.1", "10.0.0.1/32"}, {"mood", "happy", "happy"},
		{"interval", "01:02:03", "01:02:03"}, {"int4", "17", "17"}, {"int4[]", "{1,2}", "{1,2}"}, {"bytea", "ab", `\x6162`},
		{"bool", true, "true"}, {"text", false, "false"}, {"bool", int64(1), "true"}, {"bytea", []byte{0, 255}, `\x00ff`},
		{"text", []byte("b"), "b"},
		{"timestamp", at, "2031-05-17 13:14:15.000678"}, {"timestamptz", at, "2031-05-17 13:14:15.000678+00"},
		{"date", at, "2031-05-17"},
		{"date", time.Date(1999, 12, 31, 23, 0, 0, 0, time.UTC), "1999-12-31"}, {"text", at, "2031-05-17 13:14:15.000678Z"},
		{"int8", nil, ""}, {"mood", nil, ""},
	} {
		t.Run(fmt.Sprintf("%s from %T", c.typ, c.value), func(t *testing.T) {
			// The same value comes back out of a table, through the load path and through COPY.
			if err := db.Exec(t.Context(), "DROP TABLE IF EXISTS v", "CREATE TABLE v (v "+c.typ+")",
				"SET timezone = 'UTC'"); err != nil {
				t.Fatal(err)
			}
			conn, err := db.Connect(t.Context(), []engine.Statement{
				{ID: "i", SQL: "INSERT INTO v VALUES ($1)", Binds: []engine.Bind{{Type: engine.TypeText}}},
				{ID: "s", SQL: "SELECT * FROM v"}})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			var res target.Result
			b, op := targettest.Batch(0, c.value)
			if err := conn.Exec(t.Context(), b, op, &res); err != nil || res.Rows != 1 {
				t.Fatalf("%d rows, %v", res.Rows, err)
			}
			b, op = targettest.Batch(1)
			if err := conn.Exec(t.Context(), b, op, &res); err != nil || res.Rows != 1 {
				t.Fatalf("reading: %d rows, %v", res.Rows, err)
			}
			given := false
			n, err := db.Load(t.Context(), "v", []engine.Column{{Name: "v"}}, func() (plugin.Rows, error) {
				if given {
					return nil, nil
				}
				given = true
				return single{c.value}, nil
			}, nil)
			if err != nil || n != 1 {
				t.Fatalf("loading: %d rows, %v", n, err)
			}
			rs, err := db.Query(t.Context(), "SELECT v::text FROM v")
			if err != nil || len(rs.Rows) != 2 {
				t.Fatalf("%+v, %v", rs, err)
			}
			for i, path := range []string{"bind", "copy"} {
				got := rs.Rows[i][0]
				if c.value == nil {
					if got != nil {
						t.Errorf("%s: NULL became %v", path, got)
					}
				} else if text, _ := got.(string); strings.TrimRight(text, " ") != c.want {
					t.Errorf("%s: %v became %v, want %s", path, c.value, got, c.want)
				}
			}
		})
	}
}

type single struct{ v any }

func (s single) Len() int           { return 1 }
func (s single) Value(int, int) any { return s.v }

func TestOutOfRangeIsTheServersError(t *testing.T) {
	t.Parallel()
	db := openDSN(t, pgtest.Start(t).DSN("loadstone"), 0)
	c, err := db.Connect(t.Context(),
		[]engine.Statement{{ID: "s", SQL: "SELECT $1::int4", Binds: []engine.Bind{{Type: engine.TypeI64}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b, op := targettest.Batch(0, int64(1)<<40)
	err = c.Exec(t.Context(), b, op, &target.Result{})
	if e := db.Classify(err); e.Code != "22003" || e.Class != engine.ErrClassData || c.Broken() {
		t.Errorf("%v, %+v", err, e)
	}
}

// wide makes rows of six columns.
type wide struct {
	first int64
	n     int
}

func (w wide) Len() int { return w.n }
func (w wide) Value(r, c int) any {
	id := w.first + int64(r)
	switch c {
	case 0:
		return id
	case 1:
		return id % 1000
	case 2:
		return float64(id) * 1.25
	case 3:
		return "customer name of some length"
	case 4:
		return time.UnixMicro(1.7e15 + id)
	}
	return id%3 == 0
}

// BenchmarkLoad copies a million rows of six columns into a table with a primary key.
func BenchmarkLoad(b *testing.B) {
	const rows = 1_000_000
	db := openDSN(b, pgtest.Start(b).NewDatabase(b), 0)
	columns := []engine.Column{{Name: "id"}, {Name: "n"}, {Name: "x"}, {Name: "t"}, {Name: "m"}, {Name: "o"}}
	for b.Loop() {
		if err := db.Exec(context.Background(), "DROP TABLE IF EXISTS w",
			"CREATE TABLE w (id bigint PRIMARY KEY, n int, x float8, t text, m timestamptz, o boolean)"); err != nil {
			b.Fatal(err)
		}
		next := int64(0)
		begin := time.Now()
		n, err := db.Load(context.Background(), "w", columns, func() (plugin.Rows, error) {
			if next == rows {
				return nil, nil
			}
			w := wide{next, 1000}
			next += 1000
			return w, nil
		}, func(int64) {})
		if err != nil || n != rows {
			b.Fatalf("%d rows, %v", n, err)
		}
		b.ReportMetric(rows/time.Since(begin).Seconds(), "rows/s")
	}
}

// BenchmarkExec is one point lookup at a time on one connection.
func BenchmarkExec(b *testing.B) {
	db := openDSN(b, pgtest.Start(b).DSN("loadstone"), 30*time.Second)
	c, err := db.Connect(context.Background(), lookup())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	batch, op := targettest.Batch(0, int64(1))
	var res target.Result
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Exec(context.Background(), batch, op, &res); err != nil {
			b.Fatal(err)
		}
	}
}
