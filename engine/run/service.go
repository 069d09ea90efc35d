package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/results/enrich"
	"github.com/loadstone-db/loadstone/engine/run/admission"
	"github.com/loadstone-db/loadstone/engine/run/enrichment"
	"github.com/loadstone-db/loadstone/engine/run/finalize"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/query"
	"github.com/loadstone-db/loadstone/engine/run/recovery"
	"github.com/loadstone-db/loadstone/engine/store"
)

// reasonShutdown is a sentence that users read as the reason of a run's end.
const reasonShutdown = "The server was shut down"

// pushTimeout is how long an event waits for the store before it is sent anyway.
const pushTimeout = 500 * time.Millisecond

// How long Stop waits for a start that is under way, and until the decision is stored; less where
// the store is known to be away.
const (
	startTimeout         = 5 * time.Second
	stopTimeout          = time.Second
	stopTimeoutStoreDown = 100 * time.Millisecond
)

// Service runs runs. Its methods are safe for concurrent use. Errors that users
// may see are *engine.Error.
type Service struct {
	*query.Reader
	*Creator
	opts  Options
	nodes *nodes.Fleet

	lifetime context.Context
	end      context.CancelFunc
	routines sync.WaitGroup
	open     sync.Once
	close    sync.Once

	runs *ActiveRuns[*runLoop]
	// admission lets runs in where there is room for them.
	admission *admission.Controller
	hub       Hub
	ticks     TickMeter

	enrichments    *enrichment.Service
	finalizer      *finalize.Service
	recovery       *recovery.Service
	remoteCommands *RemoteCommands
	resultsProbe   patientProbe
}

// New returns a service; nothing happens before Open.
func New(opts Options) *Service {
	s := &Service{opts: opts, runs: NewActiveRuns[*runLoop](), ticks: defaults{}, nodes: nodes.New(nodes.Options{
		Log: opts.Log, Dialers: opts.Nodes, Source: opts.NodeSource, Version: opts.Version, Meter: opts.Metrics,
		Jitter: opts.Rand, Clock: opts.Clock, Content: opts.Content, Watcher: opts.Watcher, Network: opts.Network})}
	if opts.Plan == nil {
		s.opts.Plan = prepare.Plan
	}
	s.opts.Enrichment = cmp.Or(opts.Enrichment, enrich.DefaultPolicy())
	s.opts.Owner = cmp.Or(opts.Owner, "local")
	if opts.Prices == nil {
		s.opts.Prices = defaults{}
	}
	if ticks, ok := opts.Metrics.(TickMeter); ok {
		s.ticks = ticks
	}
	if opts.PollInterval <= 0 {
		s.opts.PollInterval = DefaultPollInterval
	}
	if opts.Disk == nil {
		s.opts.Disk = defaults{}
	}
	s.opts.TempDir = cmp.Or(opts.TempDir, os.TempDir())
	s.lifetime, s.end = context.WithCancel(context.Background())
	s.enrichments = enrichment.New(enrichment.Options{Store: opts.Store, Results: opts.Results, Policy: s.opts.Enrichment,
		TempDir: s.opts.TempDir, Disk: s.opts.Disk, Log: opts.Log, Lifetime: s.lifetime, Routines: &s.routines,
		Deps: s.deps(), Drivers: opts.Drivers, Runs: ownRuns{s}})
	s.admission = admission.New(admission.Options{Store: opts.Store, Nodes: s.nodes, Owner: s.opts.Owner,
		WaitForNodes: opts.WaitForNodes, Standalone: opts.Standalone, Log: opts.Log, Authorizer: opts.Authorizer,
		Runs: ownRuns{s}})
	s.Reader = query.New(query.Options{Store: opts.Store, Results: opts.Results, Enrichments: s.enrichments,
		Prices: s.opts.Prices, Live: s.runs, Admission: s.admission, Servers: observedServers{s}})
	s.Creator = NewCreator(CreatorOptions{Store: opts.Store, Server: s})
	s.finalizer = finalize.New(finalize.Options{Store: opts.Store, Results: opts.Results, Log: opts.Log,
		Drivers: opts.Drivers, Enrichments: s.enrichments})
	s.recovery = recovery.New(recovery.Options{Store: opts.Store, Version: opts.Version, Owner: s.opts.Owner,
		Log: opts.Log, Lifetime: s.lifetime, Routines: &s.routines, Finalizer: s.finalizer, Nodes: s.nodes,
		Enrichments: s.enrichments, Runs: recoveryHost{s.runs, s}, Clock: opts.Clock})
	s.remoteCommands = NewRemoteCommands(
		RemoteCommandOptions{Store: opts.Store, Server: s.opts.Owner, Log: opts.Log, Handler: s},
	)
	return s
}

// Admission lets the service's runs in.
func (s *Service) Admission() *admission.Controller { return s.admission }

// Nodes is the nodes that carry the service's runs.
func (s *Service) Nodes() *nodes.Fleet { return s.nodes }

// deps reads a connection anew each time: what goes on for long meets it as it is then.
func (s *Service) deps() prepare.Deps {
	return prepare.Deps{Plugins: s.opts.Plugins, Drivers: s.opts.Drivers, Connections: s.opts.Store,
		Recordings: s.opts.Recordings, Prices: s.opts.Prices.Prices}
}

// requestDeps are deps for one request: a connection is unsealed once.
func (s *Service) requestDeps() prepare.Deps {
	d := s.deps()
	d.Connections = prepare.OpenOnce(d.Connections)
	return d
}

// Open begins to listen to the nodes and recovers the runs that an earlier
// process left behind. It returns when their recovery has begun; figures are
// computed in the background.
func (s *Service) Open(ctx context.Context) error {
	var err error
	s.open.Do(func() {
		if err = s.nodes.Open(ctx, s.lifetime, s.routines.Go, messageHandler{s}); err != nil {
			return
		}
		if err = query.StoreError(s.recovery.Open(ctx)); err == nil {
			err = query.StoreError(s.enrichments.Resume(ctx))
		}
		if err == nil {
			err = query.StoreError(s.enrichments.ResumeAggregates(ctx))
		}
		s.routines.Go(func() { s.recovery.WatchLeases().Run(s.lifetime) })
		s.routines.Go(func() { s.admission.Run(s.lifetime) })
		s.routines.Go(func() { s.remoteCommands.Run(s.lifetime) })
	})
	return err
}

// Close interrupts enrichments, which the next process goes on with, stops the live runs, waits for them until ctx
// ends, and releases everything.
func (s *Service) Close(ctx context.Context) error {
	var err error
	s.close.Do(func() {
		runs := s.runs.Close()
		s.enrichments.Close()
		for _, l := range runs {
			l.submit(lifecycle.StopRequested{Reason: engine.StopUserRequested, Message: reasonShutdown, By: "server"})
		}
		for _, l := range runs {
			select {
			case <-l.done:
			case <-ctx.Done():
				err = fmt.Errorf("closing: run %s has not ended: %w", l.runID, ctx.Err())
			}
		}
		s.end()
		s.routines.Wait()
		s.hub.Close()
	})
	return err
}

// Stop is StopAs of a user.
func (s *Service) Stop(ctx context.Context, runID, by string) (engine.Run, error) {
	return s.StopAs(ctx, runID, lifecycle.UserStop(by))
}

// Revoke stops a run that its user has lost the right to, with the reason.
func (s *Service) Revoke(ctx context.Context, runID, why string) error {
	_, err := s.StopAs(ctx, runID, lifecycle.StopRequested{Reason: engine.StopUserRequested, Message: why, By: "server"})
	return err
}

// StopAs ends a run: a PREPARED one becomes CANCELLED, a live one CANCELLING. A terminal one is a conflict. Workers are
// told at once, also when the store is away. Where the run is another server's, it stops as by a user.
func (s *Service) StopAs(ctx context.Context, runID string, asked lifecycle.StopRequested) (engine.Run, error) {
	l, busy := s.runs.AwaitStarted(ctx, runID, startTimeout)
	if l == nil && busy {
		return engine.Run{}, &engine.Error{Code: engine.CodeConflict, Message: "The run is being started.",
			Hint: "stop it again in a moment"}
	}
	if l != nil {
		if run := l.Current(); run.Status.Terminal() {
			return engine.Run{}, query.FinishedError(run)
		}
		stored := l.submit(asked)
		patience := map[bool]time.Duration{false: stopTimeout, true: stopTimeoutStoreDown}[l.writer.Away()]
		select {
		case <-stored:
		case <-time.After(patience):
		case <-ctx.Done():
		}
		return l.Current(), nil
	}
	run, err := s.Run(ctx, runID)
	if err != nil {
		return engine.Run{}, err
	}
	if run.Status.Terminal() {
		return engine.Run{}, query.FinishedError(run)
	}
	if run.Status != engine.StatusPrepared {
		return s.stopRemote(ctx, runID, asked.By)
	}
	err = s.Cancel(ctx, runID, engine.StopUserRequested, lifecycle.ReasonUser)
	if errors.Is(err, store.ErrConflict) {
		if now, readErr := s.Run(ctx, runID); readErr == nil && now.Status != engine.StatusPrepared {
			return s.StopAs(ctx, runID, asked) // somebody has started it meanwhile
		}
	}
	if err != nil {
		return engine.Run{}, query.StoreError(fmt.Errorf("cancelling the run: %w", err))
	}
	return s.Run(ctx, runID)
}

// ActiveRunIDs are the runs that are live here, or being started.
func (s *Service) ActiveRunIDs() []string { return s.runs.ActiveRunIDs() }

// Delete removes a run that is not live, with its record. One that is about to be let go of is waited for.
func (s *Service) Delete(ctx context.Context, runID, by string) error {
	if err := query.AwaitReleased(ctx, func() (bool, error) { return s.deletable(ctx, runID) }); err != nil {
		return err
	}
	if err := s.opts.Store.DeleteRun(ctx, runID); err != nil {
		return query.StoreError(fmt.Errorf("deleting the run: %w", err))
	}
	if err := s.opts.Results.Delete(ctx, runID); err != nil {
		s.opts.Log.Warn().Err(err).Str("run_id", runID).Msg("the folder of a deleted run cannot be removed")
	}
	s.opts.Log.Info().Str("run_id", runID).Str("by", by).Msg("run deleted")
	return nil
}

// deletable says why a run cannot be deleted, and whether it has ended, so that it can be in a moment.
func (s *Service) deletable(ctx context.Context, runID string) (ended bool, err error) {
	l, busy := s.runs.Lookup(runID)
	if s.enrichments.Job(runID) != nil {
		return false, query.EnrichingError()
	}
	run, err := s.Run(ctx, runID)
	if err == nil && (l != nil || busy || run.Status.Live() || run.Phase == engine.PhaseProcessing) {
		err = query.InUseError(run)
	}
	return run.Status.Terminal(), err
}

// LiveState returns the latest payload of a live run, or nil. Nobody may change it.
func (s *Service) LiveState(runID string) *engine.LiveState {
	_, p, _ := s.runs.Current(runID)
	return p
}

// Wait returns the summary of a run once its figures are there. A run that has
// not been started is a conflict.
func (s *Service) Wait(ctx context.Context, runID string) (*engine.Summary, error) {
	if err := s.AwaitStart(ctx, runID); err != nil {
		return nil, err
	}
	l := s.runs.Get(runID)
	if l != nil {
		select {
		case <-l.figuresReady:
		case <-l.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if sum := l.summary.Load(); sum != nil {
			return s.withCost(ctx, l, *sum), nil
		}
	}
	return s.FinishedSummary(ctx, runID)
}

// RetryEnrichment asks the history of a finished run again, in the background.
// What was found before is kept.
func (s *Service) RetryEnrichment(ctx context.Context, runID string, by engine.Actor) (engine.Enrichment, error) {
	return s.enrichments.Retry(ctx, runID, by)
}

// withCost is a summary that is fresh from the run's loop with its cost.
func (s *Service) withCost(ctx context.Context, l *runLoop, sum engine.Summary) *engine.Summary {
	var plan *engine.Plan
	if l.plan != nil {
		plan = l.plan.Plan
	}
	if err := s.Price(ctx, &sum, l.Current(), plan); err != nil {
		s.opts.Log.Warn().Err(err).Str("run_id", sum.RunID).Msg("the cost of a run is not reckoned")
	}
	return &sum
}
