package run

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/run/finalize"
)

// fullQuota is the quota of a node that has every part announced as soon as it is finished.
type fullQuota struct {
	v  *virtualServer
	on atomic.Bool
}

func (p *fullQuota) Grow(string, int64) error { return nil }
func (p *fullQuota) Abandoned(string)         {}
func (p *fullQuota) Finished(a engine.Artifact) {
	if p.on.Load() {
		id := protocol.PartWorkID(a)
		p.v.report(protocol.WorkReady{WorkID: id, Artifact: a, ArtifactURL: protocol.PartsPath + id, Pressing: true})
	}
}

// rejectingResults refuses parts a number of times.
type rejectingResults struct {
	record.Results
	left atomic.Int32
}

func (f *rejectingResults) Put(ctx context.Context, a engine.Artifact, from record.Source) error {
	if f.left.Add(-1) >= 0 {
		return errors.New("the disk is full")
	}
	return f.Results.Put(ctx, a, from)
}

// TestAPartIsStoredBesideTheLoad: when its node needs the room it is stored and acknowledged while the
// run goes on, also after it could not be; announced again at the end, it counts once.
func TestAPartIsStoredBesideTheLoad(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		p := &fullQuota{v: v}
		v.quota = p
		full := &rejectingResults{Results: v.svc.opts.Results}
		full.left.Store(2)
		v.svc.finalizer = finalize.New(finalize.Options{Store: v.store, Results: full, Log: v.svc.opts.Log,
			Drivers: v.svc.opts.Drivers, Enrichments: v.svc.enrichments})
		p.on.Store(true)
		sc := fiveWorkers(engine.ScalingAuto)
		v.start(sc)
		acked := func() int {
			v.mu.Lock()
			defer v.mu.Unlock()
			return len(v.acked)
		}
		v.wait(10 * time.Second)
		if n := acked(); n >= 5 {
			t.Errorf("%d parts are acknowledged, and the disk was full", n)
		}
		v.wait(20 * time.Second)
		if n := acked(); n < 5 || v.live().Status != engine.StatusRunning {
			t.Fatalf("%d parts are acknowledged after 30 s\n%s", n, v.store.text())
		}
		p.on.Store(false)
		if _, err := v.svc.Stop(t.Context(), "run-1", "tester"); err != nil {
			t.Fatal(err)
		}
		sum := v.figures()
		if sum.Accounting.Recorded != sum.Accounting.Started || sum.Accounting.Recorded < 5*10*25 ||
			!sum.Accounting.Balanced {
			t.Errorf("%+v", sum.Accounting)
		}
		stored, err := v.store.Artifacts(t.Context(), "run-1")
		if err != nil {
			t.Fatal(err)
		}
		rows := int64(0)
		for _, a := range stored {
			rows += a.RowCount
		}
		if rows != sum.Accounting.Recorded {
			t.Errorf("%d rows in the index, %d recorded", rows, sum.Accounting.Recorded)
		}
	})
}

// TestARunWhoseRecordMayNotFitIsMarkedAtOnce: DEGRADED while its load still ends, and in its results, also
// when every row was recorded in the end.
func TestARunWhoseRecordMayNotFitIsMarkedAtOnce(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.start(fiveWorkers(engine.ScalingFixed))
		v.wait(5 * time.Second)
		if p := v.live(); p.Validity.Verdict != engine.VerdictValid {
			t.Fatalf("%+v", p.Validity)
		}
		v.mu.Lock()
		w := v.workers["worker-2"]
		r := w.report()
		r.Status, r.RecordEnded = engine.WorkerDraining, true
		r.Err = &engine.Error{Code: engine.CodeUnavailable, Message: "Recording has stopped: the spool is full."}
		w.status = engine.WorkerDraining
		v.report(r)
		v.mu.Unlock()
		v.wait(2 * time.Second)
		if p := v.live(); p.Validity.Verdict != engine.VerdictDegraded {
			t.Errorf("%s, %+v", p.Status, p.Validity)
		}
		v.mu.Lock()
		v.leave(w)
		v.mu.Unlock()
		if _, err := v.svc.Stop(t.Context(), "run-1", "tester"); err != nil {
			t.Fatal(err)
		}
		if sum := v.figures(); sum.Validity != engine.VerdictDegraded || sum.Accounting.Recorded != sum.Accounting.Started {
			t.Errorf("%s, %+v", sum.Validity, sum.Accounting)
		}
	})
}
