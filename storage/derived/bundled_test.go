package derived_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/storage/derived"
	"github.com/loadstone-db/loadstone/storage/derived/derivedtest"
)

// drawn is a run whose executions are drawn: some are warm-up, fail, are inside transactions or alone in their second,
// of any length from 50 µs to two minutes.
func drawn(rng *rand.Rand, i int) derivedtest.Run {
	start := noon.Add(time.Duration(i) * time.Hour).Add(time.Duration(rng.IntN(1e9)))
	r := derivedtest.Run{Adapter: []string{"postgres", "snowflake_hybrid"}[i%2], Run: engine.Run{
		RunID: fmt.Sprintf("run %d of O'Brien", i), RunName: "drawn", Status: engine.StatusCompleted,
		StartTime: engine.At(start), EndTime: engine.At(start.Add(30 * time.Second)), CreatedBy: "somebody",
		Scenario: engine.Scenario{TemplateName: []string{"nightly", "hourly", ""}[i%5%3], Tags: map[string]string{"n": "1"}}}}
	texts := []string{"TIMEOUT", "CONFLICT", "57014"}
	for range rng.IntN(200) * (i % 5) {
		e := derivedtest.Execution{DueAt: start.Add(time.Duration(rng.IntN(20e9))).UnixNano(),
			ElapsedMs: float64(int64(5e4*math.Exp(rng.Float64()*14))) / 1e6, Rows: int32(rng.IntN(5)),
			Warmup: rng.IntN(4) == 0, Success: rng.IntN(5) > 0, Kind: []string{"POINT_LOOKUP", "INSERT"}[rng.IntN(2)],
			Statement: []string{"", "a \"b\"", "c"}[rng.IntN(3)], Worker: fmt.Sprintf("worker-%d", rng.IntN(3))}
		if rng.IntN(4) == 0 {
			e.Position = int32(1 + rng.IntN(3))
		}
		if !e.Success {
			e.Class = &texts[rng.IntN(2)]
			if rng.IntN(2) == 0 {
				e.Code = &texts[2]
			}
		}
		r.Executions = append(r.Executions, e)
	}
	if i%3 > 0 {
		for at := rng.Float64() * 6; at < 40; at += 1 + rng.Float64()*8 {
			r.Warehouse = append(r.Warehouse, engine.WarehousePoint{ElapsedSeconds: at,
				Timestamp: engine.At(start.Add(time.Duration(at * 1e9))), Warehouse: engine.Warehouse{Name: "W", State: "STARTED",
					Type: "STANDARD", Size: "X-Small", Generation: "2", StartedClusters: new(1 + rng.IntN(3)), MinClusterCount: new(1),
					MaxClusterCount: new(4), Running: rng.IntN(9), Queued: rng.IntN(9)}})
			if i%4 == 1 { // an edition without clusters
				w := &r.Warehouse[len(r.Warehouse)-1]
				w.StartedClusters, w.MinClusterCount, w.MaxClusterCount = nil, nil, nil
			}
		}
	}
	if i%6 < 5 { // of a run that crashed nothing more is known
		r.Summary = summed(r, []string{"VALID", "DEGRADED"}[i%7/6])
	}
	return r
}

// summed are the figures of a run, which are no subject here.
func summed(r derivedtest.Run, verdict string) *engine.Summary {
	s := &engine.Summary{Verdict: verdict, Simulated: len(r.RunID)%2 == 0}
	s.Reads, s.DurationSeconds = 5, 20
	var ms []float64
	var sum float64
	for _, e := range r.Executions {
		if e.Position == 0 && !e.Warmup {
			ms, sum = append(ms, e.ElapsedMs), sum+e.ElapsedMs
			if !e.Success {
				s.Errors.Count++
			}
		}
	}
	slices.Sort(ms)
	s.Operations = int64(len(ms))
	s.QPS = new(float64(len(ms)) / 20)
	if len(ms) > 0 {
		q := func(q float64) float64 {
			rank := q * float64(len(ms)-1)
			i := int(rank)
			return ms[i]*(1-rank+float64(i)) + ms[min(i+1, len(ms)-1)]*(rank-float64(i))
		}
		s.LatencyMs = &engine.LatencyMs{P50: q(0.5), P95: q(0.95), P99: q(0.99), Max: ms[len(ms)-1],
			Avg: sum / float64(len(ms))}
	}
	if good := s.Operations - s.Errors.Count; good > 0 && len(r.Warehouse) > 0 {
		each := 0.01 / float64(good) * 1e6
		s.Cost = &engine.Cost{Warehouse: "W", WarehouseSize: "X-Small", Credits: 0.005, Price: 0.01, Currency: "USD",
			PricePerMillion: &each}
	}
	return s
}

// batch are the executions of a run as a part gives them.
func batch(r derivedtest.Run) *rollup.Batch {
	b := &rollup.Batch{}
	text := func(c *record.Texts, s *string) {
		if s == nil {
			c.Index = append(c.Index, -1)
			return
		}
		i := slices.Index(c.Values, *s)
		if i < 0 {
			i = len(c.Values)
			c.Values = append(c.Values, *s)
		}
		c.Index = append(c.Index, int32(i))
	}
	for _, e := range r.Executions {
		b.DueNs, b.ElapsedNs = append(b.DueNs, e.DueAt), append(b.ElapsedNs, int64(math.Round(e.ElapsedMs*1e6)))
		b.Rows, b.Position = append(b.Rows, e.Rows), append(b.Position, e.Position)
		b.Warmup, b.Success = append(b.Warmup, e.Warmup), append(b.Success, e.Success)
		text(&b.Kind, &e.Kind)
		text(&b.Statement, &e.Statement)
		text(&b.Worker, &e.Worker)
		text(&b.Class, e.Class)
		text(&b.Code, e.Code)
	}
	return b
}

// TestBundledTablesAgainstValuesByHand: whatever runs did, each bundled table holds what their single executions, polls
// and summaries give when they are added up in plain Go, also after some have changed or are gone.
func TestBundledTablesAgainstValuesByHand(t *testing.T) {
	d, owner, reader := open(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var runs []derivedtest.Run
	epoch := int64(0)
	taken := func(r derivedtest.Run) {
		epoch++
		s := rollup.New(r.StartTime.Time)
		s.Add(batch(r))
		c := claim("runs", r.RunID, epoch)
		if err := d.Begin(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.PutRun(t.Context(), c,
			rollup.Run{Run: r.Run, Summary: r.Summary, Adapter: r.Adapter, Parts: 1, Seconds: s, Warehouse: r.Warehouse,
				Fingerprint: fmt.Sprint(epoch)}, held); err != nil {
			t.Fatal(err)
		}
	}
	same := func(when string) {
		t.Helper()
		for _, table := range derived.Bundled() {
			if table.Kind == refresh.SQL {
				epoch++
				table.Version = 1
				if _, err := d.Materialize(t.Context(), table, claim(table.Name, "", epoch), held); err != nil {
					t.Fatalf("%s: %v", table.Name, err)
				}
			}
		}
		differences, err := derivedtest.Differences(t.Context(), owner, runs)
		if err != nil || len(differences) > 0 {
			t.Fatalf("%s: %v\n%s", when, err, strings.Join(differences, "\n"))
		}
	}
	for i := range 12 {
		runs = append(runs, drawn(rng, i))
		taken(runs[i])
	}
	same("at first")
	docsArePlanned(t, reader)
	runs[3] = drawn(rng, 3)
	taken(runs[3])
	epoch++
	gone := claim("runs", runs[7].RunID, epoch)
	if err := d.Begin(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if err := d.DropRun(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	runs = slices.Delete(runs, 7, 8)
	same("after a change")
	blind, err := derivedtest.InsensitiveTables(t.Context(), owner, runs)
	// No single executions were taken in.
	if err != nil || !slices.Equal(blind, []string{"slow_executions"}) {
		t.Errorf("other runs would have these tables, too: %v, %v", blind, err)
	}
}
