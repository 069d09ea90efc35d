package postgres_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/egress/egresstest"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// household is an external Postgres with the control store of a server, whom it lets in without a password.
type household struct {
	t    *testing.T
	pg   *pgtest.CrashableServer
	host string
	own  engine.OwnDatabase
}

func newHousehold(t *testing.T) *household {
	t.Helper()
	h := &household{t: t, host: fmt.Sprintf("127.%d.%d.%d", 40+os.Getpid()>>16&0x1f, os.Getpid()>>8&0xff,
		1+os.Getpid()&0x7f)}
	h.pg = pgtest.StartCrashable(t, map[string]string{"listen_addresses": h.host})
	h.sql(
		"postgres",
		"CREATE ROLE keeper LOGIN",
		"CREATE ROLE plain LOGIN",
		"CREATE ROLE heir LOGIN NOINHERIT IN ROLE keeper",
		"CREATE ROLE runs_programs LOGIN IN ROLE pg_execute_server_program",
		"CREATE ROLE reads_files LOGIN",
		"CREATE ROLE between ROLE reads_files",
		"GRANT pg_read_server_files TO between",
		"CREATE ROLE admin LOGIN SUPERUSER",
		"CREATE ROLE maker LOGIN",
		"CREATE DATABASE control OWNER keeper",
		"CREATE DATABASE bench OWNER plain",
	)
	h.sql("control", "CREATE TABLE users (name text)", "ALTER TABLE users OWNER TO maker",
		"INSERT INTO users VALUES ('ada')", "GRANT ALL ON users TO plain")
	h.identify()
	return h
}

// identify asks what the control store is, as the server does.
func (h *household) identify() {
	h.t.Helper()
	c, err := pgconn.Connect(h.t.Context(), h.pg.DSN("control")+" user=keeper")
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = c.Close(h.t.Context()) }()
	if h.own, err = postgres.IdentifyOwn(h.t.Context(), c); err != nil {
		h.t.Fatal(err)
	}
	h.own.What = "control store"
}

func (h *household) sql(database string, all ...string) {
	h.t.Helper()
	c, err := pgx.Connect(h.t.Context(), h.pg.DSN(database))
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = c.Close(h.t.Context()) }()
	for _, sql := range all {
		if _, err := c.Exec(h.t.Context(), sql); err != nil {
			h.t.Fatalf("%s: %v", sql, err)
		}
	}
}

func (h *household) socket() string {
	c, err := pgx.ParseConfig(h.pg.DSN("postgres"))
	if err != nil {
		h.t.Fatal(err)
	}
	return c.Host
}

// forward is a proxy that only forwards, on an address.
func (h *household) forward(at string) string {
	h.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(h.t.Context(), "tcp", at)
	if err != nil {
		h.t.Skipf("this machine has no %s: %v", at, err)
	}
	h.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := (&net.Dialer{}).Dial("tcp", net.JoinHostPort(h.host, "5432"))
			if err != nil {
				_ = from.Close()
				return
			}
			go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
			go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
		}
	}()
	return l.Addr().String()
}

// encoded is a value in the query of a URL, where libpq takes a plus for a plus.
func encoded(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// marked is a statement of a session, which leaves a mark.
const marked = "INSERT INTO users VALUES ('mallory')"

// open tries every way that a driver has into a database, and returns the error of each.
func (h *household) open(d target.Driver, dsn string) error {
	h.t.Helper()
	db, err := d.Open(target.Config{DSN: secret.New(dsn), ConnectTimeout: 5 * time.Second})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.Check(h.t.Context())
	_, asking := db.Query(h.t.Context(), "SELECT 1")
	conn, loading := db.Connect(h.t.Context(), []engine.Statement{{ID: "s", SQL: "SELECT 1"}})
	if loading == nil {
		_ = conn.Close()
	}
	described := errors.New("the driver describes nothing")
	if d, ok := db.(target.Describer); ok {
		_, described = d.Columns(h.t.Context(), 10)
	}
	if (err == nil) != (asking == nil) || (err == nil) != (loading == nil) || (err == nil) != (described == nil) {
		h.t.Errorf("%s: ways differ: %v, %v, %v, %v", dsn, err, asking, loading, described)
	}
	// What a session begins with is not executed either.
	begins, opened := d.Open(target.Config{DSN: secret.New(dsn), Session: []string{marked}})
	if opened == nil {
		if _, begun := begins.Check(h.t.Context()); begun == nil && err != nil {
			h.t.Errorf("%s: a session began", dsn)
		}
		_ = begins.Close()
	}
	return err
}

func refusedAsOwn(err error) bool {
	return errors.Is(err, egress.ErrRefused) && engine.HasCode(err, engine.CodeTarget) && engine.AsError(err).Hint != "" &&
		strings.Contains(err.Error(), "Loadstone's own control store")
}

func allowed(t *testing.T, list ...string) *egress.Policy {
	t.Helper()
	p, err := egress.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTheControlStoreIsNoTarget: it is recognised by what it is, through every address that leads there.
func TestTheControlStoreIsNoTarget(t *testing.T) {
	h := newHousehold(t)
	d := postgres.NewStrictDriver(func() []engine.OwnDatabase { return []engine.OwnDatabase{h.own} },
		allowed(t, "0.0.0.0/0", "::/0", "unix:"+h.socket()))
	at := func(hostport string) func(user, database string) string {
		return func(user, database string) string {
			return "postgres://" + user + "@" + hostport + "/" + database + "?sslmode=disable"
		}
	}
	ways := map[string]func(user, database string) string{
		"socket": func(user, database string) string {
			return "postgres:///" + database + "?user=" + user + "&host=" + url.QueryEscape(h.socket())
		},
		"address":          at(h.host + ":5432"),
		"mapped":           at("[::ffff:" + h.host + "]:5432"),
		"forwarder":        at(h.forward("127.0.0.1:0")),
		"forwarder, IPv6":  at(h.forward("[::1]:0")),
		"several":          at("127.0.0.1:1," + h.host + ":5432"),
		"pairs, preferred": func(u, d string) string { return "host=" + h.host + " user=" + u + " dbname=" + d },
		"hostaddr": func(u, d string) string {
			return "host=db.example hostaddr=" + h.host + " user=" + u + " dbname=" + d + " sslmode=disable"
		},
		"balanced": func(u, d string) string {
			return at("127.0.0.1:1,"+h.host+":5432,"+h.host+":5432")(u, d) + "&load_balance_hosts=random&keepalives_idle=9"
		},
		"standby, any": func(u, d string) string { return at(h.host+":5432")(u, d) + "&target_session_attrs=read-write" },
	}
	for _, mode := range []string{"session", "transaction"} {
		ways["pooler, "+mode] = func(user, database string) string {
			return pooler(t, h.pg.DSN(database)+" user="+user, mode)
		}
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			h := &household{t, h.pg, h.host, h.own}
			for _, c := range [][2]string{{"keeper", "control"}, {"admin", "control"}, {"plain", "control"}, {"admin", "bench"},
				{"admin", "postgres"}, {"keeper", "bench"}, {"heir", "bench"}, {"runs_programs", "bench"}, {"reads_files", "bench"},
				{"maker", "bench"}} {
				if strings.HasPrefix(name, "pooler") && c[0] != "keeper" && c[0] != "admin" {
					continue // one process for each is much
				}
				if err := h.open(d, way(c[0], c[1])); !refusedAsOwn(err) {
					t.Errorf("%s in %s: %v", c[0], c[1], err)
				}
			}
			if err := h.open(d, way("plain", "bench")); err != nil {
				t.Errorf("a plain user of another database: %v", err)
			}
		})
	}
	t.Run("name", func(t *testing.T) {
		h := &household{t, h.pg, h.host, h.own}
		egresstest.StubDNS(t, netip.MustParseAddr(h.host))
		if err := h.open(d, at("db.example:5432")("keeper", "control")); !refusedAsOwn(err) {
			t.Errorf("a name: %v", err)
		}
	})
	var n int
	c, err := pgx.Connect(t.Context(), h.pg.DSN("control"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	if err := c.QueryRow(t.Context(), "SELECT count(*) FROM users").Scan(&n); err != nil || n != 1 {
		t.Errorf("somebody wrote there: %d, %v", n, err)
	}
}

// TestTheControlStoreHides: no option of a session, and no right that was taken away, hides where a connection leads.
func TestTheControlStoreHides(t *testing.T) {
	h := newHousehold(t)
	d := postgres.NewStrictDriver(func() []engine.OwnDatabase { return []engine.OwnDatabase{h.own} }, nil)
	h.sql(
		"bench",
		"CREATE SCHEMA evil AUTHORIZATION plain",
		"CREATE FUNCTION evil.pg_control_system() RETURNS TABLE (system_identifier bigint) LANGUAGE sql AS 'SELECT 1::bigint'",
		"CREATE FUNCTION evil.pg_has_role(name, oid, text) RETURNS boolean LANGUAGE sql AS 'SELECT false'",
		"CREATE VIEW evil.pg_roles AS SELECT * FROM pg_catalog.pg_roles WHERE false",
		"CREATE FUNCTION evil.never(name, name) RETURNS boolean LANGUAGE sql AS 'SELECT false'",
		"CREATE OPERATOR evil.= (LEFTARG = name, RIGHTARG = name, FUNCTION = evil.never)",
	)
	as := func(user, database, more string) string {
		return "postgres://" + user + "@" + h.host + "/" + database + "?sslmode=disable" + more
	}
	options := []string{"", "&options=" + encoded("-c search_path=evil,pg_catalog"),
		"&search_path=evil,pg_catalog", "&options=" + encoded("-c role=plain"),
		"&default_transaction_read_only=on", "&client_encoding=SJIS", "&application_name=loadstone", "&DateStyle=German",
		"&bytea_output=escape", "&quote_all_identifiers=on"}
	hidden := func(t *testing.T, what string) {
		for _, more := range options {
			for _, c := range [][2]string{{"admin", "control"}, {"admin", "bench"}} {
				if err := h.open(d, as(c[0], c[1], more)); !refusedAsOwn(err) {
					t.Errorf("%s: %s in %s with %q: %v", what, c[0], c[1], more, err)
				}
			}
		}
		if err := h.open(d, as("plain", "bench", "")); err != nil {
			t.Errorf("%s: a plain user: %v", what, err)
		}
		if err := h.open(d, as("plain", "control", "")); !refusedAsOwn(err) {
			t.Errorf("%s: a plain user in the control store: %v", what, err)
		}
	}
	hidden(t, "as it is")
	for _, more := range []string{"&replication=database", "&replication=true", "&Replication=1",
		"&session_authorization=plain", "&options=" + encoded("-c session_authorization=plain"),
		"&options=" + encoded("--session-authorization=plain"), "&options=" + encoded(`-c ses\sion_authorization=plain`),
		"&statement_timeout=1ms&options=" + encoded("-c SESSION_AUTHORIZATION=plain")} {
		for _, database := range []string{"control", "bench"} {
			if err := h.open(d, as("admin", database, more)); !engine.HasCode(err, engine.CodeTarget) ||
				!strings.Contains(err.Error(), "is not allowed in a connection") {
				t.Errorf("admin in %s with %q: %v", database, more, err)
			}
		}
	}
	h.sql("bench", "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
	hidden(t, "who asks is not told")
	h.sql("control", "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
	h.identify()
	if h.own.SystemID != "" {
		t.Fatal("the right was not taken away")
	}
	hidden(t, "nobody is told")
	h.sql("bench", "GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
	hidden(t, "the server is not told")
	// Another Postgres is another, also where nobody tells which.
	other := pgtest.Start(t).NewDatabase(t)
	if err := h.open(d, other); err != nil {
		t.Errorf("another Postgres: %v", err)
	}
	h.sql("control", "GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
	h.identify()
	if err := h.open(d, other); err != nil {
		t.Errorf("another Postgres: %v", err)
	}
	// What cannot be asked at all is not used.
	h.sql(
		"bench",
		"REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC",
		"REVOKE SELECT ON pg_database FROM PUBLIC",
	)
	if err := h.open(d, as("plain", "bench", "")); !engine.HasCode(err, engine.CodeTarget) ||
		!strings.Contains(err.Error(), "cannot be told") {
		t.Errorf("nothing is told: %v", err)
	}
	// A restored control store has another number, and is one still.
	h.sql("postgres", "DROP DATABASE control", "CREATE DATABASE control OWNER keeper")
	if err := h.open(d, as("keeper", "control", "")); !refusedAsOwn(err) {
		t.Errorf("a control store that was made anew: %v", err)
	}
	// Who starts the process connects where they like.
	if err := h.open(postgres.NewDriver(), as("admin", "control", "")); err != nil {
		t.Errorf("one's own: %v", err)
	}
}

// TestTheOwnPostgresLetsGuestsIn: of a Postgres that is all the server's own, reached over TCP.
func TestTheOwnPostgresLetsGuestsIn(t *testing.T) {
	h := newHousehold(t)
	h.sql("postgres", "CREATE DATABASE plain OWNER plain")
	h.own.Sealed, h.own.Guests = true, []string{"plain"}
	d := postgres.NewStrictDriver(func() []engine.OwnDatabase { return []engine.OwnDatabase{h.own} }, allowed(t))
	for _, c := range [][2]string{{"plain", "plain"}, {"admin", "plain"}, {"plain", "bench"}, {"plain", "control"},
		{"keeper", "control"}, {"admin", "postgres"}} {
		err := h.open(d, "postgres://"+c[0]+"@"+h.host+"/"+c[1]+"?sslmode=disable")
		if c[0] == c[1] && err != nil || c[0] != c[1] && (!errors.Is(err, egress.ErrRefused) ||
			!strings.Contains(err.Error(), "own Postgres")) {
			t.Errorf("%s in %s: %v", c[0], c[1], err)
		}
	}
}

// TestANodeIsToldWhatIsNoTarget: the databases come with the work.
func TestANodeIsToldWhatIsNoTarget(t *testing.T) {
	h := newHousehold(t)
	db, err := postgres.NewStrictDriver(nil, nil).Open(target.Config{Own: []engine.OwnDatabase{h.own},
		DSN: secret.New("postgres://admin@" + h.host + "/bench?sslmode=disable")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Connect(t.Context(), nil); !refusedAsOwn(err) {
		t.Errorf("a node: %v", err)
	}
}

// BenchmarkConnect is what it costs to open a load connection, and to ask first where it has landed.
func BenchmarkConnect(b *testing.B) {
	pg := pgtest.StartCrashable(b, map[string]string{"listen_addresses": "127.9.9.9"})
	own := func() []engine.OwnDatabase { return []engine.OwnDatabase{{SystemID: "1", OID: 5, Name: "control"}} }
	for name, dsn := range map[string]string{"socket": pg.DSN("postgres"),
		"tcp": "postgres://loadstone@127.9.9.9/postgres?sslmode=disable"} {
		for what, d := range map[string]target.Driver{"asks": postgres.NewStrictDriver(own, nil),
			"trusts": postgres.NewStrictDriver(nil, nil)} {
			b.Run(name+"/"+what, func(b *testing.B) {
				db, err := d.Open(target.Config{DSN: secret.New(dsn)})
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = db.Close() }()
				for b.Loop() {
					c, err := db.Connect(b.Context(), []engine.Statement{{ID: "s", SQL: "SELECT 1"}})
					if err != nil {
						b.Fatal(err)
					}
					_ = c.Close()
				}
			})
		}
	}
}
