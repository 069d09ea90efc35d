package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// world is a target, an adapter and a workload that tests bend as they need.
type world struct {
	// opened is how the target was opened last.
	opened  target.Config
	feed    bool // the workload needs one
	driver  string
	refused error // what the host answers instead of the workload
	// connectErr is what a load connection is refused with; tried counts those closed again.
	connectErr error
	tried      int
	// the target
	tables  map[string]*engine.Table
	sql     []string
	loaded  int64
	loadErr error
	execErr map[string]error // by prefix of the SQL
	// preflight is what the adapter answers to it; nil: it does not know the operation.
	preflight *plugin.AdapterAnswer
	// pooler is what the server says of one; "" is none.
	pooler   string
	maxConns int
	checkErr error
	queryErr error
	onLoad   func(rows int64)
	// the adapter
	kinds         []engine.Kind
	queries       []plugin.Query // asked for on each inspect
	rounds        int            // how many rounds inspect asks
	asked         int
	statement     func(plugin.Statement) engine.Statement
	answers       func([]engine.Statement) []engine.Statement
	mute          bool // answers neither session nor classify_error
	isolates      bool // sets isolation levels
	supports      *plugin.Supports
	adapterParams string          // its schema
	final         string          // the table that is made of the loaded one
	refusal       *plugin.Refusal // of DDL
	sends         *plugin.Sends
	session       []string
	requests      []plugin.AdapterRequest
	// the workload
	logical  []plugin.LogicalTable
	wanted   []plugin.Statement
	schema   string
	rowsErr  error
	rowsLeft int64 // rows until rowsErr
}

func newWorld() *world {
	return &world{
		driver:   "fake",
		tables:   map[string]*engine.Table{},
		maxConns: 100,
		statement: func(s plugin.Statement) engine.Statement {
			return engine.Statement{ID: s.ID, Kind: s.Kind, Table: s.Table, SQL: "SELECT 1", Binds: s.Binds}
		},
		logical: []plugin.LogicalTable{{Name: "main", Key: []string{"id"},
			Columns: []plugin.LogicalColumn{{Name: "id", Type: engine.TypeI64}, {Name: "note", Type: engine.TypeText}}}},
		wanted: []plugin.Statement{{ID: "get", Kind: engine.KindPointLookup, Table: "main",
			Binds: []engine.Bind{{Name: "id", Type: engine.TypeI64}}}},
		schema: `{"type":"object","additionalProperties":false,"properties":{"keys":{"type":"string","enum":["uniform","zipfian"],"default":"uniform"},
			"weights":{"type":"object","additionalProperties":false,"properties":{"POINT_LOOKUP":{"type":"number","minimum":0}}}}}`,
	}
}

func (w *world) deps() Deps {
	return Deps{Plugins: fakeHost{w: w}, Drivers: map[string]target.Driver{w.driver: fakeDriver{w: w}},
		Connections: fakeConnections{w.driver}}
}

func scenario() engine.Scenario {
	return engine.Scenario{Target: engine.Target{Connection: engine.ConnectionRef{Name: "playground"}, Adapter: "fake",
		TableName: "orders"},
		Workload: engine.Workload{Plugin: "mix", ConcurrentConnections: 4}, Scaling: engine.Scaling{WorkerCount: 3}}
}

func (w *world) add(name string, columns ...engine.Column) {
	w.tables[name] = &engine.Table{PhysicalName: name, Columns: columns, Key: []string{"id"}, Rows: 10}
}

type fakeConnections struct{ driver string }

func (f fakeConnections) OpenDSN(context.Context, engine.ConnectionRef) (string, secret.Secret, error) {
	return f.driver, secret.New("dsn"), nil
}

type fakeHost struct {
	plugin.Host
	w *world
}

func (h fakeHost) Workload(_ context.Context, ref string) (plugin.Workload, error) {
	if h.w.refused != nil {
		return nil, h.w.refused
	}
	if ref != "mix" {
		return nil, fmt.Errorf("%w: %s", plugin.ErrNotFound, ref)
	}
	return fakeWorkload{w: h.w}, nil
}

func (h fakeHost) Adapter(context.Context, string) (plugin.Adapter, error) {
	return fakeAdapter{h.w}, nil
}

func (h fakeHost) List(context.Context) ([]plugin.Info, error) {
	return []plugin.Info{fakeWorkload{w: h.w}.Info(), fakeAdapter{h.w}.Info()}, nil
}

type fakeWorkload struct {
	plugin.Workload
	w *world
}

func (f fakeWorkload) Info() plugin.Info {
	return plugin.Info{PluginRef: engine.PluginRef{Kind: "workload", Name: "mix", Version: "1", SHA256: "w"},
		Manifest: plugin.Manifest{Kind: "workload", Name: "mix", Parameters: json.RawMessage(f.w.schema), Tables: f.w.logical,
			Feed: f.w.feed}}
}

func (f fakeWorkload) Tables(context.Context, json.RawMessage) ([]plugin.LogicalTable, error) {
	return f.w.logical, nil
}

func (f fakeWorkload) Statements(context.Context, json.RawMessage, []engine.Table) ([]plugin.Statement, error) {
	return f.w.wanted, nil
}

func (f fakeWorkload) Rows(_ context.Context, _ json.RawMessage, _ int, first int64, n int) (plugin.Rows, error) {
	if f.w.rowsErr != nil && first >= f.w.rowsLeft {
		return nil, f.w.rowsErr
	}
	return fakeRows(n), nil
}

type fakeRows int

func (r fakeRows) Len() int         { return int(r) }
func (fakeRows) Value(r, _ int) any { return int64(r) }

type fakeAdapter struct{ w *world }

func (f fakeAdapter) Info() plugin.Info {
	return plugin.Info{PluginRef: engine.PluginRef{Kind: "adapter", Name: "fake", Version: "1", SHA256: "a"},
		Manifest: plugin.Manifest{Kind: "adapter", Name: "fake", Driver: f.w.driver, Kinds: f.w.kinds, Supports: f.w.supports,
			Sends: f.w.sends, Parameters: json.RawMessage(f.w.adapterParams)}}
}

func (f fakeAdapter) Call(_ context.Context, request, answer any) error {
	req := request.(plugin.AdapterRequest)
	a := answer.(*plugin.AdapterAnswer)
	f.w.requests = append(f.w.requests, req)
	switch req.Op {
	case plugin.OpPreflight:
		if f.w.preflight == nil {
			return fmt.Errorf("%w: no operation preflight", plugin.ErrFailed)
		}
		*a = *f.w.preflight
	case plugin.OpInspect:
		if f.w.asked < f.w.rounds {
			f.w.asked++
			a.Queries = f.w.queries
			return nil
		}
		t := f.w.tables[req.TableName]
		a.Exists = t != nil
		if t != nil {
			c := *t
			a.Table = &c
		}
	case plugin.OpDDL:
		if a.Refused = f.w.refusal; a.Refused != nil {
			return nil
		}
		if req.Recreate {
			a.DDL = append(a.DDL, "DROP TABLE "+req.TableName)
		}
		a.DDL = append(a.DDL, "CREATE TABLE "+req.TableName)
		a.AfterLoad = []string{"ANALYZE " + req.TableName}
		if f.w.final != "" {
			a.AfterLoad = []string{"CREATE TABLE " + f.w.final, "ANALYZE " + f.w.final}
		}
	case plugin.OpLoad:
		a.Load = &plugin.LoadTarget{Table: req.TableName, Columns: make([]engine.Column, len(req.Logical.Columns))}
		for i, c := range req.Logical.Columns {
			a.Load.Columns[i] = engine.Column{Name: c.Name, Type: c.Type}
		}
		a.Load.Final = f.w.final
		for n := req.Rows; n > 0; n -= 1000 {
			a.Load.Generate = append(a.Load.Generate,
				plugin.GenerateStatement{SQL: "INSERT INTO " + req.TableName + " SELECT " + req.TableName, Rows: min(n, 1000)})
		}
	case plugin.OpStatements:
		for _, s := range req.Statements {
			a.Statements = append(a.Statements, f.w.statement(s))
		}
		if f.w.answers != nil {
			a.Statements = f.w.answers(a.Statements)
		}
	case plugin.OpSession, plugin.OpClassifyError:
		if f.w.mute {
			return fmt.Errorf("no %s here: %w", req.Op, plugin.ErrFailed)
		}
		a.Session = []string{"SET TIME ZONE 'UTC'"}
		if f.w.session != nil {
			a.Session = f.w.session
		}
		if f.w.isolates {
			a.IsolationLevel = req.IsolationLevel
		}
	}
	return nil
}

type fakeDriver struct {
	target.Driver
	w *world
}

func (d fakeDriver) Name() string { return d.w.driver }
func (d fakeDriver) Traits() target.Traits {
	return target.Traits{Warehouses: d.w.driver == "snowflake"}
}
func (d fakeDriver) Open(cfg target.Config) (target.Database, error) {
	d.w.opened = cfg
	return fakeDatabase{w: d.w}, nil
}

type fakeDatabase struct {
	target.Database
	w *world
}

func (w *world) serverNotes() []string {
	if w.pooler == "" {
		return nil
	}
	return []string{w.pooler}
}

func (d fakeDatabase) Check(context.Context) (target.ServerInfo, error) {
	return target.ServerInfo{Version: "15", Database: "db", User: "u", MaxConnections: d.w.maxConns,
		Pooled: d.w.pooler != "", Notes: d.w.serverNotes()}, d.w.checkErr
}

// Connect hands out connections that can only be closed.
func (d fakeDatabase) Connect(context.Context, []engine.Statement) (target.Conn, error) {
	if d.w.connectErr != nil {
		return nil, d.w.connectErr
	}
	return &fakeConn{w: d.w}, nil
}

type fakeConn struct {
	target.Conn
	w *world
}

func (c *fakeConn) Close() error {
	c.w.tried++
	return nil
}

func (d fakeDatabase) Query(_ context.Context, sql string, _ ...any) (*target.ResultSet, error) {
	d.w.sql = append(d.w.sql, sql)
	if strings.Contains(sql, "repeat(") {
		return nil, fmt.Errorf("querying: %w", target.ErrTooLarge)
	}
	if strings.Contains(sql, "large") {
		return &target.ResultSet{Columns: []string{"n"}, Rows: [][]any{{strings.Repeat("x", 1<<20)}}}, nil
	}
	return &target.ResultSet{Columns: []string{"n"}, Rows: [][]any{{int64(1) << 60}}}, d.w.queryErr
}

func (d fakeDatabase) Exec(_ context.Context, sql ...string) error {
	for _, s := range sql {
		for prefix, err := range d.w.execErr {
			if strings.HasPrefix(s, prefix) {
				return err
			}
		}
		d.w.sql = append(d.w.sql, s)
		fields := strings.Fields(s)
		name := fields[len(fields)-1]
		switch fields[0] {
		case "CREATE":
			if d.w.tables[name] != nil {
				return errors.New("relation exists")
			}
			d.w.add(name)
		case "DROP":
			delete(d.w.tables, name)
		}
	}
	return nil
}

func (d fakeDatabase) Load(ctx context.Context, _ string, _ []engine.Column, next func() (plugin.Rows, error),
	progress func(int64)) (int64, error) {
	var n int64
	for {
		rows, err := next()
		if err != nil {
			return 0, err
		}
		if rows == nil {
			break
		}
		n += int64(rows.Len())
		progress(n)
		if d.w.onLoad != nil {
			d.w.onLoad(n)
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	if d.w.loadErr != nil {
		return 0, d.w.loadErr
	}
	d.w.loaded += n
	return n, nil
}

func (d fakeDatabase) Classify(err error) engine.ExecutionError {
	return engine.ExecutionError{Class: engine.ErrClassOther, Code: "42", Message: err.Error()}
}

func (fakeDatabase) Close() error { return nil }
