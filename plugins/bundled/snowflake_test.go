package bundled_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
	"github.com/loadstone-db/loadstone/engine/worker/load"
	"github.com/loadstone-db/loadstone/plugins/host"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
	"github.com/loadstone-db/loadstone/snowsim"
	"github.com/loadstone-db/loadstone/snowsim/snowsimtest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// snow is an account that the stand-in plays, with the driver as it is.
type snow struct {
	*testing.T
	host *host.Host
	dsn  string
	db   target.Database
	// server is the stand-in itself.
	server *snowsim.Server
}

func newSnow(t *testing.T, change ...func(*snowsim.Options)) *snow {
	t.Helper()
	options := snowsim.Options{Postgres: pgtest.Start(t).NewDatabase(t), TimeScale: 1000, Seed: 1, Log: zerolog.Nop()}
	for _, c := range change {
		c(&options)
	}
	server, err := snowsim.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s := &snow{T: t, host: hosttest.Bundled(t), dsn: "snowflake://" + server.DSN(), server: server}
	if s.db, err = snowflake.NewDriver().Open(target.Config{DSN: secret.New(s.dsn)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close() })
	return s
}

func (s *snow) exec(sql ...string) {
	s.Helper()
	if err := s.db.Exec(context.Background(), sql...); err != nil {
		s.Fatal(err)
	}
}

// one is the first value of a query, as text.
func (s *snow) one(sql string) string {
	s.Helper()
	set, err := s.db.Query(context.Background(), sql)
	if err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
	return fmt.Sprint(set.Rows[0][0])
}

func (s *snow) deps() prepare.Deps {
	return prepare.Deps{Plugins: s.host, Drivers: map[string]target.Driver{"snowflake": snowflake.NewDriver()},
		Connections: inline{}}
}

func (s *snow) scenario(adapter, workload, table, params string, prep *engine.Prepare) engine.Scenario {
	return engine.Scenario{Name: "test",
		Workload: engine.Workload{Plugin: workload, Params: json.RawMessage(params), Seed: 7, ConcurrentConnections: 4},
		Target: engine.Target{Connection: engine.ConnectionRef{Driver: "snowflake", DSN: s.dsn}, Adapter: adapter,
			TableName: table, Prepare: prep, AllowWrites: true},
		Scaling: engine.Scaling{WorkerCount: 1}}
}

func (s *snow) prepare(sc engine.Scenario) *prepare.Prepared {
	s.Helper()
	p, err := prepare.Plan(context.Background(), s.deps(), sc, nil)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// load runs a prepared workload for a time on four connections.
func (s *snow) load(sc engine.Scenario, p *prepare.Prepared, lasting time.Duration) *ended {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lasting+2*time.Minute)
	defer cancel()
	total := &ended{statements: p.Plan.Statements, committed: map[string]int{}, rolledBack: map[string]int{},
		failed: map[string]int{}}
	w, err := s.host.Workload(ctx, p.Plan.Workload.SHA256)
	if err != nil {
		s.Fatal(err)
	}
	database, err := snowflake.NewDriver().
		Open(target.Config{DSN: secret.New(s.dsn), Session: p.Plan.Session, StatementTimeout: time.Minute})
	if err != nil {
		s.Fatal(err)
	}
	defer database.Close()
	stream, err := w.Open(ctx, plugin.OpenRequest{Seed: 7, KeySlots: p.Plan.KeySlots, Params: p.Params,
		Tables: p.Plan.Tables, Pools: p.Plan.Pools}, p.Plan.Statements)
	if err != nil {
		s.Fatal(err)
	}
	defer stream.Close()
	g, err := load.Open(ctx, load.Config{Stream: stream, Database: database, Sink: total, Log: zerolog.Nop(), Plan: p.Plan,
		Workload: sc.Workload}, connections, nil)
	if err != nil {
		s.Fatal(err)
	}
	g.Start(engine.PhaseMeasurement)
	time.Sleep(lasting)
	if err := errors.Join(g.Drain(ctx), g.Close()); err != nil {
		s.Error(err)
	}
	if n := g.Totals(); n.Started == 0 || n.Failed > 0 {
		s.Errorf("%d of %d failed: %+v, %v", n.Failed, n.Started, g.Error(1), total.failed)
	}
	return total
}

const prepared = 2_000

// TestSnowflakeTables makes, fills, inspects and loads a table of each type, on an account whose defaults of session
// parameters are the worst.
func TestSnowflakeTables(t *testing.T) {
	t.Parallel()
	s := newSnow(t, func(o *snowsim.Options) { o.Parameters = snowsimtest.HostileParameters() })
	for _, c := range []struct{ adapter, weights, params, kind string }{
		{"snowflake_standard", `{"POINT_LOOKUP":4,"RANGE_SCAN":1,"INSERT":1,"UPDATE":1,"DELETE":1}`,
			`{"cluster_by":["created_at"],"transient":true}`, "is_hybrid N"},
		{"snowflake_hybrid", `{"POINT_LOOKUP":4,"RANGE_SCAN":1,"INSERT":1,"UPDATE":1,"DELETE":1}`,
			`{"indexes":[{"columns":["customer_id"],"include":["status","amount"]}]}`, "is_hybrid Y"},
		{"snowflake_interactive", `{"POINT_LOOKUP":4,"RANGE_SCAN":1}`, `{"cluster_by":["customer_id"]}`, "is_interactive Y"},
	} {
		t.Run(c.adapter, func(t *testing.T) {
			s := &snow{T: t, host: s.host, dsn: s.dsn, db: s.db}
			table := "orders_" + c.adapter
			sc := s.scenario(c.adapter, "mix", table, `{"weights":`+c.weights+`,"scan_length":5}`,
				&engine.Prepare{Rows: prepared, IfExists: engine.IfExistsUse})
			sc.Target.Params = json.RawMessage(c.params)
			f, err := prepare.Inspect(context.Background(), s.deps(), sc, true)
			if err != nil || !f.OK || len(f.Creates) != 1 || len(f.Creates[0].DDL) == 0 {
				t.Fatalf("preflight: %+v, %v", f, err)
			}
			p := s.prepare(sc)
			made := p.Plan.Tables[0]
			if made.Rows != prepared || !made.Dense || *made.KeyMax != prepared || !slices.Equal(made.Key, []string{"ID"}) {
				t.Errorf("%+v", made)
			}
			if !slices.ContainsFunc(p.Notes,
				func(n string) bool { return strings.Contains(n, fmt.Sprintf("made %d sample rows", prepared)) }) {
				t.Errorf("the rows were not made by the database: %v", p.Notes)
			}
			column, value, _ := strings.Cut(c.kind, " ")
			if got := s.shown("SHOW TABLES LIKE '"+strings.ToUpper(table)+"'", column); got != value {
				t.Errorf("%s is %q", column, got)
			}
			// The values are those that the workload declares, in its shares.
			if got := s.one("SELECT COUNT(DISTINCT STATUS) || ' ' || MIN(LENGTH(NOTE)) || ' ' || MAX(LENGTH(NOTE)) || ' ' || " +
				"MIN(CREATED_AT)::DATE FROM " + table); got != "7 20 100 2024-01-01" {
				t.Errorf("the rows have %s", got)
			}
			total := s.load(sc, p, 300*time.Millisecond)
			for _, kind := range p.Plan.Statements {
				if total.committed[kind.ID] == 0 {
					t.Errorf("%s was never done: %v", kind.ID, total.committed)
				}
			}
			// What is there is taken as it is, whatever the adapter of another type thinks of it.
			second := s.prepare(sc)
			if second.Plan.Tables[0].PhysicalName != made.PhysicalName {
				t.Errorf("%s, then %s", made.PhysicalName, second.Plan.Tables[0].PhysicalName)
			}
			if c.adapter != "snowflake_standard" {
				sc.Target.Adapter, sc.Target.Params = "snowflake_standard", nil
				_, err := prepare.Plan(context.Background(), s.deps(), sc, nil)
				refused(t, err, "target.adapter", c.adapter)
			}
		})
	}
}

// shown is a column of the first row of a SHOW command.
func (s *snow) shown(sql, column string) string {
	s.Helper()
	set, err := s.db.Query(context.Background(), sql)
	if err != nil || len(set.Rows) != 1 {
		s.Fatalf("%s: %v, %v", sql, set, err)
	}
	return fmt.Sprint(set.Rows[0][slices.Index(set.Columns, column)])
}

func refused(t *testing.T, err error, field, words string) {
	t.Helper()
	var e *engine.Error
	if !errors.As(err, &e) || !slices.ContainsFunc(e.Fields, func(f engine.FieldError) bool {
		return f.Field == field &&
			f.Hint != ""
	}) || !strings.Contains(e.Error(), words) {
		t.Errorf("%+v; expected %s and %q", err, field, words)
	}
}

// TestAnInteractiveTableIsReadOnly: what it cannot do is refused before anything is made.
func TestAnInteractiveTableIsReadOnly(t *testing.T) {
	t.Parallel()
	s := newSnow(t)
	for _, c := range []struct{ workload, params, field string }{
		{"mix", `{"weights":{"POINT_LOOKUP":1,"UPDATE":1}}`, "workload.params.weights.UPDATE"},
		{"mix", `{"weights":{"DELETE":1}}`, "workload.params.weights.DELETE"},
		{"mix", `{"weights":{"INSERT":1}}`, "workload.params.weights.INSERT"},
		{"ycsb", `{"workload":"A"}`, "workload.params.workload"},
		{"ycsb", `{"workload":"custom","proportions":{"read":1,"insert":1}}`, "workload.params.proportions.insert"},
		{"tpcb", `{}`, "workload.params.script"},
		{"tpcc", `{}`, "workload.plugin"},
		{"sql", `{"statements":[{"id":"read","sql":"SELECT 1"},{"id":"change","sql":"MERGE INTO a USING b ON a.id = b.id WHEN MATCHED THEN DELETE"}]}`, "workload.params.statements[1]"},
	} {
		table := "orders"
		if c.workload == "tpcb" || c.workload == "tpcc" {
			table = ""
		}
		sc := s.scenario("snowflake_interactive", c.workload, table, c.params, &engine.Prepare{IfExists: engine.IfExistsUse})
		_, err := prepare.Plan(context.Background(), s.deps(), sc, nil)
		refused(t, err, c.field, "INSERT OVERWRITE")
		f, err := prepare.Inspect(context.Background(), s.deps(), sc, true)
		if err != nil || f.OK || f.Checks[0].Field != c.field {
			t.Errorf("preflight of %s %s: %+v, %v", c.workload, c.params, f, err)
		}
	}
	if n := s.one("SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = CURRENT_SCHEMA()"); n != "0" {
		t.Errorf("%s tables were made", n)
	}
	// Under an interactive warehouse somebody else has to fill the table.
	s.dsn = strings.Replace(s.dsn, "warehouse="+snowsim.DefaultWarehouse, "warehouse=INTERACTIVE_WH", 1)
	sc := s.scenario("snowflake_interactive", "mix", "orders", `{"weights":{"POINT_LOOKUP":1}}`,
		&engine.Prepare{Rows: prepared, IfExists: engine.IfExistsUse})
	_, err := prepare.Plan(context.Background(), s.deps(), sc, nil)
	refused(t, err, "target.params.load_warehouse", "is interactive")
	sc.Target.Params = json.RawMessage(`{"load_warehouse":"` + snowsim.DefaultWarehouse + `"}`)
	if p := s.prepare(sc); p.Plan.Tables[0].Rows != prepared {
		t.Errorf("%+v", p.Plan.Tables[0])
	} else {
		s.load(sc, p, 100*time.Millisecond)
	}
}

// TestSnowflakeWorkloads: the workloads that bring SQL of their own.
func TestSnowflakeWorkloads(t *testing.T) {
	t.Parallel()
	s := newSnow(t)
	for _, c := range []struct{ adapter, workload, table, params string }{
		{"snowflake_hybrid", "tpcb", "b_", `{"scale":1}`},
		{"snowflake_standard", "tpcc", "c_", `{"warehouses":1,"items":100,"customers_per_district":30}`},
		{"snowflake_hybrid", "tpcc", "h_", `{"warehouses":1,"items":100,"customers_per_district":30}`},
		{"snowflake_standard", "ycsb", "usertable", `{"workload":"F","insert_order":"ordered","record_count":1000}`},
		{"snowflake_hybrid", "ycsb", "hashed", `{"workload":"A","record_count":1000}`},
		{"snowflake_hybrid", "sql", "hashed",
			`{"statements":[{"id":"near","sql":"SELECT count(*) FROM {table} WHERE ycsb_key >= :k AND ycsb_key < :k || 'z'","binds":[{"name":"k","generator":"text","length":3}]}]}`},
	} {
		t.Run(c.adapter+" "+c.workload+" "+c.table, func(t *testing.T) {
			s := &snow{T: t, host: s.host, dsn: s.dsn, db: s.db}
			prep := &engine.Prepare{IfExists: engine.IfExistsUse}
			if c.workload == "sql" {
				prep = nil
			}
			sc := s.scenario(c.adapter, c.workload, c.table, c.params, prep)
			sc.Workload.Retry = &engine.Retry{Max: 20,
				Classes: []engine.ErrorClass{engine.ErrClassSerialization, engine.ErrClassDeadlock, engine.ErrClassLock}}
			p := s.prepare(sc)
			total := s.load(sc, p, 300*time.Millisecond)
			if len(total.committed) == 0 {
				t.Errorf("%+v", total)
			}
			if c.workload == "tpcb" {
				sums := s.one("SELECT (SELECT SUM(ABALANCE) FROM b_PGBENCH_ACCOUNTS) || ' ' || (SELECT SUM(TBALANCE) FROM " +
					"b_PGBENCH_TELLERS) || ' ' || (SELECT SUM(BBALANCE) FROM b_PGBENCH_BRANCHES) || ' ' || (SELECT SUM(DELTA) FROM " +
					"b_PGBENCH_HISTORY)")
				if f := strings.Fields(sums); len(f) != 4 || f[0] != f[1] || f[0] != f[2] || f[0] != f[3] {
					t.Errorf("the books do not balance: %s", sums)
				}
			}
		})
	}
}

// TestSnowflakeNames: quoted and lower-case names, and names that want to be SQL.
func TestSnowflakeNames(t *testing.T) {
	t.Parallel()
	s := newSnow(t)
	s.exec(`CREATE TABLE "orders" ("id" NUMBER, "v" VARCHAR(10), PRIMARY KEY ("id"))`,
		`INSERT INTO "orders" VALUES (1, 'a'), (50, 'b'), (70, 'c'), (99, 'd')`,
		`CREATE TABLE "x; DROP TABLE ""orders""; --" ("id" NUMBER, "v" VARCHAR)`,
		`CREATE TABLE UPPER_ONLY (ID NUMBER(38,10), T TIMESTAMP_TZ, D VARIANT)`)
	inspect := func(name string) (*prepare.Preflight, error) {
		return prepare.Inspect(context.Background(), s.deps(),
			s.scenario("snowflake_standard", "mix", name, `{"weights":{"POINT_LOOKUP":1}}`, nil), true)
	}
	// A name without quotes is upper case, and else what is there in lower case.
	for _, name := range []string{"orders", `"orders"`, `public."orders"`, `loadstone.public.orders`} {
		if f, err := inspect(name); err != nil || !f.OK || !strings.HasSuffix(f.Plan.Tables[0].PhysicalName, `."orders"`) ||
			len(f.Plan.Pools) != 1 {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	for name, words := range map[string]string{
		`"Orders"`: "does not exist", "nowhere.orders": "does not exist",
		`orders; DROP TABLE "orders"`: "without quotes cannot", "o'r": "without quotes cannot", "a\x00b": "zero byte",
		strings.Repeat("a", 300): "300 characters", `"orders`: "closing", "a.b.c.d": "three parts",
	} {
		f, err := inspect(name)
		if err != nil || f.OK || !slices.ContainsFunc(f.Checks, func(c prepare.CheckResult) bool {
			return c.Field == "target.table_name" && strings.Contains(c.Message+c.Fix, words)
		}) {
			t.Errorf("%q: %+v, %v", name, f, err)
		}
	}
	// A table without a declared key is found, and the workload's own key is taken, or the template's.
	f, err := inspect(`"x; DROP TABLE ""orders""; --"`)
	if err != nil || !slices.ContainsFunc(f.Checks, func(c prepare.CheckResult) bool {
		return c.Name == "table" &&
			c.Outcome == prepare.CheckOK
	}) {
		t.Errorf("%+v, %v", f, err)
	}
	if n := s.one(`SELECT COUNT(*) FROM "orders"`); n != "4" {
		t.Errorf("%s rows are left", n)
	}
}

// TestSnowflakeClassesAgree: what the adapters say about a code is what the driver does.
func TestSnowflakeClassesAgree(t *testing.T) {
	t.Parallel()
	h := hosttest.Bundled(t)
	a, err := h.Adapter(t.Context(), "snowflake_standard")
	if err != nil {
		t.Fatal(err)
	}
	var answer plugin.AdapterAnswer
	if err := a.Call(t.Context(), plugin.AdapterRequest{Op: plugin.OpClassifyError}, &answer); err != nil ||
		len(answer.Classes) == 0 {
		t.Fatalf("%v, %v", answer, err)
	}
	db, err := snowflake.NewDriver().Open(target.Config{DSN: secret.New("snowflake://u:p@account/db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for code, class := range answer.Classes {
		number, err := strconv.Atoi((code + "000")[:6])
		if err != nil || len(code) != 6 && len(code) != 3 {
			continue
		}
		if got := db.Classify(&gosnowflake.SnowflakeError{Number: number}); got.Class != class || len(code) == 6 &&
			got.Code != code {
			t.Errorf("%s is %s, and the driver says %+v", code, class, got)
		}
	}
}

// TestSnowflakePostgres: Snowflake's Postgres is Postgres, and so is its adapter.
func TestSnowflakePostgres(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	sc := b.scenario("mix", `{"weights":{"POINT_LOOKUP":1,"INSERT":1,"UPDATE":1,"DELETE":1}}`,
		&engine.Prepare{Rows: prepared, IfExists: engine.IfExistsUse})
	sc.Target.Adapter, sc.Target.TableName = "snowflake_postgres", "orders"
	p, err := b.prepare(sc)
	if err != nil || p.Plan.Tables[0].Rows != prepared || !p.Plan.Tables[0].Dense ||
		p.Plan.Adapter.Name != "snowflake_postgres" {
		t.Fatalf("%+v, %v", p, err)
	}
	if total := b.load(sc, p, 1, 200*time.Millisecond); len(total.committed) != 4 {
		t.Errorf("%+v", total.committed)
	}
	sc.Target.Params = json.RawMessage(`{"cluster_by":["id"]}`)
	_, err = b.prepare(sc)
	if !strings.Contains(fmt.Sprint(err), "target.params.cluster_by") {
		t.Errorf("a parameter of another table type: %v", err)
	}
}
