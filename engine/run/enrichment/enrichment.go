// Package enrichment carries the enrichments of runs: at most one for a run,
// some at a time, asked for again, stopped, and gone on with after a restart.
// What it asks, and how the answer is joined with the record, is engine/results/enrich's.
package enrichment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/enrich"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/run/writer"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
)

const (
	// enrichMargin is added before and after a run when its history is asked for:
	// clocks drift, and a history may round.
	enrichMargin = time.Minute
	// enrichShares bounds what is under way at a time. Each run holds 32 bytes for
	// every execution, and takes a share for every executionsPerShare begun, all
	// shares at most. Most of the time of an enrichment goes by between two questions, so that small ones share.
	enrichShares       = 16
	executionsPerShare = 500_000
	// adapterTimeout bounds one conversation with an adapter beside the load.
	adapterTimeout = 30 * time.Second
)

// Job is the enrichment of one run under way. A run has one at most.
type Job struct {
	cancel context.CancelFunc
	// stopped: a user asked for its end, which is not the end of the process.
	stopped atomic.Bool
	// revoked is why it was stopped for the user's rights; set before stopped.
	revoked atomic.Pointer[string]
	origin  Origin
	state   atomic.Pointer[engine.Enrichment]
	// done is closed when the last state is stored, or the process ends.
	done chan struct{}
	// interrupted is set before done when the next process goes on with it.
	interrupted bool
}

// Origin says who has asked for an enrichment again; nobody for one that belongs to its run's end, and for one that
// goes on after a restart.
type Origin struct{ By engine.Actor }

// whyStopped is the sentence of one that was stopped.
func (e *Job) whyStopped(byUser string) string {
	if why := e.revoked.Load(); why != nil {
		return *why
	}
	return byUser
}

// Store keeps what enrichments give, and knows those that are due.
type Store interface {
	// Results returns the parent's row first, then the run workers' by group.
	Results(ctx context.Context, runID string) ([]engine.RunResult, error)
	// SaveResult inserts or updates test_results rows of one run by ResultID, all of them or none; nil fields are
	// left as they are. With an Epoch, the first row's, that is not the run's it changes nothing and is ErrFenced.
	SaveResult(ctx context.Context, rows ...engine.RunResult) error
	// SaveArtifact records a fetched artifact; the same name and checksum again is harmless. epoch is
	// that of RunResult. A part of executions that were deleted is ErrExecutionsDeleted.
	SaveArtifact(ctx context.Context, epoch int64, a engine.Artifact) error
	// PendingEnrichments returns the terminal runs whose enrichment is PENDING or RUNNING.
	PendingEnrichments(ctx context.Context) ([]string, error)
	// PendingAggregates returns the terminal runs whose account aggregates are PENDING.
	PendingAggregates(ctx context.Context) ([]string, error)
}

// Options are what a service is made of; all of them are needed.
type Options struct {
	Store   Store
	Results record.Results
	Policy  enrich.Policy
	// TempDir is a folder for files under construction.
	TempDir string
	Disk    Disk
	Log     zerolog.Logger
	// Lifetime ends with the process, which waits for Routines at its end.
	Lifetime context.Context //nolint:containedctx // enrichments outlive the calls that begin them
	Routines *sync.WaitGroup
	Deps     prepare.Deps
	// Drivers are those of the databases that runs had.
	Drivers target.Drivers
	Runs    Runs
}

// Disk is where files under construction are.
type Disk interface {
	// CheckSpace is an error while there is no space for more than the control store; its sentence begins with what has
	// stopped.
	CheckSpace(stopped string) error
}

// Runs are the runs as enrichments need them.
type Runs interface {
	// Run is an error for a run that there is not, Detail everything about one.
	Run(ctx context.Context, runID string) (engine.Run, error)
	Detail(ctx context.Context, runID string) (engine.RunDetail, error)
	// Claim takes a run for this server, store.ErrLeaseHeld while another one has it.
	Claim(ctx context.Context, runID string) error
	// LogContext gives a context in which what an adapter says goes to the log of the run.
	LogContext(ctx context.Context, runID string) context.Context
	// PublishFinished shows a run whose enrichment has changed after its end.
	PublishFinished(d *engine.RunDetail)
}

// Service carries the enrichments of this process. Its methods are safe for concurrent use.
type Service struct {
	opts Options
	// sem bounds how much those under way hold at a time.
	sem *semaphore.Weighted

	mu       sync.Mutex
	closing  bool
	jobs     map[string]*Job
	awaiting map[string]bool // runs whose account aggregates are asked for again
}

// New returns a service without any enrichment under way.
func New(o Options) *Service {
	return &Service{opts: o, sem: semaphore.NewWeighted(enrichShares), jobs: map[string]*Job{},
		awaiting: map[string]bool{}}
}

// HasHistory reports whether a run with this plan may have a history to be joined with.
func (s *Service) HasHistory(plan *engine.Plan) bool { return s.opts.Drivers.Traits(plan).History }

// Skipped is the enrichment of a run whose target keeps no history of single queries,
// nil for a run that may be enriched.
func (s *Service) Skipped(plan *engine.Plan) *engine.Enrichment {
	if s.HasHistory(plan) {
		return nil
	}
	e := s.skipped(plan)
	return &e
}

func (s *Service) skipped(plan *engine.Plan) engine.Enrichment {
	reason := "The run was not prepared, so there is nothing to join with a history."
	if plan != nil {
		reason = s.opts.Drivers.Traits(
			plan,
		).Title + " keeps no history of single queries; the recorded executions are the source."
	}
	return engine.Enrichment{Status: engine.EnrichmentSkipped, Reason: reason}
}

// Close interrupts what is under way; the next process goes on with it.
func (s *Service) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for _, e := range s.jobs {
		e.cancel()
	}
}

// ActiveRunIDs are the ids of the runs that this process has in its hands.
func (s *Service) ActiveRunIDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]string, 0, len(s.jobs)+len(s.awaiting))
	for id := range s.jobs {
		ids = append(ids, id)
	}
	for id := range s.awaiting {
		ids = append(ids, id)
	}
	return ids
}

// Origins are the enrichments under way in this process, by run.
func (s *Service) Origins() map[string]Origin {
	s.mu.Lock()
	defer s.mu.Unlock()
	origins := make(map[string]Origin, len(s.jobs))
	for id, e := range s.jobs {
		origins[id] = e.origin
	}
	return origins
}

// State is the enrichment as it goes.
func (e *Job) State() engine.Enrichment { return *e.state.Load() }

// Done is closed when the last state is stored, or the process ends.
func (e *Job) Done() <-chan struct{} { return e.done }

// Interrupted reports, once it is done, whether the next process goes on with it.
func (e *Job) Interrupted() bool { return e.interrupted }

// Begin starts the enrichment of a terminal run, or returns the one that is under way.
func (s *Service) Begin(run engine.Run, plan *engine.Plan) *Job { return s.begin(run, plan, Origin{}) }

func (s *Service) begin(run engine.Run, plan *engine.Plan, origin Origin) *Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.jobs[run.RunID]; e != nil {
		return e
	}
	ctx, cancel := context.WithCancel(s.opts.Lifetime)
	e := &Job{cancel: cancel, done: make(chan struct{}), origin: origin}
	e.state.Store(&engine.Enrichment{Status: engine.EnrichmentPending, Reason: "It begins in a moment."})
	s.jobs[run.RunID] = e
	if s.closing {
		cancel() // the next process goes on with it
	}
	s.opts.Routines.Go(func() {
		defer cancel()
		s.runEnrichment(ctx, run, plan, e)
		s.mu.Lock()
		delete(s.jobs, run.RunID)
		s.mu.Unlock()
		close(e.done)
	})
	return e
}

// runEnrichment is the life of one enrichment, up to its stored end.
func (s *Service) runEnrichment(ctx context.Context, run engine.Run, plan *engine.Plan, e *Job) {
	log := s.opts.Log.With().Str("run_id", run.RunID).Logger()
	if s.saveEnrichment(ctx, run.RunID, *e.state.Load()) != nil {
		e.interrupted = true
		return
	}
	var got engine.Enrichment
	shares := min(1+s.figuresOf(ctx, run.RunID).executions/executionsPerShare, enrichShares)
	if err := s.sem.Acquire(ctx, shares); err == nil {
		got, err = s.enrichRun(ctx, run, plan, e)
		s.sem.Release(shares)
		if err != nil && ctx.Err() == nil {
			log.Error().Err(err).Msg("the enrichment of a run failed")
			got.Status, got.Reason, got.Retryable = engine.EnrichmentFailed, engine.AsError(err).Message, true
			got.EndedAt, got.NextPollAt = engine.At(time.Now()), engine.Time{}
		}
	} else {
		got = *e.state.Load()
	}
	if ctx.Err() != nil {
		if !e.stopped.Load() {
			e.interrupted = true
			return
		}
		got.Status, got.Reason, got.Retryable = engine.EnrichmentPartial, e.whyStopped("It was stopped by a user."), true
		got.EndedAt, got.NextPollAt = engine.At(time.Now()), engine.Time{}
	}
	e.state.Store(&got)
	if s.saveEnrichment(s.opts.Lifetime, run.RunID, got) != nil {
		e.interrupted = true
		return
	}
	if got.Aggregate != nil && !got.Aggregate.NextPollAt.IsZero() {
		s.awaitAggregates(run.RunID, got.Aggregate.NextPollAt.Time)
	}
	log.Info().Str("status", string(got.Status)).Int64("matched", got.Matched).Int64("executions", got.Executions).
		Int("polls", got.Polls).Msg("enrichment ended")
}

// saveEnrichment stores the state, however long the store stays away; the error is ctx's end.
func (s *Service) saveEnrichment(ctx context.Context, runID string, state engine.Enrichment) error {
	return writer.Retry(ctx, func() error {
		tctx, cancel := context.WithTimeout(ctx, writer.StoreTimeout)
		defer cancel()
		return s.opts.Store.SaveResult(tctx, engine.RunResult{ResultID: runID, RunID: runID, Enrichment: &state})
	})
}

// enrichRun asks the history, and the aggregates where there are any.
func (s *Service) enrichRun(ctx context.Context, run engine.Run, plan *engine.Plan, e *Job) (engine.Enrichment,
	error) {
	source := &historySource{svc: s, run: run, plan: plan}
	defer source.close()
	dir := filepath.Join(s.opts.TempDir, "enrichment-"+run.RunID)
	defer func() { _ = os.RemoveAll(dir) }() // what was kept is not there any more
	from, to := executionInterval(run)
	got, err := enrich.Run(ctx, enrich.Job{RunID: run.RunID, From: from, To: to, Policy: s.opts.Policy,
		Connect: source.open, Results: s.opts.Results,
		Dir:            dir,
		CheckDiskSpace: func() error { return s.opts.Disk.CheckSpace("The enrichment has stopped") },
		StorePart: func(ctx context.Context, a engine.Artifact, path string) error {
			if err := s.opts.Results.Put(ctx, a, record.LocalFile(path)); err != nil {
				return err
			}
			_ = os.Remove(path) // what stays goes with its folder
			return writer.Retry(ctx, func() error {
				tctx, cancel := context.WithTimeout(ctx, writer.StoreTimeout)
				defer cancel()
				return s.opts.Store.SaveArtifact(tctx, 0, a)
			})
		},
		Progress:  func(p engine.Enrichment) { e.state.Store(&p) },
		Permanent: source.isPermanent})
	if source.attached != nil && source.enrich.Note != "" {
		got.Notes = append(got.Notes, source.enrich.Note)
	}
	if err != nil || source.attached == nil {
		return got, err
	}
	if source.enrich.Aggregate != "" {
		got.Aggregate = s.aggregates(ctx, run, plan, source, from, to, 0)
		got.Retryable = got.Retryable || got.Aggregate.Status != engine.EnrichmentCompleted
	}
	return got, nil
}

// executionInterval is the interval in which a run's executions ended.
func executionInterval(run engine.Run) (from, to time.Time) {
	from = run.WarmupStartTime.Time
	if from.IsZero() {
		from = run.StartTime.Time
	}
	return from.Add(-enrichMargin), lastExecutionEnd(run).Add(enrichMargin)
}

// lastExecutionEnd is when a run's last execution ended, at the latest.
func lastExecutionEnd(run engine.Run) time.Time {
	if run.EndTime.IsZero() {
		return time.Now()
	}
	return run.EndTime.Time
}

// aggregates asks for them once: they come long after a run, and are asked for again.
func (s *Service) aggregates(ctx context.Context, run engine.Run, plan *engine.Plan, source *historySource, from,
	to time.Time, polls int) *engine.AggregateEnrichment {
	job := enrich.AggregateJob{RunID: run.RunID, From: from, To: to, Ended: lastExecutionEnd(run), Now: time.Now(),
		Plan: source.enrich, Database: source.attached.Database(), Statements: plan.Statements,
		Polls: polls, Permanent: source.isPermanent}
	known := s.figuresOf(ctx, run.RunID)
	job.Client, job.Expected = known.byStatement, known.executions
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return enrich.Aggregate(ctx, job)
}

// runFigures are what an enrichment asks of a run's figures.
type runFigures struct {
	byStatement []engine.StatementFigures
	executions  int64 // begun, statements in transactions too
}

func (s *Service) figuresOf(ctx context.Context, runID string) (f runFigures) {
	ctx, cancel := context.WithTimeout(ctx, writer.StoreTimeout)
	defer cancel()
	rows, err := s.opts.Store.Results(ctx, runID)
	if err != nil {
		return f
	}
	for _, r := range rows {
		if r.ResultID == runID && r.Figures != nil {
			a := r.Figures.Accounting
			f = runFigures{r.Figures.ByStatement, a.Started + a.Statements}
		}
	}
	return f
}

// historySource opens the history of a run's target when it is needed.
type historySource struct {
	svc      *Service
	run      engine.Run
	plan     *engine.Plan
	attached *prepare.Attached
	enrich   plugin.EnrichPlan
}

func (h *historySource) open(ctx context.Context) (enrich.History, error) {
	ctx = h.svc.opts.Runs.LogContext(ctx, h.run.RunID)
	a, err := prepare.Attach(ctx, h.svc.opts.Deps, h.run.Scenario, h.plan, "enrichment")
	if err != nil {
		return nil, err
	}
	from, to := executionInterval(h.run)
	actx, cancel := context.WithTimeout(ctx, adapterTimeout)
	defer cancel()
	answer, err := a.CallAdapter(actx, plugin.AdapterRequest{Op: plugin.OpEnrich, RunID: h.run.RunID,
		TableName: h.run.Scenario.Target.TableName, Warehouse: h.run.Scenario.Target.Warehouse,
		From: from.UTC().Format(time.RFC3339Nano), To: to.UTC().Format(time.RFC3339Nano), NowMs: time.Now().UnixMilli()})
	switch {
	case errors.Is(err, plugin.ErrFailed):
		err = &enrich.SkipError{Reason: fmt.Sprintf("The adapter %s knows no history of single queries; the recorded "+
			"executions are the source.", a.Adapter())}
	case err != nil:
	case answer.Enrich == nil:
		err = &engine.Error{Code: engine.CodePlugin,
			Message: fmt.Sprintf("The adapter %s did not say how its history is read.", a.Adapter())}
	case answer.Enrich.Skip != "":
		err = &enrich.SkipError{Reason: answer.Enrich.Skip}
	case answer.Enrich.Page == "":
		err = &engine.Error{Code: engine.CodePlugin,
			Message: fmt.Sprintf("The adapter %s did not say how its history is read.", a.Adapter())}
	}
	if err == nil {
		err = prepare.ReadOnly(a.Dialect(), answer.Enrich.Page, answer.Enrich.Aggregate)
	}
	if err != nil {
		a.Close()
		return nil, err
	}
	h.attached, h.enrich = a, *answer.Enrich
	return enrich.NewHistory(a.Database(), *answer.Enrich), nil
}

// isPermanent says which errors of a history stay.
func (h *historySource) isPermanent(err error) (string, bool) {
	var e *engine.Error
	if errors.As(err, &e) {
		return engine.ErrorText(err), e.Code == engine.CodePlugin || e.Code == engine.CodeInvalid
	}
	if h.attached == nil {
		return err.Error(), false
	}
	c := h.attached.Database().Classify(err)
	text := c.Message
	if text == "" {
		text = err.Error()
	}
	return text, c.Class == engine.ErrClassAuth || c.Class == engine.ErrClassSyntax
}

func (h *historySource) close() {
	if h.attached != nil {
		h.attached.Close()
	}
}

// Retry asks the history of a finished run again, in the background.
// What was found before is kept.
func (s *Service) Retry(ctx context.Context, runID string, by engine.Actor) (engine.Enrichment, error) {
	s.mu.Lock()
	closing, under := s.closing, s.jobs[runID]
	s.mu.Unlock()
	if closing {
		return engine.Enrichment{}, &engine.Error{Code: engine.CodeUnavailable, Message: "The server is shutting down."}
	}
	if under != nil {
		return engine.Enrichment{}, &engine.Error{Code: engine.CodeConflict,
			Message: "The enrichment of this run is under way.", Hint: "wait for its end"}
	}
	d, err := s.opts.Runs.Detail(ctx, runID)
	if err != nil {
		return engine.Enrichment{}, err
	}
	switch {
	case !d.Status.Terminal() || d.Summary == nil:
		return engine.Enrichment{}, &engine.Error{Code: engine.CodeConflict,
			Message: fmt.Sprintf("The run is %s and has no figures yet.", d.Status),
			Hint:    "its enrichment begins by itself when it has"}
	case executions.DeletedNotice(d.Run) != "":
		return engine.Enrichment{}, &engine.Error{Code: engine.CodeConflict, Message: executions.DeletedNotice(d.Run)}
	case !s.HasHistory(d.Plan):
		return engine.Enrichment{}, &engine.Error{Code: engine.CodeConflict, Message: s.skipped(d.Plan).Reason}
	}
	e := s.begin(d.Run, d.Plan, Origin{By: by})
	s.opts.Log.Info().Str("run_id", runID).Str("by", by.Name).Msg("enrichment asked for again")
	return *e.state.Load(), nil
}

// Stop ends the enrichment of a run; what was found is kept.
func (s *Service) Stop(ctx context.Context, runID, by string) (engine.Enrichment, error) {
	e := s.Job(runID)
	if e == nil {
		if _, err := s.opts.Runs.Run(ctx, runID); err != nil {
			return engine.Enrichment{}, err
		}
		return engine.Enrichment{}, &engine.Error{Code: engine.CodeConflict,
			Message: "No enrichment of this run is under way."}
	}
	e.stopped.Store(true)
	e.cancel()
	s.opts.Log.Info().Str("run_id", runID).Str("by", by).Msg("enrichment stopped")
	select {
	case <-e.done:
	case <-ctx.Done():
	}
	return *e.state.Load(), nil
}

// Revoke ends the enrichment of a run whose user has lost the right to it, if one is under way; why is a sentence.
func (s *Service) Revoke(ctx context.Context, runID, why string) error {
	e := s.Job(runID)
	if e == nil {
		return nil
	}
	e.revoked.Store(&why)
	e.stopped.Store(true)
	e.cancel()
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Job is the enrichment of a run that is under way, or nil.
func (s *Service) Job(runID string) *Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs[runID]
}

// State is the state of a run's enrichment: as it goes, else as it was stored.
func (s *Service) State(runID string, stored *engine.Enrichment, plan *engine.Plan) engine.Enrichment {
	if e := s.Job(runID); e != nil {
		return *e.state.Load()
	}
	switch {
	case stored != nil:
		return *stored
	case plan == nil:
		return live.NotEnriched()
	case s.HasHistory(plan):
		return engine.Enrichment{Status: engine.EnrichmentPending, Reason: "The history is asked when the run has ended."}
	}
	return s.skipped(plan)
}

// Stored is a run's enrichment as it was stored, nil when there is none or it cannot be read.
func (s *Service) Stored(runID string) *engine.Enrichment {
	ctx, cancel := context.WithTimeout(s.opts.Lifetime, writer.StoreTimeout)
	defer cancel()
	rows, err := s.opts.Store.Results(ctx, runID)
	if err != nil || len(rows) == 0 {
		return nil
	}
	return rows[0].Enrichment
}

// Resume goes on with those that an earlier process was asked for again.
func (s *Service) Resume(ctx context.Context) error {
	ids, err := s.opts.Store.PendingEnrichments(ctx)
	if err != nil {
		return fmt.Errorf("looking for enrichments: %w", err)
	}
	for _, id := range ids {
		d, err := s.opts.Runs.Detail(ctx, id)
		if err != nil {
			return err
		}
		// A run that is still processed goes on with it by itself.
		if d.Phase != engine.PhaseNone || !s.HasHistory(d.Plan) {
			continue
		}
		switch err := s.opts.Runs.Claim(ctx, id); {
		case errors.Is(err, store.ErrLeaseHeld):
			// Its owner goes on with it.
		case err != nil:
			return fmt.Errorf("claiming run %s: %w", id, err)
		default:
			s.Begin(d.Run, d.Plan)
		}
	}
	return nil
}
