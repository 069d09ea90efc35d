package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/sql"
)

// beginListening starts a cluster that listens on a free port of this machine. Somebody else may take the port before
// it does; then it tries another.
func beginListening(t *testing.T, dir string) *Postgres {
	t.Helper()
	var last error
	for range 20 {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := free.Addr().(*net.TCPAddr).Port
		options := Options{DataDir: dir, Log: zerolog.New(zerolog.NewTestWriter(t)), Listen: &Listen{Host: "127.0.0.1",
			Port: port}, Settings: map[string]string{"fsync": "off"}}
		if last == nil {
			// As long as somebody is there it says so, and leaves nothing behind.
			if _, err := Start(t.Context(), options); !engine.HasCode(err, engine.CodeInvalid) ||
				!strings.Contains(err.Error(), "something else listens there") {
				t.Errorf("on a port that is taken: %v", err)
			}
		}
		if err := free.Close(); err != nil {
			t.Fatal(err)
		}
		pg, err := Start(t.Context(), options)
		if last = err; err == nil {
			t.Cleanup(func() { end(t, pg) })
			return pg
		}
	}
	t.Fatal(last)
	return nil
}

// refusedBy reports that Postgres did not let a connection in.
func refusedBy(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "28000") || strings.Contains(err.Error(), "28P01"))
}

// ownerID and otherID are users.
const (
	ownerID = "0f0e0d0c-0000-4000-8000-000000000001"
	otherID = "0f0e0d0c-0000-4000-8000-000000000002"
)

// checkSuspended: a login whose owner has no right to it any more is not let in, and its sessions end, until somebody
// renews it; a login that another has taken over meanwhile goes on. It returns how the renewed one connects.
func checkSuspended(t *testing.T, pg *Postgres, dsn string) string {
	t.Helper()
	ctx := t.Context()
	session, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(context.Background()) }()
	suspend := func(owner string, want bool) {
		t.Helper()
		if changed, err := pg.SuspendReader(ctx, "grafana", owner); err != nil || changed != want {
			t.Errorf("suspended: %t, %v", changed, err)
		}
	}
	suspend(otherID, false)
	if _, err := session.Exec(ctx, "SELECT 1"); err != nil {
		t.Errorf("the session of another owner's login: %v", err)
	}
	suspend(ownerID, true)
	suspend(ownerID, false)
	for began := time.Now(); err == nil; time.Sleep(10 * time.Millisecond) {
		if _, err = session.Exec(ctx, "SELECT 1"); time.Since(began) > 30*time.Second {
			t.Fatal("the session of a login that is suspended goes on")
		}
	}
	if _, err := pg.AddReader(ctx, "grafana", otherID, false); !engine.HasCode(err, engine.CodeConflict) {
		t.Errorf("a suspended login is made again: %v", err)
	}
	if _, _, err := pg.Results(ctx); err != nil { // as at the next start
		t.Fatal(err)
	}
	if _, err := query(t, dsn, "SELECT 'in'"); !refusedBy(err) {
		t.Errorf("a login that is suspended: %v", err)
	}
	known := func() string {
		list, err := pg.Readers(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(list)
	}
	if got := known(); got != "[{grafana "+ownerID+" true}]" {
		t.Errorf("the logins are %s", got)
	}
	renewed, err := pg.AddReader(ctx, "grafana", otherID, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := known(); got != "[{grafana "+otherID+" false}]" {
		t.Errorf("the logins are %s", got)
	}
	if _, err := query(t, dsn, "SELECT 'in'"); !refusedBy(err) {
		t.Errorf("the password of before: %v", err)
	}
	if _, err := query(t, renewed, "SELECT 'in'"); err != nil {
		t.Errorf("a login that is renewed: %v", err)
	}
	return renewed
}

// TestQueryListen: over TCP the logins of people read what there is of results, and nothing else; nobody else gets in.
func TestQueryListen(t *testing.T) {
	t.Parallel()
	pg := beginListening(t, folder(t))
	ctx := t.Context()
	tables := controlTables(t, pg)
	results(t, pg)
	before, err := pg.AddReader(ctx, "grafana", ownerID, false)
	if err != nil {
		t.Fatal(err)
	}
	// The same name again says so, and changes nothing until another password is asked for.
	if _, err := pg.AddReader(ctx, "grafana", ownerID, false); !engine.HasCode(err, engine.CodeConflict) {
		t.Errorf("the same name again: %v", err)
	}
	if _, err := query(t, before, "SELECT 1"); err != nil {
		t.Errorf("the login after the same name again: %v", err)
	}
	dsn, err := pg.AddReader(ctx, "grafana", ownerID, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := query(t, before, "SELECT 1"); err == nil {
		t.Error("the password before still lets in")
	}
	at, err := url.Parse(dsn)
	if err != nil || at.Scheme != "postgres" || at.Hostname() != "127.0.0.1" {
		t.Fatalf("the connection string is %.12s…, %v", dsn, err)
	}
	if got, err := query(t, dsn, "SELECT current_user || ' ' || current_database() || ' ' || (inet_server_port() IS "+
		"NOT NULL)"); err != nil ||
		got != "query_grafana results true" {
		t.Fatalf("connected as %q, %v", got, err)
	}
	for _, sql := range []string{"SELECT count(*)::text FROM seconds", "SELECT count(*)::text FROM rollup.seconds",
		"SELECT count(*)::text FROM daily"} {
		if got, err := query(t, dsn, sql); err != nil || got != "1" {
			t.Errorf("%s: %q, %v", sql, got, err)
		}
	}
	// What psql asks to describe a table, and what an earlier version had taken away.
	if conn, err := pgx.Connect(ctx, pg.place.dsn(ResultsDatabase, superuser)); err != nil {
		t.Fatal(err)
	} else {
		_, err := conn.Exec(ctx, "REVOKE EXECUTE ON FUNCTION pg_partition_ancestors, pg_table_size FROM PUBLIC")
		closeConn(conn)
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := pg.Results(ctx); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"SELECT 'x' FROM pg_catalog.pg_partition_ancestors('rollup.seconds') LIMIT 1",
		"SELECT 'x' FROM pg_catalog.pg_partition_tree('rollup.seconds') LIMIT 1", "SELECT left(current_query(), 0) || 'x'",
		"SELECT left(pg_table_size('rollup.seconds')::text, 0) || 'x'"} {
		got, err := query(t, dsn, sql)
		if err != nil && !strings.Contains(err.Error(), "no rows") || err == nil && got != "x" {
			t.Errorf("%s: %q, %v", sql, got, err)
		}
	}
	for _, sql := range forbiddenStatements(tables) {
		// Privileges hold also where the session says that it writes.
		_, err := query(t, dsn+"&default_transaction_read_only=off", sql)
		if err == nil || strings.Contains(err.Error(), "no rows") {
			t.Errorf("a login that reads results may: %s (%v)", sql, err)
		}
	}
	checkAccess(t, pg, at)
	dsn = checkSuspended(t, pg, dsn)
	session, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(context.Background()) }()
	if err := pg.RemoveReader(ctx, "grafana"); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); err == nil; time.Sleep(10 * time.Millisecond) {
		if _, err = session.Exec(ctx, "SELECT 1"); time.Since(began) > 30*time.Second {
			t.Fatal("the session of a login that was removed goes on")
		}
	}
	if _, err := query(t, dsn, "SELECT 'in'"); !refusedBy(err) {
		t.Errorf("a login that was removed: %v", err)
	}
}

// controlTables makes the control store, and returns what is in it.
func controlTables(t *testing.T, pg *Postgres) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pg.DSN(ControlDatabase))
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	for _, f := range sql.Schema() {
		if _, err := conn.Exec(t.Context(), f.Text, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
	}
	rows, err := conn.Query(t.Context(), "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace "+
		"AND relkind IN ('r', 'p', 'v', 'm', 'S')")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) < 30 {
		t.Fatal(names, err)
	}
	return names
}

// results makes tables as the owner of the results database has them.
func results(t *testing.T, pg *Postgres) {
	t.Helper()
	owner, _, err := pg.Results(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	_, err = conn.Exec(t.Context(), `CREATE SCHEMA rollup; CREATE SCHEMA tables; CREATE SCHEMA staging;
		CREATE TABLE rollup.seconds AS SELECT 1 AS a; CREATE TABLE tables.daily AS SELECT 2 AS a;
		CREATE TABLE staging.fences AS SELECT 3 AS c;
		GRANT USAGE ON SCHEMA rollup, tables TO `+ResultsReader+`;
		GRANT SELECT ON ALL TABLES IN SCHEMA rollup, tables TO `+ResultsReader, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
}

// forbiddenStatements are statements that no reader may execute: those on each control table, and others.
func forbiddenStatements(tables []string) []string {
	all := []string{"SELECT count(*)::text FROM staging.fences", "SELECT pg_read_file('PG_VERSION')",
		"SELECT rolpassword FROM pg_authid LIMIT 1", "SELECT pg_sleep(0)::text", "SET ROLE results",
		"SET ROLE loadstone", "SELECT lo_creat(-1)::text", "COPY (SELECT 1) TO PROGRAM 'id'",
		"CREATE TABLE tables.mine (a int)", "CREATE TEMP TABLE mine (a int)", "ALTER ROLE query_grafana SUPERUSER",
		"CREATE EXTENSION dblink", "SET temp_file_limit = -1", "GRANT results TO query_grafana",
		"SELECT pg_terminate_backend(pg_backend_pid())::text", "SELECT pg_ls_dir('.')"}
	for _, relation := range []string{"rollup.seconds", "tables.daily"} {
		for _, form := range []string{"INSERT INTO %s VALUES (1) RETURNING '1'", "UPDATE %s SET a = 1 RETURNING '1'",
			"DELETE FROM %s RETURNING '1'", "TRUNCATE %s", "DROP TABLE %s", "ALTER TABLE %s ADD x int",
			"SELECT '1' FROM %s FOR UPDATE", "COPY %s TO '/tmp/x'"} {
			all = append(all, fmt.Sprintf(form, relation))
		}
	}
	for _, table := range tables {
		name := pgx.Identifier{table}.Sanitize()
		all = append(all, "SELECT count(*)::text FROM "+name, "SELECT count(*)::text FROM public."+name,
			"SELECT count(*)::text FROM loadstone.public."+name)
	}
	return all
}

// checkAccess tries each role on each database over TCP: the reader's into results is the only one.
func checkAccess(t *testing.T, pg *Postgres, reader *url.URL) {
	t.Helper()
	ask := func(sql string) []string {
		conn, err := pgx.Connect(t.Context(), pg.DSN("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		defer closeConn(conn)
		rows, err := conn.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(found) < 4 {
			t.Fatal(found, err)
		}
		return found
	}
	roles := ask("SELECT rolname FROM pg_roles WHERE rolcanlogin")
	own, _ := reader.User.Password()
	for _, database := range ask("SELECT datname FROM pg_database") {
		for _, role := range roles {
			passwords := []string{pg.place.password, "", "wrong"}
			if role == reader.User.Username() {
				passwords = append(passwords, own)
			}
			for _, password := range passwords {
				door := *reader
				door.Path, door.User = "/"+database, url.UserPassword(role, password)
				conn, err := pgx.Connect(t.Context(), door.String())
				open := password == own && database == ResultsDatabase
				if err == nil {
					_ = conn.Close(context.Background())
				}
				if open != (err == nil) || err != nil && !refusedBy(err) {
					t.Errorf("%s into %s over TCP: %v, let in: %t", role, database, err, err == nil)
				}
			}
		}
	}
}

// TestQueryListenTakesNoOthers: an address that nobody can listen on is refused in words.
func TestQueryListenTakesNoOthers(t *testing.T) {
	t.Parallel()
	for _, l := range []Listen{{Host: "192.0.2.1", Port: 5433},
		{Host: "127.0.0.1", Port: 65535, Cert: "none", Key: "none"}} {
		p := layout{listen: &l, cluster: t.TempDir()}
		err := p.listenSettings(identity{}, map[string]string{})
		var e *engine.Error
		if !errors.As(err, &e) || e.Code != engine.CodeInvalid || !strings.Contains(e.Message, strconv.Itoa(l.Port)) &&
			!strings.Contains(e.Message, "none") {
			t.Errorf("%+v: %v", l, err)
		}
	}
}
