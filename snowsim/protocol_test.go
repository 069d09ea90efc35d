package snowsim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

func exec(t testing.TB, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, query string, args ...any) sql.Result {
	t.Helper()
	r, err := db.ExecContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return r
}

func number(t testing.TB, db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, query string, args ...any) (n int64) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func single(t testing.TB, db *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestTypes: values and types are the same as JSON and as Arrow, but for those that the driver reads as Go's own from
// Arrow alone.
func TestTypes(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"json", "arrow"} {
		t.Run(form, func(t *testing.T) { t.Parallel(); testTypes(t, form) })
	}
}

func testTypes(t *testing.T, form string) {
	db := open(t, config(t, start(t, func(o *Options) { o.Results = form }).DSN()))
	fraction, truth := any("0.1"), any("1")
	if form == "arrow" {
		fraction, truth = 0.1, true
	}
	zone := time.FixedZone("", 2*3600)
	moment := time.Date(2024, 2, 29, 13, 14, 15, 123456000, time.UTC)
	for _, c := range []struct {
		sql  string
		kind string
		want any
	}{
		{"SELECT 42::bigint", "FIXED", "42"},
		{"SELECT 12345678901234567890.0123456789::numeric(38,10)", "FIXED", "12345678901234567890.0123456789"},
		{"SELECT 1.50::numeric", "FIXED", "1.50"},
		{"SELECT 0.1::float8", "REAL", fraction},
		{"SELECT 'a \"quoted\"\\ text' || chr(10) || chr(1) || 'é\U0001F600'", "TEXT",
			"a \"quoted\"\\ text\n\x01é\U0001F600"},
		{"SELECT true", "BOOLEAN", truth},
		{"SELECT NULL::text", "TEXT", nil},
		{"SELECT NULL::timestamptz", "TIMESTAMP_LTZ", nil},
		{"SELECT DATE '1969-12-31'", "DATE", time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC)},
		{"SELECT TIMESTAMP '2024-02-29 13:14:15.123456'", "TIMESTAMP_NTZ", moment},
		{"SELECT TIMESTAMP '1969-12-31 23:59:59.5'", "TIMESTAMP_NTZ", time.Date(1969, 12, 31, 23, 59, 59, 5e8, time.UTC)},
		{"SELECT TIMESTAMPTZ '2024-02-29 15:14:15.123456+02'", "TIMESTAMP_LTZ", moment},
		{`SELECT '\x00ff'::bytea`, "BINARY", "\x00\xff"},
		{`SELECT '{"a": [1, null]}'::jsonb`, "VARIANT", "{\n  \"a\": [\n    1,\n    null\n  ]\n}"},
		{"SELECT TIME '01:02:03.5'", "TIME", time.Time{}.Add(time.Hour + 2*time.Minute + 3500*time.Millisecond)},
	} {
		rows, err := db.QueryContext(t.Context(), c.sql)
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		types, _ := rows.ColumnTypes()
		if !rows.Next() {
			t.Errorf("%s: no row, %v", c.sql, rows.Err())
			continue
		}
		var got any
		if err := rows.Scan(&got); err != nil {
			t.Errorf("%s: %v", c.sql, err)
		}
		rows.Close()
		if b, ok := got.([]byte); ok {
			got = string(b)
		}
		if at, ok := got.(time.Time); ok {
			if want, _ := c.want.(time.Time); !at.Equal(want) {
				t.Errorf("%s: %v, not %v", c.sql, got, c.want)
			}
		} else if got != c.want {
			t.Errorf("%s: %#v, not %#v", c.sql, got, c.want)
		}
		if types[0].DatabaseTypeName() != c.kind {
			t.Errorf("%s is %s", c.sql, types[0].DatabaseTypeName())
		}
	}
	exec(t, db, "CREATE TABLE binds (i bigint, f float8, s text, b boolean, d date, n timestamp, l timestamptz, y bytea)")
	exec(t, db, "INSERT INTO binds VALUES (?, ?, ?, ?, ?, ?, ?, ?)", int64(math.MinInt64), 0.5, "it's; ? \"", true,
		gosnowflake.DataTypeDate, moment, gosnowflake.DataTypeTimestampNtz, moment, gosnowflake.DataTypeTimestampLtz,
		moment.In(zone), gosnowflake.DataTypeBinary, []byte{0, 255})
	exec(t, db, "INSERT INTO binds VALUES (?, ?, ?, ?, ?, ?, ?, ?)", nil, nil, nil, nil, nil, nil, nil, nil)
	if n := number(
		t,
		db,
		`SELECT count(*) FROM binds WHERE i = ? AND f = 0.5 AND s = 'it''s; ? "' AND b AND d = '2024-02-29' AND n = '2024-02-29 13:14:15.123456' AND l = '2024-02-29 13:14:15.123456+00' AND y = '\x00ff'`,
		int64(math.MinInt64),
	); n != 1 {
		t.Errorf("%d rows have what was bound", n)
	}
	if n := number(t, db, "SELECT count(*) FROM binds WHERE i IS NULL AND f IS NULL AND s IS NULL AND y IS NULL"); n != 1 {
		t.Errorf("%d rows have NULLs", n)
	}
}

func TestArrayBinds(t *testing.T) {
	t.Parallel()
	db := open(t, config(t, start(t, nil).DSN()))
	exec(t, db, "CREATE TABLE many (id bigint PRIMARY KEY, note text)")
	ids, notes := make([]int, 5000), make([]string, 5000)
	for i := range ids {
		ids[i], notes[i] = i, fmt.Sprint("note ", i)
	}
	array := func(a any) any {
		v, err := gosnowflake.Array(a)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	r := exec(t, db, "INSERT INTO many VALUES (?, ?)", array(&ids), array(&notes))
	if n, _ := r.RowsAffected(); n != 5000 {
		t.Errorf("%d rows", n)
	}
	if n := number(t, db, "SELECT count(*) FROM many WHERE note = 'note ' || id"); n != 5000 {
		t.Errorf("%d rows are right", n)
	}
	// All or nothing: the last one is there already.
	for i := range ids {
		ids[i] += 10000
	}
	ids[4999] = 7
	if _, err := db.ExecContext(t.Context(), "INSERT INTO many VALUES (?, ?)", array(&ids),
		array(&notes)); code(err) != 200001 {
		t.Errorf("a duplicate key: %v", err)
	}
	if n := number(t, db, "SELECT count(*) FROM many"); n != 5000 {
		t.Errorf("%d rows after an insert that failed", n)
	}
}

func TestChunks(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) { o.InlineBytes, o.ChunkBytes = 1000, 20000 })
	db := open(t, config(t, s.DSN()))
	rows, err := db.QueryContext(t.Context(), "SELECT g, 'row ' || g FROM generate_series(1, 20000) g")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	next := 1
	for rows.Next() {
		var id int
		var text string
		if err := rows.Scan(&id, &text); err != nil || id != next || text != fmt.Sprint("row ", next) {
			t.Fatalf("row %d: %d %q %v", next, id, text, err)
		}
		next++
	}
	if rows.Err() != nil || next != 20001 {
		t.Fatalf("%d rows, %v", next-1, rows.Err())
	}
	if n := s.Stats().Chunks; n < 10 {
		t.Errorf("%d chunks", n)
	}
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	db := open(t, config(t, s.DSN()))
	exec(t, db, "CREATE TABLE t (id bigint PRIMARY KEY)")
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO t VALUES (1)")
	// A statement that fails does not end the transaction.
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO t VALUES (1)"); code(err) != 200001 {
		t.Errorf("a duplicate key: %v", err)
	}
	exec(t, tx, "INSERT INTO t VALUES (2)")
	if n := number(t, db, "SELECT count(*) FROM t"); n != 0 {
		t.Errorf("others see %d rows", n)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := number(t, db, "SELECT count(*) FROM t"); n != 2 {
		t.Errorf("%d rows", n)
	}
	tx, _ = db.BeginTx(t.Context(), nil)
	exec(t, tx, "DELETE FROM t")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	// DDL commits.
	conn := single(t, db)
	exec(t, conn, "BEGIN")
	exec(t, conn, "INSERT INTO t VALUES (3)")
	exec(t, conn, "CREATE TABLE u (id bigint)")
	exec(t, conn, "ROLLBACK")
	if n := number(t, db, "SELECT count(*) FROM t"); n != 3 {
		t.Errorf("%d rows after DDL within a transaction", n)
	}
	// A session that goes away with its transaction open leaves nothing behind.
	exec(t, conn, "BEGIN")
	exec(t, conn, "INSERT INTO t VALUES (4)")
	_ = conn.Raw(func(c any) error { return c.(interface{ Close() error }).Close() })
	if n := number(t, db, "SELECT count(*) FROM t"); n != 3 {
		t.Errorf("%d rows after a session that ended", n)
	}
	if n := s.pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections to Postgres are still taken", n)
	}
}

func TestSessionState(t *testing.T) {
	t.Parallel()
	db := open(t, config(t, start(t, nil).DSN()))
	conn := single(t, db)
	exec(t, conn, "USE SCHEMA other.place")
	exec(t, conn, "ALTER SESSION SET QUERY_TAG = 'run 1'")
	if err := conn.Raw(func(any) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(gosnowflake.WithMultiStatement(t.Context(), 2), "SELECT 1; SELECT 2"); code(err) != 2 {
		t.Errorf("two statements in one request: %v", err)
	}
	if _, err := conn.ExecContext(t.Context(), "SELECT 1; SELECT 2"); code(err) != 8 {
		t.Errorf("two statements where one is expected: %v", err)
	}
}

// TestSlowStatements: a client asks again for the result of a statement that takes long.
func TestSlowStatements(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) { o.AnswerWithin = 50 * time.Millisecond })
	db := open(t, config(t, s.DSN()))
	if n := number(t, db, "SELECT 7 + length(pg_sleep(0.3)::text)"); n != 7 {
		t.Errorf("a slow query: %d", n)
	}
	rows, err := db.QueryContext(gosnowflake.WithAsyncMode(t.Context()), "SELECT 8")
	if err == nil {
		rows.Next()
		err = errors.Join(rows.Err(), rows.Close())
	}
	if code(err) != 2 {
		t.Errorf("an asynchronous statement: %v", err)
	}
}

func TestAbort(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	db := open(t, config(t, s.DSN()))
	conn := single(t, db)
	exec(t, conn, "CREATE TABLE t (id bigint)")
	exec(t, conn, "BEGIN")
	exec(t, conn, "INSERT INTO t VALUES (1)")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := conn.ExecContext(ctx, "SELECT pg_sleep(20)")
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 10*time.Second {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
	if n := s.Stats().Aborts; n != 1 {
		t.Errorf("%d aborts", n)
	}
	// The transaction has survived it.
	exec(t, conn, "COMMIT")
	if n := number(t, db, "SELECT count(*) FROM t"); n != 1 {
		t.Errorf("%d rows", n)
	}
	exec(t, conn, "ALTER SESSION SET STATEMENT_TIMEOUT_IN_SECONDS = 1")
	if _, err := conn.ExecContext(t.Context(), "SELECT pg_sleep(20)"); code(err) != 630 {
		t.Errorf("a statement timeout: %v", err)
	}
}

func TestSessionsExpire(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) { o.SessionValidity = 300 * time.Millisecond })
	db := open(t, config(t, s.DSN()))
	conn := single(t, db)
	for range 3 {
		if n := number(t, conn, "SELECT 1"); n != 1 {
			t.Error(n)
		}
		time.Sleep(350 * time.Millisecond)
	}
	if n := s.Stats().Renewals; n < 2 {
		t.Errorf("%d renewals", n)
	}
	conn.Close()
	db.Close()
	if n := s.Stats().Sessions; n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) {
		o.Warehouses = []warehouse.Spec{{Name: "ASLEEP", Suspended: true}, {Name: "AWAKE"}}
	})
	db := open(t, config(t, s.DSN()))
	conn := single(t, db)
	exec(t, conn, "CREATE TABLE t (id bigint PRIMARY KEY, n integer NOT NULL)")
	if _, err := conn.ExecContext(t.Context(), "SELECT id FROM t"); code(err) != 606 {
		t.Errorf("a warehouse that sleeps: %v", err)
	}
	exec(t, conn, "USE WAREHOUSE awake")
	for query, want := range map[string]int{
		"SELECT id FROM nothing": 2003, "SELECT n, count(*) FROM t": 979, "SELECT nothing FROM t": 904, "SELEC 1": 1003,
		"CREATE TABLE t (id bigint)":              2002,
		"SELECT 1 / 0 FROM generate_series(1, 1)": 100051, "INSERT INTO t VALUES (1, NULL)": 100072,
		"INSERT INTO t VALUES (1, 'x')": 100038, "": 900,
		"SELECT 'x'::boolean FROM t": 100037, "SELECT 'x'::timestamptz FROM t": 100035, "SELECT '{'::jsonb FROM t": 100069,
		"SELECT '2026-02-30'::date FROM t": 100040,
	} {
		_, err := conn.ExecContext(t.Context(), query)
		if code(err) != want {
			t.Errorf("%s: error %d, not %d: %v", query, code(err), want, err)
		}
		var e *gosnowflake.SnowflakeError
		if errors.As(err, &e) && (len(e.QueryID) != 36 || len(e.SQLState) != 5) {
			t.Errorf("%s: query id %q, state %q", query, e.QueryID, e.SQLState)
		}
	}
}

// TestManySessions: hundreds of sessions share a few connections to Postgres,
// and nothing is left when they have gone.
func TestManySessions(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) {
		o.MaxConnections = 8
		o.Warehouses = []warehouse.Spec{{Name: "W", MinClusters: 10, MaxClusters: 10, MaxConcurrency: 32}}
		o.TimeScale = 1000
	})
	db := open(t, config(t, s.DSN()))
	exec(t, db, "CREATE TABLE t (id bigint)")
	const sessions = 100
	var group sync.WaitGroup
	errs := make(chan error, sessions)
	all := make(chan struct{})
	var ready sync.WaitGroup
	ready.Add(sessions)
	for i := range sessions {
		group.Add(1)
		go func() {
			defer group.Done()
			conn, err := db.Conn(t.Context())
			ready.Done()
			if err != nil {
				errs <- err
				return
			}
			defer conn.Close()
			<-all
			for k := range 3 {
				if _, err := conn.ExecContext(t.Context(), "INSERT INTO t VALUES (?)", i*3+k); err != nil {
					errs <- err
				}
			}
		}()
	}
	ready.Wait()
	if n := s.Stats().Sessions; n < sessions {
		t.Errorf("%d sessions", n)
	}
	close(all)
	group.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if n := number(t, db, "SELECT count(DISTINCT id) FROM t"); n != 3*sessions {
		t.Errorf("%d rows", n)
	}
	db.Close()
	if n := s.Stats().Sessions; n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// TestTransactionsGetThrough: more transactions than the warehouse has slots and
// Postgres connections change the same rows. Those that have begun wait for locks
// only, so that none waits for one that waits for it.
func TestTransactionsGetThrough(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) {
		o.MaxConnections = 6
		o.plain = nil
		o.Warehouses = []warehouse.Spec{{Name: "W", MaxConcurrency: 2}}
	})
	db := open(t, config(t, s.DSN()))
	exec(t, db, "CREATE TABLE t (id NUMBER, n NUMBER)")
	exec(t, db, "INSERT INTO t VALUES (1, 0), (2, 0)")
	const sessions = 24
	var group sync.WaitGroup
	errs := make(chan error, sessions)
	for range sessions {
		group.Go(func() {
			conn, err := db.Conn(t.Context())
			if err != nil {
				errs <- err
				return
			}
			defer conn.Close()
			for _, sql := range []string{"BEGIN", "UPDATE t SET n = n + 1 WHERE id = 1", "UPDATE t SET n = n + 1 WHERE id = 2",
				"SELECT n FROM t WHERE id = 1", "COMMIT"} {
				if _, err := conn.ExecContext(t.Context(), sql); err != nil {
					errs <- err
				}
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if n := number(t, db, "SELECT SUM(n) FROM t"); n != 2*sessions {
		t.Errorf("the rows were changed %d times, not %d", n, 2*sessions)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	db := open(t, config(t, s.DSN()))
	conn := single(t, db)
	exec(t, conn, "CREATE TABLE t (id bigint)")
	set := func(list ...string) {
		t.Helper()
		var all []Fault
		for _, text := range list {
			f, err := ParseFault(text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, f)
		}
		if err := s.faults.set(all); err != nil {
			t.Fatal(err)
		}
	}
	// Each of these is survived by the driver, and the statement is executed once.
	for i, fault := range []string{"503,at=1", "429,at=1", "expired,at=1", "drop,at=1", "drop_answer,at=1",
		"slow,at=1,delay=50ms"} {
		set(fault)
		exec(t, conn, "INSERT INTO t VALUES (?)", i)
		if n := number(t, conn, "SELECT count(*) FROM t"); n != int64(i)+1 {
			t.Errorf("%s: %d rows", fault, n)
		}
	}
	if st := s.Stats(); st.Faults != 6 || st.Repeated != 1 || st.Renewals != 1 {
		t.Errorf("%+v", st)
	}
	for _, bad := range []string{"", "502,at=1", "503", "503,rate=2", "503,rate=NaN", "503,at=-1", "503,at=x", "503,often",
		"slow,at=1,delay=5", "drop,at=1,on=mars"} {
		if _, err := ParseFault(bad); err == nil {
			t.Errorf("%q is taken for a fault", bad)
		}
	}
	// At a rate, by the seed: the same ones each time.
	hits := func(seed uint64) (list []int) {
		f := &faults{seed: seed}
		_ = f.set([]Fault{{Kind: FaultThrottle, Rate: 0.1}})
		for i := range 1000 {
			if _, happens := f.next("query"); happens {
				list = append(list, i)
			}
		}
		return list
	}
	if a, b := hits(1), hits(1); len(a) < 60 || len(a) > 140 || fmt.Sprint(a) != fmt.Sprint(b) ||
		fmt.Sprint(a) == fmt.Sprint(hits(2)) {
		t.Errorf("%d of 1000 at a rate of 0.1", len(a))
	}
}

func TestTelemetryIsCounted(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := config(t, s.DSN())
	delete(c.Params, "CLIENT_TELEMETRY_ENABLED")
	db := open(t, c)
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if s.Stats().Telemetry == 0 {
		t.Error("the driver as it comes sends telemetry, and none was counted")
	}
}

func TestMonitoringIsOnesOwn(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) { o.Users = []User{{Name: "A", Password: "a"}, {Name: "B", Password: "b"}} })
	a, b := open(t, config(t, s.DSN())), open(t, config(t, strings.Replace(s.DSN(), "A:a@", "B:b@", 1)))
	ids := make(chan string, 1)
	if _, err := a.ExecContext(gosnowflake.WithQueryIDChan(t.Context(), ids), "SELECT 'secret'"); err != nil {
		t.Fatal(err)
	}
	rows, err := b.QueryContext(gosnowflake.WithFetchResultByID(t.Context(), <-ids), "")
	if err == nil {
		defer rows.Close()
		t.Error("another user has the result", rows.Next(), rows.Err())
	}
}
