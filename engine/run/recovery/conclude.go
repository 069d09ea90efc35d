package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/finalize"
	"github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/run/runlog"
	"github.com/loadstone-db/loadstone/engine/run/writer"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/rules"
)

// lastLog is the number of the last line of a run's log. Who goes on from a lower one has lines that
// the store takes for those it has, and drops.
func (s *Service) lastLog(runID string) (seq int64, err error) {
	ctx, cancel := context.WithTimeout(s.opts.Lifetime, writer.StoreTimeout)
	defer cancel()
	for {
		lines, err := s.opts.Store.Logs(ctx, runID, seq, "", 0)
		if err != nil || len(lines) == 0 {
			return seq, err
		}
		seq = lines[len(lines)-1].Seq
	}
}

// endOfLog is lastLog, asked until the store answers; the error is the end of the process.
func (s *Service) endOfLog(runID string) (seq int64, err error) {
	err = writer.Retry(s.opts.Lifetime, func() (err error) {
		seq, err = s.lastLog(runID)
		return err
	})
	return seq, err
}

// enrich asks the history of a run whose figures are there, or goes on
// with it; false when the process ends before.
func (s *Service) enrich(e orphanedRun, sum *engine.Summary) bool {
	if !s.opts.Enrichments.HasHistory(e.Plan) || e.result.Enrichment != nil && e.result.Enrichment.Status.Terminal() {
		return true
	}
	under := s.opts.Enrichments.Begin(e.Run, e.Plan)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-under.Done():
			return !under.Interrupted()
		case <-ticker.C:
			s.opts.Runs.Publish(
				e.Run.RunID,
				live.FinishedState(&engine.RunDetail{Run: e.Run, Summary: sum, Simulated: sum.Simulated,
					Emulated: sum.Emulated, Enrichment: under.State()}, time.Now()),
				false,
			)
		}
	}
}

// finalize computes the results and takes the last step of the run. why is that of finish.
func (s *Service) finalize(e orphanedRun, why string, epoch int64) {
	o := &finalize.Result{Summary: finalize.Summarize(e.Run, e.result)}
	// Figures that were stored before the restart are final.
	if o.Summary == nil {
		o = s.opts.Finalizer.Process(s.opts.Lifetime, e.Evidence)
	}
	s.scheduleRetry(e.Run.RunID, e.Parts, o)
	if o.Summary == nil {
		return
	}
	none := engine.PhaseNone
	if !s.enrich(e, o.Summary) {
		return // the next process goes on with it
	}
	notSetBack := s.opts.Runs.RestoreTarget(e.Run, e.Plan)
	logs := []engine.LogEntry{}
	seq, err := s.endOfLog(e.Run.RunID)
	if err != nil {
		return // the next process goes on with it
	}
	add := func(level engine.LogLevel, text string, about runlog.Details) {
		seq++
		line := runlog.LineAfterEnd(e.Run, level, text, about)
		line.Seq = seq
		logs = append(logs, line)
	}
	if e.Run.CancellationReason != nil {
		add(engine.LogWarning, runlog.StatusMessage(e.Run.Status)+": "+*e.Run.CancellationReason,
			runlog.Details{"reason": *e.Run.CancellationReason})
	}
	s.mu.Lock()
	for _, p := range s.quarantined[e.Run.RunID] {
		add(engine.LogError, fmt.Sprintf("A part of %s, %s, cannot be opened and was moved aside: %s", p.WorkerID, p.Name,
			p.Reason), runlog.Details{"worker_id": p.WorkerID, "part": p.Name, "error": p.Reason})
	}
	s.mu.Unlock()
	add(engine.LogInfo, "The run was finished after a restart of the server", runlog.Details{})
	if e.RecordRemote {
		add(
			engine.LogWarning,
			engine.Note{Code: engine.NoteRecordUnreachable}.String(),
			runlog.Details{"record": "elsewhere"},
		)
	}
	for _, text := range o.Problems {
		add(engine.LogError, text, runlog.Details{})
	}
	if notSetBack != "" {
		add(engine.LogError, notSetBack, runlog.Details{"restore": e.Plan.Restore})
	}
	tick := &store.Tick{RunID: e.Run.RunID, Epoch: epoch, Logs: logs, TotalOps: e.Run.TotalOps,
		ErrorCount: e.Run.ErrorCount, WorkersRegistered: e.Run.WorkersRegistered, WorkersCompleted: e.Run.WorkersCompleted,
		Rules: rules.Interrupted(e.Run.Rules)}
	if tick.Rules != nil {
		e.Run.Rules = tick.Rules
	}
	e.Writer.SaveTick(tick)
	j := e.Writer.Transition(store.Transition{RunID: e.Run.RunID, Epoch: epoch, From: []engine.Status{e.Run.Status},
		Phase: &none}, nil)
	select {
	case <-j.Done():
	case <-s.opts.Lifetime.Done():
		return
	}
	if errors.Is(j.Err(), store.ErrFenced) {
		// A claim of this process whose answer was lost may have come late: then nobody has the run.
		// It is looked at with the leases, and left to the other one if there is one.
		s.setUnfinished(e.Run.RunID, why, j.Err())
		return
	}
	s.opts.Runs.Publish(e.Run.RunID, live.FinishedState(&engine.RunDetail{Run: e.Run, Summary: o.Summary,
		Simulated: o.Summary.Simulated, Emulated: o.Summary.Emulated,
		Enrichment: s.opts.Enrichments.State(e.Run.RunID, s.opts.Enrichments.Stored(e.Run.RunID), e.Plan)}, time.Now()), true)
}
