package bundled_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

// scenario is a run of a workload with tables of its own.
func (b *bench) scenario(workload, params string, prep *engine.Prepare) engine.Scenario {
	return engine.Scenario{Name: "test",
		Workload: engine.Workload{Plugin: workload, Params: json.RawMessage(params), Seed: 7, ConcurrentConnections: 4},
		Target: engine.Target{Connection: engine.ConnectionRef{Driver: "postgres", DSN: b.dsn}, Adapter: "postgres",
			Prepare: prep, AllowWrites: true},
		Scaling: engine.Scaling{WorkerCount: 2}}
}

func (b *bench) prepare(sc engine.Scenario) (*prepare.Prepared, error) {
	deps := prepare.Deps{Plugins: b.host, Drivers: map[string]target.Driver{"postgres": postgres.NewDriver()},
		Connections: inline{}}
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
	out, err := pgbench(append(args, b.dsn)...)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

func pgbench(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	// It lies beside the server that it is for, whose address is the last argument.
	db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(args[len(args)-1])})
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }()
	bin, err := db.Query(ctx, "SELECT setting FROM pg_config WHERE name = 'BINDIR'")
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin.Rows[0][0].(string), "pgbench"), args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("pgbench %v: %w\n%s", args, err, out)
	}
	return string(out), err
}

const shapeOfTables = `SELECT c.relname::text, c.reloptions::text, a.attnum::text, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull::text,
 (SELECT string_agg(pg_get_constraintdef(k.oid), ',' ORDER BY 1) FROM pg_constraint k WHERE k.conrelid = c.oid),
 (SELECT string_agg(pg_get_indexdef(x.indexrelid), ',' ORDER BY 1) FROM pg_index x WHERE x.indrelid = c.oid)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relname LIKE 'pgbench%' AND c.relkind = 'r' ORDER BY 1, a.attnum`

// TestTpcbMakesTheTablesOfPgbench compares definitions and every row.
func TestTpcbMakesTheTablesOfPgbench(t *testing.T) {
	t.Parallel()
	ours, theirs := newBench(t, hosttest.Bundled(t)), newBench(t, hosttest.Bundled(t))
	p, err := ours.prepare(ours.scenario("tpcb", `{"scale":2,"fillfactor":90}`,
		&engine.Prepare{IfExists: engine.IfExistsUse}))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Plan.Pools) != 0 || len(p.Plan.Tables) != 4 {
		t.Errorf("the plan has %d tables and %d pools", len(p.Plan.Tables), len(p.Plan.Pools))
	}
	theirs.pgbench("-i", "-q", "-s", "2", "-F", "90")
	queries := []string{shapeOfTables}
	for table, key := range map[string]string{"accounts": "aid", "tellers": "tid", "branches": "bid"} {
		queries = append(queries, fmt.Sprintf("SELECT count(*)::text, md5(string_agg(t::text, E'\\n' ORDER BY %s)) FROM "+
			"pgbench_%s t", key, table))
	}
	for _, q := range append(queries, "SELECT count(*)::text FROM pgbench_history") {
		if a, b := ours.rows(q), theirs.rows(q); len(a) == 0 || !reflect.DeepEqual(a, b) {
			t.Errorf("%s\nours   %v\npgbench %v", q, a, b)
		}
	}
}

// TestTpcbTakesTheTablesOfPgbench: ours runs on what `pgbench -i` made, and says so when the scale differs.
func TestTpcbTakesTheTablesOfPgbench(t *testing.T) {
	t.Parallel()
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

// balanced checks the invariants of the bank, of all and of each account, and the number of transactions.
func (b *bench) balanced(transactions int) {
	b.Helper()
	sums := b.rows(`SELECT (SELECT sum(abalance) FROM pgbench_accounts)::text, (SELECT sum(tbalance) FROM pgbench_tellers)::text,
 (SELECT sum(bbalance) FROM pgbench_branches)::text, (SELECT sum(delta) FROM pgbench_history)::text, (SELECT count(*) FROM pgbench_history)::text`)[0]
	if sums[0] != sums[1] || sums[1] != sums[2] || sums[2] != sums[3] || sums[4] != fmt.Sprint(transactions) {
		b.Errorf("accounts, tellers, branches and history hold %v, with %d transactions", sums, transactions)
	}
	for _, c := range []struct{ table, id, balance string }{{"accounts", "aid", "abalance"},
		{"tellers", "tid", "tbalance"}, {"branches", "bid", "bbalance"}} {
		wrong := b.rows(fmt.Sprintf(
			`SELECT count(*)::text FROM pgbench_%s AS t LEFT JOIN (SELECT %s AS id, sum(delta) AS s FROM pgbench_history GROUP BY 1) AS h ON h.id = t.%[2]s WHERE t.%[3]s <> coalesce(s, 0)`,
			c.table,
			c.id,
			c.balance,
		))
		if wrong[0][0] != "0" {
			b.Errorf("%v %s have another balance than their history", wrong[0][0], c.table)
		}
	}
}

var processed = regexp.MustCompile(`transactions actually processed: (\d+)`)

// pgbenchFor runs pgbench's own script on the tables as they are, and returns how many transactions it made.
func pgbenchFor(dsn, seconds string) (int, error) {
	out, err := pgbench("-n", "-c", "4", "-T", seconds, dsn)
	if err != nil {
		return 0, err
	}
	found := processed.FindStringSubmatch(out)
	if found == nil || found[1] == "0" {
		return 0, fmt.Errorf("pgbench made no transactions: %s", out)
	}
	return strconv.Atoi(found[1])
}

// TestTpcbAndPgbenchOnOneDatabase: whoever made the tables, and whoever works on
// them, one after the other or both at once, the sums of all balances stay equal.
func TestTpcbAndPgbenchOnOneDatabase(t *testing.T) {
	t.Parallel()
	h := hosttest.Bundled(t)
	for _, maker := range []string{"ours", "pgbench"} {
		t.Run("tables of "+maker, func(t *testing.T) {
			b := newBench(t, h)
			sc := b.scenario("tpcb", `{"scale":2}`, &engine.Prepare{IfExists: engine.IfExistsUse})
			if maker == "pgbench" {
				b.pgbench("-i", "-q", "-s", "2")
				sc.Target.Prepare = nil
			}
			p, err := b.prepare(sc)
			if err != nil {
				t.Fatal(err)
			}
			all := b.load(sc, p, 2, time.Second).committed["tpcb_like"]
			if all == 0 {
				t.Fatal("no transaction was made")
			}
			b.balanced(all)
			theirs, err := pgbenchFor(b.dsn, "1")
			if err != nil {
				t.Fatal(err)
			}
			all += theirs
			b.balanced(all)
			atOnce := make(chan error)
			go func() {
				theirs, err = pgbenchFor(b.dsn, "2")
				atOnce <- err
			}()
			all += b.load(sc, p, 1, 2*time.Second).committed["tpcb_like"]
			if err := <-atOnce; err != nil {
				t.Fatal(err)
			}
			all += theirs
			b.balanced(all)
			// The other scripts run on the same tables.
			for script, name := range map[string]string{"select-only": "select_balance", "simple-update": "simple_update"} {
				sc.Workload.Params = json.RawMessage(`{"scale":2,"script":"` + script + `"}`)
				if p, err = b.prepare(sc); err != nil {
					t.Fatal(err)
				}
				if n := b.load(sc, p, 1, 300*time.Millisecond).committed[name]; n == 0 {
					t.Errorf("%s made no transaction", script)
				}
			}
		})
	}
}
