package run

import (
	"context"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	runlive "github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/run/observe"
)

// observeServer begins to look at what the server of the target does, once the load has its connections: it takes none
// that they need. The server that carries the run is the only one that looks.
func (l *runLoop) observeServer(ctx context.Context) {
	if l.observer.Load() != nil || l.plan == nil || l.life.Stopping() {
		return
	}
	if l.plan.Plan.Adapter.SHA256 == "" {
		return // no adapter has made the plan
	}
	l.observer.Store(observe.Start(l.svc.LogContext(ctx, l.runID), l.svc.routines.Go, observe.Options{Deps: l.deps,
		RunID: l.runID, Scenario: l.run.Scenario, Plan: l.plan.Plan, Epoch: l.epoch,
		Dir: observe.Dir(l.svc.opts.TempDir, l.runID), Keep: l.keepServerPart,
		Log: func(level engine.LogLevel, text string) {
			l.enqueue(func(context.Context) { l.writeLog(level, nil, "%s", text) })
		}}))
}

// keepServerPart stores a part of what the server was seen to do.
func (l *runLoop) keepServerPart(ctx context.Context, a engine.Artifact, path string) error {
	if err := l.svc.opts.Results.Put(ctx, a, record.LocalFile(path)); err != nil {
		return fmt.Errorf("storing %s: %w", a.Name, err)
	}
	w := l.writer.SaveArtifact(a)
	select {
	case <-w.Done():
		return w.Err()
	case <-l.done:
		return nil // the store may have it, or not: the file is there
	case <-ctx.Done():
		return ctx.Err()
	}
}

// observeClient tells the observer of the second that is over.
func (l *runLoop) observeClient(now time.Time, s *runlive.Second) {
	p := s.Payload
	l.observer.Load().Client(now, clientInFlight(l.sc, p), p.Ops.CurrentPerSec)
}

// clientInFlight is how many operations are under way. A closed loop has one on each connection; in an open one it is
// none where none was due.
func clientInFlight(sc engine.Scenario, p engine.LiveState) float64 {
	if sc.OverRate() {
		return float64(p.InFlight)
	}
	return float64(p.Connections.Active)
}

// ServerView is what the server of a run that this process carries does.
func (o observedServers) ServerView(runID string) (v engine.ServerView, ok bool) {
	l := o.svc.runs.Get(runID)
	if l == nil {
		return v, false
	}
	observer := l.observer.Load()
	run := l.Current()
	if observer == nil || run.Status.Terminal() {
		return v, false
	}
	return observer.View(observe.MeasuredOf(run, nil, nil)), true
}

// observedServers are those of the runs of a service.
type observedServers struct{ svc *Service }
