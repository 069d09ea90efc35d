package results

import (
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/executions"
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
		Pause: 10 * time.Millisecond})
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
