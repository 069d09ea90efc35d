package bundled_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/prepare"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
	"github.com/loadstone-db/loadstone/storage/embedded"
)

// scenario is a run of a workload with tables of its own.
func (b *bench) scenario(workload, params string, prep *engine.Prepare) engine.Scenario {
	return engine.Scenario{Name: "test", Workload: engine.Workload{Plugin: workload, Params: json.RawMessage(params), Seed: 7, ConcurrentConnections: 4},
		Target:  engine.Target{Connection: engine.ConnectionRef{Driver: "postgres", DSN: b.dsn}, Adapter: "postgres", Prepare: prep},
		Scaling: engine.Scaling{WorkerCount: 2}}
}

func (b *bench) prepare(sc engine.Scenario) (*prepare.Prepared, error) {
	deps := prepare.Deps{Plugins: b.host, Drivers: map[string]target.Driver{"postgres": postgres.NewDriver()}, Connections: inline{}}
	return prepare.Plan(context.Background(), deps, sc, nil)
}

// rows reads a small result as text.
func (b *bench) rows(sql string) [][]any {
	b.Helper()
	set, err := b.db.Query(context.Background(), sql)
	if err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
	return set.Rows
}

// pgbench runs pgbench on the database of b.
func (b *bench) pgbench(args ...string) string {
	b.Helper()
	bin, _, err := embedded.Find()
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "pgbench"), append(args, b.dsn)...).CombinedOutput()
	if err != nil {
		b.Fatalf("pgbench %v: %v\n%s", args, err, out)
	}
	return string(out)
}

const shapeOfTables = `SELECT c.relname::text, c.reloptions::text, a.attnum::text, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull::text,
 (SELECT string_agg(pg_get_constraintdef(k.oid), ',' ORDER BY 1) FROM pg_constraint k WHERE k.conrelid = c.oid),
 (SELECT string_agg(pg_get_indexdef(x.indexrelid), ',' ORDER BY 1) FROM pg_index x WHERE x.indrelid = c.oid)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relname LIKE 'pgbench%' AND c.relkind = 'r' ORDER BY 1, a.attnum`

// TestTpcbMakesTheTablesOfPgbench compares definitions and every row.
func TestTpcbMakesTheTablesOfPgbench(t *testing.T) {
	ours, theirs := newBench(t, hosttest.Bundled(t)), newBench(t, hosttest.Bundled(t))
	p, err := ours.prepare(ours.scenario("tpcb", `{"scale":2,"fillfactor":90}`, &engine.Prepare{IfExists: engine.IfExistsUse}))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Plan.Pools) != 0 || len(p.Plan.Tables) != 4 {
		t.Errorf("the plan has %d tables and %d pools", len(p.Plan.Tables), len(p.Plan.Pools))
	}
	theirs.pgbench("-i", "-q", "-s", "2", "-F", "90")
	queries := []string{shapeOfTables}
	for table, key := range map[string]string{"accounts": "aid", "tellers": "tid", "branches": "bid"} {
		queries = append(queries, fmt.Sprintf("SELECT count(*)::text, md5(string_agg(t::text, E'\\n' ORDER BY %s)) FROM pgbench_%s t", key, table))
	}
	for _, q := range append(queries, "SELECT count(*)::text FROM pgbench_history") {
		if a, b := ours.rows(q), theirs.rows(q); len(a) == 0 || !reflect.DeepEqual(a, b) {
			t.Errorf("%s\nours   %v\npgbench %v", q, a, b)
		}
	}
}

// TestTpcbTakesTheTablesOfPgbench: ours runs on what `pgbench -i` made, and says so when the scale differs.
func TestTpcbTakesTheTablesOfPgbench(t *testing.T) {
	b := newBench(t, hosttest.Bundled(t))
	b.pgbench("-i", "-q", "-s", "2")
	if _, err := b.prepare(b.scenario("tpcb", `{"scale":2}`, nil)); err != nil {
		t.Fatal(err)
	}
	_, err := b.prepare(b.scenario("tpcb", `{"scale":10}`, &engine.Prepare{IfExists: engine.IfExistsUse}))
	if err == nil || !strings.Contains(err.Error(), "has 20 rows, and scale 10 wants 100") {
		t.Errorf("another scale: %v", err)
	}
	b.exec("DROP TABLE pgbench_tellers")
	_, err = b.prepare(b.scenario("tpcb", `{"scale":2}`, &engine.Prepare{IfExists: engine.IfExistsUse}))
	if err == nil || !strings.Contains(err.Error(), "pgbench_tellers is missing") {
		t.Errorf("a missing table: %v", err)
	}
}
