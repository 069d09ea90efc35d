package bundled_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

// TestPostgresRights: a user without the rights that the weights ask for is told so before
// the load, with the GRANT; with the GRANT executed the run is prepared.
func TestPostgresRights(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	const user = `"Ann's"`
	as := b.dsn + ` role='Ann\'s'`
	b.exec("CREATE SCHEMA own", "CREATE SCHEMA closed", "CREATE TABLE own.orders (id bigint PRIMARY KEY, note text)",
		"INSERT INTO own.orders SELECT i, 'x' FROM generate_series(1, 100) i",
		"CREATE TABLE closed.orders (id bigint PRIMARY KEY, note text)", "INSERT INTO closed.orders VALUES (1, 'x')",
		"CREATE ROLE readers", "CREATE ROLE "+user+" IN ROLE readers",
		"GRANT USAGE ON SCHEMA own TO readers", "GRANT SELECT ON own.orders TO readers",
		"GRANT SELECT ON closed.orders TO readers")
	t.Cleanup(func() {
		b.exec("DROP OWNED BY readers", "DROP OWNED BY "+user+" CASCADE", "DROP ROLE "+user, "DROP ROLE readers")
	})
	scenario := func(table, weights string, exists engine.IfExists) engine.Scenario {
		sc := engine.Scenario{Name: "test",
			Workload: engine.Workload{Plugin: "mix", Params: json.RawMessage(`{"weights":{` + weights + `}}`), Seed: 7,
				ConcurrentConnections: 1},
			Target: engine.Target{Connection: engine.ConnectionRef{Driver: "postgres", DSN: as}, Adapter: "postgres",
				TableName: table, AllowWrites: true},
			Scaling: engine.Scaling{WorkerCount: 1}}
		if exists != "" {
			sc.Target.Prepare = &engine.Prepare{Rows: 10, IfExists: exists}
		}
		return sc
	}
	const writes = `"POINT_LOOKUP":1,"UPDATE":1,"DELETE":1`
	for _, c := range []struct {
		name, table, weights string
		ifExists             engine.IfExists
		outcome, words, fix  string
		field                string
		undo                 string
	}{
		{name: "reading, through a role", table: "own.orders", weights: `"POINT_LOOKUP":1`, outcome: "ok", words: "SELECT."},
		{name: "writing", table: "own.orders", weights: writes, outcome: "failed", words: "is not granted UPDATE, DELETE",
			fix: `GRANT UPDATE, DELETE ON TABLE "own"."orders" TO "Ann's"`, field: "target.table_name",
			undo: "REVOKE ALL ON own.orders FROM " + user},
		{name: "a schema that may not be used", table: "closed.orders", weights: `"POINT_LOOKUP":1`, outcome: "failed",
			words: "may not use the schema", fix: `GRANT USAGE ON SCHEMA "closed" TO "Ann's"`, field: "target.table_name"},
		{name: "making a table", table: "own.made", weights: writes, ifExists: engine.IfExistsUse, outcome: "failed",
			words: "may not make tables", fix: `GRANT CREATE ON SCHEMA "own" TO "Ann's"`, field: "target.prepare"},
		{name: "a schema that is not there", table: "nowhere.made", weights: writes, ifExists: engine.IfExistsUse,
			outcome: "failed", words: "no schema", fix: "CREATE SCHEMA", field: "target.table_name"},
		{name: "somebody else's table", table: "own.orders", weights: writes, ifExists: engine.IfExistsRecreate,
			outcome: "failed", words: "does not own", fix: "set if_exists: use", field: "target.prepare.if_exists"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sc := scenario(c.table, c.weights, c.ifExists)
			deps := prepare.Deps{Plugins: b.host, Drivers: map[string]target.Driver{"postgres": postgres.NewDriver()},
				Connections: inline{}}
			look := func() *prepare.Preflight {
				f, err := prepare.Inspect(context.Background(), deps, sc, true)
				if err != nil {
					t.Fatal(err)
				}
				return f
			}
			f := look()
			got := found(f, "privileges", c.outcome)
			if got == nil || !strings.Contains(got.Message, c.words) || !strings.HasPrefix(got.Fix, c.fix) ||
				got.Field != c.field || f.OK != (c.outcome == "ok") {
				t.Fatalf("%+v", f.Checks)
			}
			_, err := prepare.Plan(context.Background(), deps, sc, nil)
			if (err == nil) != f.OK || err != nil && !strings.Contains(err.Error(), got.Message) {
				t.Errorf("the preparation: %v", err)
			}
			if strings.HasPrefix(got.Fix, "GRANT") {
				b.exec(got.Fix)
				if f = look(); !f.OK {
					t.Errorf("after %s: %+v", got.Fix, f.Checks)
				}
				if _, err := prepare.Plan(context.Background(), deps, sc, nil); err != nil {
					t.Errorf("after %s: %v", got.Fix, err)
				}
			}
			if c.undo != "" {
				b.exec(c.undo)
			}
		})
	}
	deps := prepare.Deps{Plugins: b.host, Drivers: map[string]target.Driver{"postgres": postgres.NewDriver()},
		Connections: inline{}}
	// Rights on columns may be enough, and read-only transactions are not.
	b.exec("GRANT UPDATE (note) ON own.orders TO " + user)
	sc := scenario("own.orders", `"UPDATE":1`, "")
	if f, err := prepare.Inspect(context.Background(), deps, sc, true); err != nil || !f.OK ||
		found(f, "privileges", "warning") == nil ||
		!strings.Contains(found(f, "privileges", "warning").Message, "some columns") {
		t.Errorf("%+v, %v", f, err)
	}
	sc.Target.Connection.DSN += " default_transaction_read_only=on"
	if f, err := prepare.Inspect(context.Background(), deps, sc, true); err != nil || f.OK ||
		found(f, "privileges", "failed") == nil || !strings.Contains(found(f, "privileges", "failed").Message, "read only") {
		t.Errorf("%+v, %v", f, err)
	}
}
