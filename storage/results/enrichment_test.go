package results

import (
	"context"
	"encoding/csv"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// enriched stores a part for the given executions.
func enriched(t *testing.T, f *Results, number int, recs []engine.Execution) {
	t.Helper()
	w, err := record.NewEnrichmentWriter(t.TempDir(), "run", number)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range recs {
		if err := w.Add(&engine.EnrichedExecution{QueryID: r.QueryID, Kind: r.Kind,
			EndedAt: engine.At(time.Unix(int64(i), 0)), ClientMs: 5.5, ServerMs: 4, OverheadMs: 1.5,
			CompilationMs: 1, ExecutionMs: 2, QueuedOverloadMs: 0.5, QueuedRepairMs: 0.5, Cluster: 3,
			Status: "SUCCESS"}); err != nil {
			t.Fatal(err)
		}
	}
	a, path, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Put(t.Context(), a, record.LocalFile(path)); err != nil {
		t.Fatal(err)
	}
}

func TestEnrichmentBesideTheExecutions(t *testing.T) {
	f := open(t)
	recs := someExecutions(3000)
	for i := range recs {
		recs[i].Warmup, recs[i].ScheduleLag, recs[i].PoolWait = i < 10, 1000, 2000
		if i%3 != 0 {
			recs[i].QueryID = engine.QueryID{0: 1, 14: byte(i >> 8), 15: byte(i)}
		}
	}
	put(t, f, "worker-0", recs[:2000], recs[2000:])
	n := 0
	err := f.QueryRows(t.Context(), "run", func(q *record.QueryRows) error {
		for i, id := range q.IDs {
			r := recs[n]
			if id != r.QueryID || q.Kinds[i] != r.Kind || q.Warmup[i] != r.Warmup ||
				q.ServiceMs[i] != float64(r.Elapsed)/1e6-(0.001+0.002) {
				t.Fatalf("row %d is %v %v %v %v, not %+v", n, id, q.Kinds[i], q.Warmup[i], q.ServiceMs[i], r)
			}
			n++
		}
		return nil
	})
	if err != nil || n != len(recs) {
		t.Fatalf("%d rows: %v", n, err)
	}
	if last, err := f.Enriched(t.Context(), "run", nil); err != nil || last != 0 {
		t.Fatalf("nothing is enriched yet: %d, %v", last, err)
	}
	var some []engine.Execution
	for _, r := range recs[:2500] {
		if r.QueryID != (engine.QueryID{}) {
			some = append(some, r)
		}
	}
	enriched(t, f, 1, some[:1500])
	enriched(t, f, 3, some[1500:])
	back := map[engine.QueryID]engine.EnrichedExecution{}
	last, err := f.Enriched(t.Context(), "run",
		func(e *engine.EnrichedExecution) error { back[e.QueryID] = *e; return nil })
	if err != nil || last != 3 || len(back) != len(some) {
		t.Fatalf("%d of %d rows, the last part is %d: %v", len(back), len(some), last, err)
	}
	if e := back[some[7].QueryID]; e.Kind != some[7].Kind || e.OverheadMs != 1.5 || e.QueuedMs() != 1 || e.Cluster != 3 ||
		e.EndedAt.Unix() != 7 {
		t.Fatalf("row %+v", e)
	}
	// The figures and the executions of a run are those of its executions.
	if figures, err := f.FiguresIn(
		t.Context(),
		"run",
		"",
		engine.Window{},
	); err != nil ||
		figures.Accounting.Recorded != int64(len(recs)) {
		t.Fatalf("%v, %+v", err, figures)
	}
	var out strings.Builder
	if err := f.WriteCSV(context.Background(), "run", &out); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil || len(lines) != len(recs)+1 {
		t.Fatalf("%d lines: %v", len(lines), err)
	}
	at := map[string]int{}
	for i, name := range lines[0] {
		at[name] = i
	}
	for i, r := range recs {
		e, known := back[r.QueryID]
		want := []string{"", "", "", ""}
		if known {
			want = []string{strconv.Itoa(int(e.ServerMs)), "1.5", "1", "SUCCESS"}
		}
		line := lines[i+1]
		if got := []string{line[at["server_ms"]], line[at["overhead_ms"]], line[at["queued_ms"]],
			line[at["execution_status"]]}; strings.Join(got, ",") != strings.Join(want, ",") {
			t.Fatalf("line %d has %v, want %v", i, got, want)
		}
	}
}

func TestADamagedEnrichmentIsRefused(t *testing.T) {
	f := open(t)
	recs := someExecutions(10)
	put(t, f, "worker-0", recs)
	enriched(t, f, 1, []engine.Execution{{QueryID: engine.QueryID{1}}})
	path := f.Location("run") + "/" + record.EnrichmentName(1)
	if err := os.Truncate(path, 700); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Enriched(t.Context(), "run", func(*engine.EnrichedExecution) error { return nil }); err == nil {
		t.Fatal("a damaged part was read")
	}
}
