package derived_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/derived"
	"github.com/loadstone-db/loadstone/storage/derived/derivedtest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// outside is a Postgres of somebody else's, with TLS and passwords.
type outside struct {
	*pgtest.TLSServer
	ca    string // the file of its authority
	admin *pgx.Conn
}

func (o *outside) do(t *testing.T, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := o.admin.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// url is how a role signs in, its name being its password.
func (o *outside) url(role, database string) string {
	return fmt.Sprintf("postgres://%s:%s@%s:5432/%s?sslmode=verify-full&sslrootcert=%s", role, role, o.Host, database,
		o.ca)
}

func startOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{TLSServer: pgtest.StartTLS(t)}
	o.ca = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(o.ca, []byte(o.Authority.PEM), 0o600); err != nil {
		t.Fatal(err)
	}
	o.admin = connect(t, o.Admin)
	for _, role := range []string{"keeper", "reader", "poor", "lonely"} {
		o.do(t, "CREATE ROLE "+role+" LOGIN PASSWORD '"+role+"'")
	}
	for role, may := range map[string]string{"super": "SUPERUSER", "maker": "CREATEDB", "roles": "CREATEROLE",
		"passing": "BYPASSRLS", "member": "IN ROLE keeper", "all_data": "IN ROLE pg_read_all_data"} {
		o.do(t, "CREATE ROLE "+role+" LOGIN PASSWORD '"+role+"' "+may)
	}
	o.do(t, "CREATE DATABASE results OWNER keeper", "CREATE DATABASE control OWNER keeper",
		"REVOKE CONNECT ON DATABASE results FROM PUBLIC",
		"GRANT CONNECT ON DATABASE results TO reader, poor, super, maker, roles, passing, member, all_data")
	return o
}

// TestAResultsDatabaseOfSomebodyElses: what is wrong with it is said before anything is written to it, by flag, with
// the cure, and without the password.
func TestAResultsDatabaseOfSomebodyElses(t *testing.T) {
	t.Parallel()
	o := startOutside(t)
	other := filepath.Join(t.TempDir(), "other.crt")
	if err := os.WriteFile(other, []byte(pgtest.NewAuthority(t).PEM), 0o600); err != nil {
		t.Fatal(err)
	}
	keeper, reader := o.url("keeper", "results"), o.url("reader", "results")
	const owners, readers = "--results-database-url", "--results-reader-url"
	refused := func(flag, want, owner, reader string) {
		t.Helper()
		d, err := derived.Open(t.Context(), owner, reader)
		if err == nil {
			d.Close()
			t.Errorf("%s %s is accepted", owner, reader)
			return
		}
		text := engine.ErrorText(err)
		if !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), flag) ||
			!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("want %s and %q, got %v\n%s", flag, want, err, text)
		}
		if n := count(t, o.admin, "SELECT count(*) FROM pg_namespace WHERE nspname = 'rollup'"); n != 0 {
			t.Error("something was written")
		}
	}
	wrong := func(url string) string { return strings.Replace(url, ":keeper@", ":secret@", 1) }
	refused(owners, "refuses the login", wrong(keeper), reader)
	refused(readers, "refuses the login", keeper, strings.Replace(reader, ":reader@", ":secret@", 1))
	refused(owners, "is not the URL of a database", "postgres://keeper:secret@[", reader)
	refused(owners, "more than one @", strings.Replace(keeper, ":keeper@", ":kee@secret@", 1), reader)
	refused(readers, "more than one @", keeper, strings.Replace(reader, ":reader@", ":rea@secret@", 1))
	refused(owners, "does not exist", strings.Replace(keeper, "/results?", "/nowhere?", 1), reader)
	refused(owners, "a certificate that is not accepted", strings.Replace(keeper, o.ca, other, 1), reader)
	refused(owners, "a certificate that cannot be read", strings.Replace(keeper, o.ca, "/nowhere/ca.crt", 1), reader)
	refused(owners, `may not make schemas in "results"`, o.url("poor", "results"), reader)
	refused(owners, "may not do that", o.url("lonely", "results"), reader)
	refused(readers, "may not do that", keeper, o.url("lonely", "results"))
	in := connect(t, o.url("keeper", "control"))
	if _, err := in.Exec(t.Context(),
		"CREATE TABLE run_status (id int); CREATE TABLE schema_version (id int)"); err != nil {
		t.Fatal(err)
	}
	refused(owners, "a control store", o.url("keeper", "control"), o.url("reader", "control"))
	nobody := strings.Replace(strings.Replace(keeper, o.Host, "127.0.0.1", 1), ":5432", ":1", 1)
	if d, err := derived.Open(t.Context(), nobody, reader); !errors.Is(err, store.ErrUnavailable) ||
		!engine.HasCode(err, engine.CodeUnavailable) {
		t.Errorf("one that is away: %v, %v", d, err)
	}
	t.Run("used", func(t *testing.T) { o.used(t, keeper, reader) })
	refusedLater := func(reader string) {
		if d, err := derived.Open(t.Context(), keeper, reader); err == nil ||
			!strings.Contains(err.Error(), "another database") {
			t.Errorf("a reader of another database: %v, %v", d, err)
		}
	}
	if _, err := in.Exec(t.Context(), "CREATE SCHEMA rollup"); err != nil {
		t.Fatal(err)
	}
	refusedLater(o.url("reader", "control"))
}

// used: with least rights it does what the embedded one does: readers see results and nothing else, it may go away and
// come back, and its schema may be an older one.
func (o *outside) used(t *testing.T, keeper, reader string) {
	route := newWay(t, net.JoinHostPort(o.Host, "5432"))
	around := func(url string) string {
		url = strings.Replace(url, o.Host+":5432", route.addr, 1)
		return strings.Replace(url, "sslmode=verify-full&sslrootcert="+o.ca, "sslmode=require", 1)
	}
	d, err := derived.Open(t.Context(), around(keeper), around(reader))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	r, _ := oneRun("a", 300)
	put(t, d, r, 1)
	own, read := connect(t, keeper), connect(t, reader)
	if _, err := own.Exec(t.Context(), "CREATE TABLE mine (a int)"); err != nil {
		t.Fatal(err)
	}
	breaches, err := derivedtest.ReaderBreaches(t.Context(), own, read)
	if err != nil || len(breaches) > 0 {
		t.Errorf("%v: %s", err, strings.Join(breaches, ", "))
	}
	ask := func() error {
		_, err := d.Query(t.Context(), "SELECT count(*) FROM rollup.runs", 1)
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	route.cut(t)
	for range 8 { // connections that were open are noticed one by one
		if err = ask(); err == nil || !engine.HasCode(err, engine.CodeUnavailable) {
			t.Errorf("while it is away: %v", err)
		}
	}
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "results database cannot be reached") {
		t.Errorf("while it is away: %v", err)
	}
	route.open(t)
	if err := ask(); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	do := func(text string) {
		t.Helper()
		if _, err := own.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	// Another version has applied its schema, which had fewer tables.
	do(`UPDATE staging.applied SET schema_sha256 = 'another'; DROP POLICY live ON rollup.runs;
		ALTER TABLE rollup.runs DISABLE ROW LEVEL SECURITY; DROP TABLE staging.live_runs, rollup.segments`)
	later, err := derived.Open(t.Context(), keeper, reader)
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close()
	goOn(t, later, "b", 1, 1, 30)
	r, _ = oneRun("a", 600)
	put(t, later, r, 2)
	if n := count(t, read, "SELECT sum(operations)::bigint FROM rollup.run_seconds WHERE NOT provisional"); n != 600 {
		t.Errorf("%d operations of 600 in a schema that was an older one", n)
	}
	// One that lacks columns is not upgraded.
	do("UPDATE staging.applied SET schema_sha256 = 'too old'; ALTER TABLE rollup.exports DROP COLUMN whole")
	refused, err := derived.Open(t.Context(), keeper, reader)
	if err == nil {
		refused.Close()
	}
	if !engine.HasCode(err, engine.CodeUnavailable) ||
		!strings.Contains(engine.AsError(err).Message, "DROP SCHEMA rollup, tables, staging CASCADE") {
		t.Errorf("an older one: %v", err)
	}
	if n := count(t, own, "SELECT count(*) FROM staging.applied WHERE schema_sha256 <> 'too old'"); n != 0 {
		t.Error("an older one is noted as current")
	}
	do("DROP SCHEMA rollup, tables, staging CASCADE")
	anew, err := derived.Open(t.Context(), keeper, reader)
	if err != nil {
		t.Fatalf("after what the sentence says: %v", err)
	}
	anew.Close()
}

// way leads to an address, until it is cut.
type way struct {
	addr, to string
	mu       sync.Mutex
	listener net.Listener
	ends     []net.Conn
	all      sync.WaitGroup
}

func newWay(t *testing.T, to string) *way {
	t.Helper()
	w := &way{to: to, addr: "127.0.0.1:0"}
	w.open(t)
	t.Cleanup(func() { w.cut(t) })
	return w
}

func (w *way) open(t *testing.T) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	w.listener, w.addr = l, l.Addr().String()
	w.all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", w.to)
			if err != nil {
				near.Close()
				continue
			}
			w.mu.Lock()
			w.ends = append(w.ends, near, far)
			w.mu.Unlock()
			for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
				w.all.Go(func() { _, _ = io.Copy(pair[0], pair[1]); pair[0].Close() })
			}
		}
	})
}

func (w *way) cut(t *testing.T) {
	t.Helper()
	w.listener.Close()
	w.mu.Lock()
	for _, c := range w.ends {
		c.Close()
	}
	w.ends = nil
	w.mu.Unlock()
	w.all.Wait()
}
