package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine/stream/connector/postgres"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// ids are the columns of rows that are counted.
var ids = []column.Column{{Name: "id", Type: column.Int64Type}, {Name: "t", Type: column.TextType}}

// feed writes rows with the ids from … to, in batches.
func feed(s *postgres.Sink, from, to, each int) error {
	for at := from; at < to; at += each {
		b := &column.Batch{}
		b.Reset(ids)
		for id := at; id < min(at+each, to); id++ {
			row(b, id, "some text of a row")
		}
		if err := s.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// tally is how many rows a table has, how many ids, and the last one.
func tally(t *testing.T, dsn string) (rows, distinct, last int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	for begin := time.Now(); err != nil && time.Since(begin) < 20*time.Second; time.Sleep(100 * time.Millisecond) {
		conn, err = pgx.Connect(t.Context(), dsn)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	err = conn.QueryRow(t.Context(), "SELECT count(*), count(DISTINCT id), coalesce(max(id), -1) FROM t").
		Scan(&rows, &distinct, &last)
	if err != nil {
		t.Fatal(err)
	}
	return rows, distinct, last
}

// prepared makes the table t, and returns a connection to its server.
func prepared(t *testing.T, c *pgtest.CrashableServer, sql string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), "CREATE TABLE t (id int8, t text);"+sql); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestAServerThatIsKilledLosesNoRow: it is killed again and again while transactions follow each other without a pause,
// and is down for some seconds once. Every row is there once. The cluster would not wait for the disk with commits.
func TestAServerThatIsKilledLosesNoRow(t *testing.T) {
	t.Parallel()
	c := pgtest.StartCrashable(t, map[string]string{"synchronous_commit": "off"})
	prepared(t, c, "")
	dsn := c.DSN("postgres")
	s, err := postgres.Open(t.Context(), postgres.Options{Dial: dialer(dsn), Table: "t", Columns: ids, MaxBytes: 2000})
	if err != nil {
		t.Fatal(err)
	}
	var killing atomic.Bool
	killing.Store(true)
	kills := make(chan int, 1) // room: for the one answer
	go func() {
		n := 0
		for killing.Load() && n < 8 {
			time.Sleep(time.Duration(200+rand.IntN(500)) * time.Millisecond)
			c.Crash()
			if n++; n == 4 {
				c.Stop()
				time.Sleep(3 * time.Second)
				c.Start()
			}
			time.Sleep(300 * time.Millisecond)
		}
		killing.Store(false)
		kills <- n
	}()
	written := 0
	for killing.Load() {
		if err := feed(s, written, written+500, 50); err != nil {
			t.Fatal(err)
		}
		written += 500
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	n := <-kills
	if rows, distinct, last := tally(t, dsn); rows != written || distinct != written || last != written-1 {
		t.Errorf("%d rows with %d ids up to %d are there of %d, after %d kills", rows, distinct, last, written, n)
	}
	t.Logf("%d rows, %d kills", written, n)
}

// cutter cuts connections when it sees COMMIT go by.
type cutter struct {
	net.Conn
	at func(c *cutter, message []byte) (n int, err error)
}

func (c *cutter) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("COMMIT\x00")) {
		return c.at(c, b)
	}
	return c.Conn.Write(b)
}

// cutting connects through a cutter.
func cutting(dsn string, at func(c *cutter, message []byte) (int, error)) postgres.Dial {
	return func(ctx context.Context) (*pgconn.PgConn, error) {
		config, err := pgconn.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		dial := config.DialFunc
		config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			inner, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &cutter{inner, at}, nil
		}
		return pgconn.ConnectConfig(ctx, config)
	}
}

// TestAnUnansweredCommitIsAskedAfter: the connection is cut before COMMIT has arrived, after it was carried out, and
// while it is; also with the answer half read. The rows are there once.
func TestAnUnansweredCommitIsAskedAfter(t *testing.T) {
	const slowly = `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.7); RETURN NULL; END';
		CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.id % 100 = 0)
		EXECUTE FUNCTION slow()`
	for name, c := range map[string]struct {
		sql string
		cut func(c *cutter, message []byte) (int, error)
	}{
		"before it arrives": {"", func(c *cutter, b []byte) (int, error) {
			_ = c.Close()
			return len(b), nil
		}},
		"after it was carried out": {"", func(c *cutter, b []byte) (int, error) {
			if _, err := c.Conn.Write(b); err != nil {
				return 0, err
			}
			_, _ = c.Read(make([]byte, 8))
			_ = c.Close()
			return len(b), nil
		}},
		"while it is carried out": {slowly, func(c *cutter, b []byte) (int, error) {
			if _, err := c.Conn.Write(b); err != nil {
				return 0, err
			}
			time.Sleep(50 * time.Millisecond)
			_ = c.Close()
			return len(b), nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t)
			d.exec("CREATE TABLE t (id int8, t text);" + c.sql)
			var commits atomic.Int32
			s, err := postgres.Open(t.Context(), postgres.Options{Table: "t", Columns: ids, MaxBytes: 2000,
				Dial: cutting(d.dsn, func(one *cutter, b []byte) (int, error) {
					if commits.Add(1)%2 == 1 { // every other one passes, so that a repetition does
						return c.cut(one, b)
					}
					return one.Conn.Write(b)
				})})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(feed(s, 0, 1000, 100), s.Close()); err != nil {
				t.Fatal(err)
			}
			if rows, distinct, last := tally(t, d.dsn); rows != 1000 || distinct != 1000 || last != 999 {
				t.Errorf("%d rows with %d ids up to %d, %d commits", rows, distinct, last, commits.Load())
			}
		})
	}
}

// TestANumberThatWasGivenOutTwice: a crash loses the number of a transaction that was not committed, and another
// transaction gets it and commits. The rows are written again all the same.
func TestANumberThatWasGivenOutTwice(t *testing.T) {
	t.Parallel()
	c := pgtest.StartCrashable(t, map[string]string{"wal_writer_delay": "10s", "bgwriter_delay": "10s"})
	admin := prepared(t, c, "CREATE TABLE other (x int)")
	if _, err := admin.Exec(t.Context(), "CHECKPOINT"); err != nil {
		t.Fatal(err)
	}
	dsn := c.DSN("postgres")
	var once sync.Once
	var number string
	s, err := postgres.Open(t.Context(), postgres.Options{Table: "t", Columns: ids,
		Dial: cutting(dsn, func(one *cutter, b []byte) (int, error) {
			cut := false
			once.Do(func() {
				cut = true
				err := admin.QueryRow(t.Context(), "SELECT backend_xid::text FROM pg_stat_activity WHERE backend_xid IS NOT NULL").
					Scan(&number)
				if err != nil {
					t.Error(err)
				}
				c.Crash()
				// Another transaction is given the number.
				var last string
				for begin := time.Now(); last != number && time.Since(begin) < 20*time.Second; {
					conn, err := pgx.Connect(t.Context(), dsn)
					if err != nil {
						time.Sleep(50 * time.Millisecond)
						continue
					}
					_ = conn.QueryRow(t.Context(), "INSERT INTO other VALUES (1) RETURNING pg_current_xact_id()::text").Scan(&last)
					_ = conn.Close(t.Context())
				}
				if last != number {
					t.Errorf("the number %s was not given out again, %s was the last", number, last)
				}
			})
			if cut {
				_ = one.Close()
				return len(b), nil
			}
			return one.Conn.Write(b)
		})})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(feed(s, 0, 10, 10), s.Close()); err != nil {
		t.Fatal(err)
	}
	if rows, distinct, _ := tally(t, dsn); rows != 10 || distinct != 10 {
		t.Errorf("%d rows with %d ids are there, the number was %s", rows, distinct, number)
	}
}

// TestAnOutageHoldsRowsBack: while the server is down as many rows are taken as two transactions hold, and whoever
// writes waits. When it is up again every row arrives; when it stays down for longer than the sink's patience, the
// error says how many rows were not written.
func TestAnOutageHoldsRowsBack(t *testing.T) {
	t.Parallel()
	c := pgtest.StartCrashable(t, nil)
	prepared(t, c, "")
	dsn := c.DSN("postgres")
	s, err := postgres.Open(t.Context(),
		postgres.Options{Dial: dialer(dsn), Table: "t", Columns: ids, MaxBytes: 20_000, RetryTimeout: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := feed(s, 0, 1000, 100); err != nil {
		t.Fatal(err)
	}
	c.Stop()
	var taken atomic.Int64
	fed := make(chan error, 1) // room: for the one answer
	go func() {
		for at := 1000; at < 20_000; at += 100 {
			if err := feed(s, at, at+100, 100); err != nil {
				fed <- err
				return
			}
			taken.Store(int64(at + 100))
		}
		fed <- nil
	}()
	time.Sleep(2 * time.Second)
	// A row takes some 23 bytes: two transactions of 20 000, and a batch more for each.
	if n := taken.Load(); n > 1000+2*(20_000/20+100) {
		t.Errorf("%d rows were taken while the server was down", n)
	}
	c.Start()
	if err := errors.Join(<-fed, s.Close()); err != nil {
		t.Fatal(err)
	}
	if rows, distinct, last := tally(t, dsn); rows != 20_000 || distinct != 20_000 || last != 19_999 {
		t.Errorf("%d rows with %d ids up to %d", rows, distinct, last)
	}

	s, err = postgres.Open(t.Context(),
		postgres.Options{Dial: dialer(dsn), Table: "t", Columns: ids, MaxBytes: 100, RetryTimeout: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c.Stop()
	// One transaction that is tried, one behind it, and rows that wait for room.
	if err := feed(s, 0, 20, 10); err != nil {
		t.Fatal(err)
	}
	go func() { fed <- feed(s, 20, 30, 10) }()
	select {
	case <-s.Failed():
	case <-time.After(20 * time.Second):
		t.Fatal("the sink does not give up")
	}
	var e *sql.Error
	if err := s.Close(); !errors.As(err, &e) || e.Kind != sql.NetworkError ||
		!strings.HasPrefix(e.Message, "30 rows were not written to public.t: Postgres could not be written to for 4s") {
		t.Errorf("%v", err)
	}
	if err := <-fed; err == nil {
		t.Error("rows that waited were taken")
	}
	if err := feed(s, 0, 10, 10); err == nil {
		t.Error("rows are taken by a sink that has failed")
	}
	// A query that is stopped waits for nobody.
	c.Start()
	ctx, stop := context.WithCancel(t.Context())
	if s, err = postgres.Open(ctx, postgres.Options{Dial: dialer(dsn), Table: "t", Columns: ids}); err != nil {
		t.Fatal(err)
	}
	c.Stop()
	if err := feed(s, 0, 10, 10); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	stop()
	if begin := time.Now(); s.Close() == nil || time.Since(begin) > 5*time.Second {
		t.Errorf("closing took %v", time.Since(begin))
	}
	c.Start()
}

// TestWhatAnotherAttemptDoesNotCure: the query fails at once, and says what the server said; nothing of the transaction
// is there.
func TestWhatAnotherAttemptDoesNotCure(t *testing.T) {
	t.Parallel()
	c := pgtest.StartCrashable(t, nil)
	admin := prepared(t, c, "CREATE ROLE writer LOGIN; GRANT CONNECT ON DATABASE postgres TO writer; "+
		"GRANT USAGE ON SCHEMA public TO writer; GRANT INSERT ON t TO writer")
	exec := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	config := admin.Config()
	dsn := fmt.Sprintf("host=%s port=%d user=writer dbname=postgres", config.Host, config.Port)
	for _, c := range []struct {
		name, do, undo, want string
		rows                 [][]any
	}{
		{"dropped", "ALTER TABLE t RENAME TO gone", "ALTER TABLE gone RENAME TO t", `relation "public.t" does not exist`, nil},
		{"a column less", "ALTER TABLE t RENAME COLUMN id TO no", "ALTER TABLE t RENAME COLUMN no TO id",
			`column "id" of relation "t" does not exist`, nil},
		{"another type", "ALTER TABLE t ALTER COLUMN t TYPE int USING 0", "ALTER TABLE t ALTER COLUMN t TYPE text",
			"invalid input syntax for type integer", nil},
		{"right gone", "REVOKE INSERT ON t FROM writer", "GRANT INSERT ON t TO writer", "permission denied for table t", nil},
		{"NULL", "ALTER TABLE t ALTER COLUMN id SET NOT NULL", "ALTER TABLE t ALTER COLUMN id DROP NOT NULL",
			"null value in column", [][]any{{1, "a"}, {nil, "b"}}},
		{"twice", "CREATE UNIQUE INDEX u ON t (id)", "DROP INDEX u", "duplicate key value violates unique constraint",
			[][]any{{1, "a"}, {1, "b"}}},
		{"at the end", "ALTER TABLE t ADD CONSTRAINT k UNIQUE (id) DEFERRABLE INITIALLY DEFERRED",
			"ALTER TABLE t DROP CONSTRAINT k", "duplicate key value violates unique constraint", [][]any{{1, "a"}, {1, "b"}}},
		{"no text", "", "", "1 rows were not written to public.t: the column t has a text that Postgres can not hold: " +
			`"a\x00b"`, [][]any{{1, "a\x00b"}}},
		{"no UTF-8", "", "", `can not hold: "\xff"`, [][]any{{1, "\xff"}}},
	} {
		exec("TRUNCATE t")
		s, err := postgres.Open(t.Context(), postgres.Options{Dial: dialer(dsn), Table: "t", Columns: ids})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		exec(c.do)
		rows := c.rows
		if rows == nil {
			rows = [][]any{{1, "a"}, {2, "b"}}
		}
		begin := time.Now()
		err = s.Write(batchOf(ids, rows...))
		if err == nil {
			select {
			case <-s.Failed():
			case <-time.After(20 * time.Second):
				t.Errorf("%s: it does not fail", c.name)
			}
		}
		err = errors.Join(err, s.Close())
		var e *sql.Error
		if !errors.As(err, &e) || e.Kind != sql.InvalidConfig || !strings.Contains(e.Message, c.want) ||
			time.Since(begin) > 10*time.Second {
			t.Errorf("%s: after %v: %v", c.name, time.Since(begin), err)
		}
		exec(c.undo)
		if n, _, _ := tally(t, config.ConnString()); n != 0 {
			t.Errorf("%s: %d rows are there", c.name, n)
		}
	}
	// Without the right nothing is opened.
	exec("REVOKE INSERT ON t FROM writer")
	_, err := postgres.Open(t.Context(), postgres.Options{Dial: dialer(dsn), Table: "t", Columns: ids})
	if err == nil || !strings.Contains(err.Error(), "the user writer may not insert into public.t") ||
		!strings.Contains(err.Error(), `GRANT INSERT ON "public"."t" TO "writer"`) {
		t.Errorf("%v", err)
	}
	exec("GRANT INSERT (t) ON t TO writer")
	_, err = postgres.Open(t.Context(), postgres.Options{Dial: dialer(dsn), Table: "t", Columns: ids})
	if err == nil || !strings.Contains(err.Error(), "may not insert into the column id") {
		t.Errorf("%v", err)
	}
	exec("GRANT INSERT ON t TO writer; ALTER TABLE t ENABLE ROW LEVEL SECURITY")
	_, err = postgres.Open(t.Context(), postgres.Options{Dial: dialer(dsn), Table: "t", Columns: ids})
	if err == nil || !strings.Contains(err.Error(), "row-level security") {
		t.Errorf("%v", err)
	}
}
