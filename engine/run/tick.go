package run

import (
	"context"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	runlive "github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/run/runlog"
	"github.com/loadstone-db/loadstone/engine/store"
)

// everySecond is the run's pulse: health, figures, guardrails, one write, one payload.
func (l *runLoop) everySecond(ctx context.Context) {
	now := l.clock.Now()
	l.checkStall(now)
	l.WritePluginLines(l.plugins.Take())
	if !l.life.Status().Terminal() {
		l.checkClock(now)
		l.failExpired(ctx, now)
		l.checkHealth(ctx, now)
		if l.sender.stateDue(now) {
			l.repeatState()
		}
		if l.life.Started() {
			l.validity.SetConcurrentRuns(l.svc.runs.CountOthers(l.runID))
			l.observeServer(ctx)
		}
		l.followStages(ctx, now)
		l.followRates(now)
		l.raise(ctx, now)
		l.aggregate(now)
		l.judgeRate(ctx, now)
		l.saveReservations()
		l.endLosses(now, false)
		l.apply(ctx, lifecycle.Tick{})
	} else if l.Buffer.Waiting() > 0 || l.rules.Dirty() {
		l.writer.SaveTick(l.logOnlyTick())
	}
	l.publish(false)
}

// checkHealth finds the workers that nothing has been heard of for too long.
func (l *runLoop) checkHealth(ctx context.Context, now time.Time) {
	if !l.life.Placed() {
		return
	}
	var lost []string
	for _, w := range l.Workers {
		if !w.State.Status.Ended() && now.Sub(w.LastSeen) > DeadAfter {
			l.markLost(
				w,
				fmt.Sprintf("did not respond for %.0f s", now.Sub(w.LastSeen).Seconds()),
				w.LastSeen.Add(protocol.ReassignAfter),
			)
			lost = append(lost, w.ID)
		}
	}
	if len(lost) > 0 {
		l.apply(ctx, lifecycle.WorkersLost{IDs: lost})
		l.settleLoad()
	}
	l.replaceLost(ctx)
}

// aggregate folds what arrived since the last second, judges it and queues its write.
func (l *runLoop) aggregate(now time.Time) {
	views := make([]runlive.Worker, 0, len(l.Workers))
	rows := make([]store.WorkerRow, 0, len(l.Workers))
	registered, active, completed := 0, 0, 0
	if l.life.Placed() {
		for _, w := range l.Workers {
			views = append(views, runlive.Worker{WorkerID: w.ID, WorkerGroupID: w.Group, NodeID: w.State.NodeID,
				Status: w.State.Status, Phase: w.State.Phase,
				Health: w.Health(now), LastHeartbeat: w.LastSeen, TargetConnections: w.Connections,
				OpenConnections: w.State.OpenConnections, Silent: runlive.IsSilent(w.State.Status, w.LastSeen, now),
				LoadEndsBy: l.loadEndsBy(w, now), LoadStart: w.State.LoadStart()})
			rows = append(rows, l.heartbeat(w))
			switch s := w.State.Status; {
			case s == engine.WorkerCompleted:
				registered, completed = registered+1, completed+1
			case s.Ended(): // FAILED, DEAD
				registered++
			case s != engine.WorkerStarting:
				registered, active = registered+1, active+1
			}
		}
	}
	s := l.agg.Tick(l.life.Phase(), views)
	l.second = s
	l.observeClient(now, s)
	l.finisher.livePercentiles.Record(l.life.Phase(), s)
	if l.life.Search() != nil {
		// A search goes where operations wait and are dropped on purpose; its steps are judged by them.
		for i := range s.Workers {
			s.Workers[i].Dropped, s.Workers[i].PoolWaitMs, s.Workers[i].Missing = 0, nil, 0
		}
	}
	l.validity.Outcome(runlive.Outcome{From: l.life.MeasureAt(), To: now, Operations: s.RollupOps,
		Errors: s.RollupErrors, Search: l.life.Search() != nil})
	l.validity.Observe(now, l.life.Phase(), s)
	l.saveVerdict()
	if l.life.Started() && !l.life.Stopping() {
		if broken := l.guard.Observe(now, s.GuardrailSample()); broken != "" {
			l.apply(l.svc.lifetime, lifecycle.StopRequested{Reason: engine.StopGuardrail,
				Message: "Guardrail triggered: " + broken})
		}
	}
	r := &l.run
	r.TotalOps, r.ErrorCount, r.CurrentQPS = s.RollupOps, s.RollupErrors, s.Payload.Ops.CurrentPerSec
	r.WorkersRegistered, r.WorkersActive, r.WorkersCompleted = registered, active, completed
	r.Rules = l.rules.States()
	shown := *r
	l.published.Store(&shown)

	t := &store.Tick{RunID: l.runID, Epoch: l.epoch, Workers: rows, Snapshots: s.Rows(), Logs: l.Buffer.Take(),
		TotalOps: s.RollupOps, ErrorCount: s.RollupErrors, CurrentQPS: s.Payload.Ops.CurrentPerSec,
		WorkersRegistered: registered, WorkersActive: active, WorkersCompleted: completed}
	if l.life.Started() && s.Reported() && (len(s.Snapshots) > 0 || !l.AllEnded()) && s.IsPoint() {
		p := s.Point(now, now.Sub(r.StartTime.Time), s.PhaseOf(l.life.Phase(), now.Sub(l.life.MeasureAt())))
		t.Point = &p
	}
	if l.life.Started() {
		t.FindMax = l.search.state(now)
	}
	l.rules.Tick(t, now)
	l.writer.SaveTick(t)
}

// loadEndsBy is until when a run worker that cannot be reached issues operations at the latest; zero for one that can
// be, and when that time is over.
func (l *runLoop) loadEndsBy(w *Worker, now time.Time) time.Time {
	silent := runlive.IsSilent(w.State.Status, w.LastSeen, now)
	if !silent && w.State.Status != engine.WorkerDead || !l.life.Started() || w.State.Totals != nil {
		w.unreachable = false
		return time.Time{}
	}
	// It knows the planned end of the run, and nothing of a STOP that came after its last contact.
	by := protocol.EndOfLoad(w.LastSeen, protocol.ContactTimeout, l.life.LoadEndOf(w.LastSeen))
	if !by.After(now) {
		return time.Time{}
	}
	if !w.unreachable {
		w.unreachable = true
		l.writeLogWith(runlog.Details{"node_id": w.State.NodeID, "load_ends_by": engine.At(by)}, engine.LogWarning, w,
			"%s cannot be reached; its load ends by %s at the latest", w.State.NodeID, by.UTC().Format("15:04:05 UTC"))
	}
	return by
}

// heartbeat is what is stored of a run worker each second.
func (l *runLoop) heartbeat(w *Worker) store.WorkerRow {
	row := store.WorkerRow{RunID: l.runID, WorkerID: w.ID, WorkerGroupID: w.Group, NodeID: w.State.NodeID,
		ResultID: w.ResultID, Status: w.State.Status, Phase: w.State.Phase, LastHeartbeat: w.LastSeen, Error: w.DeadReason}
	if w.State.Err != nil {
		row.Error = w.State.Err.Message
	}
	return row
}

// logOnlyTick are a tick that adds nothing to the figures but what was written into the log.
func (l *runLoop) logOnlyTick() *store.Tick {
	r := &l.run
	return &store.Tick{RunID: l.runID, Epoch: l.epoch, Logs: l.Buffer.Take(), TotalOps: r.TotalOps,
		ErrorCount: r.ErrorCount, WorkersRegistered: r.WorkersRegistered, WorkersCompleted: r.WorkersCompleted,
		Rules: l.rules.Changed()}
}

// saveVerdict keeps causes and notes as they come, for a process that has to end the run in this one's place.
func (l *runLoop) saveVerdict() {
	verdict := l.validity.Verdict()
	if n := len(verdict.Causes) + len(verdict.LiveNotes) + l.validity.SetConcurrentRuns(0); n != l.savedFindings {
		l.savedFindings = n
		row := engine.RunResult{ResultID: l.runID, RunID: l.runID, RunName: l.run.RunName, Status: l.life.Status(),
			Validity: &verdict}
		l.writer.SaveResults("the verdict so far", []engine.RunResult{row}, nil)
	}
}

// Busy reports whether a run is live in this process.
func (s *Service) Busy() bool { return s.runs.CountOthers("") > 0 }

// applyRuleResults takes what rules have said: lines of the log, and that the run has to stop.
func (l *runLoop) applyRuleResults(ctx context.Context) {
	for _, s := range l.rules.TakeMessages(l.life.Stopping()) {
		l.writeLog(s.Level, nil, "%s", s.Text)
		if s.Stop != "" {
			l.apply(ctx, lifecycle.StopRequested{Reason: engine.StopGuardrail, Message: s.Stop})
		}
	}
}

// endRules ends the rules of a run; of one that is over it keeps what they gave.
func (l *runLoop) endRules() {
	if l.rules.End(l.life.Status().Terminal()) {
		l.applyRuleResults(l.svc.lifetime)
		l.writer.SaveTick(l.logOnlyTick())
	}
}
