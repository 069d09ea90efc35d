package translate

import (
	"context"
	_ "embed" // prelude.sql
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/plan"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

//go:embed prelude.sql
var prelude string

//go:embed casts.sql
var casts string

// Admit installs, in the database of a connection that belongs to a superuser, what only
// superusers may make. New does so itself when its own role is one; a role
// without that right needs Admit once, before New.
func Admit(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, casts); err != nil {
		return fmt.Errorf("installing the stand-in's casts: %w", err)
	}
	return nil
}

// SearchPath is the search_path that the connections of statements have.
const SearchPath = "public, snowsim_operators"

// admitted reports whether what Admit makes is there.
const admitted = `SELECT count(*) = 2 FROM pg_cast WHERE (castsource, casttarget) IN (('boolean'::regtype, 'numeric'::regtype), ('numeric'::regtype, 'boolean'::regtype))`

// Options configure a Translator.
type Options struct {
	// Denied are privileges that a role does not have, whatever was granted.
	Denied []Denied
	// Account is what the account's contract and place allow.
	Account Account
}

// Denied is a privilege that a role does not have.
type Denied struct {
	// Role is who; empty is every role.
	Role string
	// Privilege is SELECT, INSERT, UPDATE, DELETE, CREATE TABLE, CREATE WAREHOUSE,
	// MONITOR, OPERATE, USAGE … "IMPORTED PRIVILEGES" is what SNOWFLAKE.ACCOUNT_USAGE asks for.
	Privilege string
	// Object is the name of the table, warehouse or schema; empty is any.
	Object string
}

var deniedForm = regexp.MustCompile(`^(?i)\s*([A-Z][A-Z ]*?)(?:\s+ON\s+(\S+))?(?:\s+FROM\s+(\S+))?\s*$`)

// ParseDenied reads PRIVILEGE [ON object] [FROM role], "UPDATE ON ORDERS": names are read as
// unquoted ones, without database and schema.
func ParseDenied(text string) (Denied, error) {
	m := deniedForm.FindStringSubmatch(text)
	if m == nil {
		return Denied{}, fmt.Errorf("%q is not PRIVILEGE [ON object] [FROM role]", text)
	}
	d := Denied{Role: strings.ToUpper(m[3]), Privilege: strings.ToUpper(strings.Join(strings.Fields(m[1]), " ")),
		Object: strings.ToUpper(m[2])}
	for _, known := range privilegesOf {
		if slices.Contains(known, d.Privilege) {
			return d, nil
		}
	}
	switch d.Privilege {
	case "CREATE WAREHOUSE", "CREATE DATABASE", "IMPORTED PRIVILEGES", "OWNERSHIP":
		return d, nil
	}
	return Denied{}, fmt.Errorf("there is no privilege %q here", d.Privilege)
}

// Translator is a plan.Translator. It is safe for concurrent use.
type Translator struct {
	host    plan.Host
	catalog *catalog
	special map[string]writer
	grants  *grants
	account Account

	timestampTZ uint32 // the OID of snowsim.timestamp_tz

	long  sync.Map // identifiers by the short names that they have in Postgres
	plans memory

	scansMu sync.Mutex
	scans   map[string]scanned // by query id
}

var _ plan.Translator = (*Translator)(nil)

// New installs what the translator needs into the host's database and returns it.
func New(ctx context.Context, host plan.Host, options ...Options) (*Translator, error) {
	var denied []Denied
	var account Account
	for _, o := range options {
		denied = append(denied, o.Denied...)
		account = o.Account
	}
	t := &Translator{account: account, host: host, catalog: newCatalog(host.Postgres()), special: specialFunctions(),
		grants: newGrants(denied)}
	database, schema := host.Database()
	err := pgx.BeginFunc(ctx, host.Postgres(), func(tx pgx.Tx) error {
		// Two stand-ins on one database install one after the other.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(7736269)"); err != nil {
			return err
		}
		var ready bool
		if err := tx.QueryRow(ctx, admitted).Scan(&ready); err != nil {
			return err
		}
		if !ready {
			if err := Admit(ctx, tx.Conn()); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, prelude); err != nil {
			return err
		}
		for _, n := range []string{"PUBLIC", schema} {
			if database != "" && n != "" {
				if err := execAll(ctx, tx.Conn(), createSchema(database, n, host.Now(), "SYSADMIN", "")...); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("installing the stand-in's catalog: %w", err)
	}
	if err := t.loadNames(ctx); err != nil {
		return nil, err
	}
	if err := host.Postgres().QueryRow(ctx, "SELECT 'snowsim.timestamp_tz'::regtype::oid").
		Scan(&t.timestampTZ); err != nil {
		return nil, fmt.Errorf("reading the stand-in's types: %w", err)
	}
	return t, t.grants.load(ctx, host.Postgres())
}

// remember keeps an identifier that Postgres cuts short.
func (t *Translator) remember(identifier string) {
	if len(identifier) > maxPostgres {
		t.long.LoadOrStore(short(identifier), identifier)
	}
}

// display returns the identifier for its name in Postgres.
func (t *Translator) display(postgres string) string {
	if len(postgres) < maxPostgres-20 {
		return postgres
	}
	if long, ok := t.long.Load(postgres); ok {
		return long.(string)
	}
	return postgres
}

// loadNames reads the identifiers that Postgres cut short in an earlier life.
func (t *Translator) loadNames(ctx context.Context) error {
	rows, err := t.host.Postgres().Query(ctx,
		"SELECT table_name FROM snowsim.tables UNION SELECT column_name FROM snowsim.columns")
	if err != nil {
		return fmt.Errorf("reading the stand-in's catalog: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("reading the stand-in's catalog: %w", err)
	}
	for _, n := range names {
		t.remember(n)
	}
	return nil
}

// Split splits a text into its statements.
func (t *Translator) Split(sql string) ([]string, error) { return split(sql) }

// Plan translates one statement.
func (t *Translator) Plan(ctx context.Context, s *plan.Session, sql string, binds []plan.Bind) (*plan.Plan, error) {
	key := t.plans.key(s, sql, binds, t.catalog.version()+t.grants.version())
	if p := t.plans.get(key); p != nil {
		return p, nil
	}
	tokens, err := lex(sql)
	if err != nil {
		return nil, err
	}
	p := &parser{ctx: ctx, src: sql, tokens: tokens, t: t, session: s, binds: binds}
	made, err := p.run()
	if err != nil {
		return nil, err
	}
	if !p.volatile && made.SQL != "" && !made.DDL && made.Before == nil && made.After == nil {
		t.plans.put(key, made)
	}
	t.keep(s, made)
	copied := *made
	return &copied, nil
}

// run translates the statement and turns failures into errors.
func (p *parser) run() (made *plan.Plan, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(failure)
			if !ok {
				panic(r)
			}
			made, err = nil, f.err
		}
	}()
	made = p.statement()
	p.end()
	made.SQL = strings.ReplaceAll(made.SQL, rowMarker, "0::bigint")
	if len(p.before) > 0 {
		p.addBefore(made)
	}
	if made.Params == nil {
		made.Params = p.params
	}
	if len(p.tables) > 0 && made.Table == "" {
		made.Table = p.tables[0].name.String()
	}
	for _, t := range p.tables {
		made.Tables = append(made.Tables, t.name.String())
	}
	if made.Describe == nil && made.Columns == nil && made.SQL != "" {
		made.Describe = p.t.describe
	}
	return made, nil
}

// step is something to be done on the connection before the statement.
type step func(ctx context.Context, conn *pgx.Conn) error

func (p *parser) addBefore(made *plan.Plan) {
	steps, then := p.before, made.Before
	made.Before = func(ctx context.Context, conn *pgx.Conn) error {
		for _, s := range steps {
			if err := s(ctx, conn); err != nil {
				return Error(err)
			}
		}
		if then != nil {
			return then(ctx, conn)
		}
		return nil
	}
}

// statement reads one statement.
func (p *parser) statement() *plan.Plan {
	t := p.peek()
	if t.kind == symbol && t.text == "(" {
		return p.selection()
	}
	if t.kind != word {
		p.unexpected()
	}
	if made := p.cancelQuery(); made != nil {
		return made
	}
	switch t.text {
	case "SELECT", "WITH", "VALUES":
		return p.selection()
	case "INSERT":
		return p.insert()
	case "UPDATE":
		return p.update()
	case "DELETE":
		return p.delete()
	case "MERGE":
		return p.merge()
	case "TRUNCATE":
		return p.truncate()
	case "CREATE":
		return p.create()
	case "ALTER":
		return p.alter()
	case "DROP":
		return p.drop()
	case "UNDROP":
		p.fail(plan.Unsupported("UNDROP"))
	case "COMMENT":
		return p.comment()
	case "USE":
		return p.use()
	case "SET", "UNSET":
		return p.set()
	case "BEGIN", "START", "COMMIT", "ROLLBACK":
		return p.transaction()
	case "SHOW":
		return p.show()
	case "DESC", "DESCRIBE":
		return p.describeStatement()
	case "GRANT", "REVOKE":
		return p.grant()
	case "EXPLAIN", "CALL", "EXECUTE", "PUT", "GET", "COPY", "LIST", "LS", "REMOVE", "RM":
		p.fail(plan.Unsupported("%s", t.text))
	}
	p.unexpected()
	return nil
}

// selection is a statement that returns rows.
func (p *parser) selection() *plan.Plan {
	sql := p.selectStatement()
	return &plan.Plan{Type: plan.Select, SQL: sql, Work: p.work(warehouse.Scan)}
}
