package translate

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/snowsim/history"
	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// host is a server without a wire: it runs plans on one connection.
type host struct {
	pool    *pgxpool.Pool
	history *history.Store
	now     time.Time

	mu         sync.Mutex
	warehouses map[string]warehouse.State
}

func (h *host) Postgres() *pgxpool.Pool { return h.pool }
func (h *host) Warehouses() Warehouses  { return h }
func (h *host) History() *history.Store { return h.history }
func (h *host) Now() time.Time          { return h.now }
func (h *host) Roles() []string         { return []string{"ACCOUNTADMIN", "PUBLIC", "SYSADMIN"} }

func (h *host) Transactions() []OpenTransaction                      { return nil }
func (h *host) AbortTransaction(context.Context, int64, int64) error { return nil }

func (h *host) Database() (database, schema string) { return "LOADSTONE", "PUBLIC" }

func (h *host) List() (all []warehouse.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.warehouses {
		all = append(all, w)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

func (h *host) Get(name string) (warehouse.State, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w, ok := h.warehouses[name]
	return w, ok
}

func (h *host) Create(spec warehouse.Spec) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	status := warehouse.Started
	if spec.Suspended {
		status = warehouse.Suspended
	}
	h.warehouses[spec.Name] = warehouse.State{Spec: spec, Status: status, CreatedOn: h.now}
	return nil
}

func (h *host) change(name string, change func(*warehouse.State) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.warehouses[name]
	if err := change(&w); err != nil {
		return err
	}
	h.warehouses[name] = w
	return nil
}

func (h *host) Alter(name string, change func(*warehouse.Spec) error) error {
	return h.change(name, func(w *warehouse.State) error { return change(&w.Spec) })
}

func (h *host) Drop(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.warehouses, name)
	return nil
}

func (h *host) Resume(name string) error {
	return h.change(name, func(w *warehouse.State) error { w.Status = warehouse.Started; return nil })
}

func (h *host) Suspend(name string) error {
	return h.change(name, func(w *warehouse.State) error { w.Status = warehouse.Suspended; return nil })
}

// client is a session on a host.
type client struct {
	t       testing.TB
	host    *host
	tr      *Translator
	conn    *pgx.Conn
	session Session
}

func newHost(t testing.TB) *host {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.Start(t).NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	h := &host{pool: pool, history: history.New(history.Options{Short: -1}),
		now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), warehouses: map[string]warehouse.State{}}
	_ = h.Create(warehouse.Spec{Name: "WH", Type: warehouse.TypeStandard, Size: "X-Small", MinClusters: 1, MaxClusters: 1,
		AutoResume: true, AutoSuspend: time.Minute,
		MaxConcurrency: 8, ScalingPolicy: warehouse.PolicyStandard, Owner: "SYSADMIN"})
	return h
}

func newClient(t testing.TB, denied ...Denied) *client {
	t.Helper()
	h := newHost(t)
	tr, err := New(t.Context(), h, Options{Denied: denied})
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, h, tr)
}

func connect(t testing.TB, h *host, tr *Translator) *client {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), h.pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), "SET timezone = 'UTC'; SET search_path = "+SearchPath); err != nil {
		t.Fatal(err)
	}
	return &client{t: t, host: h, tr: tr, conn: conn,
		session: Session{ID: 7, User: "ANNA", Account: "SIM", Role: "SYSADMIN", Warehouse: "WH", Database: "LOADSTONE",
			Schema: "PUBLIC", Parameters: map[string]string{"TIMEZONE": "UTC"}}}
}

// bind makes a bind of a type; a nil value is NULL.
func bind(kind string, value any) protocol.Bind {
	b := protocol.Bind{Type: kind}
	if value != nil {
		s := fmt.Sprint(value)
		b.Value = &s
	}
	return b
}

// exec runs a statement as the server does and returns its result.
func (c *client) exec(sql string, binds ...protocol.Bind) (*Result, error) {
	ctx := c.t.Context()
	session := c.session
	session.Parameters = map[string]string{}
	for k, v := range c.session.Parameters {
		session.Parameters[k] = v
	}
	p, err := c.tr.Plan(ctx, &session, sql, binds)
	if err != nil {
		return nil, err
	}
	r, err := c.run(ctx, p, binds)
	if err != nil {
		return nil, Error(err)
	}
	e := p.Effect
	for _, pair := range []struct{ to, from *string }{{&c.session.Database, e.Database}, {&c.session.Schema, e.Schema},
		{&c.session.Role, e.Role}, {&c.session.Warehouse, e.Warehouse}} {
		if pair.from != nil {
			*pair.to = *pair.from
		}
	}
	for k, v := range e.Set {
		c.session.Parameters[k] = v
	}
	for _, k := range e.Unset {
		delete(c.session.Parameters, k)
	}
	return r, nil
}

func (c *client) run(ctx context.Context, p *Plan, binds []protocol.Bind) (*Result, error) {
	if p.Local != nil {
		return p.Local(ctx)
	}
	if p.SQL == "" && p.Before == nil {
		return Status("Statement executed successfully."), nil
	}
	tx, err := c.conn.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback(context.Background())
	if p.Before != nil {
		if err := p.Before(ctx, c.conn); err != nil {
			return nil, err
		}
	}
	values, oids := make([][]byte, len(p.Params)), make([]uint32, len(p.Params))
	for i, param := range p.Params {
		if v := binds[param.Bind].Value; v != nil {
			values[i] = []byte(*v)
		}
		oids[i] = param.OID
	}
	reader := c.conn.PgConn().ExecParams(ctx, p.SQL, values, oids, nil, nil)
	r := &Result{}
	fields := append([]pgconn.FieldDescription(nil), reader.FieldDescriptions()...)
	for reader.NextRow() {
		row := make([]any, len(reader.Values()))
		for i, v := range reader.Values() {
			if v != nil {
				row[i] = string(v)
			}
		}
		r.Rows = append(r.Rows, row)
	}
	tag, err := reader.Close()
	if err != nil {
		return nil, err
	}
	switch {
	case p.Columns != nil:
		r.Columns = p.Columns
	case p.Describe != nil && len(fields) > 0:
		r.Columns = p.Describe(fields)
	}
	if tag.Insert() || tag.Update() || tag.Delete() || strings.HasPrefix(tag.String(), "MERGE") {
		r.Columns, r.Rows = []protocol.Column{protocol.Number("number of rows")}, [][]any{{tag.RowsAffected()}}
	}
	return r, tx.Commit(ctx)
}

// must runs a statement that has to succeed.
func (c *client) must(sql string, binds ...protocol.Bind) *Result {
	c.t.Helper()
	r, err := c.exec(sql, binds...)
	if err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
	return r
}

// text writes a result: names and types, then a line for each row.
func printed(r *Result) string {
	var b strings.Builder
	for i, c := range r.Columns {
		if i > 0 {
			b.WriteString(" | ")
		}
		b.WriteString(c.Name + " " + c.Type)
		if c.Type == "fixed" && c.Scale >= 0 {
			fmt.Fprintf(&b, "(%d,%d)", c.Precision, c.Scale)
		}
	}
	b.WriteString("\n")
	for _, row := range r.Rows {
		for i, v := range row {
			if i > 0 {
				b.WriteString(" | ")
			}
			if name := r.Columns[i].Name; v != nil && (name == "bytes" || name == "BYTES") {
				v = "…" // differs between versions of Postgres
			}
			switch v := v.(type) {
			case nil:
				b.WriteString("NULL")
			case string:
				if s, ok := strings.CutPrefix(v, `\x`); ok {
					if raw, err := hex.DecodeString(s); err == nil {
						v = fmt.Sprintf("%X", raw)
					}
				}
				b.WriteString(strings.ReplaceAll(v, "\n", `\n`))
			case time.Time:
				b.WriteString(v.UTC().Format(time.RFC3339))
			default:
				fmt.Fprint(&b, v)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// schema makes a schema, which no statement does.
func (c *client) schema(database, schema string) {
	c.t.Helper()
	if err := execAll(c.t.Context(), c.conn, createSchema(database, schema, c.host.now, "SYSADMIN", "")...); err != nil {
		c.t.Fatal(err)
	}
}
