package results

import (
	"context"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestOutagesOfARecord: outages are found in the parts of several run workers, the warm-up included; statements of
// transactions and their errors are no operations.
func TestOutagesOfARecord(t *testing.T) {
	f := open(t)
	lost := errorID(t, engine.ErrClassConnection)
	at := func(seconds float64) int64 { return testBase + int64(seconds*1e9) }
	for w, worker := range []string{"worker-0", "worker-1"} {
		var recs []engine.Execution
		add := func(due, ended float64, position uint16, failure uint32) {
			recs = append(recs, engine.Execution{DueAt: at(due), StartedAt: at(due), Elapsed: at(ended) - at(due),
				Kind: engine.KindTransaction, Position: position, ErrorID: failure, Success: failure == 0, Warmup: due < 5})
		}
		for i := range 3000 {
			now := float64(i)*0.01 + float64(w)*0.003
			switch {
			case now >= 2 && now < 3, now >= 20 && now < 22.5: // down, each time
				if i%100 == 0 {
					add(now, now+0.001, 1, lost)
					add(now, now+0.002, 0, lost)
				}
				continue
			}
			add(now-0.002, now, 1, 0)
			add(now-0.002, now, 0, 0)
		}
		if w == 0 { // one connection of several, while the others go on
			add(15, 15.001, 0, lost)
		}
		putOf(t, f, true, worker, recs)
	}
	load := time.Unix(0, testBase)
	found, unknown, err := f.Outages(context.Background(), "run", load, load.Add(5*time.Second), load.Add(30*time.Second))
	if err != nil || len(found) != 2 || unknown != 9 {
		t.Fatalf("%+v, %d unknown, %v", found, unknown, err)
	}
	for i, want := range []struct {
		down   float64
		failed int64
		warmup bool
	}{{1.007, 2, true}, {2.507, 6, false}} {
		o := found[i]
		if d := o.DownSeconds - want.down; d < -0.02 || d > 0.02 || o.Failed != want.failed || o.Unknown != want.failed ||
			o.Warmup != want.warmup ||
			o.Errors[engine.OutageDown][engine.ErrClassConnection] != want.failed ||
			o.FullRateSeconds == nil ||
			len(o.ByKind) != 1 ||
			o.ByKind[0].Kind != engine.KindTransaction {
			t.Errorf("%s: %+v", o.Text(), o)
		}
	}
	if found, _, err := f.Outages(context.Background(), "another", load, load, load); err != nil || found != nil {
		t.Errorf("a run without a record: %v, %v", found, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := f.Outages(ctx, "run", load, load, load.Add(30*time.Second)); err == nil {
		t.Error("a reading that was given up has an answer")
	}
}
