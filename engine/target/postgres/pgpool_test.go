package postgres_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// The stand-ins below do what Pgpool-II 4.3.5 was seen to do, tried by hand before a primary and its standby.

// TestPgpoolIsAskedOneStatementAtATime: it sends a text of several statements to the primary alone, and a SAVEPOINT behind
// it to the standby too, where no transaction is open. It ends the session over that.
func TestPgpoolIsAskedOneStatementAtATime(t *testing.T) {
	t.Parallel()
	socket, through := behind(t)
	var mu sync.Mutex
	savepoints := 0
	address := serve(t, func(c net.Conn) {
		s, err := net.Dial("unix", socket)
		if err != nil {
			t.Error(err)
			return
		}
		go func() { _, _ = io.Copy(c, s); _ = c.Close() }()
		b := pgproto3.NewBackend(io.TeeReader(c, s), io.Discard)
		if _, err := b.ReceiveStartupMessage(); err != nil {
			return
		}
		for open := false; ; { // on the standby
			m, err := b.Receive()
			if err != nil {
				_ = s.Close()
				return
			}
			q, ok := m.(*pgproto3.Query)
			if !ok || strings.Contains(q.String, ";") {
				continue
			}
			word, _, _ := strings.Cut(q.String, " ")
			switch word {
			case "BEGIN":
				open = true
			case "ROLLBACK":
				open = open && strings.HasPrefix(q.String, "ROLLBACK TO")
			case "SAVEPOINT":
				mu.Lock()
				savepoints++
				mu.Unlock()
				if !open {
					t.Errorf("%s can only be used in transaction blocks", q.String)
				}
			}
		}
	})
	db := openDSN(t, through(address, "disable"), 0)
	list := statements("INSERT INTO pg_catalog.pg_class DEFAULT VALUES", "SELECT pg_sleep(1), count(*) FROM pg_class")
	if _, err := db.(target.TableMarker).Writes(t.Context(), list); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if savepoints == 0 {
		t.Error("no SAVEPOINT was asked for: nothing was tried")
	}
}

// TestPgpoolBeginsByItself: in raw mode it begins a transaction when a statement is prepared, and leaves it open. What came
// after it would be rolled back.
func TestPgpoolBeginsByItself(t *testing.T) {
	t.Parallel()
	open := false
	dsn := proxy(t, func(_ int, p []byte) []byte {
		open = (open || bytes.Contains(p, []byte{'t', 0, 0, 0, 6, 0, 0})) && !bytes.Contains(p, []byte("ROLLBACK\x00"))
		if open {
			return bytes.ReplaceAll(p, []byte{'Z', 0, 0, 0, 5, 'I'}, []byte{'Z', 0, 0, 0, 5, 'T'})
		}
		return p
	})
	c, err := openDSN(
		t,
		dsn,
		0,
	).Connect(
		t.Context(),
		[]engine.Statement{{ID: "a", SQL: "SELECT 1"}, {ID: "b", SQL: "SELECT 2"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var batch plugin.Batch
	var res target.Result
	for i := range uint16(2) {
		if err := c.Exec(t.Context(), &batch, op(i), &res); err != nil || res.Rows != 1 || c.Broken() {
			t.Errorf("statement %d: %d rows, %v", i, res.Rows, err)
		}
	}
}
