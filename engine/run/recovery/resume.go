package recovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/store"
)

// ResumedRun is a run whose process has ended, with all that the store knows of it, for who
// goes on with it.
type ResumedRun struct {
	// Stored is its life; the run has the epoch in which this process owns it.
	lifecycle.StoredRun
	Workers []Worker
	Plan    *engine.Plan
	// Environment is that of its start, nil when it was not stored.
	Environment *engine.Environment
	Validity    *live.Validity
	// Sequence is that of its last event, LogSeq the number of its last line.
	Sequence, LogSeq int64
	// Reason says what became of its process, as users read it.
	Reason string
	// Stop is what a user wants of it that its process has not done; nil where nothing is.
	Stop *lifecycle.StopRequested
}

// Worker is a run worker as the store knows it.
type Worker struct {
	ID       string
	Group    int
	ResultID string
	NodeID   string
	Status   engine.WorkerStatus
	Target   engine.WorkerTarget
	Retiring bool
	LastSeen time.Time
	Failure  string
	// Left: its row of the results says how it ended, and when.
	Left bool
	// Totals are set when it has ended and told them.
	Totals *engine.Totals
}

// MayBeRemote reports whether the worker may be alive in another process than the server's.
func (w Worker) MayBeRemote() bool {
	return !w.Status.Ended() && w.NodeID != "" && w.NodeID != protocol.OwnNode
}

// resume has the process go on with a run of which nodes carry something, or says why it cannot.
func (s *Service) resume(
	ctx context.Context,
	run engine.Run,
	why string,
	last time.Time,
	stop *lifecycle.StopRequested,
) (
	done bool, unable string, err error) {
	r := ResumedRun{StoredRun: lifecycle.StoredRun{Run: run, LastSeen: last}, Reason: why, Stop: stop}
	e := orphanedRun{}
	e.Run, e.Validity = run, live.NewValidity()
	if err := s.loadResult(ctx, &e); err != nil {
		return false, "", err
	}
	if e.Plan == nil {
		return false, "its plan was not stored", nil
	}
	r.Plan, r.Validity, r.Environment = e.Plan, e.Validity, e.result.Environment
	if r.Events, err = s.opts.Store.Events(ctx, run.RunID, 0); err != nil {
		return false, "", err
	}
	if r.Search, err = s.opts.Store.FindMax(ctx, run.RunID); err != nil {
		return false, "", err
	}
	rows, err := s.opts.Store.Workers(ctx, run.RunID)
	if err != nil {
		return false, "", err
	}
	r.Workers = workersOf(e, rows, r.Events)
	r.StoredRun.Workers = map[string]engine.WorkerStatus{}
	elsewhere := false
	for _, w := range r.Workers {
		r.StoredRun.Workers[w.ID] = w.Status
		elsewhere = elsewhere || w.MayBeRemote()
	}
	if !elsewhere {
		return false, "its run workers ended with the process that carried it", nil
	}
	if n := len(r.Events); n > 0 {
		r.Sequence = r.Events[n-1].SequenceID
	}
	if r.LogSeq, err = s.lastLog(run.RunID); err != nil {
		return false, "", fmt.Errorf("looking for the end of the log: %w", err)
	}
	unable = s.opts.Runs.Resume(r)
	if unable == "" {
		s.mu.Lock()
		delete(s.parts, run.RunID) // its nodes announce them again
		s.mu.Unlock()
	}
	return unable == "", unable, nil
}

// workersOf are the run workers that a run ever had, by their rows of the results, of the
// heartbeats and of the events.
func workersOf(e orphanedRun, rows []store.WorkerRow, events []engine.Event) []Worker {
	heard := map[string]store.WorkerRow{}
	for _, row := range rows {
		heard[row.WorkerID] = row
	}
	retiring := map[string]bool{}
	for _, ev := range events {
		if ev.Type == engine.EventStop && ev.Data.Scope == engine.ScopeWorker {
			retiring[ev.Data.WorkerID] = true
		}
	}
	out := make([]Worker, 0, len(e.Workers))
	for _, known := range e.Workers {
		row, ok := heard[known.ID]
		if !ok {
			row.Status = engine.WorkerStarting
		}
		out = append(out, Worker{ID: known.ID, Group: known.Group, ResultID: known.ResultID, NodeID: row.NodeID,
			Status: row.Status, Target: e.Run.WorkerTargets[known.ID], Retiring: retiring[known.ID],
			LastSeen: row.LastHeartbeat, Failure: row.Error, Left: known.Left, Totals: known.Totals})
	}
	return out
}

// workerKey names a run worker that a node holds; held is what it said last.
type workerKey struct{ runID, workerID string }

type unknownWorker struct {
	node  nodes.Node
	state protocol.WorkerState
}

// AddUnknownWorker remembers a run worker that a node holds of a run that this process does not
// carry. It is looked at with the leases: its server may take it up, or nobody.
func (s *Service) AddUnknownWorker(from nodes.Node, w protocol.WorkerState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknownWorkers[workerKey{w.RunID, w.WorkerID}] = unknownWorker{from, w}
}

// countedTotals are what a stranger that has ended said it had counted, nil when there is none.
func (s *Service) countedTotals(runID, workerID string) *engine.Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unknownWorkers[workerKey{runID, workerID}].state.Totals
}

// timelineOf is the time of a run that nobody goes on with, as its run workers tell of it: by how much it is
// ahead of a clock that says now, and when the first of those that it began with entered the measurement, zero
// when none says so.
func (s *Service) timelineOf(run engine.Run, now, last time.Time) (ahead time.Duration, measured time.Time) {
	first := scaling.InitialWorkers(run.Scenario)
	s.mu.Lock()
	var ids []string
	var states []protocol.WorkerState
	for k, w := range s.unknownWorkers {
		if k.runID != run.RunID {
			continue
		}
		ids, states = append(ids, k.workerID), append(states, w.state)
		if w.state.WorkerGroupID >= first {
			continue
		}
		if at := w.state.MeasuresSince; measured.IsZero() || !at.IsZero() && at.Before(measured) {
			measured = at
		}
	}
	s.mu.Unlock()
	line := NewTimeline(ids, first, run.Phase == engine.PhaseMeasurement)
	for i := range states {
		line.Observe(states[i])
	}
	return line.Offset(now, s.opts.Nodes.Now(), last), measured
}

// resolveUnknownWorkers has nodes end what belongs to no run that goes on, and forget what has ended.
func (s *Service) resolveUnknownWorkers(ctx context.Context) error {
	s.mu.Lock()
	all := make(map[string]map[workerKey]unknownWorker, len(s.unknownWorkers))
	for k, w := range s.unknownWorkers {
		if all[k.runID] == nil {
			all[k.runID] = map[workerKey]unknownWorker{}
		}
		all[k.runID][k] = w
	}
	s.mu.Unlock()
	for _, runID := range slices.Sorted(maps.Keys(all)) {
		workers := all[runID]
		run, err := s.opts.Store.Run(ctx, runID)
		over := errors.Is(err, store.ErrNotFound)
		switch {
		case over:
			run.OwnerEpoch = math.MaxInt64 // nobody will own it any more
		case err != nil:
			return err
		case s.opts.Runs.Has(runID):
			over = false
		default:
			over = run.Status.Terminal() && run.Phase != engine.PhaseProcessing
			if !over {
				continue // its server has it, or will
			}
		}
		for _, k := range slices.SortedFunc(maps.Keys(workers), func(a, b workerKey) int {
			return strings.Compare(a.workerID, b.workerID)
		}) {
			w := workers[k]
			switch {
			case !over: // it is carried here now, and no stranger
			case w.state.Status.Ended():
				_ = w.node.Send(protocol.WorkerAck{RunID: runID, WorkerID: k.workerID, ResultID: w.state.ResultID})
			default:
				s.opts.Log.Warn().Str("run_id", runID).Str("worker_id", k.workerID).Str("node_id", w.node.ID()).
					Msg("a node carries a run worker that no server expects; the run worker is ended")
				_ = w.node.Send(nodes.EndOrphan(runID, k.workerID, run.OwnerEpoch))
			}
			s.mu.Lock()
			if s.unknownWorkers[k] == w {
				delete(s.unknownWorkers, k)
			}
			s.mu.Unlock()
		}
	}
	return nil
}
