package results

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/params"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/storage/objects/s3store"
	"github.com/loadstone-db/loadstone/storage/objects/s3test"
)

// TestFindExecutionsOnS3: of parts of several blocks, none of which is kept here.
func TestFindExecutionsOnS3(t *testing.T) {
	server := s3test.NewStandIn(t, "results").Server
	server.Environment(t)
	address, err := s3store.ParseAddress(server.Address("some/where"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := s3store.Open(t.Context(), address, s3store.Options{Log: zerolog.Nop(), Attempts: 2,
		RetryDelay: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	f := New(kept)
	all, parts := someRun(t, f)
	const blockBytes = 128 << 10
	if !slices.ContainsFunc(parts, func(a engine.Artifact) bool { return a.SizeBytes > 2*blockBytes }) {
		t.Fatalf("no part has more than two blocks: %+v", parts)
	}
	var want int64
	for _, e := range all {
		want = max(want, e.Elapsed)
	}
	page, err := f.FindExecutions(t.Context(), "run", parts, executions.Query{Sort: executions.ByLatency, Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Executions) != 500 || page.Executions[0].AppElapsedMs != float64(want)/1e6 {
		t.Errorf("%d executions, the first %+v", len(page.Executions), page.Executions[0])
	}
}

// TestBindsOnS3: parameters lie beside the parts, and a run that has kept none has none.
func TestBindsOnS3(t *testing.T) {
	server := s3test.NewStandIn(t, "results").Server
	server.Environment(t)
	address, err := s3store.ParseAddress(server.Address("some/where"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := s3store.Open(t.Context(), address, s3store.Options{Log: zerolog.Nop(), Attempts: 2,
		RetryDelay: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	f := New(kept)
	_, parts := someRun(t, f)
	none, _, err := f.Parameters(t.Context(), "run", parts)
	if err != nil || len(none) != 0 {
		t.Errorf("a run without parameters: %d, %v", len(none), err)
	}
	dir, value := t.TempDir(), "Ann"
	for _, worker := range []string{"worker-0", "worker-1"} {
		a, err := params.Write(
			dir,
			params.FileInfo{RunID: "run", ResultID: worker, WorkerID: worker, Name: params.FreeName(dir, worker)},
			[]params.KeptExecution{{Why: params.Failed, WorkerID: worker, StatementID: "s",
				Calls: []params.KeptCall{{StatementID: "s",
					Values: []params.KeptValue{{Type: "text", Length: 3, Text: &value}}}}}},
			3,
			true,
		)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Put(t.Context(), a, record.LocalFile(filepath.Join(dir, a.Name))); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, a)
	}
	all, left, err := f.Parameters(t.Context(), "run", parts)
	if err != nil || len(all) != 2 || left != 6 ||
		all[1].WorkerID != "worker-1" || *all[1].Calls[0].Values[0].Text != value {
		t.Errorf("%+v, %d left out, %v", all, left, err)
	}
	// They go with the single executions.
	if err := f.DeleteExecutions(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	if names, err := kept.Names(t.Context(), "run"); err != nil || len(names) != 0 {
		t.Errorf("left are %v, %v", names, err)
	}
}
