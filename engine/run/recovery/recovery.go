package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/enrichment"
	"github.com/loadstone-db/loadstone/engine/run/finalize"
	"github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/run/writer"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Store finds the runs whose owner is gone, takes them, and writes their end.
type Store interface {
	writer.Store
	Evidence
	// LiveRuns returns the runs in RUNNING, STOPPING or CANCELLING, and those whose phase is PROCESSING.
	LiveRuns(ctx context.Context) ([]engine.Run, error)
	// ExpiredRuns are the LiveRuns whose lease has expired.
	ExpiredRuns(ctx context.Context) ([]engine.Run, error)
	// Claim takes a run whose lease has expired or is the claimant's own, raises the
	// owner epoch and returns it; ErrLeaseHeld when another owner's lease goes on.
	Claim(ctx context.Context, c store.Claim) (epoch int64, err error)
	// RenewLeases prolongs the leases of the runs that are named, as far as they are the owner's.
	RenewLeases(ctx context.Context, owner string, runIDs []string) error
	// PendingRunCommands returns the commands that nobody has answered, oldest first.
	PendingRunCommands(ctx context.Context) ([]store.RunCommand, error)
}

// Evidence is what is stored of a run that another process carried.
type Evidence interface {
	// Results returns the parent's row first, then the run workers' by group.
	Results(ctx context.Context, runID string) ([]engine.RunResult, error)
	Workers(ctx context.Context, runID string) ([]store.WorkerRow, error)
	// FindMax returns the state of a run's search with all of its steps, nil without one.
	FindMax(ctx context.Context, runID string) (*engine.FindMaxState, error)
	Artifacts(ctx context.Context, runID string) ([]engine.Artifact, error)
	Logs(ctx context.Context, runID string, afterSeq int64, level engine.LogLevel, limit int) ([]engine.LogEntry, error)
	// Series returns the parent's points in the window, oldest first. Where there are
	// more than Most, each point stands for the seconds of one phase in a stretch of
	// resolution seconds: rates, the median and the mean are their means, P95, P99 and
	// the maximum the highest of any of them, and the rest is that of the last one;
	// the histogram, which would be its own only, is left out. resolution is 1 otherwise.
	Series(ctx context.Context, runID string, w store.Window) (points []engine.Point, resolution float64, err error)
}

// Options are what a service is made of; all of them are needed but the last.
type Options struct {
	Store   Store
	Version string
	// Owner names this server in the leases of its runs.
	Owner string
	Log   zerolog.Logger
	// Lifetime ends with the process, which waits for Routines at its end.
	Lifetime context.Context //nolint:containedctx // runs are finished in the background
	Routines *sync.WaitGroup

	// Nodes are those that may hold something of a run.
	Nodes       Nodes
	Finalizer   *finalize.Service
	Enrichments *enrichment.Service
	// Runs is what the process itself carries.
	Runs ActiveRuns
	// Clock reads the machine's clock; nil means time.Now.
	Clock func() time.Time
}

// ActiveRuns is what recovery needs of who carries runs.
type ActiveRuns interface {
	// Has reports whether the process carries the run, or is starting it.
	Has(runID string) bool
	// ActiveRunIDs are the runs that the process carries or is starting.
	ActiveRunIDs() []string
	// Closed reports whether the process takes nothing over any more.
	Closed() bool
	// Resume goes on with a run that another process carried, or says why it cannot.
	Resume(r ResumedRun) (why string)
	// RestoreTarget undoes what the preparation of a run started; it returns a sentence when that failed.
	RestoreTarget(run engine.Run, plan *engine.Plan) (failed string)
	// Publish offers the state of a run to those who watch it; nothing follows the last one.
	Publish(runID string, p *engine.LiveState, last bool)
}

// Nodes are the nodes as recovery needs them.
type Nodes interface {
	// BroadcastAndWait tells all nodes how a run stands in a new epoch, and waits, for a few seconds at
	// most, until they have said what they hold.
	BroadcastAndWait(ctx context.Context, state protocol.RunState)
	// Now is the time that nodes compare theirs with.
	Now() time.Time
}

// Service finishes the runs that have lost the process that carried them. Its methods
// are safe for concurrent use.
type Service struct {
	opts Options

	mu sync.Mutex
	// finishing are the runs of other processes that this one has in its hands.
	finishing map[string]bool
	// parts of runs that this process does not carry, by run; nodes hold them.
	parts partSet
	// postponed are runs with parts that another server held when it was looked at last.
	postponed map[string]bool
	// quarantined are parts that a node keeps and cannot open, by run.
	quarantined map[string][]protocol.QuarantinedPart
	// retries are runs with parts that could not be taken in.
	retries map[string]retry
	// unfinished are runs that may be this owner's and could not be finished, with the reason of their end.
	unfinished map[string]string
	// unknownWorkers are run workers on nodes whose runs this process does not carry.
	unknownWorkers map[workerKey]unknownWorker
}

// New returns a service; nothing happens before Open.
func New(o Options) *Service {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Service{
		opts:           o,
		finishing:      map[string]bool{},
		parts:          partSet{},
		postponed:      map[string]bool{},
		quarantined:    map[string][]protocol.QuarantinedPart{},
		unknownWorkers: map[workerKey]unknownWorker{},
		unfinished:     map[string]string{},
		retries:        map[string]retry{},
	}
}

// partSet is parts by run. One is announced again until it is acknowledged, and counts once for each
// node that says that it has it.
type partSet map[string]map[partKey]nodes.Part

type partKey struct{ workID, nodeID string }

func (h partSet) add(p nodes.Part) {
	run := p.Artifact.RunID
	if h[run] == nil {
		h[run] = map[partKey]nodes.Part{}
	}
	h[run][partKey{p.WorkID, p.Node.ID()}] = p
}

// drop forgets these parts of a run: what came since they were looked at stays.
func (h partSet) drop(run string, parts []nodes.Part) {
	for _, p := range parts {
		delete(h[run], partKey{p.WorkID, p.Node.ID()})
	}
	if len(h[run]) == 0 {
		delete(h, run)
	}
}

// ofRun are those of a run, by their work ids.
func (h partSet) ofRun(run string) []nodes.Part {
	return slices.SortedFunc(maps.Values(h[run]), func(a, b nodes.Part) int {
		return cmp.Or(strings.Compare(a.WorkID, b.WorkID), strings.Compare(a.Node.ID(), b.Node.ID()))
	})
}

// AddPart remembers a part of a run that this process does not carry. It is taken in with
// the run, or looked at with the leases.
func (s *Service) AddPart(p nodes.Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts.add(p)
	if _, known := s.postponed[p.Artifact.RunID]; !known {
		s.postponed[p.Artifact.RunID] = false
	}
}

// AddLeftovers takes what a node says of a run that this process does not carry: parts, and how run workers ended.
func (s *Service) AddLeftovers(from nodes.Node, m protocol.FromNode) {
	switch m := m.(type) {
	case protocol.WorkReady:
		s.AddPart(nodes.Part{WorkReady: m, Node: from})
	case protocol.WorkerState:
		if m.Status.Ended() {
			s.AddUnknownWorker(from, m)
		}
	}
}

// AddQuarantined remembers a part that its node cannot open, for the log of its run.
func (s *Service) AddQuarantined(p protocol.QuarantinedPart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.quarantined[p.RunID], p) {
		s.quarantined[p.RunID] = append(s.quarantined[p.RunID], p)
	}
}

// errAlreadyHandled: the process is at the run already. Two claims of it would fence each other, and the
// one that has the last word need not be the one that goes on.
var errAlreadyHandled = errors.New("the run is being finished already")

// Open finds the runs that an earlier process of this owner left behind. It
// returns when none of them is live any more, or the store does not answer. Those of
// other owners stay theirs until their leases have expired, see Watch.
func (s *Service) Open(ctx context.Context) error {
	runs, err := s.opts.Store.LiveRuns(ctx)
	if err != nil {
		return fmt.Errorf("looking for live runs: %w", err)
	}
	for _, run := range runs {
		err := s.finish(ctx, run, "The server restarted", true)
		if err != nil && !errors.Is(err, store.ErrLeaseHeld) && !errors.Is(err, errAlreadyHandled) {
			return fmt.Errorf("recovering run %s: %w", run.RunID, err)
		}
	}
	if err := s.sweepSpool(ctx); err != nil {
		return err
	}
	return s.resolveUnknownWorkers(ctx)
}

// finish ends a run that lost its owner, and has its results computed. why
// begins the sentence that users read. It is store.ErrLeaseHeld when another owner's
// lease goes on, and errInHand when this process is at it already; reclaim says that this
// owner's own lease does not count.
func (s *Service) finish(ctx context.Context, run engine.Run, why string, reclaim bool) (err error) {
	return s.takeOver(ctx, run, why, takeover{
		Claim: store.Claim{RunID: run.RunID, Owner: s.opts.Owner, Reclaim: reclaim}, stopping: func() {}})
}

// takeover says by what right a run is taken over. stopping is called when a STOP that was pending is under way: it is
// stored, or the loop that decides it has begun.
type takeover struct {
	store.Claim
	stopping func()
}

// resumeOrStop has the process go on with a live run, or returns it, stopped where that was asked for.
func (s *Service) resumeOrStop(ctx context.Context, run engine.Run, why string, last time.Time, stopping func()) (
	resumed bool, _ engine.Run, err error) {
	stop, err := s.pendingStop(ctx, run.RunID)
	if err != nil {
		return false, run, err
	}
	resumed, unable, err := s.resume(ctx, run, why, last, stop)
	if err == nil && !resumed {
		s.opts.Log.Info().Str("run_id", run.RunID).Str("why", unable).Msg("a run cannot be continued, and is ended")
		if stop != nil && (run.Status != engine.StatusCancelling || run.StopReason == "") {
			run, err = s.cancel(ctx, run, last, *stop)
		}
	}
	if err == nil && stop != nil {
		stopping()
	}
	return resumed, run, err
}

// takeOver is finish by that right.
func (s *Service) takeOver(ctx context.Context, run engine.Run, why string, by takeover) (err error) {
	id, carrier, told := run.RunID, run.Owner, run.UpdatedAt.Time
	if !s.beginFinishing(id) {
		return errAlreadyHandled
	}
	defer func() {
		if err != nil {
			// An error of the claim may hide that it was made.
			s.setUnfinished(id, why, err)
			s.endFinishing(id)
		}
	}()
	epoch, err := s.opts.Store.Claim(ctx, by.Claim)
	if err != nil {
		return err
	}
	// What its carrier wrote until now counts; from here on it writes nothing more.
	if run, err = s.opts.Store.Run(ctx, run.RunID); err != nil {
		return err
	}
	run.OwnerEpoch = epoch
	last, err := s.lastPersisted(ctx, run)
	if err != nil {
		return err
	}
	if run.Status.Live() {
		resumed, ended, err := s.resumeOrStop(ctx, run, why, last, by.stopping)
		switch {
		case err != nil:
			return err
		case resumed:
			s.endFinishing(run.RunID)
			return nil
		}
		run = ended
	}
	s.opts.Nodes.BroadcastAndWait(ctx, protocol.RunState{RunID: run.RunID, Epoch: epoch, Status: engine.StatusCancelling,
		StopReason: engine.StopWorkerFailure, LastSequence: math.MaxInt64, DrainTimeout: protocol.CancelTimeout})
	e := orphanedRun{Evidence: finalize.Evidence{Validity: live.NewValidity()}}
	now := s.opts.Clock()
	if run.Status.Live() {
		ahead, measured := s.timelineOf(run, now, last)
		now, e.MeasureAt = now.Add(ahead), measured
	}
	if run.Status.Live() {
		record, err := s.recordParts(ctx, run.RunID)
		if err != nil {
			return err
		}
		// The load of a run does not go on for longer without its server, however long that was away.
		if most := last.Add(protocol.ReassignAfter); now.After(most) {
			now = most
		}
		e.LostFrom = recordEnd(run, last, record)
		// What is known of another server's clock may be of no use: a run does not end before its record does.
		if now.Before(e.LostFrom) {
			now = e.LostFrom
		}
		e.LostTo = now
		heard := lastSeen(run, last, told, now, record)
		l := lostEnd{reason: why, last: last, lastSeen: heard, end: heard, from: e.LostFrom, to: now}
		if on, err := s.mayContinue(ctx, run.RunID); err != nil {
			return err
		} else if on {
			l.end = now
		}
		if run, err = s.endLost(ctx, run, epoch, l); err != nil {
			return err
		}
	}
	e.Run = run
	e.Writer = writer.New(s.opts.Store, run.RunID, epoch, s.opts.Log)
	s.mu.Lock()
	parts := s.parts.ofRun(run.RunID)
	s.mu.Unlock()
	if e.Parts, err = s.trustedParts(ctx, run.RunID, parts); err != nil {
		return err
	}
	e.RecordRemote = carrier != "" && carrier != s.opts.Owner && len(e.Parts) == 0 && !run.WarmupStartTime.IsZero()
	if err := s.loadResult(ctx, &e); err != nil {
		return err
	}
	s.mu.Lock()
	s.parts.drop(run.RunID, parts)
	s.mu.Unlock()
	s.opts.Log.Warn().Str("run_id", run.RunID).Str("status", string(run.Status)).Int("parts", len(e.Parts)).
		Msg("a run of an earlier process is finished")
	s.opts.Routines.Go(func() { e.Writer.Run(s.opts.Lifetime) })
	s.opts.Routines.Go(func() {
		defer e.Writer.Close()
		defer s.endFinishing(run.RunID)
		s.finalize(e, why, epoch)
	})
	return nil
}
