package postgres_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// says checks that an error is one for users, and what it says with its hint.
func says(t *testing.T, err error, words ...string) {
	t.Helper()
	if !engine.HasCode(err, engine.CodeTarget) || engine.AsError(err).Hint == "" {
		t.Errorf("no error for users: %v", err)
		return
	}
	text := engine.AsError(err).Message + " " + engine.AsError(err).Hint
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

// TestTheRoleThatIsLackingIsNamed: what answers is a primary that takes writes.
func TestTheRoleThatIsLackingIsNamed(t *testing.T) {
	t.Parallel()
	socket, through := behind(t)
	first, _ := forwarder(t, socket)
	second, _ := forwarder(t, socket)
	one, both := through("127.0.0.1:"+first, "disable"), through("127.0.0.1:"+first+",127.0.0.1:"+second, "disable")
	gone := through("127.0.0.1:1,127.0.0.1:"+first, "disable")
	for _, c := range []struct {
		dsn   string
		words []string
	}{
		{one + "&target_session_attrs=standby", []string{"127.0.0.1:" + first + " is a primary", "target_session_attrs=standby",
			"a standby"}},
		{one + "&target_session_attrs=read-only", []string{"takes writes", "target_session_attrs=read-only"}},
		{both + "&target_session_attrs=standby", []string{"None of 127.0.0.1:" + first + ", 127.0.0.1:" + second +
			" is a standby", "is a primary"}},
		{gone + "&target_session_attrs=standby", []string{"None of 127.0.0.1:1, ", " is a standby", "what answered is a primary"}},
		{one + "&default_transaction_read_only=on&target_session_attrs=read-write", []string{"takes no writes",
			"target_session_attrs=read-write"}},
		{one + "&target_session_attrs=primry", []string{"its target_session_attrs is none of any, read-write",
			"target_session_attrs=primary"}},
		{one + "&target_session_attrs=master", []string{"is none of any, read-write, read-only, primary, standby, prefer-standby"}},
	} {
		_, err := answer(t, postgres.NewDriver(), c.dsn, "SELECT 1")
		says(t, err, c.words...)
	}
	for _, role := range []string{"any", "primary", "read-write", "prefer-standby"} {
		if _, err := answer(t, postgres.NewDriver(), one+"&target_session_attrs="+role, "SELECT 1"); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
}

// TestAPoolThatIsFullIsNamed: the pooler lets a client in, and gives it no session.
func TestAPoolThatIsFullIsNamed(t *testing.T) {
	t.Parallel()
	own := []engine.OwnDatabase{{SystemID: "1", OID: 1, Name: "control"}}
	for name, d := range map[string]target.Driver{"one's own": postgres.NewDriver(),
		"a server's": postgres.NewStrictDriver(func() []engine.OwnDatabase { return own }, nil)} {
		for session, sql := range map[string][]string{"with a session statement": {"SET work_mem = '4MB'"}, "without": nil} {
			t.Run(name+", "+session, func(t *testing.T) {
				dsn := pooler(t, pgtest.Start(t).NewDatabase(t), "session", "default_pool_size = 1")
				open := func(timeout time.Duration) (target.Database, error) {
					db, err := d.Open(target.Config{DSN: secret.New(dsn), Session: sql, ConnectTimeout: timeout})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = db.Close() })
					c, err := db.Connect(t.Context(), statements("SELECT 1"))
					if err == nil {
						t.Cleanup(func() { _ = c.Close() })
					}
					return db, err
				}
				if _, err := open(10 * time.Second); err != nil {
					t.Fatal(err)
				}
				_, err := open(700 * time.Millisecond)
				says(t, err, "let the connection in, and did not answer", "pooler in session mode", "fewer connections")
			})
		}
	}
	dsn := pooler(t, pgtest.Start(t).NewDatabase(t), "session", "default_pool_size = 1", "query_wait_timeout = 1")
	d := postgres.NewStrictDriver(func() []engine.OwnDatabase { return own }, nil)
	db, err := d.Open(target.Config{DSN: secret.New(dsn)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c, err := db.Connect(t.Context(), statements("SELECT 1"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = db.Connect(t.Context(), statements("SELECT 1"))
	says(t, err, "The pooler (PgBouncer) refuses: query_wait_timeout", "pool sizes")
}

// TestAPoolerInStatementModeIsNamed: it has no transactions.
func TestAPoolerInStatementModeIsNamed(t *testing.T) {
	t.Parallel()
	dsn := pooler(t, pgtest.Start(t).NewDatabase(t), "statement")
	db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = target.Read(t.Context(), db, "SELECT 1", time.Second)
	says(t, err, "The pooler (PgBouncer) is in statement mode", "pool_mode")
	c, err := db.Connect(t.Context(), statements("SELECT 1"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var batch plugin.Batch
	var res target.Result
	begin := c.Exec(t.Context(), &batch, op(plugin.StatementBegin), &res)
	if class := db.Classify(begin); begin == nil || !strings.Contains(class.Message, "is in statement mode") {
		t.Errorf("%+v", class)
	}
}

// TestLockSlotsThatAreUsedUpAreNamed: a partitioned table has more partitions than the server has room for locks.
func TestLockSlotsThatAreUsedUpAreNamed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a cluster of its own, with many partitions")
	}
	server := pgtest.StartCrashable(t, map[string]string{"max_connections": "5", "max_locks_per_transaction": "10",
		"max_prepared_transactions": "0", "max_worker_processes": "1", "max_wal_senders": "0"})
	db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(server.DSN("postgres"))})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Exec(t.Context(), "CREATE TABLE parts (id int) PARTITION BY RANGE (id)"); err != nil {
		t.Fatal(err)
	}
	for from := 0; from < 400; from += 40 {
		if err := db.Exec(t.Context(), fmt.Sprintf("DO $$ BEGIN FOR i IN %d..%d LOOP EXECUTE format('CREATE TABLE part_%%s "+
			"PARTITION OF parts FOR VALUES FROM (%%s) TO (%%s)', i, i, i + 1); END LOOP; END $$", from, from+39)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = db.Query(t.Context(), "SELECT count(*) FROM parts")
	says(t, err, "no room for another lock", "max_locks_per_transaction", "every partition")
	_, err = target.Read(t.Context(), db, "SELECT count(*) FROM parts", time.Second)
	says(t, err, "no room for another lock")
	c, err := db.Connect(t.Context(), statements("SELECT count(*) FROM parts"))
	if err != nil {
		says(t, err, "no room for another lock")
		return
	}
	defer c.Close()
	var batch plugin.Batch
	var res target.Result
	if class := db.Classify(c.Exec(t.Context(), &batch, op(0), &res)); class.Code != "53200" ||
		!strings.Contains(class.Message, "max_locks_per_transaction") {
		t.Errorf("%+v", class)
	}
}

// impostor speaks the protocol of Postgres, and answers nothing but the question for its version.
func impostor(t *testing.T, version string) string {
	t.Helper()
	return serve(t, func(c net.Conn) {
		b := pgproto3.NewBackend(c, c)
		if _, err := b.ReceiveStartupMessage(); err != nil {
			return
		}
		b.Send(&pgproto3.AuthenticationOk{})
		b.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: "8.2.23"})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		for failed := false; b.Flush() == nil; {
			m, err := b.Receive()
			if err != nil {
				return
			}
			refuse := func(sql string) {
				b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "42883", Message: "unknown function in: " + sql[:6]})
			}
			switch m := m.(type) {
			case *pgproto3.Query:
				if version != "" && m.String == "SELECT version()" {
					b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("version"), DataTypeOID: 25}}})
					b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte(version)}})
					b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
				} else {
					refuse(m.String)
				}
				b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			case *pgproto3.Parse:
				if !failed {
					refuse(m.Query)
				}
				failed = true
			case *pgproto3.Sync:
				b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
				failed = false
			}
		}
	})
}

// TestWhatIsNotPostgresIsNamed with its version string, whatever is asked of it first.
func TestWhatIsNotPostgresIsNamed(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"PostgreSQL 12.3, compiled by Visual C++ build 1914, 64-bit, QuestDB": "64-bit, QuestDB",
		"PostgreSQL 8.2.23 server protocol using H2 2.2.224":                  "using H2", "": `"8.2.23"`} {
		for name, d := range map[string]target.Driver{"one's own": postgres.NewDriver(), "a server's": postgres.NewStrictDriver(
			func() []engine.OwnDatabase { return []engine.OwnDatabase{{SystemID: "1", OID: 1, Name: "control"}} }, nil)} {
			t.Run(name, func(t *testing.T) {
				dsn := "postgres://u@" + impostor(t, version) + "/d?sslmode=disable"
				db, err := d.Open(target.Config{DSN: secret.New(dsn)})
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				_, err = db.Check(t.Context())
				says(t, err, "is not Postgres", want)
				_, err = target.Read(t.Context(), db, "SELECT count(*) FROM pg_class", time.Second)
				says(t, err, "is not Postgres", want)
				_, err = db.Query(t.Context(), "SELECT count(*) FROM pg_class")
				says(t, err, "is not Postgres", want)
				begins, err := d.Open(target.Config{DSN: secret.New(dsn), Session: []string{"SET work_mem = '1MB'"}})
				if err != nil {
					t.Fatal(err)
				}
				defer begins.Close()
				_, err = begins.Connect(t.Context(), statements("SELECT 1"))
				says(t, err, "is not Postgres", want)
			})
		}
	}
	// A table that is not there is no question that Postgres does not understand.
	db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(pgtest.Start(t).NewDatabase(t))})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Query(
		t.Context(),
		"SELECT * FROM nowhere",
	); err == nil ||
		strings.Contains(err.Error(), "not Postgres") ||
		!strings.Contains(err.Error(), "does not exist") {
		t.Errorf("%v", err)
	}
}
