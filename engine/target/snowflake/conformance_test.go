package snowflake

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
	"github.com/loadstone-db/loadstone/snowsim"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// standIn starts the stand-in on a database of its own. Its model is made quick:
// what is tested is the driver.
func standIn(t testing.TB, change func(*snowsim.Options)) *snowsim.Server {
	t.Helper()
	o := snowsim.Options{Postgres: pgtest.Start(t).NewDatabase(t), TimeScale: 1000, Seed: 1, Log: zerolog.Nop()}
	if change != nil {
		change(&o)
	}
	s, err := snowsim.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// cuttableProxy is a TCP proxy whose connections can be cut.
type cuttableProxy struct {
	listener net.Listener
	mu       sync.Mutex
	open     map[net.Conn]bool
}

func newCuttableProxy(t testing.TB, to string) *cuttableProxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cuttableProxy{listener: l, open: map[net.Conn]bool{}}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); c.cut(); wg.Wait() })
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			c.mu.Lock()
			c.open[in], c.open[out] = true, true
			c.mu.Unlock()
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				wg.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].Close()
					_ = pair[1].Close()
				})
			}
		}
	})
	return c
}

func (c *cuttableProxy) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		_ = conn.Close()
	}
	clear(c.open)
}

// through is a DSN of the stand-in by way of the cable.
func (c *cuttableProxy) through(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		panic(err)
	}
	q := u.Query()
	host, port, _ := net.SplitHostPort(c.listener.Addr().String())
	if q.Has("host") {
		q.Set("host", host)
		q.Set("port", port)
		u.RawQuery = q.Encode()
	} else {
		u.Host = c.listener.Addr().String()
	}
	return u.String()
}

func TestConformance(t *testing.T) {
	s := standIn(t, nil)
	c := newCuttableProxy(t, s.Addr())
	dsn := s.DSN()
	if _, err := url.Parse(dsn); err != nil || len(dsn) < 12 || dsn[:12] != "snowflake://" {
		dsn = "snowflake://" + dsn
	}
	targettest.Run(t, targettest.Options{
		Driver:            NewDriver(),
		DSN:               c.through(dsn),
		NoConnectionLimit: true, ErrorsKeepTransactions: true, QueryIDs: true,
		Table: "conformance",
		Create: []string{"CREATE HYBRID TABLE conformance (id NUMBER(38,0) PRIMARY KEY, f FLOAT, t VARCHAR, b BINARY, o " +
			"BOOLEAN, m TIMESTAMP_NTZ(6))"},
		Insert:  "INSERT INTO conformance VALUES (?, ?, ?, ?, ?, ?)",
		Lookup:  `SELECT id AS "id", f AS "f", t AS "t", b AS "b", o AS "o", m AS "m" FROM conformance WHERE id = ?`,
		Scan:    "SELECT * FROM conformance WHERE id >= ? AND id < ?",
		Count:   "SELECT count(*) FROM conformance",
		Sleep:   "SELECT SYSTEM$WAIT(?)",
		Wrong:   "SELECT nothing FROM nowhere",
		Comment: "SELECT COMMENT FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = 'KEPT'",
		Columns: []engine.Column{{Name: "ID", Type: engine.TypeI64}, {Name: "F", Type: engine.TypeF64},
			{Name: "T", Type: engine.TypeText},
			{Name: "B", Type: engine.TypeBytes}, {Name: "O", Type: engine.TypeBool}, {Name: "M", Type: engine.TypeTimestamp}},
		Kill: func(*testing.T) { c.cut(); s.EndSessions() },
	})
}
