package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// saves saves a connection to a Postgres.
func (s streamsServer) saves(name, dsn string) {
	s.T.Helper()
	in, err := json.Marshal(map[string]any{"name": name, "driver": "postgres", "dsn": dsn})
	if err != nil {
		s.T.Fatal(err)
	}
	if status, body := s.Send("POST", "/api/connections", string(in)); status != http.StatusCreated {
		s.T.Fatalf("%d %s", status, body)
	}
}

// TestPostgresSinkWithCertificates: rows are written over TLS to a server of an own authority that knows its users by
// their certificates. Of an authority or a certificate that is not accepted the statement says so, and no key is shown.
func TestPostgresSinkWithCertificates(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	secure := pgtest.StartTLS(t)
	config, err := pgx.ParseConfig(secure.Admin)
	if err != nil {
		t.Fatal(err)
	}
	config.Database = secure.User
	admin, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(t.Context()) }()
	if _, err := admin.Exec(t.Context(), "CREATE TABLE taken (ts int8, x int8); ALTER TABLE taken OWNER TO "+
		secure.User); err != nil {
		t.Fatal(err)
	}
	dsn := func(root string, id pgtest.Identity) string {
		cert, key := secure.Authority.Issue(t, id)
		q := url.Values{"sslmode": {"verify-full"}, "sslrootcert": {root}, "sslcert": {cert}, "sslkey": {key}}
		return "postgres://" + secure.User + "@" + secure.Host + "/" + secure.User + "?" + q.Encode()
	}
	p := clitest.NewProgram(t)
	s := streamsServer{p.Serve()}
	own := pgtest.Identity{Name: secure.User}
	s.saves("secure", dsn(secure.Authority.PEM, own))
	s.saves("stranger", dsn(pgtest.NewAuthority(t).PEM, own))
	s.saves("expired", dsn(secure.Authority.PEM, pgtest.Identity{Name: secure.User, Expired: true}))
	p.Write("data/streams/a.csv", "1,5\n2,6\n3,7\n")
	const into = "CREATE SINK %s TYPE POSTGRES SET('%[1]s' AS SINK.CONNECTION, 'taken' AS SINK.TABLE)"
	s.done(`CREATE LOGICAL SOURCE a(ts INT64, x INT64);
		CREATE PHYSICAL SOURCE FOR a TYPE FILE SET('a.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);` +
		fmt.Sprintf(into, "secure") + "; CREATE QUERY q AS SELECT ts, x FROM a INTO secure")
	s.until("q", "TERMINATED")
	n := 0
	if err := admin.QueryRow(t.Context(), "SELECT sum(x) FROM taken").Scan(&n); err != nil || n != 18 {
		t.Errorf("the sum of the rows is %d, %v", n, err)
	}
	for name, want := range map[string]string{"stranger": "unknown authority", "expired": "expired"} {
		status, body, _ := s.statements(fmt.Sprintf(into, name))
		if status/100 != 4 && status/100 != 5 || !strings.Contains(body, want) || strings.Contains(body, "PRIVATE") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if shown := s.done("SHOW SINKS") + s.Out.String(); strings.Contains(shown, "PRIVATE") {
		t.Error("a key is shown")
	}
	s.Stop()
}

// tcpSource is a TCP source that sends rows of about a kilobyte, at most so many a second, until it is stopped.
type tcpSource struct {
	port int
	sent atomic.Int64
	// stop ends the sending, end the connection.
	stop, end chan struct{}
}

func startTCPSource(t *testing.T, rate int) *tcpSource {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &tcpSource{port: l.Addr().(*net.TCPAddr).Port, stop: make(chan struct{}), end: make(chan struct{})}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for text := strings.Repeat("x", 1000); ; {
			select {
			case <-p.stop:
				<-p.end
				return
			case <-tick.C:
			}
			for range rate / 100 {
				if _, err := io.WriteString(c, fmt.Sprintf("%d,%s\n", p.sent.Load(), text)); err != nil {
					return
				}
				p.sent.Add(1)
			}
		}
	}()
	return p
}

// TestAnOutageUnderLoad: the server of two sinks is down while rows keep coming. One query waits, and every row is
// there once afterwards; the other one drops, and each row is there once or counted. Both say meanwhile what they wait
// for. With make soak the outage is one of a minute.
func TestAnOutageUnderLoad(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	pg := pgtest.StartCrashable(t, nil)
	conn, err := pgx.Connect(t.Context(), pg.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "CREATE TABLE waits (id int8, x text); "+
		"CREATE TABLE drops (id int8, x text)"); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
	s := streamsServer{clitest.NewProgram(t).Serve()}
	s.saves("shop", pg.DSN("postgres"))
	sources := map[string]*tcpSource{"waits": startTCPSource(t, 200), "drops": startTCPSource(t, 4000)}
	for name, p := range sources {
		s.done(fmt.Sprintf(`CREATE LOGICAL SOURCE from_%s(id INT64, x TEXT);
			CREATE PHYSICAL SOURCE FOR from_%[1]s TYPE TCP SET('127.0.0.1' AS SOURCE.SOCKET_HOST, %d AS SOURCE.SOCKET_PORT,
			'CSV' AS PARSER.TYPE, false AS SOURCE.RECONNECT);
			CREATE SINK %[1]s TYPE POSTGRES SET('shop' AS SINK.CONNECTION, '%[1]s' AS SINK.TABLE)`,
			name, p.port))
	}
	s.done("CREATE QUERY waits AS SELECT id, x FROM from_waits INTO waits; " +
		"CREATE QUERY drops AS SELECT id, x FROM from_drops ON OVERFLOW DROP INTO drops")
	type query struct {
		Name, State, Failure string
		Trouble              *struct{ Message string }
		Live                 *struct{ In, Out, Dropped, Malformed int64 }
	}
	now := func() map[string]query {
		var all struct{ Queries []query }
		s.GetJSON("/api/v1/streams", &all)
		found := map[string]query{}
		for _, q := range all.Queries {
			if found[q.Name] = q; q.State == "FAILED" {
				t.Fatalf("%+v", q)
			}
		}
		return found
	}
	both := func(what string, is func(name string, q query) bool) {
		t.Helper()
		clitest.WaitFor(t, 2*clitest.StartTimeout, what, func() bool {
			q := now()
			return is("waits", q["waits"]) && is("drops", q["drops"])
		})
	}
	both("rows before the outage", func(_ string, q query) bool { return q.Live != nil && q.Live.Out > 100 })
	pg.Stop()
	started := time.Now()
	both("what they wait for, and rows that are dropped", func(name string, q query) bool {
		return q.State == "RUNNING" && q.Trouble != nil &&
			strings.HasPrefix(q.Trouble.Message, "Postgres can not be written to: ") && (name == "waits" || q.Live.Dropped > 0)
	})
	if os.Getenv(clitest.Soak) != "" {
		time.Sleep(time.Until(started.Add(61 * time.Second)))
	}
	pg.Start()
	t.Logf("it was down for %v", time.Since(started))
	both("that they wait no longer", func(_ string, q query) bool { return q.Trouble == nil && q.State == "RUNNING" })
	for _, p := range sources {
		close(p.stop)
	}
	last := map[string]query{}
	both("all rows", func(name string, q query) bool {
		last[name] = q
		return q.Live != nil && q.Live.In+q.Live.Dropped == sources[name].sent.Load()
	})
	for _, p := range sources {
		close(p.end)
	}
	both("the end", func(_ string, q query) bool { return q.State == "TERMINATED" })
	if conn, err = pgx.Connect(t.Context(), pg.DSN("postgres")); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for name, p := range sources {
		var rows, ids, lost int64
		if err := conn.QueryRow(t.Context(), "SELECT count(*), count(DISTINCT id) FROM "+name).Scan(&rows, &ids); err != nil {
			t.Fatal(err)
		}
		if name == "drops" {
			lost = last[name].Live.Dropped
		}
		if sent := p.sent.Load(); rows != ids || rows+lost != sent || name == "drops" && lost == 0 {
			t.Errorf("%s: %d rows with %d ids and %d dropped of %d; %+v", name, rows, ids, lost, sent, last[name].Live)
		}
		t.Logf("%s: %d rows were sent, %d dropped", name, p.sent.Load(), lost)
	}
	s.Stop()
}
