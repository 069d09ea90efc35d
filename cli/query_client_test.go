package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/storage/derived/derivedtest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// TestAClientOverTLSReadsResultsAndNothingElse: with the string of query-user and the authority of its certificate a
// client as Grafana is one connects to a real server, reads every result table, and can do nothing else: no other
// relation, no table of the control store by any name, no other database.
func TestAClientOverTLSReadsResultsAndNothingElse(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	authority := pgtest.NewAuthority(t)
	cert, key := authority.Issue(t, pgtest.Identity{Name: "results", Address: "127.0.0.1"})
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	s := p.Serve("--query-listen", address, "--query-cert", p.Write("tls.crt", cert), "--query-key",
		p.Write("tls.key", key), "--refresh-workers", "2")
	defer s.Stop()
	tables := tableServer{s}
	tables.awaitFresh("run_summary")
	if _, err := tables.make("of mine", "SELECT 1 AS n"); err != nil {
		t.Fatal(err)
	}
	tables.awaitFresh("of mine")
	code, printed := p.Command("query-user", "grafana", "--data-dir", p.Path("data"))
	_, dsn, found := strings.Cut(printed, "postgres://")
	if code != 0 || !found {
		t.Fatalf("exit %d: %s", code, printed)
	}
	login, err := url.Parse("postgres://" + strings.Fields(dsn)[0])
	if err != nil {
		t.Fatal(err)
	}
	connect := func(database, ca string) (*pgx.Conn, error) {
		u := *login
		u.Path = "/" + database
		u.RawQuery = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {ca}}.Encode()
		conn, err := pgx.Connect(t.Context(), u.String())
		if err == nil {
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
		}
		return conn, err
	}
	ca := p.Write("ca.crt", authority.PEM)
	var unknown x509.UnknownAuthorityError
	if _, err := connect("results", p.Write("other.crt", pgtest.NewAuthority(t).PEM)); !errors.As(err, &unknown) {
		t.Errorf("another authority: %v", err)
	}
	conn, err := connect("results", ca)
	if err != nil {
		t.Fatal(err)
	}
	var encrypted bool
	if err := conn.QueryRow(t.Context(), "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(
		&encrypted); err != nil || !encrypted {
		t.Errorf("encrypted: %v, %v", encrypted, err)
	}
	var n int
	if err := conn.QueryRow(t.Context(), `SELECT n FROM tables."of mine"`).Scan(&n); err != nil || n != 1 {
		t.Errorf("the user's own table has %d, %v", n, err)
	}
	breaches, err := derivedtest.ReaderBreaches(t.Context(), conn, conn)
	if err != nil || len(breaches) > 0 {
		t.Errorf("%v: %s", err, strings.Join(breaches, ", "))
	}
	for _, name := range controlTables(t) {
		for _, from := range []string{pgx.Identifier{name}.Sanitize(), pgx.Identifier{"public", name}.Sanitize(),
			pgx.Identifier{"loadstone", "public", name}.Sanitize()} {
			var refused *pgconn.PgError
			if _, err := conn.Exec(t.Context(), "SELECT FROM "+from+" LIMIT 1"); !errors.As(err, &refused) {
				t.Errorf("%s of the control store is read: %v", from, err)
			}
		}
	}
	rows, err := conn.Query(t.Context(), "SELECT datname::text FROM pg_database WHERE datname <> 'results'")
	if err != nil {
		t.Fatal(err)
	}
	others, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(others) < 4 {
		t.Fatal(others, err)
	}
	for _, database := range others {
		var refused *pgconn.PgError
		if _, err := connect(database, ca); !errors.As(err, &refused) || refused.Code[:2] != "28" {
			t.Errorf("the database %s: %v", database, err)
		}
	}
	if status, err := tables.call(http.MethodDelete, "/api/v1/query-users/grafana", nil, nil); err != nil {
		t.Errorf("removing the login: %d %v", status, err)
	}
	clitest.Until(t, clitest.StartTimeout, func() bool { _, err := conn.Exec(t.Context(), "SELECT 1"); return err != nil },
		func() string { return "the session of a login that was removed goes on" })
	if _, err := connect("results", ca); err == nil {
		t.Error("a login that was removed connects")
	}
}

// controlTables are the relations of a control store.
func controlTables(t *testing.T) []string {
	t.Helper()
	dsn := postgrestest.NewControl(t)
	control, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	rows, err := control.Query(t.Context(), `SELECT relname::text FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S')`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) < 30 {
		t.Fatalf("%d relations of the control store, %v", len(names), err)
	}
	return names
}
