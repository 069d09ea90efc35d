package bundled_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

func usertable(rows int64) engine.Table {
	t := engine.Table{Name: "usertable", PhysicalName: "public.usertable", Key: []string{"ycsb_key"}, Rows: rows,
		RowsExact: true,
		Columns: []engine.Column{{Name: "ycsb_key", Type: engine.TypeText, DBType: "character varying(255)",
			MaxLength: 255}}}
	for i := range 10 {
		t.Columns = append(t.Columns,
			engine.Column{Name: fmt.Sprint("field", i), Type: engine.TypeText, DBType: "text", Nullable: true})
	}
	return t
}

// openWorkload opens a stream of a bundled plugin, with the list an adapter would have made.
func openWorkload(t testing.TB, name, params string, tables ...engine.Table) (plugin.Stream, []plugin.Statement) {
	t.Helper()
	ctx := context.Background()
	w, err := hosttest.Bundled(t).Workload(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	list, err := w.Statements(ctx, json.RawMessage(params), tables)
	if err != nil {
		t.Fatal(err)
	}
	var frozen []engine.Statement
	for _, s := range list {
		frozen = append(frozen, engine.Statement{ID: s.ID, Kind: s.Kind, Table: s.Table, SQL: "SELECT 1", Binds: s.Binds,
			Columns: s.Columns, Writes: s.Writes})
	}
	s, err := w.Open(ctx, plugin.OpenRequest{Seed: 42, KeySlots: 4, Params: json.RawMessage(params), Tables: tables},
		frozen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, list
}

// TestYCSBKeyFrequencies compares the stream of the compiled plugin with the
// published distribution: the hottest keys of 1000 records and their shares, from
// a re-implementation of YCSB's generators in Java that integrates each rank.
func TestYCSBKeyFrequencies(t *testing.T) {
	t.Parallel()
	hottest := []struct {
		key   string
		share float64
	}{
		{"user1573987489603120213", 0.038609}, {"user5817347222824138717", 0.019955}, {"user4153387984724034032", 0.016034},
		{"user6862728708791239180", 0.011663}, {"user2408371864701034737", 0.009337}, {"user3826167545672061242", 0.007784},
		{"user4177720500626811450", 0.006594}, {"user8421080233847829954", 0.005841}, {"user774209600252957482", 0.005338},
		{"user5942382954533320482", 0.004933}, {"user7827613273347585481", 0.004375}, {"user3916938436927789779", 0.004232},
	}
	const draws = 1_000_000
	s, list := openWorkload(t, "ycsb", `{"workload":"A"}`, usertable(1000))
	count := map[string]int{}
	var b plugin.Batch
	reads := 0
	for n := 0; n < draws; n += len(b.Ops) {
		if err := s.Fill(&b, 128); err != nil {
			t.Fatal(err)
		}
		for _, op := range b.Ops {
			args := b.Args[op.FirstArg : op.FirstArg+uint32(op.NArgs)]
			count[string(b.Bytes(args[len(args)-1]))]++
			if list[op.Statement].Kind == engine.KindPointLookup {
				reads++
			}
		}
	}
	total := 0
	for _, n := range count {
		total += n
	}
	if share := float64(reads) / float64(total); math.Abs(share-0.5) > 0.003 {
		t.Errorf("%.4f of the operations are reads, expected a half", share)
	}
	if len(count) != 1000 {
		t.Errorf("%d keys, expected all 1000", len(count))
	}
	// Pearson's statistic over the hottest keys and the rest: 12 degrees of
	// freedom, of which one in ten thousand exceeds 39.1.
	chi, rest, restShare := 0.0, total, 1.0
	for _, h := range hottest {
		want := h.share * float64(total)
		got := float64(count[h.key])
		chi += (got - want) * (got - want) / want
		rest -= count[h.key]
		restShare -= h.share
		if math.Abs(got/want-1) > 0.06 {
			t.Errorf("%s has %.5f of the operations, expected %.5f", h.key, got/float64(total), h.share)
		}
	}
	want := restShare * float64(total)
	if chi += (float64(rest) - want) * (float64(rest) - want) / want; chi > 39.1 {
		t.Errorf("chi square is %.1f", chi)
	}
	named := map[string]bool{}
	for _, h := range hottest {
		named[h.key] = true
	}
	for key, n := range count {
		if !named[key] && n > count[hottest[11].key]*11/10 {
			t.Errorf("%s has %d operations and is none of the hottest keys", key, n)
		}
	}
}

// TestYCSBOnPostgres executes every core workload on a table that Loadstone made,
// and then on one that YCSB's JDBC binding would have made.
func TestYCSBOnPostgres(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	plan := func(params string, prep *engine.Prepare) *engine.Plan {
		t.Helper()
		p, err := b.planOf("ycsb", "usertable", params, prep)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, workload := range []string{"A", "B", "C", "D", "E", "F"} {
		params := fmt.Sprintf(`{"workload":%q,"record_count":2000}`, workload)
		rows := b.run(plan(params, &engine.Prepare{Rows: 2000, IfExists: engine.IfExistsUse}), params, 600)
		for kind, r := range rows {
			if kind == engine.KindPointLookup && r.rows != r.operations {
				t.Errorf("workload %s: %d reads found %d records", workload, r.operations, r.rows)
			}
			if kind == engine.KindUpdate && r.rows != r.operations {
				t.Errorf("workload %s: %d updates changed %d records", workload, r.operations, r.rows)
			}
			if kind == engine.KindRangeScan && r.rows < 20*r.operations {
				t.Errorf("workload %s: %d scans read %d records", workload, r.operations, r.rows)
			}
		}
	}
	b.exec(`DROP TABLE usertable`,
		`CREATE TABLE usertable (YCSB_KEY VARCHAR(255) PRIMARY KEY, FIELD0 TEXT, FIELD1 TEXT, FIELD2 TEXT)`,
		`INSERT INTO usertable SELECT 'user' || to_char(i, 'FM00000000'), 'a', 'b', 'c' FROM generate_series(0, 99) i`)
	const params = `{"workload":"A","insert_order":"ordered","zero_padding":8}`
	rows := b.run(plan(params, nil), params, 300)
	if r := rows[engine.KindPointLookup]; r.rows != r.operations || r.operations == 0 {
		t.Errorf("on YCSB's own table %d reads found %d records", r.operations, r.rows)
	}
}

// TestYCSBFindsWhatEarlierRunsInserted: numbers of records that runs have inserted are known to nobody.
func TestYCSBFindsWhatEarlierRunsInserted(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	prep := &engine.Prepare{Rows: 2000, IfExists: engine.IfExistsUse}
	for _, order := range []string{"hashed", "ordered"} {
		b.exec(`DROP TABLE IF EXISTS usertable`)
		for i, workload := range []string{"D", "D", "A", "C", "E", "F"} {
			params := fmt.Sprintf(`{"workload":%q,"insert_order":%q,"proportions":{}}`, workload, order)
			if i < 2 { // half of them are new
				params = fmt.Sprintf(`{"workload":"custom","request_distribution":"latest","insert_order":%q,
"proportions":{"read":1,"insert":1}}`, order)
			}
			p, err := b.planOf("ycsb", "usertable", params, prep)
			if err != nil {
				t.Fatal(err)
			}
			for kind, o := range b.run(p, params, 1500) {
				if missed := o.operations - o.hits; missed*100 > o.operations {
					t.Errorf("%s, workload %s, run %d: %d of %d operations of kind %s met no row", order, workload, i+1, missed,
						o.operations, kind)
				}
			}
		}
		if n := b.value(`SELECT count(*) FROM usertable`).(int64); n < 3000 {
			t.Errorf("%d records: the runs have inserted next to nothing", n)
		}
	}
}

func BenchmarkYCSB(b *testing.B) {
	for _, workload := range []string{"A", "B", "C", "D", "E", "F"} {
		b.Run(workload, func(b *testing.B) {
			s, _ := openWorkload(b, "ycsb", fmt.Sprintf(`{"workload":%q}`, workload), usertable(1_000_000))
			fill(b, s)
		})
	}
}

// fill measures a stream in batches of 128, warmed up.
func fill(b *testing.B, s plugin.Stream) {
	b.Helper()
	var batch plugin.Batch
	for range 100 {
		if err := s.Fill(&batch, 128); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += len(batch.Ops) {
		if err := s.Fill(&batch, 128); err != nil {
			b.Fatal(err)
		}
	}
}

// eachAfterEach is an order in which every one of n follows every one, itself too: a walk along all edges.
func eachAfterEach(n int) []int {
	left := make([][]int, n)
	for i := range left {
		for j := range n {
			left[i] = append(left[i], j)
		}
	}
	var walk []int
	var from func(i int)
	from = func(i int) {
		for len(left[i]) > 0 {
			next := left[i][len(left[i])-1]
			left[i] = left[i][:len(left[i])-1]
			from(next)
		}
		walk = append(walk, i)
	}
	from(0)
	return walk
}

// TestEveryWorkloadAfterEveryOther: whichever runs have used a table before, at most one operation in a hundred meets no
// row, of each kind that looks for rows.
func TestEveryWorkloadAfterEveryOther(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make check-ci: it takes a minute")
	}
	for name, c := range map[string]struct {
		plugin, table string
		params        []string
		prep          *engine.Prepare
		operations    int
	}{
		"hashed": {"ycsb", "usertable", ycsbParams("hashed"), &engine.Prepare{Rows: 500, IfExists: engine.IfExistsUse}, 300},
		"ordered": {"ycsb", "usertable", ycsbParams("ordered"), &engine.Prepare{Rows: 500, IfExists: engine.IfExistsUse},
			300},
		"tpcb": {"tpcb", "", []string{`{"script":"tpcb-like"}`, `{"script":"simple-update"}`, `{"script":"select-only"}`},
			&engine.Prepare{IfExists: engine.IfExistsUse}, 300},
		"tpcc": {"tpcc", "tpcc_", []string{`{"items":200,"customers_per_district":30}`}, &engine.Prepare{
			IfExists: engine.IfExistsUse}, 2000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, hosttest.Bundled(t))
			for run, i := range eachAfterEach(len(c.params)) {
				p, err := b.planOf(c.plugin, c.table, c.params[i], c.prep)
				if err != nil {
					t.Fatal(err)
				}
				for kind, o := range b.run(p, c.params[i], c.operations) {
					if kind == engine.KindGenericSQL || c.plugin == "tpcc" && kind == engine.KindDelete {
						continue // they need not find rows
					}
					if missed := o.operations - o.hits; missed*100 > o.operations {
						t.Errorf("run %d, %s: %d of %d operations of kind %s met no row", run+1, c.params[i], missed, o.operations, kind)
					}
				}
			}
		})
	}
}

func ycsbParams(order string) []string {
	var list []string
	for _, workload := range []string{"A", "B", "C", "D", "E", "F"} {
		list = append(list, fmt.Sprintf(`{"workload":%q,"insert_order":%q}`, workload, order))
	}
	return list
}
