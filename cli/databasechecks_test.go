package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// externalPostgres is a Postgres of somebody else's, with TLS and passwords, that has a control store and a results
// database.
type externalPostgres struct {
	*pgtest.TLSServer
	t              *testing.T
	ca, otherAdmin string // files of its authority, and of one that it does not know
	admin          *pgxpool.Pool
	control        *pgxpool.Pool
}

func startExternalPostgres(t *testing.T) *externalPostgres {
	t.Helper()
	s := &externalPostgres{TLSServer: pgtest.StartTLS(t), t: t}
	pool := func(dsn string) *pgxpool.Pool {
		p, err := pgxpool.New(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	for file, authority := range map[*string]*pgtest.Authority{&s.ca: s.Authority, &s.otherAdmin: pgtest.NewAuthority(t)} {
		*file = filepath.Join(t.TempDir(), "ca.crt")
		if err := os.WriteFile(*file, []byte(authority.PEM), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.admin = pool(s.Admin)
	s.do(s.admin, "CREATE ROLE keeper LOGIN PASSWORD 'keeper'", "CREATE ROLE reader LOGIN PASSWORD 'reader'",
		"CREATE ROLE poor LOGIN PASSWORD 'poor'", "CREATE ROLE boss LOGIN PASSWORD 'boss'",
		"CREATE DATABASE results OWNER keeper", "CREATE DATABASE control OWNER boss", "CREATE DATABASE old OWNER keeper")
	// What it says of its version is all that is old about it.
	old, err := pgxpool.ParseConfig(s.Admin)
	if err != nil {
		t.Fatal(err)
	}
	old.ConnConfig.Database = "old"
	admin, err := pgxpool.NewWithConfig(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	conn, err := admin.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, sql := range []string{"SET allow_system_table_mods = on",
		"ALTER FUNCTION pg_catalog.current_setting(text) RENAME TO the_setting",
		"CREATE FUNCTION pg_catalog.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT CASE $1 " +
			"WHEN 'server_version_num' THEN '130014' ELSE pg_catalog.the_setting($1) END $$"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if err := schema.Apply(t.Context(), s.url("boss", "control")); err != nil {
		t.Fatal(err)
	}
	s.control = pool(s.url("boss", "control"))
	return s
}

func (s *externalPostgres) do(db *pgxpool.Pool, statements ...string) {
	s.t.Helper()
	for _, sql := range statements {
		if _, err := db.Exec(s.t.Context(), sql); err != nil {
			s.t.Fatalf("%s: %v", sql, err)
		}
	}
}

// url is how a role signs in, its name being its password.
func (s *externalPostgres) url(role, database string) string {
	return fmt.Sprintf("postgres://%s:%s@%s:5432/%s?sslmode=verify-full&sslrootcert=%s", role, role, s.Host, database,
		s.ca)
}

// withWrongPassword is a URL whose password is another one.
func withWrongPassword(url string) string {
	before, after, _ := strings.Cut(url, "@")
	return before[:strings.LastIndex(before, ":")] + ":secret@" + after
}

// checkUntouched checks that nobody has begun anything in either database.
func (s *externalPostgres) checkUntouched(when string) {
	s.t.Helper()
	results, err := pgxpool.New(s.t.Context(), s.url("keeper", "results"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer results.Close()
	if n := count(s.t, results, `SELECT count(*) FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%' AND nspname NOT IN
		('public', 'information_schema')`); n != 0 {
		s.t.Errorf("%s: %d schemas were made in the results database", when, n)
	}
	if n := count(s.t, s.control, `SELECT (SELECT count(*) FROM dynamic_tables) + (SELECT count(*) FROM refresh_workers)
		+ (SELECT count(*) FROM refresh_history)`); n != 0 {
		s.t.Errorf("%s: %d lines were written into the control store", when, n)
	}
}

// checkMessage checks that a process says what is wrong and what to do, and no password.
func checkMessage(t *testing.T, out string, want ...string) {
	t.Helper()
	out = strings.Join(strings.Fields(out), " ")
	for _, text := range want {
		if !strings.Contains(out, text) {
			t.Errorf("%q is not said:\n%s", text, out)
		}
	}
	for _, secret := range []string{":secret@", ":boss@", ":keeper@", ":reader@", ":poor@"} {
		if strings.Contains(out, secret) {
			t.Errorf("a password is said: %s", out)
		}
	}
}

// TestDatabasesThatAreNotAsTheyShouldBe: a server does not start with a control store or a results database that it
// cannot use. It says which flag, what is wrong and what to do, ends with the code of a set-up error, and has written
// nothing anywhere. A node says the same, goes on carrying load, claims nothing, and refreshes once that is mended.
func TestDatabasesThatAreNotAsTheyShouldBe(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("starts a Postgres and two dozen processes; make soak sets " + clitest.Soak)
	}
	s := startExternalPostgres(t)
	control, owner, reader := s.url("boss", "control"), s.url("keeper", "results"), s.url("reader", "results")
	_, bare := newConnProxy(t, s.Admin)
	bare = strings.Replace(bare, "sslmode=disable", "sslmode=require", 1)
	unknown := func(url string) string { return strings.Replace(url, s.ca, s.otherAdmin, 1) }
	const (
		ofControl = "--database-url"
		ofOwner   = "--results-database-url"
		ofReader  = "--results-reader-url"
	)
	cases := []struct {
		name                   string
		control, owner, reader string
		says                   []string
	}{
		{"control: password", withWrongPassword(control), owner, reader,
			[]string{ofControl, `password authentication failed for user "boss"`, "Check user and password"}},
		{"control: authority", unknown(control), owner, reader,
			[]string{ofControl, "certificate that is not accepted", "signed by unknown authority", "sslrootcert=FILE"}},
		{"control: no TLS", bare, owner, reader,
			[]string{ofControl, "does not speak TLS", "sslmode=disable"}},
		{"control: too old", s.url("keeper", "old"), owner, reader,
			[]string{ofControl, "Postgres 13", "needs 14 or later"}},
		{"control: rights", s.url("poor", "control"), owner, reader,
			[]string{"permission denied", ofControl}},
		{"control: none", s.url("keeper", "nowhere"), owner, reader,
			[]string{ofControl, `database "nowhere" does not exist`}},
		{"owner: password", control, withWrongPassword(owner), reader,
			[]string{ofOwner, "refuses the login", "Check user and password"}},
		{"owner: authority", control, unknown(owner), reader,
			[]string{ofOwner, "certificate that is not accepted", "sslrootcert=FILE"}},
		{"owner: no TLS", control, bare, reader, []string{ofOwner, "does not speak TLS", "sslmode=disable"}},
		{"owner: too old", control, s.url("keeper", "old"), s.url("reader", "old"),
			[]string{ofOwner, "Postgres 13", "needs 14 or later"}},
		{"owner: rights", control, s.url("poor", "results"), reader,
			[]string{ofOwner, `may not make schemas in "results"`, "GRANT CREATE ON DATABASE"}},
		{"owner: the control store", control, control, s.url("reader", "control"),
			[]string{ofOwner, "is a control store", "CREATE DATABASE results"}},
		{"reader: password", control, owner, withWrongPassword(reader),
			[]string{ofReader, "refuses the login", "Check user and password"}},
		{"reader: authority", control, owner, unknown(reader),
			[]string{ofReader, "certificate that is not accepted", "sslrootcert=FILE"}},
		{"reader: no TLS", control, owner, bare, []string{ofReader, "does not speak TLS", "sslmode=disable"}},
	}
	t.Run("serve", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				p := clitest.Launch(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--calibrate", "off",
					"--local-capacity", "0", "--refresh-workers", "1", ofControl, c.control, ofOwner, c.owner, ofReader, c.reader)
				if err := p.Wait(t, clitest.StartTimeout); err == nil || p.Cmd.ProcessState.ExitCode() != terminal.ExitUsage {
					t.Errorf("it ended with %v", err)
				}
				checkMessage(t, p.Out.String(), c.says...)
			})
		}
	})
	s.checkUntouched("after servers that did not start")
	t.Run("worker", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				n := clitest.StartNode(
					t,
					t.TempDir(),
					"",
					"--refresh-workers",
					"1",
					ofControl,
					c.control,
					ofOwner,
					c.owner,
					ofReader,
					c.reader,
				)
				const not, does = "this node refreshes no tables yet; it tries again", "this node refreshes derived tables"
				clitest.Until(t, clitest.StartTimeout, func() bool {
					return strings.Contains(n.Out.String(), not) || strings.Contains(n.Out.String(), does)
				}, n.Out.String)
				if strings.Contains(n.Out.String(), does) {
					t.Fatalf("it claims tables, which would fail here:\n%s", n.Out.String())
				}
				select {
				case <-n.Done:
					t.Errorf("it has ended: %v", n.Err)
				default:
				}
				checkMessage(t, strings.NewReplacer(`\n`, " ", `\"`, `"`).Replace(n.Out.String()), c.says...)
			})
		}
	})
	s.checkUntouched("after nodes that refresh nothing")
	s.do(s.control, `INSERT INTO dynamic_tables (name, kind, definition, target_lag_seconds, refresh_mode)
		VALUES ('of others', 'SQL', 'SELECT 7 AS seven', 3600, 'FULL')`)
	mended := clitest.StartNode(
		t,
		t.TempDir(),
		"",
		"--refresh-workers",
		"1",
		ofControl,
		control,
		ofOwner,
		withWrongPassword(owner),
		ofReader,
		reader,
	)
	clitest.Until(t, clitest.StartTimeout, func() bool {
		return strings.Contains(mended.Out.String(), "refuses the login")
	}, mended.Out.String)
	time.Sleep(2 * time.Second) // it would have claimed the table by then
	if n := count(t, s.control, `SELECT (SELECT count(*) FROM dynamic_tables WHERE failures > 0 OR error <> '')
		+ (SELECT count(*) FROM refresh_history) + (SELECT count(*) FROM refresh_claims)`); n != 0 {
		t.Errorf("a wrong password of a node is the failure of a table:\n%s", mended.Out.String())
	}
	began := time.Now()
	s.do(s.admin, "ALTER ROLE keeper PASSWORD 'secret'")
	clitest.Until(t, clitest.StartTimeout, func() bool {
		return strings.Contains(mended.Out.String(), "this node refreshes derived tables")
	}, mended.Out.String)
	t.Logf("%v after the password was mended it refreshes", time.Since(began).Round(100*time.Millisecond))
	clitest.Until(t, clitest.StartTimeout, func() bool {
		return count(t, s.control, `SELECT count(*) FROM refresh_history
			WHERE dynamic_table = 'of others' AND error = ''`) == 1
	}, mended.Out.String)
}
