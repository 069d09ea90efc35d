package derived_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/derived"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/resultsrole"
)

// plain is a results database of somebody who has made two roles and a database, and nothing more.
type plain struct {
	admin          *pgx.Conn
	keeper, reader string
	dsn            func(role, database string) string
}

func startPlain(t *testing.T) *plain {
	t.Helper()
	server := pgtest.StartCrashable(t, nil)
	p := &plain{dsn: func(role, database string) string {
		return strings.Replace(server.DSN(database), "user=loadstone", "user="+role, 1)
	}}
	cluster := connect(t, p.dsn("loadstone", "postgres"))
	for _, sql := range []string{"CREATE ROLE keeper LOGIN", "CREATE ROLE reader LOGIN",
		"CREATE DATABASE kept OWNER keeper"} {
		if _, err := cluster.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	p.admin = connect(t, p.dsn("loadstone", "kept"))
	p.keeper, p.reader = p.dsn("keeper", "kept"), p.dsn("reader", "kept")
	return p
}

func (p *plain) do(t *testing.T, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := p.admin.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func (p *plain) open(t *testing.T, reader string, s derived.Settings) *derived.Database {
	t.Helper()
	d, err := derived.OpenWith(t.Context(), p.keeper, reader, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// TestASessionKeepsNothingForTheNextUser: whatever a session was left with is gone when the next query has it.
func TestASessionKeepsNothingForTheNextUser(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	d := p.open(t, p.reader, derived.DefaultSettings())
	left := func(outcome string) {
		conn, err := d.Console(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		for _, sql := range []string{"SET search_path = pg_catalog", "SET DateStyle = 'German'", "SET TimeZone = 'Asia/Tokyo'",
			"SET statement_timeout = 0", "SET default_transaction_read_only = off", "SELECT pg_advisory_lock(7)", "LISTEN x",
			"PREPARE stays AS SELECT 1", "CREATE TEMP TABLE runs (a int)", "SET ROLE reader",
			"DECLARE stays CURSOR WITH HOLD FOR SELECT 1"} {
			if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		switch outcome {
		case "error":
			_, _ = conn.Exec(t.Context(), "SELECT 1/0")
		case "open":
			_, _ = conn.Exec(t.Context(), "BEGIN", pgx.QueryExecModeSimpleProtocol)
		case "cancelled":
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, _ = conn.Exec(ctx, "SELECT pg_sleep(10)")
		}
	}
	for _, outcome := range []string{"done", "error", "open", "cancelled"} {
		for range 8 {
			left(outcome)
		}
		time.Sleep(100 * time.Millisecond)
		for sql, want := range map[string]string{"SELECT current_setting('search_path')": "tables, rollup",
			"SELECT current_setting('DateStyle')": "ISO, MDY", "SELECT current_setting('TimeZone')": "UTC",
			"SELECT current_setting('default_transaction_read_only')": "on",
			"SELECT count(*)::text FROM pg_prepared_statements":       "0", "SELECT count(*)::text FROM pg_cursors WHERE name <> ''": "0",
			"SELECT count(*)::text FROM rollup.runs": "0", "SELECT count(*)::text FROM runs": "0",
			"SELECT count(*)::text FROM pg_class WHERE relpersistence = 't'": "0"} {
			for range 8 {
				a, err := d.Query(t.Context(), sql, 1)
				if err != nil || a.Rows[0][0] != want {
					t.Fatalf("after %s: %s: %v, %v", outcome, sql, a.Rows, err)
				}
			}
		}
		if n := count(t, p.admin, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"); n != 0 {
			t.Errorf("after %s: %d locks are held", outcome, n)
		}
	}
}

// TestARoleThatMayTooMuchExecutesNothing: each right is named, in the error of every way by which SQL of users comes;
// runs are taken in all the same.
func TestARoleThatMayTooMuchExecutesNothing(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	p.do(t, "CREATE SCHEMA open", "GRANT CREATE ON SCHEMA open TO PUBLIC")
	d := p.open(t, p.reader, derived.DefaultSettings())
	if _, err := d.Query(t.Context(), "SELECT 1", 1); err == nil || !strings.Contains(err.Error(), "in the schema open") {
		t.Fatalf("a schema that is open: %v", err)
	}
	p.do(t, "REVOKE CREATE ON SCHEMA open FROM PUBLIC")
	d = p.open(t, p.reader, derived.DefaultSettings())
	if _, err := d.Query(t.Context(), "SELECT 1", 1); err != nil {
		t.Fatal(err)
	}
	tolerated, err := d.CheckReader(t.Context())
	if text := strings.Join(tolerated, "; "); err != nil || !strings.Contains(text, "temporary tables") ||
		!strings.Contains(text, "functions with side effects") {
		t.Errorf("tolerated: %q, %v", text, err)
	}
	for role, c := range map[string]struct{ makes, says string }{
		"super":    {"CREATE ROLE super LOGIN SUPERUSER", "is a superuser"},
		"maker":    {"CREATE ROLE maker LOGIN CREATEDB", "may make databases"},
		"roles":    {"CREATE ROLE roles LOGIN CREATEROLE", "may make roles"},
		"repl":     {"CREATE ROLE repl LOGIN REPLICATION", "may replicate"},
		"passing":  {"CREATE ROLE passing LOGIN BYPASSRLS", "passes row security by"},
		"member":   {"CREATE ROLE member LOGIN IN ROLE keeper", "may act as the owner"},
		"signals":  {"CREATE ROLE signals LOGIN IN ROLE pg_signal_backend", "is a member of pg_signal_backend"},
		"writes":   {"CREATE ROLE writes LOGIN IN ROLE pg_write_all_data", "is a member of pg_write_all_data"},
		"files":    {"CREATE ROLE files LOGIN IN ROLE pg_write_server_files", "is a member of pg_write_server_files"},
		"readsf":   {"CREATE ROLE readsf LOGIN IN ROLE pg_read_server_files", "is a member of pg_read_server_files"},
		"programs": {"CREATE ROLE programs LOGIN IN ROLE pg_execute_server_program", "is a member of pg_execute_server_program"},
		"checks":   {"CREATE ROLE checks LOGIN IN ROLE pg_checkpoint", "is a member of pg_checkpoint"},
		"indirect": {"CREATE ROLE between CREATEROLE; CREATE ROLE indirect LOGIN IN ROLE between", "is a member of between"},
		"schemas":  {"CREATE ROLE schemas LOGIN; GRANT CREATE ON DATABASE kept TO schemas", "may make schemas"},
		"inside":   {"CREATE ROLE inside LOGIN; GRANT CREATE ON SCHEMA tables TO inside", "in the schema tables"},
		"deletes":  {"CREATE ROLE deletes LOGIN; GRANT DELETE ON rollup.runs TO deletes", "may write to rollup.runs"},
		"columns":  {"CREATE ROLE columns LOGIN; GRANT UPDATE (run_name) ON rollup.runs TO columns", "may write to rollup.runs"},
		"owns":     {"CREATE ROLE owns LOGIN; CREATE TABLE open.mine (); ALTER TABLE open.mine OWNER TO owns", "owns open.mine"},
		"keeper":   {"SELECT 1", "is the owner"},
	} {
		if _, err := p.admin.Exec(t.Context(), c.makes, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		d := p.open(t, p.dsn(role, "kept"), derived.DefaultSettings())
		_, asked := d.Query(t.Context(), "SELECT 1", 1)
		_, seen := d.Preview(t.Context(), "SELECT 1 AS a", "runs")
		_, defined := d.Inspect(t.Context(), "SELECT 1 AS a", "runs")
		for what, err := range map[string]error{"a query": asked, "a preview": seen, "a definition": defined} {
			if !engine.HasCode(err, engine.CodeConflict) || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(engine.AsError(err).Hint, "schema apply --results") {
				t.Errorf("%s: %s: %v", role, what, err)
			}
		}
		// It is no failure of a table, of which five would end its refreshes.
		if _, err := d.Materialize(t.Context(), refresh.Table{Name: "of " + role, Kind: refresh.SQL,
			Definition: "SELECT 1 AS a", Version: 1}, claim("of "+role, "", 1), held); !engine.HasCode(err,
			engine.CodeUnavailable) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: a refresh: %v", role, err)
		}
		r, _ := oneRun("of "+role, 3)
		put(t, d, r, 1)
	}
}

// TestSideEffectsAreRefusedWhereTheDatabaseAllowsThem: a reader of somebody else's database may call functions of
// Postgres that write, lock or end sessions; nobody who sends a query may. What only changes with each call goes on.
func TestSideEffectsAreRefusedWhereTheDatabaseAllowsThem(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	d := p.open(t, p.reader, derived.DefaultSettings())
	p.do(t, "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'")
	p.do(t, "CREATE FUNCTION tables.of_a_row(rollup.runs) RETURNS int LANGUAGE sql AS 'SELECT 1'",
		"CREATE FUNCTION public."+strings.Repeat("f", 63)+"() RETURNS int LANGUAGE sql AS 'SELECT 1'")
	for _, call := range []string{"set_config('search_path', 'x', false)", "lo_create(0)", "lo_from_bytea(0, 'x')",
		"pg_logical_emit_message(false, 'a', 'b')", "pg_advisory_lock(1)", "pg_try_advisory_xact_lock(1)",
		"pg_notify('x', 'y')", "pg_terminate_backend(1)", "pg_cancel_backend(1)", "pg_sleep(1)", "setseed(0.5)",
		"query_to_xml('SELECT 1', true, true, '')", "public.mine()", "PG_SLEEP(1)", `"pg_sleep"(1)`,
		"pg_catalog.pg_sleep(1)", "pg_sleep/* a */ -- b\n (1)", `pg_catalog . "pg_sleep" (1)`, `U&"pg\005fsleep"(1)`,
		`u&"\0070g_sleep"(1)`} {
		for _, sql := range []string{"SELECT " + call, "SELECT 1 WHERE (SELECT count(*) FROM (SELECT " + call + ") x) = 1",
			"EXPLAIN ANALYZE SELECT " + call, "WITH x AS (SELECT " + call + ") TABLE x", "VALUES ((SELECT (" + call + ")::text))"} {
			_, err := d.Query(t.Context(), sql, 1)
			if !engine.HasCode(err, engine.CodeInvalid) || len(engine.AsError(err).Fields) != 1 ||
				engine.AsError(err).Fields[0].Line == 0 {
				t.Errorf("%s: %v", sql, err)
			}
		}
		if _, err := d.Preview(
			t.Context(),
			"SELECT ("+call+")::text AS a",
			"runs",
		); !engine.HasCode(
			err,
			engine.CodeInvalid,
		) {
			t.Errorf("a definition calls %s: %v", call, err)
		}
	}
	// Ways to call a function that no name before a parenthesis gives away.
	for _, sql := range []string{`SELECT U&"lo_create" UESCAPE '!' (0)`, `SELECT U&"lo!005fcreate" UESCAPE '!' (0)`,
		`SELECT u&"lo_create" /* a */ UESCAPE -- b
			'!' (0)`, `SELECT pg_catalog.U&"lo_create" UESCAPE '!' (0)`, `SELECT 1 AS U&"a"`,
		"SELECT (ARRAY[1, 2])[1:lo_create(0)::int]", "SELECT (ARRAY[1, 2])[:lo_create(0)::int]",
		`SELECT (ARRAY[1, 2])[1:U&"lo_create" UESCAPE '!' (0)::int]`,
		"SELECT E'a'\n'\\', ', lo_create(0), '--'", "SELECT E'a' -- b\n -- c\r\n\t '\\', ', lo_create(0), '--'",
		"SELECT TREAT(0 AS lo_create)", `SELECT "treat" (1), TREAT (0::oid AS "lo_create")`,
		"SELECT r.of_a_row FROM rollup.runs r", "SELECT (r).of_a_row FROM rollup.runs r",
		`SELECT rollup.runs."of_a_row" FROM rollup.runs`, "SELECT TREAT(0 AS pg_catalog.lo_create[])", "SELECT public." + strings.Repeat("f", 70) + "()",
		"SELECT * FROM lo_create(0)", "SELECT * FROM rollup.runs, LATERAL lo_create(0)",
		"SELECT * FROM ROWS FROM (lo_create(0))"} {
		_, err := d.Query(t.Context(), sql, 1)
		if !engine.HasCode(err, engine.CodeInvalid) || len(engine.AsError(err).Fields) != 1 ||
			engine.AsError(err).Fields[0].Line == 0 {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if n := count(t, p.admin, "SELECT count(*) FROM pg_largeobject_metadata"); n != 0 {
		t.Errorf("%d large objects are there", n)
	}
	for _, sql := range []string{"SELECT now(), random(), clock_timestamp(), timeofday(), gen_random_uuid()",
		"SELECT 'pg_sleep(1)', $$pg_sleep(1)$$", "SELECT 1 AS pg_sleep", `SELECT a AS "lo_create" FROM (VALUES (1)) AS x(a)`,
		"SELECT pg_size_pretty(pg_relation_size('rollup.runs'))", "SHOW work_mem", "EXPLAIN SELECT 1",
		`SELECT (ARRAY[1, 2])[1:length('ab')], E'a'
			'b', U&'\0061', 2 & 1 AS u, r.run_name AS treat FROM rollup.runs r`} {
		if _, err := d.Query(t.Context(), sql, 1); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestLoginsAreEndedFromOutside: somebody who connects as a member of the reader may set away every limit of the
// session; the supervisor ends what takes longer than it may, sessions that stand still, and those that do nothing.
func TestLoginsAreEndedFromOutside(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	s := derived.DefaultSettings()
	s.Sessions.Login, s.Sessions.IdleInTransaction, s.Sessions.Idle = time.Second, time.Second, 2*time.Second
	d := p.open(t, p.reader, s)
	missing, err := resultsrole.Apply(t.Context(), p.admin, resultsrole.Names{Database: "kept", Owner: "keeper",
		Reader: "reader"})
	if err != nil || len(missing) > 0 {
		t.Fatal(missing, err)
	}
	p.do(t, "CREATE ROLE query_ann LOGIN IN ROLE reader CONNECTION LIMIT 4")
	ctx, stop := context.WithCancel(t.Context())
	var ends sync.WaitGroup
	ends.Go(func() { _ = d.Supervise(ctx, derived.Supervision{Own: true, Log: zerolog.Nop()}) })
	defer ends.Wait()
	defer stop()
	// All connections of the owner's are taken meanwhile.
	var taken []*pgxpool.Conn
	for range 6 {
		conn, err := d.Owner(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, conn)
	}
	login := func() *pgx.Conn {
		conn := connect(t, p.dsn("query_ann", "kept"))
		for _, sql := range []string{"SET statement_timeout = 0", "SET idle_in_transaction_session_timeout = 0",
			"SET idle_session_timeout = 0"} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		return conn
	}
	within := func(what string, most time.Duration, ended func() error) {
		t.Helper()
		began := time.Now()
		for ended() == nil {
			if time.Since(began) > most {
				t.Fatalf("%s goes on after %v", what, most)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	slow := login()
	within("a statement", 4*time.Second, func() error {
		_, err := slow.Exec(t.Context(), "SELECT count(*) FROM (SELECT generate_series(1, 1000000000000)) x")
		return err
	})
	stands := login()
	if _, err := stands.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	n := func(conn *pgx.Conn) func() error {
		pid := conn.PgConn().PID()
		return func() error {
			if count(t, p.admin, fmt.Sprintf("SELECT count(*) FROM pg_stat_activity WHERE pid = %d", pid)) == 0 {
				return os.ErrClosed
			}
			return nil
		}
	}
	limit := func(pid uint32) string {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
		_, line, _ := strings.Cut(string(text), "Max data size")
		return strings.Fields(line + " none")[0]
	}
	later := connect(t, p.dsn("loadstone", "postgres"))
	within("an unbounded login", 2*time.Second, func() error {
		if limit(slow.PgConn().PID()) == fmt.Sprint(64<<20) && limit(later.PgConn().PID()) == "unlimited" {
			return os.ErrClosed
		}
		return nil
	})
	within("a transaction", 4*time.Second, n(stands))
	within("a session that does nothing", 6*time.Second, n(login()))
	for _, conn := range taken {
		conn.Release()
	}
	// The owner's and others' sessions are left alone.
	if _, err := d.Query(t.Context(), "SELECT 1", 1); err != nil {
		t.Error(err)
	}
	if err := p.admin.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	// A session of the console is known as one when nobody has it, too.
	within("a session of the console without a name", time.Second, func() error {
		if count(t, p.admin, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'loadstone query'") > 0 {
			return os.ErrClosed
		}
		return nil
	})
}

// TestWhoAdministersIsNotSupervised: logins that are members of the reader because they have made it, or because they
// have the owner's rights, are left alone, and get no limits from `schema apply --results`. One that has to ask for the
// reader's rights with SET ROLE is supervised.
func TestWhoAdministersIsNotSupervised(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	s := derived.DefaultSettings()
	s.Sessions.Login, s.Sessions.Idle = time.Second, time.Second
	d := p.open(t, p.reader, s)
	p.do(t, "CREATE ROLE master LOGIN CREATEROLE", "GRANT reader TO master WITH ADMIN OPTION",
		"CREATE ROLE keeps LOGIN IN ROLE keeper, reader", "CREATE ROLE asks LOGIN NOINHERIT IN ROLE reader")
	names := resultsrole.Names{Database: "kept", Owner: "keeper", Reader: "reader"}
	if missing, err := resultsrole.Apply(t.Context(), p.admin, names); err != nil || len(missing) > 0 {
		t.Fatal(missing, err)
	}
	p.do(t, "GRANT EXECUTE ON FUNCTION pg_sleep(float8) TO PUBLIC")
	for role, want := range map[string]int64{"master": 0, "keeps": 0, "asks": 1} {
		if n := count(t, p.admin, `SELECT count(*) FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole
			WHERE r.rolname = $1`, role); n != want {
			t.Errorf("%s has settings: %d, want %d", role, n, want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var ends, slow sync.WaitGroup
	ends.Go(func() { _ = d.Supervise(ctx, derived.Supervision{Own: true, Log: zerolog.Nop()}) })
	defer ends.Wait()
	defer stop()
	for role, ended := range map[string]bool{"master": false, "keeps": false, "asks": true} {
		conn := connect(t, p.dsn(role, "kept"))
		slow.Go(func() {
			if _, err := conn.Exec(t.Context(), "SELECT pg_sleep(3)"); (err != nil) != ended || err != nil &&
				!strings.Contains(err.Error(), "canceling") {
				t.Errorf("a statement of %s: %v", role, err)
			}
		})
	}
	slow.Wait()
}

// TestAQueryWaitsForNoRefresh: the reader's rights are looked at while definitions have all their sessions.
func TestAQueryWaitsForNoRefresh(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	d := p.open(t, p.reader, derived.DefaultSettings())
	for range 6 {
		conn, err := d.Reader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	for range 2 {
		d.ForgetRights()
		soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if _, err := d.Query(soon, "SELECT 1", 1); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
}

// bombs are queries that make values, lists and sets as large as Postgres lets them.
var bombs = []string{
	"SELECT repeat('x', 1000000000)",
	"SELECT length(repeat('x', 1000000000))",
	"SELECT string_agg(repeat('x', 1000), '') FROM generate_series(1, 1000000)",
	"SELECT array_agg(g) FROM generate_series(1, 100000000) g",
	"WITH RECURSIVE r(x) AS (SELECT 'x' UNION ALL SELECT x || x FROM r WHERE length(x) < 900000000) SELECT max(length(x)) FROM r",
	"SELECT a FROM generate_series(1, 3000) a, generate_series(1, 3000) b ORDER BY md5((a + b)::text) LIMIT 1",
	"SELECT count(*) FROM (SELECT md5(g::text) FROM generate_series(1, 20000000) g GROUP BY 1) x",
	"SELECT jsonb_agg(jsonb_build_object('a', repeat('x', 1000))) FROM generate_series(1, 1000000)",
	"SELECT jsonb_object_agg(g, g) FROM generate_series(1, 50000000) g",
	"SELECT regexp_replace(repeat('ab', 5000000), '(a|b)*', '\\1\\1', 'g')",
	"SELECT lpad('', 1000000000, 'x') || rpad('', 1000000000, 'y')",
	"SELECT array_fill(1, ARRAY[100000000])",
	"SELECT xmlagg(xmlelement(name a, repeat('x', 1000))) FROM generate_series(1, 1000000)",
	"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY g) FROM generate_series(1, 100000000) g",
}

// TestBombsHaveABound: backends together have at most 500 MB more than before through all bombs, four and forty of the
// worst at a time, and another user's SELECT 1 takes a second on a machine of its own; three where other tests run.
func TestBombsHaveABound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	p := startPlain(t)
	d := p.open(t, p.reader, bombSettings())
	p.explode(t, d, 500, func(ctx context.Context) {
		_ = d.Supervise(ctx, derived.Supervision{Own: true, Log: zerolog.Nop()})
	})
}

// TestBombsElsewhereHaveABound is the same for a server that sees nothing of the machine of the results database, where
// a guard bounds its readers: one to which all of the Postgres is given, and one that has to find each of them first.
func TestBombsElsewhereHaveABound(t *testing.T) {
	if testing.Short() {
		t.Skip("make check-ci: it takes a minute")
	}
	for dedicated, most := range map[bool]int64{true: 500, false: 1000} { // it was 494 MB at a load of 20
		t.Run(fmt.Sprintf("dedicated %t", dedicated), func(t *testing.T) {
			p := startPlain(t)
			near := *p
			keeper, reader := relayed(t, p.keeper), relayed(t, p.reader)
			near.keeper = keeper
			d := near.open(t, reader, bombSettings())
			guard, err := derived.OpenGuard(t.Context(), p.keeper, p.reader)
			if err != nil {
				t.Fatal(err)
			}
			defer guard.Close()
			if _, err := derived.OpenGuard(t.Context(), keeper, reader); !engine.HasCode(err, engine.CodeInvalid) {
				t.Errorf("a guard that sees nothing of the machine begins: %v", err)
			}
			near.explode(t, d, most, func(ctx context.Context) {
				var both sync.WaitGroup
				both.Go(func() { _ = d.Supervise(ctx, derived.Supervision{Log: zerolog.Nop()}) })
				if err := guard.Supervise(ctx, derived.Supervision{Own: dedicated, Guard: true, Log: zerolog.Nop()}); err != nil {
					t.Error(err)
				}
				both.Wait()
			})
		})
	}
}

// TestAGuardThatBoundsNothingEnds, so that whoever has started it sees that, dedicated or not; a server goes on.
func TestAGuardThatBoundsNothingEnds(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	near := *p
	near.keeper = relayed(t, p.keeper)
	d := near.open(t, relayed(t, p.reader), derived.DefaultSettings())
	for _, dedicated := range []bool{true, false} {
		var log bytes.Buffer
		err := d.Supervise(t.Context(), derived.Supervision{Own: dedicated, Guard: true, Log: zerolog.New(&log)})
		if !engine.HasCode(err, engine.CodeUnavailable) ||
			strings.Count(log.String(), "cannot be bounded from here now") != 1 {
			t.Errorf("dedicated %t: %v, and the log says %s", dedicated, err, log.String())
		}
	}
}

// relayed is a database by way of something that hides where its processes are, as another machine does.
func relayed(t *testing.T, dsn string) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", fmt.Sprintf("%s/.s.PGSQL.%d", config.Host, config.Port))
			if err != nil {
				_ = near.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				open.Go(func() {
					_, _ = io.Copy(way[0], way[1])
					_, _ = way[0].Close(), way[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() { _ = listener.Close(); open.Wait() })
	return fmt.Sprintf("host=127.0.0.1 port=%d user=%s dbname=%s sslmode=disable",
		listener.Addr().(*net.TCPAddr).Port, config.User, config.Database)
}

// bombSettings are those of a database whose queries end soon.
func bombSettings() derived.Settings {
	s := derived.DefaultSettings()
	s.Query.Statement = 3 * time.Second
	return s
}

// explode sends all bombs while the sessions are supervised, and measures: backends may have so many megabytes more.
func (p *plain) explode(t *testing.T, d *derived.Database, limit int64, supervise func(context.Context)) {
	t.Helper()
	if _, err := resultsrole.Apply(t.Context(), p.admin, resultsrole.Names{Database: "kept", Owner: "keeper",
		Reader: "reader"}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var ends, watch sync.WaitGroup
	ends.Go(func() { supervise(ctx) })
	defer ends.Wait()
	defer stop()
	places := query.NewPlaces(query.DefaultPlaceLimits())
	ask := func(user, sql string) error {
		ctx := query.WithCaller(t.Context(), user, "")
		leave, err := places.Acquire(ctx, user)
		if err != nil {
			return err
		}
		defer leave()
		_, err = d.Query(ctx, sql, 100)
		return err
	}
	postmaster := parent(t, int(p.admin.PgConn().PID()))
	idle, most := backends(postmaster), uint64(0)
	var slowest time.Duration
	sampling := make(chan struct{})
	watch.Go(func() {
		for {
			select {
			case <-sampling:
				return
			case <-time.After(5 * time.Millisecond):
				most = max(most, backends(postmaster))
			}
		}
	})
	watch.Go(func() {
		for {
			select {
			case <-sampling:
				return
			case <-time.After(200 * time.Millisecond):
			}
			began := time.Now()
			if err := ask("other", "SELECT 1"); err != nil {
				t.Errorf("another user: %v", err)
			}
			slowest = max(slowest, time.Since(began))
		}
	})
	var all sync.WaitGroup
	run := func(n int, sql string) {
		for i := range n {
			all.Go(func() {
				if err := ask(fmt.Sprint("user", i%7), sql); err == nil && strings.HasPrefix(sql, "SELECT repeat") {
					t.Errorf("%s has an answer", sql)
				} else if err != nil && engine.HasCode(err, engine.CodeInternal) {
					t.Errorf("%s: %v", sql, err)
				}
			})
		}
		all.Wait()
	}
	run(4, bombs[0])
	run(40, bombs[0])
	for _, bomb := range bombs[1:] {
		run(4, bomb)
	}
	for i := range 28 {
		all.Go(func() { _ = ask(fmt.Sprint("user", i%7), bombs[1+i%(len(bombs)-1)]) })
	}
	all.Wait()
	close(sampling)
	watch.Wait()
	above := int64(most-min(idle, most)) >> 20
	t.Logf("backends: %d MB idle, at most %d MB above; SELECT 1 of another user took at most %v", idle>>20, above, slowest)
	if above > limit || slowest > 3*time.Second {
		t.Errorf("backends took %d MB more, SELECT 1 %v", above, slowest)
	}
}

// backends is how much memory the processes of a Postgres have for themselves.
func backends(postmaster int) (bytes uint64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", postmaster, postmaster))
	if err != nil {
		return 0
	}
	for _, pid := range strings.Fields(string(text)) {
		var total, resident, shared uint64
		line, err := os.ReadFile(filepath.Join("/proc", pid, "statm"))
		if err != nil {
			continue
		}
		if _, err := fmt.Sscan(string(line), &total, &resident, &shared); err == nil && resident > shared {
			bytes += (resident - shared) * uint64(syscall.Getpagesize())
		}
	}
	return bytes
}

func parent(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	p, err := strconv.Atoi(strings.Fields(rest)[1])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestARoleIsMadeAsItShouldBe: a reader that does not exist, or may nearly everything, is one that may read after the
// statements, as whoever executes them; twice is as good as once, and what the owner may not do it returns.
func TestARoleIsMadeAsItShouldBe(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	admin := p.dsn("loadstone", "kept")
	apply := func(reader, as string) []resultsrole.Missing {
		t.Helper()
		missing, err := derived.ApplyRole(t.Context(), p.keeper, p.dsn(reader, "kept"), as)
		if err != nil {
			t.Fatal(err)
		}
		return missing
	}
	// The owner may not make roles: it says what somebody else has to do, and that is all that is to be done.
	missing := apply("absent", "")
	if len(missing) == 0 || !strings.Contains(missing[0].SQL, "CREATE ROLE") {
		t.Fatalf("the owner made a role: %v", missing)
	}
	for _, m := range missing {
		sql := m.SQL
		if strings.HasPrefix(sql, "CREATE ROLE") {
			sql, _, _ = strings.Cut(sql, " PASSWORD")
		}
		p.do(t, sql)
	}
	if left := apply("absent", ""); len(left) > 0 {
		t.Errorf("after what was said: %v", left)
	}
	p.do(t, `CREATE ROLE wild LOGIN CREATEROLE CREATEDB BYPASSRLS REPLICATION IN ROLE pg_signal_backend, pg_write_all_data,
		keeper`, "GRANT CREATE, TEMPORARY ON DATABASE kept TO wild")
	for _, reader := range []string{"absent", "wild", "anew"} {
		for range 2 {
			if missing := apply(reader, admin); len(missing) > 0 {
				t.Fatalf("%s: %v", reader, missing)
			}
			d := p.open(t, p.dsn(reader, "kept"), derived.DefaultSettings())
			tolerated, err := d.CheckReader(t.Context())
			if err != nil || len(tolerated) > 0 {
				t.Errorf("%s may %v, %v", reader, tolerated, err)
			}
			if a, err := d.Query(t.Context(), "SELECT count(*), current_setting('temp_file_limit') FROM rollup.runs",
				1); err != nil || a.Rows[0][1] != "1GB" {
				t.Errorf("%s: %v, %v", reader, a.Rows, err)
			}
			if _, err := d.Preview(t.Context(), "SELECT count(*) AS n FROM rollup.runs", "runs"); err != nil {
				t.Errorf("%s: the owner has lost something: %v", reader, err)
			}
			r, _ := oneRun("a", 3)
			put(t, d, r, time.Now().UnixNano())
		}
	}
	// Logins that are members have limits of their own.
	p.do(t, "CREATE ROLE query_bea LOGIN IN ROLE wild")
	apply("wild", admin)
	var limit string
	bea := connect(t, p.dsn("query_bea", "kept"))
	if err := bea.QueryRow(
		t.Context(),
		"SELECT current_setting('temp_file_limit')",
	).Scan(
		&limit,
	); err != nil ||
		limit != "1GB" {
		t.Errorf("a login has %s of temporary files, %v", limit, err)
	}
	// Rights that were given later are taken, too.
	p.do(t, "GRANT ALL ON ALL TABLES IN SCHEMA rollup TO wild", "GRANT ALL ON SCHEMA tables, staging TO wild",
		"GRANT INSERT ON rollup.runs TO PUBLIC", "GRANT CREATE ON SCHEMA public TO PUBLIC")
	d := p.open(t, p.dsn("wild", "kept"), derived.DefaultSettings())
	if _, err := d.CheckReader(t.Context()); err == nil {
		t.Error("rights that were given later are not seen")
	}
	apply("wild", admin)
	if _, err := d.CheckReader(t.Context()); err != nil {
		t.Error(err)
	}
	// Functions with side effects are the database's to refuse then, whoever connects as the reader.
	conn := connect(t, p.dsn("wild", "kept"))
	for _, call := range []string{"pg_sleep(1)", "set_config('a.b', 'c', false)", "lo_create(0)", "pg_advisory_lock(1)",
		"pg_terminate_backend(1)", "pg_notify('a', 'b')", "pg_logical_emit_message(true, 'a', 'b')"} {
		if _, err := conn.Exec(
			t.Context(),
			"SELECT "+call,
		); err == nil ||
			!strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// TestTheQueriesOfAUserAreCountedOnAllServers: two of a user that one server executes leave none to another server, but
// another user's are executed; one that waits there is cancelled by whichever server is asked.
func TestTheQueriesOfAUserAreCountedOnAllServers(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	one, other := p.open(t, p.reader, derived.DefaultSettings()), p.open(t, p.reader, derived.DefaultSettings())
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for range 2 {
		all.Go(func() {
			_, _ = one.Query(
				query.WithCaller(ctx, "ada", ""),
				"SELECT count(*) FROM (SELECT generate_series(1, 1000000000000)) x",
				1,
			)
		})
	}
	for count(t, p.admin, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'loadstone query %'") < 2 {
		time.Sleep(20 * time.Millisecond)
	}
	if err := other.CheckQueries(query.WithCaller(t.Context(), "ada", "")); !engine.HasCode(err, engine.CodeRateLimited) {
		t.Errorf("a third: %v", err)
	}
	if err := other.CheckQueries(query.WithCaller(t.Context(), "bob", "")); err != nil {
		t.Errorf("another user: %v", err)
	}
	if _, err := other.Query(query.WithCaller(t.Context(), "bob", ""), "SELECT 1", 1); err != nil {
		t.Errorf("another user: %v", err)
	}
	for _, server := range []*derived.Database{one, other} {
		waiting, done, err := one.Waits(query.WithCaller(t.Context(), "ada", "waits-for-its-turn"))
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Cancel(
			t.Context(),
			query.SessionOf("bob", "waits-for-its-turn"),
		); !errors.Is(
			err,
			store.ErrNotFound,
		) {
			t.Errorf("somebody else: %v", err)
		}
		if err := server.Cancel(t.Context(), query.SessionOf("ada", "waits-for-its-turn")); err != nil {
			t.Error(err)
		}
		select {
		case <-waiting.Done():
			if !errors.Is(context.Cause(waiting), query.ErrCancelled) {
				t.Errorf("it ends with %v", context.Cause(waiting))
			}
		case <-time.After(5 * time.Second):
			t.Error("it goes on waiting")
		}
		done()
		if err := server.Cancel(
			t.Context(),
			query.SessionOf("ada", "waits-for-its-turn"),
		); !errors.Is(
			err,
			store.ErrNotFound,
		) {
			t.Errorf("what is over: %v", err)
		}
	}
}
