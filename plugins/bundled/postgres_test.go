package bundled_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
	"github.com/loadstone-db/loadstone/plugins/host"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(closer{pgtest.M{M: m}}, targettest.SnowflakeDriverLeak())
}

// closer closes the shared host before goroutines are counted.
type closer struct{ pgtest.M }

func (c closer) Run() int {
	defer hosttest.Close()
	return c.M.Run()
}

type bench struct {
	*testing.T
	host *host.Host
	dsn  string
	db   target.Database
}

func newBench(t *testing.T, h *host.Host) *bench {
	t.Helper()
	b := &bench{T: t, host: h, dsn: pgtest.Start(t).NewDatabase(t)}
	var err error
	if b.db, err = postgres.NewDriver().Open(target.Config{DSN: secret.New(b.dsn)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.db.Close() })
	return b
}

func (b *bench) exec(sql ...string) {
	b.Helper()
	if err := b.db.Exec(context.Background(), sql...); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) plan(table, params string, prep *engine.Prepare) (*engine.Plan, error) {
	return b.planOf("mix", table, params, prep)
}

// planOf prepares a run of a workload.
func (b *bench) planOf(workload, table, params string, prep *engine.Prepare) (*engine.Plan, error) {
	sc := engine.Scenario{Name: "test",
		Workload: engine.Workload{Plugin: workload, Params: json.RawMessage(params), Seed: 7, ConcurrentConnections: 1},
		Target: engine.Target{Connection: engine.ConnectionRef{Driver: "postgres", DSN: b.dsn}, Adapter: "postgres",
			TableName: table, Prepare: prep, AllowWrites: true},
		Scaling: engine.Scaling{WorkerCount: 1}}
	deps := prepare.Deps{Plugins: b.host, Drivers: map[string]target.Driver{"postgres": postgres.NewDriver()},
		Connections: inline{}}
	p, err := prepare.Plan(context.Background(), deps, sc, nil)
	if err != nil {
		return nil, err
	}
	return p.Plan, nil
}

// run executes operations of slot 1 of 4 on one connection, and returns rows by kind.
func (b *bench) run(plan *engine.Plan, params string, operations int) map[engine.Kind]*outcome {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w, err := b.host.Workload(ctx, plan.Workload.SHA256)
	if err != nil {
		b.Fatal(err)
	}
	s, err := w.Open(ctx, plugin.OpenRequest{Seed: 7, KeySlot: 1, KeySlots: 4, Params: json.RawMessage(params),
		Tables: plan.Tables, Pools: plan.Pools}, plan.Statements)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	conn, err := b.db.Connect(ctx, plan.Statements)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	seen := map[engine.Kind]*outcome{}
	var batch plugin.Batch
	for done := 0; done < operations; {
		if err := s.Fill(&batch, 64); err != nil {
			b.Fatal(err)
		}
		for _, op := range batch.Ops {
			if op.Statement >= plugin.StatementBegin {
				if err := conn.Exec(ctx, &batch, op, &target.Result{}); err != nil {
					b.Fatal(err)
				}
				continue
			}
			st := plan.Statements[op.Statement]
			if seen[st.Kind] == nil {
				seen[st.Kind] = &outcome{}
			}
			var res target.Result
			if err := conn.Exec(ctx, &batch, op, &res); err != nil {
				b.Fatalf("%s: %v", st.SQL, err)
			}
			o := seen[st.Kind]
			o.operations++
			o.rows += int(res.Rows)
			if res.Rows > 0 {
				o.hits++
			}
			done++
		}
	}
	return seen
}

// inline opens connections that are spelled out.
type inline struct{}

func (inline) OpenDSN(_ context.Context, ref engine.ConnectionRef) (string, secret.Secret, error) {
	return ref.Driver, secret.New(ref.DSN), nil
}

type outcome struct{ operations, rows, hits int }

const everything = `{"weights":{"POINT_LOOKUP":30,"RANGE_SCAN":10,"INSERT":30,"UPDATE":20,"DELETE":1},"scan_length":5}`

func TestAnyTable(t *testing.T) {
	t.Parallel()
	h := hosttest.Bundled(t)
	distributions := []string{"uniform", "zipfian", "latest", "sequential"}
	for i, c := range []struct {
		name, table string
		setup       []string
	}{
		{"dense integers", "dense", []string{`CREATE TABLE dense (id int PRIMARY KEY, v text NOT NULL)`,
			`INSERT INTO dense SELECT g, 'x' FROM generate_series(1, 500) g`}},
		{"negative keys", "neg", []string{`CREATE TABLE neg (id bigint PRIMARY KEY, v int)`,
			`INSERT INTO neg SELECT g, g FROM generate_series(-100, 100) g`}},
		{"gaps", "gaps", []string{`CREATE TABLE gaps (id bigint PRIMARY KEY, v int)`,
			`INSERT INTO gaps SELECT g * 1000, g FROM generate_series(1, 300) g`}},
		{"serial", "ser", []string{`CREATE TABLE ser (id serial PRIMARY KEY, v text)`,
			`INSERT INTO ser (v) SELECT 'x' FROM generate_series(1, 300) g`}},
		{"identity", "ident", []string{
			`CREATE TABLE ident (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text, twice text GENERATED ALWAYS AS (v || v) STORED)`, `INSERT INTO ident (v) SELECT 'x' FROM generate_series(1, 300) g`}},
		{"uuid", "u", []string{`CREATE TABLE u (id uuid PRIMARY KEY, v jsonb NOT NULL)`,
			`INSERT INTO u SELECT gen_random_uuid(), '{}' FROM generate_series(1, 300) g`}},
		{"text", "txt", []string{`CREATE TABLE txt (code varchar(12) PRIMARY KEY, v numeric(5,3) NOT NULL)`,
			`INSERT INTO txt SELECT 'c' || g, 1 FROM generate_series(1, 300) g`}},
		{"timestamp", "ts", []string{`CREATE TABLE ts (at timestamp PRIMARY KEY, v real NOT NULL)`,
			`INSERT INTO ts SELECT timestamp '2020-01-01' + g * interval '1 s', 1 FROM generate_series(1, 300) g`}},
		{"date", "dt", []string{`CREATE TABLE dt (d date PRIMARY KEY, v bool NOT NULL)`,
			`INSERT INTO dt SELECT date '1990-01-01' + g, true FROM generate_series(1, 300) g`}},
		{"bytes", "by", []string{`CREATE TABLE by (k bytea PRIMARY KEY, v bytea NOT NULL)`,
			`INSERT INTO by SELECT decode(md5(g::text), 'hex'), '' FROM generate_series(1, 300) g`}},
		{"numeric", "num", []string{
			`CREATE TABLE num (k numeric PRIMARY KEY, v time NOT NULL, w interval NOT NULL, x inet NOT NULL)`,
			`INSERT INTO num SELECT g, '1:00', '1 h', '::1' FROM generate_series(1, 300) g`}},
		{"two columns", "two", []string{
			`CREATE TABLE two (tenant int, name text, v int NOT NULL, PRIMARY KEY (tenant, name))`,
			`INSERT INTO two SELECT g % 7, 'n' || g, 0 FROM generate_series(1, 300) g`}},
		{"unique instead of primary", "uniq",
			[]string{`CREATE TABLE uniq (a int NOT NULL UNIQUE, b smallint NOT NULL)`,
				`INSERT INTO uniq SELECT g, 1 FROM generate_series(1, 300) g`}},
		{"foreign key, check, enum, unique", "child",
			[]string{`CREATE TYPE mood AS ENUM ('sad', 'ok')`, `CREATE DOMAIN positive AS int CHECK (VALUE > 0) NOT NULL`,
				`CREATE TABLE parent (id int PRIMARY KEY)`, `INSERT INTO parent SELECT g FROM generate_series(10, 20) g`,
				`CREATE TABLE child (id bigint PRIMARY KEY, parent int NOT NULL REFERENCES parent, m mood NOT NULL, p positive, tags text[] NOT NULL, c char(1) NOT NULL CHECK (c IN ('a', 'b')), email text NOT NULL UNIQUE, n int UNIQUE, v text)`,
				`INSERT INTO child SELECT g, 10 + g % 11, 'ok', g, ARRAY['x'], 'a', 'e' || g, g, '' FROM generate_series(1, 300) g`}},
		{"hostile names", `"a""; DROP TABLE x; --"."Tab""le ' $1"`,
			[]string{`CREATE SCHEMA "a""; DROP TABLE x; --"`,
				`CREATE TABLE "a""; DROP TABLE x; --"."Tab""le ' $1" ("I""d" int PRIMARY KEY, "select" text NOT NULL, "é; --" int)`,
				`INSERT INTO "a""; DROP TABLE x; --"."Tab""le ' $1" SELECT g, '', 1 FROM generate_series(1, 300) g`}},
		{"partitioned", "part", []string{`CREATE TABLE part (id int PRIMARY KEY, v text) PARTITION BY HASH (id)`,
			`CREATE TABLE part0 PARTITION OF part FOR VALUES WITH (MODULUS 2, REMAINDER 0)`,
			`CREATE TABLE part1 PARTITION OF part FOR VALUES WITH (MODULUS 2, REMAINDER 1)`,
			`INSERT INTO part SELECT g, 'x' FROM generate_series(1, 300) g`}},
		{"mixed case without quotes", "Mixed",
			[]string{`CREATE TABLE mixed (id int PRIMARY KEY, v text)`, `CREATE TABLE "Mixed" ("Id" int PRIMARY KEY, v text)`,
				`INSERT INTO "Mixed" SELECT g, 'x' FROM generate_series(1, 300) g`}},
		{"folded", "FOLDED", []string{`CREATE TABLE folded (id int PRIMARY KEY, v text)`,
			`INSERT INTO folded SELECT g, 'x' FROM generate_series(1, 300) g`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, h)
			b.exec(c.setup...)
			// Two rounds for each table, so that each distribution meets every second one.
			for _, keys := range []string{distributions[i%4], distributions[(i+2)%4]} {
				params := strings.Replace(everything, "{", `{"keys":"`+keys+`",`, 1)
				// The second round sees the table that the first one left.
				plan, err := b.plan(c.table, params, nil)
				if err != nil {
					t.Fatal(err)
				}
				seen := b.run(plan, params, 300)
				for kind, o := range seen {
					if kind == engine.KindInsert && o.rows != o.operations {
						t.Errorf("%s: %d of %d inserts took effect", keys, o.rows, o.operations)
					}
					if kind == engine.KindPointLookup && o.hits*10 < o.operations*8 {
						t.Errorf("%s: %d of %d lookups found a row", keys, o.hits, o.operations)
					}
					if kind == engine.KindRangeScan && o.rows < o.operations*3 {
						t.Errorf("%s: %d scans of 5 read %d rows", keys, o.operations, o.rows)
					}
				}
				if len(seen) < 4 {
					t.Errorf("%s: only %d kinds of operation were issued", keys, len(seen))
				}
			}
		})
	}
}

func TestSampleTable(t *testing.T) {
	t.Parallel()
	h := hosttest.Bundled(t)
	b := newBench(t, h)
	plan, err := b.plan("orders", `{}`, &engine.Prepare{Rows: 20_000, IfExists: engine.IfExistsUse})
	if err != nil {
		t.Fatal(err)
	}
	table := plan.Tables[0]
	if table.Rows != 20_000 || !table.Dense || *table.KeyMax != 20_000 {
		t.Errorf("the table is %+v", table)
	}
	first := b.run(plan, `{}`, 500)
	// What the inserts of a run leave behind them is still a dense table up to a point.
	plan, err = b.plan("orders", `{}`, &engine.Prepare{Rows: 20_000, IfExists: engine.IfExistsUse})
	if err != nil {
		t.Fatal(err)
	}
	table = plan.Tables[0]
	if table.Rows != 20_000+int64(first[engine.KindInsert].rows) || table.Dense || table.DenseMax == nil ||
		*table.DenseMax < 20_000 || table.KnownKeys != table.Rows || len(plan.Pools) != 1 ||
		len(plan.Pools[0].Rows) != 0 {
		t.Errorf("after %d inserts the table is %+v with %d pools", first[engine.KindInsert].rows, table, len(plan.Pools))
	}
	b.run(plan, `{}`, 500)
	if _, err = b.plan("orders", `{}`, &engine.Prepare{Rows: 10, IfExists: engine.IfExistsRecreate}); err != nil {
		t.Fatal(err)
	}
}

// TestLargeSparseTable reaches TABLESAMPLE and the part of a pool that fits.
func TestLargeSparseTable(t *testing.T) {
	t.Parallel()
	h := hosttest.Bundled(t)
	b := newBench(t, h)
	b.exec(`CREATE TABLE sparse (id bigint PRIMARY KEY, v text NOT NULL)`,
		`INSERT INTO sparse SELECT g * 97, 'x' FROM generate_series(1, 100000) g`,
		`CREATE TABLE wide (code text PRIMARY KEY, v int)`,
		`INSERT INTO wide SELECT repeat(md5(g::text), 10), g FROM generate_series(1, 10000) g`)
	for table, minimum := range map[string]int{"sparse": 5000, "wide": 1000} {
		plan, err := b.plan(table, everything, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.Pools) != 1 || len(plan.Pools[0].Rows) < minimum {
			t.Fatalf("%s: the pools are %d", table, len(plan.Pools))
		}
		doc, err := json.Marshal(plan.Pools[0].Rows)
		if err != nil || len(doc) > 1<<20 {
			t.Errorf("%s: the pool has %d bytes, %v", table, len(doc), err)
		}
		seen := b.run(plan, everything, 300)
		if o := seen[engine.KindPointLookup]; o == nil || o.hits*10 < o.operations*8 {
			t.Errorf("%s: lookups %+v", table, o)
		}
	}
}

func TestViews(t *testing.T) {
	t.Parallel()
	h := hosttest.Bundled(t)
	b := newBench(t, h)
	b.exec(`CREATE TABLE base (id int PRIMARY KEY, v text)`, `INSERT INTO base VALUES (1, 'x')`,
		`CREATE VIEW seen AS SELECT * FROM base`)
	if _, err := b.plan("seen", everything, nil); err == nil || !strings.Contains(err.Error(), "no primary key") {
		t.Errorf("a view: %v", err)
	}
	if _, err := b.plan("seen", everything, &engine.Prepare{Rows: 5, IfExists: engine.IfExistsRecreate}); err == nil ||
		!strings.Contains(err.Error(), "not dropped") {
		t.Errorf("recreating a view: %v", err)
	}
	plan, err := b.plan("seen", `{"weights":{"INSERT":1}}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Statements) != 1 {
		t.Errorf("the statements are %v", plan.Statements)
	}
}

func TestTablesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	h := hosttest.Bundled(t)
	b := newBench(t, h)
	b.exec(`CREATE TABLE nokey (v text)`, `INSERT INTO nokey VALUES ('x')`,
		`CREATE TABLE void (id int PRIMARY KEY, v text)`, `CREATE TABLE keyonly (id int PRIMARY KEY)`,
		`INSERT INTO keyonly VALUES (1)`,
		`CREATE TYPE mood AS ENUM ('sad', 'ok')`, `CREATE TABLE moods (id mood PRIMARY KEY, v text)`,
		`INSERT INTO moods VALUES ('ok', 'x')`,
		`CREATE TABLE secret (id int PRIMARY KEY, v text)`, `CREATE TABLE full_up (id smallint PRIMARY KEY, v text)`,
		`INSERT INTO full_up VALUES (32767, '')`)
	for _, c := range []struct{ table, params, want string }{
		{"missing", `{}`, "does not exist"},
		{"nokey", `{"weights":{"POINT_LOOKUP":1}}`, "no primary key"},
		{"void", `{"weights":{"UPDATE":1}}`, "is empty"},
		{"keyonly", `{"weights":{"UPDATE":1}}`, "weights.UPDATE to 0"},
		{"moods", `{"weights":{"INSERT":1}}`, `column "id"`},
		{"keyonly", `{"weights":{"POINT_LOOKUP":0}}`, "weights"},
		{"keyonly", `{"weights":{"POINT_LOOKUP":-1}}`, "POINT_LOOKUP"},
		{strings.Repeat("n", 64), `{}`, "63"},
		{`"open`, `{}`, "closing"},
		{"a.b.c", `{}`, "two parts"},
	} {
		_, err := b.plan(c.table, c.params, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: %v, expected an error with %q", c.table, c.params, err, c.want)
		}
	}
	// Lookups alone need neither a writable column nor room for keys.
	if _, err := b.plan("full_up", `{"weights":{"POINT_LOOKUP":1}}`, nil); err != nil {
		t.Errorf("lookups of a table with a full key column: %v", err)
	}
	if _, err := b.plan("full_up", `{"weights":{"INSERT":1,"POINT_LOOKUP":1}}`, nil); err == nil ||
		!strings.Contains(err.Error(), "which ends at 32767") {
		t.Errorf("a full key column: %v", err)
	}
}
