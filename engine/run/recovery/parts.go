package recovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/finalize"
	"github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/run/runlog"
	"github.com/loadstone-db/loadstone/engine/run/writer"
	"github.com/loadstone-db/loadstone/engine/store"
)

// sweepSpool lets nodes delete parts whose run was deleted, and takes in those of
// runs that had ended without them: their folder was full, or could not be written.
func (s *Service) sweepSpool(ctx context.Context) error {
	left := map[string][]nodes.Part{}
	s.mu.Lock()
	for id := range s.parts {
		left[id] = s.parts.ofRun(id)
	}
	s.mu.Unlock()
	return s.sweep(ctx, left)
}

// sweepPostponed is sweepSpool for the runs that another server held when it was looked at last.
func (s *Service) sweepPostponed(ctx context.Context) error {
	left := map[string][]nodes.Part{}
	s.mu.Lock()
	for id := range s.postponed {
		switch {
		case len(s.parts[id]) == 0:
			delete(s.postponed, id)
		case s.finishing[id] || s.opts.Runs.Has(id):
			// They may have come too late for what is done here now: then they are taken in when that is over.
		case time.Now().Before(s.retries[id].next):
		default:
			left[id] = s.parts.ofRun(id)
		}
	}
	s.mu.Unlock()
	return s.sweep(ctx, left)
}

// postpone leaves parts of a run that another server holds where they are, and says so.
func (s *Service) postpone(run engine.Run, parts int) {
	s.mu.Lock()
	known := s.postponed[run.RunID]
	s.postponed[run.RunID] = true
	s.mu.Unlock()
	if !known {
		s.opts.Log.Warn().Str("run_id", run.RunID).Str("owner", run.Owner).Int("parts", parts).
			Msg("parts of a run are stored here whose lease another server holds; they are ingested when it releases the lease")
	}
}

func (s *Service) sweep(ctx context.Context, left map[string][]nodes.Part) error {
	for _, id := range slices.Sorted(maps.Keys(left)) {
		all := left[id]
		parts := all
		run, err := s.opts.Store.Run(ctx, id)
		if err == nil && !run.Status.Live() && run.Phase != engine.PhaseProcessing {
			if parts, err = s.unstoredParts(ctx, id, parts); err == nil {
				parts, err = s.trustedParts(ctx, id, parts)
			}
			if err == nil && len(parts) == 0 {
				s.forgetParts(id, all)
				continue
			}
		}
		switch {
		case errors.Is(err, store.ErrNotFound):
			for _, p := range parts {
				p.Acknowledge()
			}
			s.forgetParts(id, all)
		case err != nil:
			return fmt.Errorf("looking for run %s: %w", id, err)
		case run.Status.Live() || run.Phase == engine.PhaseProcessing:
			// Another server carries it. Its parts are looked at again with the leases.
			s.postpone(run, len(parts))
		default:
			s.mu.Lock()
			s.parts.drop(id, all)
			s.mu.Unlock()
			err := s.importParts(ctx, run, parts)
			s.mu.Lock()
			if err == nil && len(s.parts[id]) == 0 { // else more came while these were taken in
				delete(s.postponed, id)
			} else if err != nil {
				for _, p := range parts {
					s.parts.add(p)
				}
			}
			s.mu.Unlock()
			switch {
			case errors.Is(err, store.ErrLeaseHeld):
				s.postpone(run, len(parts)) // another server is at it
			case err != nil:
				return fmt.Errorf("taking in what run %s has left: %w", id, err)
			}
		}
	}
	return nil
}

// forgetParts forgets parts of a run for good, and the run unless more of it have come meanwhile.
func (s *Service) forgetParts(run string, parts []nodes.Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts.drop(run, parts)
	if len(s.parts[run]) == 0 {
		delete(s.postponed, run)
	}
}

// unstoredParts are the parts that no server has stored. Of the others their nodes had not heard it.
func (s *Service) unstoredParts(ctx context.Context, runID string, parts []nodes.Part) ([]nodes.Part, error) {
	stored, err := s.opts.Store.Artifacts(ctx, runID)
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, a := range stored {
		sums[a.Name] = a.SHA256
	}
	var left []nodes.Part
	for _, p := range parts {
		if sums[p.Artifact.Name] == p.Artifact.SHA256 {
			p.Acknowledge()
		} else {
			left = append(left, p)
		}
	}
	return left, nil
}

// trustedParts are the parts that come from the nodes which carried their run workers, as far as the store
// knows: another one speaks for nobody's record.
func (s *Service) trustedParts(ctx context.Context, runID string, parts []nodes.Part) ([]nodes.Part, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	rows, err := s.opts.Store.Workers(ctx, runID)
	if err != nil {
		return nil, fmt.Errorf("looking for the nodes of run %s: %w", runID, err)
	}
	known := map[string]store.WorkerRow{}
	for _, row := range rows {
		known[row.WorkerID] = row
	}
	var own []nodes.Part
	for _, p := range parts {
		row, ok := known[p.Artifact.WorkerID]
		// Before the first second of a run is stored nobody is known to carry anything.
		if len(rows) > 0 && !ok || row.NodeID != "" && row.NodeID != p.Node.ID() ||
			row.ResultID != "" && row.ResultID != p.Artifact.ResultID {
			s.opts.Log.Warn().Str("run_id", runID).Str("work_id", p.WorkID).Str("node_id", p.Node.ID()).
				Msg("a node announces a part of a run worker that it did not carry; it is not taken in")
			continue
		}
		own = append(own, p)
	}
	return own, nil
}

// How often parts that could not be taken in are tried again before their node announces them again, and how soon
// first; each further pause is twice as long.
const (
	maxRetries      = 5
	firstRetryDelay = 30 * time.Second
)

// retry is when parts of a run are tried again, and how often they were.
type retry struct {
	times int
	next  time.Time
}

// scheduleRetry keeps the parts that were not stored, for another try: they may have been damaged on their way.
func (s *Service) scheduleRetry(runID string, parts []nodes.Part, o *finalize.Result) {
	left := slices.DeleteFunc(slices.Clone(parts), func(p nodes.Part) bool {
		return slices.Contains(o.Stored, p.WorkID)
	})
	s.mu.Lock()
	r := s.retries[runID]
	if len(left) == 0 {
		delete(s.retries, runID)
	} else {
		r = retry{r.times + 1, time.Now().Add(firstRetryDelay << min(r.times, maxRetries))}
		s.retries[runID] = r
	}
	s.mu.Unlock()
	if len(left) > 0 && r.times <= maxRetries { // else until their node announces them again
		for _, p := range left {
			s.AddPart(p)
		}
	}
}

// importParts stores parts of a run that is over, and has its results computed anew.
func (s *Service) importParts(ctx context.Context, run engine.Run, parts []nodes.Part) error {
	e := orphanedRun{Evidence: finalize.Evidence{Run: run, Parts: parts, Validity: live.NewValidity()}}
	if err := s.loadResult(ctx, &e); err != nil {
		return err
	}
	epoch, err := s.Claim(ctx, run.RunID, true)
	if err != nil {
		return err
	}
	s.opts.Nodes.BroadcastAndWait(
		ctx,
		protocol.RunState{RunID: run.RunID, Epoch: epoch, Status: run.Status, StopReason: run.StopReason,
			LastSequence: math.MaxInt64},
	)
	e.Writer = writer.New(s.opts.Store, run.RunID, epoch, s.opts.Log)
	s.opts.Log.Warn().Str("run_id", run.RunID).Int("parts", len(parts)).Msg("parts that a run has left are taken in")
	s.opts.Routines.Go(func() { e.Writer.Run(s.opts.Lifetime) })
	s.opts.Routines.Go(func() {
		defer e.Writer.Close()
		o := s.opts.Finalizer.Process(s.opts.Lifetime, e.Evidence)
		s.scheduleRetry(run.RunID, parts, o)
		if o.Summary == nil {
			return
		}
		last, err := s.endOfLog(run.RunID)
		if err != nil {
			return
		}
		b := runlog.NewBufferAfter(last)
		add := func(level engine.LogLevel, text string, about runlog.Details) {
			b.Add(runlog.LineAfterEnd(run, level, text, about))
		}
		if len(o.Stored) > 0 {
			add(engine.LogInfo, fmt.Sprintf("%s of the record that could not be stored when the run ended were taken "+
				"in, and the figures computed again: %d operations, %s",
				engine.Count(len(o.Stored), "part"), o.Summary.Operations, o.Summary.Validity),
				runlog.Details{"parts": len(o.Stored), "operations": o.Summary.Operations, "validity": o.Summary.Validity})
		}
		for _, text := range o.Problems {
			add(engine.LogError, text, runlog.Details{})
		}
		e.Writer.SaveTick(&store.Tick{RunID: run.RunID, Epoch: epoch, Logs: b.Take(), TotalOps: o.Summary.Operations,
			ErrorCount:        o.Summary.Errors.Count,
			WorkersRegistered: run.WorkersRegistered, WorkersCompleted: run.WorkersCompleted})
	})
	return nil
}
