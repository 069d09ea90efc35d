package bundled_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

// keyTables have keys that are not integers without gaps.
var keyTables = map[string]string{
	"by_uuid":      `CREATE TABLE by_uuid AS SELECT md5(g::text)::uuid AS id, g AS v FROM generate_series(1, %[1]d) g; ALTER TABLE by_uuid ADD PRIMARY KEY (id)`,
	"by_text":      `CREATE TABLE by_text AS SELECT 'c-' || md5(g::text) AS code, g AS v FROM generate_series(1, %[1]d) g; ALTER TABLE by_text ADD PRIMARY KEY (code)`,
	"by_two":       `CREATE TABLE by_two AS SELECT g %% 1000 AS a, 'n' || g AS b, g AS v FROM generate_series(1, %[1]d) g; ALTER TABLE by_two ADD PRIMARY KEY (a, b)`,
	"by_gaps":      `CREATE TABLE by_gaps AS SELECT g::bigint * 97 AS id, g AS v FROM generate_series(1, %[1]d) g; ALTER TABLE by_gaps ADD PRIMARY KEY (id)`,
	"by_float":     `CREATE TABLE by_float AS SELECT g / 3.0::float8 AS id, g AS v FROM generate_series(1, %[1]d) g; ALTER TABLE by_float ADD PRIMARY KEY (id)`,
	"by_timestamp": `CREATE TABLE by_timestamp AS SELECT timestamptz '2024-01-01' + g * interval '1.000001 s' AS at, g AS v FROM generate_series(1, %[1]d) g; ALTER TABLE by_timestamp ADD PRIMARY KEY (at)`,
}

// onTable is a run of a workload on a table that is there.
func (b *bench) onTable(workload, params, table string) engine.Scenario {
	sc := b.scenario(workload, params, nil)
	sc.Target.TableName = table
	return sc
}

// interleaved executes operations of some run workers, batch by batch in turn on one connection.
func (b *bench) interleaved(p *prepare.Prepared, workers, operations int) map[engine.Kind]*outcome {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w, err := b.host.Workload(ctx, p.Plan.Workload.SHA256)
	if err != nil {
		b.Fatal(err)
	}
	conn, err := b.db.Connect(ctx, p.Plan.Statements)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	var streams []plugin.Stream
	for slot := range workers {
		s, err := w.Open(ctx, plugin.OpenRequest{Seed: 7, KeySlot: slot, KeySlots: p.Plan.KeySlots, Params: p.Params,
			Tables: p.Plan.Tables, Pools: p.Plan.Pools}, p.Plan.Statements)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		streams = append(streams, s)
	}
	seen := map[engine.Kind]*outcome{}
	var batch plugin.Batch
	for done := 0; done < operations; {
		s := streams[done/64%workers]
		if err := s.Fill(&batch, 64); err != nil {
			b.Fatal(err)
		}
		for _, op := range batch.Ops {
			st := p.Plan.Statements[op.Statement]
			if seen[st.Kind] == nil {
				seen[st.Kind] = &outcome{}
			}
			var res target.Result
			if err := conn.Exec(ctx, &batch, op, &res); err != nil {
				b.Fatalf("%s: %v", st.SQL, err)
			}
			seen[st.Kind].operations++
			if res.Rows > 0 {
				seen[st.Kind].hits++
			}
			done++
		}
	}
	return seen
}

// touched draws lookups as some run workers do, and counts the distinct keys.
func (b *bench) touched(p *prepare.Prepared, workers, operations int) int {
	b.Helper()
	w, err := b.host.Workload(context.Background(), p.Plan.Workload.SHA256)
	if err != nil {
		b.Fatal(err)
	}
	keys := map[string]bool{}
	for slot := range workers {
		s, err := w.Open(context.Background(), plugin.OpenRequest{Seed: 7, KeySlot: slot, KeySlots: p.Plan.KeySlots,
			Params: p.Params, Tables: p.Plan.Tables, Pools: p.Plan.Pools}, p.Plan.Statements)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		var batch plugin.Batch
		for done := 0; done < operations/workers; done += len(batch.Ops) {
			if err := s.Fill(&batch, min(512, operations/workers-done)); err != nil {
				b.Fatal(err)
			}
			for _, op := range batch.Ops {
				var id strings.Builder
				for _, v := range batch.Args[op.FirstArg : op.FirstArg+uint32(op.NArgs)] {
					fmt.Fprint(&id, v.Type, v.I, v.F, string(batch.Bytes(v)), "\x00")
				}
				keys[id.String()] = true
			}
		}
	}
	return len(keys)
}

// reachesAll checks that uniform lookups touch N·(1−e^(−ops/N)) keys of each table, and find them.
func reachesAll(t *testing.T, rows int) {
	b := newBench(t, hosttest.Bundled(t))
	const params = `{"weights":{"POINT_LOOKUP":1}}`
	for table, ddl := range keyTables {
		if testing.Short() && table != "by_uuid" && table != "by_text" && table != "by_two" {
			continue
		}
		b.exec(strings.Split(fmt.Sprintf(ddl, rows), "; ")...)
		b.exec("ANALYZE " + table)
		for _, workload := range []string{"mix", "sql"} {
			if workload == "sql" && table != "by_two" && testing.Short() {
				continue
			}
			params := params
			if workload == "sql" {
				columns := strings.Split(
					fmt.Sprint(b.value(`SELECT string_agg(a.attname, ',' ORDER BY a.attnum) FROM pg_index i JOIN
 pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) WHERE i.indrelid = '`+table+`'::regclass`)),
					",",
				)
				var where, binds []string
				for _, c := range columns {
					where = append(where, fmt.Sprintf("%s = :%s", c, c))
					binds = append(binds, fmt.Sprintf(`{"name":%q,"generator":"row","column":%q}`, c, c))
				}
				params = fmt.Sprintf(
					`{"statements":[{"id":"one","kind":"POINT_LOOKUP","sql":"SELECT * FROM {table} WHERE %s","binds":[%s]}]}`,
					strings.Join(where, " AND "),
					strings.Join(binds, ","),
				)
			}
			p, err := b.ready(b.onTable(workload, params, table))
			if err != nil {
				t.Fatal(err)
			}
			if n := p.Plan.Tables[0].KnownKeys; n != int64(rows) {
				t.Errorf("%s, %s: the plan knows %d keys of %d", workload, table, n, rows)
			}
			keys := p.Plan.Pools[0].Keys
			t.Logf("%s: %d keys take %d bytes, %.1f each", table, keys.Len(), keys.Bytes(),
				float64(keys.Bytes())/float64(keys.Len()))
			operations := 2 * rows
			got, want := b.touched(p, 2, operations), float64(rows)*(1-math.Exp(-2))
			if math.Abs(float64(got)-want) > 0.01*want {
				t.Errorf("%s, %s: %d lookups touched %d keys, and %.0f were to be expected", workload, table, operations, got,
					want)
			}
			if o := b.run(p.Plan, string(p.Params), 200)[engine.KindPointLookup]; o == nil || o.hits != o.operations {
				t.Errorf("%s, %s: the lookups found %+v", workload, table, o)
			}
		}
	}
}

func TestKeysReachTheWholeTable(t *testing.T) {
	t.Parallel()
	reachesAll(t, 24_000)
}

func TestKeysReachTheWholeOfALargeTable(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("tables of 200 000 rows")
	}
	reachesAll(t, 200_000)
}

// TestAKeySampleIsSpreadOverTheTable takes fewer keys than there are rows: from as many blocks as it can, and the run
// says how many.
func TestAKeySampleIsSpreadOverTheTable(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec(`CREATE TABLE spread (id uuid PRIMARY KEY, v text)`,
		`INSERT INTO spread SELECT md5(g::text)::uuid, repeat('x', 200) FROM generate_series(1, 40000) g`, `ANALYZE spread`,
		`CREATE VIEW seen AS SELECT * FROM spread`)
	blocks := b.value(`SELECT pg_relation_size('spread') / 8192`).(int64)
	for table, adapter := range map[string]string{"spread": `{"key_sample":2000}`, "seen": `{"key_sample":2000,"key":["id"]}`} {
		sc := b.onTable("mix", `{"weights":{"POINT_LOOKUP":1}}`, table)
		sc.Target.Params = json.RawMessage(adapter)
		p, err := b.ready(sc)
		if err != nil {
			t.Fatal(err)
		}
		keys := p.Plan.Pools[0].Keys
		if n := p.Plan.Tables[0].KnownKeys; n < 1600 || n > 2000 || int(n) != keys.Len() {
			t.Errorf("%s: %d keys, %d are packed", table, n, keys.Len())
		}
		said := fmt.Sprintf("Operations choose among %d keys of the 40000 rows of the table %s", keys.Len(), table)
		if !strings.Contains(strings.Join(p.Remarks, "\n"), said) {
			t.Errorf("%s: the remarks are %q", table, p.Remarks)
		}
		var list []string
		for i := range keys.Len() {
			list = append(list, "'"+string(keys.AppendText(nil, 0, i))+"'")
		}
		hit := b.value(`SELECT count(DISTINCT (ctid::text::point)[0]) FROM spread WHERE id IN (` + strings.Join(list, ",") +
			`)`).(int64)
		// 2000 keys thrown on so many blocks at random.
		if want := float64(blocks) * (1 - math.Exp(-float64(keys.Len())/float64(blocks))); float64(hit) < 0.9*want {
			t.Errorf("%s: the keys lie in %d of %d blocks, and %.0f were to be expected", table, hit, blocks, want)
		}
	}
}

// TestExtraFloatDigitsLoseNoKey: the connection writes floats with fewer digits than they have.
func TestExtraFloatDigitsLoseNoKey(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec(strings.Split(fmt.Sprintf(keyTables["by_float"], 3000), "; ")...)
	b.exec(
		`CREATE TABLE by_real (id real PRIMARY KEY, v int)`,
		`INSERT INTO by_real SELECT g / 7.0, g FROM generate_series(1, 3000) g`,
	)
	name := b.value(`SELECT current_database()`).(string)
	b.exec(`ALTER DATABASE "` + name + `" SET extra_float_digits = -2`)
	for _, table := range []string{"by_float", "by_real"} {
		p, err := b.ready(b.onTable("mix", `{"weights":{"POINT_LOOKUP":1}}`, table))
		if err != nil {
			t.Fatal(err)
		}
		if o := b.run(p.Plan, string(p.Params), 500)[engine.KindPointLookup]; o.hits != o.operations {
			t.Errorf("%s: %d of %d lookups found their row", table, o.hits, o.operations)
		}
	}
}

// TestLookupsBesideDeletes: rows that were deleted are not asked for.
func TestLookupsBesideDeletes(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	for _, keys := range []string{"uniform", "zipfian", "latest", "sequential"} {
		for table, ddl := range map[string]string{
			"known":  `(id bigint PRIMARY KEY, v text NOT NULL)`,
			"given":  `(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text NOT NULL)`,
			"sparse": `(id text PRIMARY KEY DEFAULT gen_random_uuid()::text, v text NOT NULL)`,
		} {
			if testing.Short() && keys != "zipfian" && table != "sparse" {
				continue
			}
			table += "_" + keys
			b.exec(`CREATE TABLE ` + table + ` ` + ddl)
			columns, values := `(v)`, `'x'`
			if strings.HasPrefix(table, "known") {
				columns, values = `(id, v)`, `g, 'x'`
			}
			b.exec(`INSERT INTO `+table+` `+columns+` SELECT `+values+` FROM generate_series(1, 3000) g`, `ANALYZE `+table)
			sc := b.onTable("mix", `{"keys":"`+keys+`","weights":{"POINT_LOOKUP":70,"INSERT":20,"DELETE":10}}`, table)
			sc.Scaling.WorkerCount = 3
			p, err := b.ready(sc)
			if err != nil {
				t.Fatal(err)
			}
			sink := b.interleaved(p, 3, 3000)
			lookups, deletes := sink[engine.KindPointLookup], sink[engine.KindDelete]
			if lookups.operations < 1000 || deletes.operations < 100 {
				t.Fatalf("%s: %+v lookups, %+v deletes", table, lookups, deletes)
			}
			if missed := lookups.operations - lookups.hits; missed*100 > lookups.operations {
				t.Errorf("%s: %d of %d lookups found nothing", table, missed, lookups.operations)
			}
			if missed := deletes.operations - deletes.hits; missed*100 > deletes.operations {
				t.Errorf("%s: %d of %d deletes found nothing", table, missed, deletes.operations)
			}
		}
	}
}

// TestSnowflakeKeysReachTheWholeTable reads all keys, or as many as are asked for from all over the table.
func TestSnowflakeKeysReachTheWholeTable(t *testing.T) {
	t.Parallel()
	s := newSnow(t)
	s.exec(`CREATE TABLE BY_TWO (A VARCHAR NOT NULL, B NUMBER(38,0) NOT NULL, V NUMBER(38,0), PRIMARY KEY (A, B))`,
		`INSERT INTO BY_TWO SELECT 'k' || MOD(SEQ8(), 100), SEQ8(), 1 FROM TABLE(GENERATOR(ROWCOUNT => 22000))`)
	sc := s.scenario("snowflake_standard", "mix", "BY_TWO", `{"weights":{"POINT_LOOKUP":1}}`, nil)
	p := s.prepare(sc)
	if k := p.Plan.Pools[0].Keys; p.Plan.Tables[0].KnownKeys != 22_000 || k.Len() != 22_000 {
		t.Errorf("%d keys are known of %d rows", p.Plan.Tables[0].KnownKeys, p.Plan.Tables[0].Rows)
	}
	if total := s.load(sc, p, 200*time.Millisecond); total.committed["point_lookup"] == 0 {
		t.Errorf("%v", total.committed)
	}
	sc.Target.Params = json.RawMessage(`{"key_sample":2000}`)
	p = s.prepare(sc)
	keys := p.Plan.Pools[0].Keys
	if keys.Len() < 1500 || keys.Len() > 2000 ||
		!strings.Contains(strings.Join(p.Remarks, "\n"), fmt.Sprintf("among %d keys of the 22000 rows", keys.Len())) {
		t.Errorf("%d keys, %q", keys.Len(), p.Remarks)
	}
	parts := map[uint64]bool{}
	for i := range keys.Len() {
		parts[keys.Number(1, i)/1000] = true
	}
	if len(parts) != 22 {
		t.Errorf("the keys are of %d of 22 parts of the table", len(parts))
	}
}
