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
	runlive "github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/run/query"
	"github.com/loadstone-db/loadstone/engine/run/recovery"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
)

// Sentences that users read as the reason of a run's end.
const (
	reasonUser     = "User requested cancellation"
	reasonShutdown = "The server was shut down"
)

// pushDeadline is how long an event waits for the store before it is sent anyway.
const pushDeadline = 500 * time.Millisecond

// How long Stop waits for a start that is under way, and until the decision is stored; less where
// the store is known to be away.
const (
	startReply    = 5 * time.Second
	stopReply     = time.Second
	stopReplyAway = 100 * time.Millisecond
)

// Service runs runs. Its methods are safe for concurrent use. Errors that users
// may see are *engine.Error.
type Service struct {
	*query.Reader
	*Desk
	opts  Options
	nodes *nodes.Fleet

	lifetime context.Context
	end      context.CancelFunc
	routines sync.WaitGroup
	open     sync.Once
	close    sync.Once

	runs *Registry[*live]
	// doorman lets runs in where there is room for them.
	doorman *admission.Doorman
	board   Board
	ticks   TickMeter
	traits  func(*engine.Plan) target.Traits

	enrichments *enrichment.Service
	outcomes    *finalize.Service
	recovery    *recovery.Service
	relay       *Relay
}

// New returns a service; nothing happens before Open.
func New(opts Options) *Service {
	s := &Service{opts: opts, runs: NewActiveRuns[*live](), traits: prepare.TraitsBy(opts.Drivers),
		nodes: nodes.New(fleetOptions(opts)), ticks: defaults{}}
	if opts.Plan == nil {
		s.opts.Plan = prepare.Plan
	}
	s.opts.Enrichment = cmp.Or(opts.Enrichment, enrich.DefaultPolicy())
	s.opts.Owner = cmp.Or(opts.Owner, "local")
	if opts.Prices == nil {
		s.opts.Prices = defaults{}
	}
	if ticks, ok := opts.Meter.(TickMeter); ok {
		s.ticks = ticks
	}
	if opts.PollEvery <= 0 {
		s.opts.PollEvery = Every
	}
	if opts.Disk == nil {
		s.opts.Disk = defaults{}
	}
	s.opts.Scratch = cmp.Or(opts.Scratch, os.TempDir())
	s.lifetime, s.end = context.WithCancel(context.Background())
	s.enrichments = enrichment.New(enrichment.Options{Store: opts.Store, Results: opts.Results, Policy: s.opts.Enrichment,
		Scratch: s.opts.Scratch, Room: s.opts.Disk.CheckSpace, Log: opts.Log,
		Lifetime: s.lifetime, Go: s.routines.Go, Deps: s.deps, Traits: s.traits,
		Detail: func(ctx context.Context, runID string) (engine.RunDetail, error) { return s.Detail(ctx, runID) },
		Heard:  s.heard,
		Known:  func(ctx context.Context, runID string) error { _, err := s.Run(ctx, runID); return err },
		Claim: func(ctx context.Context, runID string) error {
			_, err := s.recovery.Claim(ctx, runID, true)
			return err
		},
		Changed: func(d *engine.RunDetail) { s.board.Show(d.RunID, runlive.Resting(d, time.Now()), false) }})
	s.doorman = admission.New(admission.Options{Store: opts.Store, Nodes: s.nodes, Owner: s.opts.Owner,
		WaitForNodes: opts.WaitForNodes, Alone: opts.Alone, Log: opts.Log, May: authorize(opts.Authorizer),
		GiveUp: func(ctx context.Context, runID, why string) error {
			return s.Cancel(ctx, runID, engine.StopSetupFailure, why)
		},
		Start: func(ctx context.Context, runID, by string) error { _, err := s.start(ctx, runID, by, 0); return err }})
	s.Reader = query.New(query.Options{Store: opts.Store, Results: opts.Results, Enrichments: s.enrichments,
		Prices: s.opts.Prices.Prices, Live: s.runs.Current, Waiting: s.doorman.Waiting})
	s.Desk = NewCreator(CreatorOptions{Store: opts.Store, Server: s})
	s.outcomes = finalize.New(finalize.Options{Store: opts.Store, Results: opts.Results, Log: opts.Log, Traits: s.traits,
		Skipped: s.enrichments.Skipped})
	s.recovery = recovery.New(recovery.Options{Store: opts.Store, Version: opts.Version, Owner: s.opts.Owner,
		Log: opts.Log, Lifetime: s.lifetime, Go: s.routines.Go, Outcomes: s.outcomes, Nodes: s.nodes,
		Enrichments: s.enrichments, Live: carrier{s.runs, s}, Clock: opts.Clock})
	s.relay = NewCommand(CommandOptions{Store: opts.Store, Server: s.opts.Owner, Log: opts.Log, Handler: s})
	return s
}

// Doorman lets the service's runs in.
func (s *Service) Doorman() *admission.Doorman { return s.doorman }

// Fleet is the nodes that carry the service's runs.
func (s *Service) Fleet() *nodes.Fleet { return s.nodes }

func (s *Service) deps() prepare.Deps {
	return prepare.Deps{Plugins: s.opts.Plugins, Drivers: s.opts.Drivers, Connections: s.opts.Store,
		Recordings: s.opts.Recordings}
}

// Open begins to listen to the nodes and recovers the runs that an earlier
// process left behind. It returns when their recovery has begun; figures are
// computed in the background.
func (s *Service) Open(ctx context.Context) error {
	var err error
	s.open.Do(func() {
		if err = s.nodes.Open(ctx, s.lifetime, s.routines.Go, hearing{s}); err != nil {
			return
		}
		if err = query.StoreError(s.recovery.Open(ctx)); err == nil {
			err = query.StoreError(s.enrichments.Resume(ctx))
		}
		if err == nil {
			err = query.StoreError(s.enrichments.ResumeAggregates(ctx))
		}
		s.routines.Go(func() { s.recovery.Watch().Keep(s.lifetime) })
		s.routines.Go(func() { s.doorman.Keep(s.lifetime) })
		s.routines.Go(func() { s.relay.Keep(s.lifetime) })
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
			l.ask(lifecycle.StopAsked{Reason: engine.StopUserRequested, Sentence: reasonShutdown, By: "server"})
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
		s.board.Close()
	})
	return err
}

// Stop is StopAs of a user.
func (s *Service) Stop(ctx context.Context, runID, by string) (engine.Run, error) {
	return s.StopAs(ctx, runID, lifecycle.StopAsked{Reason: engine.StopUserRequested, Sentence: reasonUser, By: by})
}

// StopAs ends a run: a PREPARED one becomes CANCELLED, a live one CANCELLING. A terminal one is a conflict. Workers are
// told at once, also when the store is away. Where the run is another server's, it stops as by a user.
func (s *Service) StopAs(ctx context.Context, runID string, asked lifecycle.StopAsked) (engine.Run, error) {
	l, busy := s.runs.Settled(ctx, runID, startReply)
	if l == nil && busy {
		return engine.Run{}, &engine.Error{Code: engine.CodeConflict, Message: "The run is being started.",
			Hint: "stop it again in a moment"}
	}
	if l != nil {
		if run := l.Current(); run.Status.Terminal() {
			return engine.Run{}, query.Finished(run)
		}
		stored := l.ask(asked)
		patience := map[bool]time.Duration{false: stopReply, true: stopReplyAway}[l.keeper.Away()]
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
		return engine.Run{}, query.Finished(run)
	}
	if run.Status != engine.StatusPrepared {
		return s.stopElsewhere(ctx, runID, asked.By)
	}
	err = s.Cancel(ctx, runID, engine.StopUserRequested, reasonUser)
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

// Held are the runs that are live here, or being started.
func (s *Service) Held() []string { return s.runs.Held() }

// Delete removes a run that is not live, with its record. One that is about to be let go of is waited for.
func (s *Service) Delete(ctx context.Context, runID, by string) error {
	if err := query.Released(ctx, func() (bool, error) { return s.deletable(ctx, runID) }); err != nil {
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
	l, busy := s.runs.Look(runID)
	if s.enrichments.Of(runID) != nil {
		return false, query.Enriching()
	}
	run, err := s.Run(ctx, runID)
	if err == nil && (l != nil || busy || run.Status.Live() || run.Phase == engine.PhaseProcessing) {
		err = query.InHand(run)
	}
	return run.Status.Terminal(), err
}

// Live returns the latest payload of a live run, or nil. Nobody may change it.
func (s *Service) Live(runID string) *engine.Payload {
	_, p, _ := s.runs.Current(runID)
	return p
}

// Wait returns the summary of a run once its figures are there. A run that has
// not been started is a conflict.
func (s *Service) Wait(ctx context.Context, runID string) (*engine.Summary, error) {
	if err := s.AwaitStart(ctx, runID); err != nil {
		return nil, err
	}
	l := s.runs.Find(runID)
	if l != nil {
		select {
		case <-l.figured:
		case <-l.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if sum := l.summary.Load(); sum != nil {
			return s.priced(ctx, l, *sum), nil
		}
	}
	return s.Figured(ctx, runID)
}

// RetryEnrichment asks the history of a finished run again, in the background.
// What was found before is kept.
func (s *Service) RetryEnrichment(ctx context.Context, runID, by string) (engine.Enrichment, error) {
	return s.enrichments.Retry(ctx, runID, by)
}

// priced is a summary that is fresh from the run's loop with its cost.
func (s *Service) priced(ctx context.Context, l *live, sum engine.Summary) *engine.Summary {
	var plan *engine.Plan
	if l.plan != nil {
		plan = l.plan.Plan
	}
	if err := s.Price(ctx, &sum, l.Current(), plan); err != nil {
		s.opts.Log.Warn().Err(err).Str("run_id", sum.RunID).Msg("the cost of a run is not reckoned")
	}
	return &sum
}
