package run

import (
	"context"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// slowResults are results that take their time for each part.
type slowResults struct {
	record.Results
	delay time.Duration
}

func (r slowResults) Put(ctx context.Context, a engine.Artifact, from record.Source) error {
	time.Sleep(r.delay)
	return r.Results.Put(ctx, a, from)
}

// TestAPartThatIsAnnouncedAgainIsAcknowledgedAgain: what acknowledged it may have been lost with its stream, just
// before the figures were there. Nobody would ask for it any more.
func TestAPartThatIsAnnouncedAgainIsAcknowledgedAgain(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		sc := overRate(engine.ScalingFixed, 1)
		sc.Workload.DurationSeconds = 5
		v.start(sc)
		v.wait(10 * time.Second) // its part is being stored
		parts, err := v.store.Artifacts(t.Context(), "run-1")
		if err != nil || len(parts) > 0 {
			t.Fatalf("%v, %v", parts, err)
		}
		v.mu.Lock()
		w := v.workers["worker-0"]
		written, err := w.writer.Close()
		if err != nil || len(written) != 1 {
			t.Fatalf("%v, %v", written, err)
		}
		v.mu.Unlock()
		written[0].Kind = "executions"
		id := protocol.PartWorkID(written[0])
		v.report(protocol.WorkReady{WorkID: id, NodeID: "local", Artifact: written[0], ArtifactURL: protocol.PartsPath + id})
		v.figures()
		v.wait(time.Minute)
		v.mu.Lock()
		defer v.mu.Unlock()
		if len(v.acked) != 2 || v.acked[1].Name != written[0].Name {
			t.Errorf("acknowledged: %+v\n%s", v.acked, v.store.text())
		}
	}, func(o *Options) { o.Results = slowResults{o.Results, 20 * time.Second} })
}
