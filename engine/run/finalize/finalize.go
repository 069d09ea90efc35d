package finalize

import (
	"context"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/run/writer"
	"github.com/loadstone-db/loadstone/engine/target"
)

// Worker is a run worker as its results are computed.
type Worker struct {
	ID string
	// ResultID names its row of the results.
	ResultID string
	Group    int
	// Failure is why it ended, empty when it did what it was told.
	Failure string
	// Left: its row says already how it ended, and when, which was before the run did.
	Left bool
	// Totals are nil when the worker's process ended without telling them.
	Totals *engine.Totals
	// LoadStart is nil when its load did not begin, or nobody knows.
	LoadStart *engine.LoadStart
}

// Evidence is everything that the results of a run are computed from.
type Evidence struct {
	Run         engine.Run
	Writer      *writer.Writer
	Plan        *engine.Plan
	Environment engine.Environment
	Workers     []Worker
	// Parts are those that nodes still hold.
	Parts    []nodes.Part
	Validity *live.Validity
	Search   *engine.FindMaxResult // nil without a search
	// MeasureAt is when the run workers were told to measure; zero when only the store remembers.
	MeasureAt time.Time
	// LostFrom and LostTo enclose the time of which no record exists, when the process was killed.
	LostFrom, LostTo time.Time
	// LivePercentiles are the percentiles of the measurement as they were shown last.
	LivePercentiles LivePercentiles
	// Dropped are the seconds in which operations were dropped, Servers what answered beside the load; both are of a run
	// that reconnects.
	Dropped []live.Drops
	Servers []Server
	// DropsKnown: Dropped has all of them.
	DropsKnown bool
	// RecordRemote: another server carried the run, in whose data directory its record lies.
	RecordRemote bool
	// changes are the run's events that change its load.
	changes []engine.Event
}

// Result is what processing gave.
type Result struct {
	// Summary is nil when the process ended before it was there.
	Summary *engine.Summary
	// Problems are sentences for the run's log.
	Problems []string
	// Stored are the work ids of the parts that are safe.
	Stored []string
}

// Store reads what the record of a run does not have.
type Store interface {
	// Events returns the control events after a sequence, those of the given types alone where some are given.
	Events(ctx context.Context, runID string, afterSequence int64, only ...engine.EventType) ([]engine.Event, error)
	// WarehouseChanges returns the polls at which the warehouse was another than at the poll
	// before, whatever it had to do, and the latest: a week of polls is thousands of equal ones.
	WarehouseChanges(ctx context.Context, runID string) ([]engine.WarehousePoint, error)
}

// Options are what a service is made of; all of them are needed but the last.
type Options struct {
	Store   Store
	Results record.Results
	Log     zerolog.Logger
	// Drivers are those of the databases that runs had.
	Drivers     target.Drivers
	Enrichments Enrichments
	// InteractiveLimit is how long an interactive warehouse executes a statement; what takes
	// longer is executed again on its fallback warehouse, if it has one. Zero means 5 s.
	InteractiveLimit time.Duration
}

// Enrichments are what is asked of the histories of runs.
type Enrichments interface {
	// Skipped is the enrichment of a run whose target keeps no history; nil for other runs.
	Skipped(plan *engine.Plan) *engine.Enrichment
}

// Service computes what runs gave. It keeps nothing of one.
type Service struct{ opts Options }

// New returns a service.
func New(o Options) *Service {
	if o.InteractiveLimit == 0 {
		o.InteractiveLimit = 5 * time.Second
	}
	return &Service{opts: o}
}

// changes are what users changed of a run's load while it went on; none where that cannot be read.
func (s *Service) changes(ctx context.Context, runID string) []engine.Event {
	events, err := s.opts.Store.Events(ctx, runID, 0, engine.EventLoadChanged)
	if err != nil {
		s.opts.Log.Warn().Err(err).Str("run_id", runID).
			Msg("the events cannot be read: changes of the load are not in the figures")
	}
	return events
}

// meanRate is what the schedule asked for on average, with what users changed while the run went on.
func (e Evidence) meanRate(f *engine.Figures) float64 {
	return scaling.MeanRate(e.Run.Scenario.Workload, e.changes, f.MeasuredFrom.Time, f.MeasuredTo.Time)
}

// Process stores the parts, computes the exact figures and saves the results.
// It returns an outcome without summary only when ctx ends before.
func (s *Service) Process(ctx context.Context, e Evidence) *Result {
	o := &Result{}
	v := e.Validity
	incomplete := func(about engine.Note) {
		o.Problems = append(o.Problems, about.String())
		from, to := e.Run.WarmupEndTime.Time, e.Run.EndTime.Time
		if from.IsZero() {
			from = e.Run.StartTime.Time
		}
		v.Add(engine.CauseIncompleteRecord, about, from, to)
	}
	for i, err := range s.storeParts(ctx, e.Writer, e.Parts) {
		p := e.Parts[i]
		if err != nil {
			if ctx.Err() != nil {
				return o
			}
			s.opts.Log.Error().Err(err).Str("run_id", e.Run.RunID).Str("part", p.Artifact.Name).
				Msg("a part of the record cannot be stored")
			incomplete(engine.Note{Code: engine.AboutPartNotStored, Part: p.Artifact.Name, Text: engine.AsError(err).Message})
			continue
		}
		o.Stored = append(o.Stored, p.WorkID)
	}
	totals, known := e.totals()
	e.changes = s.changes(ctx, e.Run.RunID)
	parent, workers, err := s.figures(ctx, e)
	if err != nil {
		if ctx.Err() != nil {
			return o
		}
		s.opts.Log.Error().Err(err).Str("run_id", e.Run.RunID).Msg("the figures cannot be computed")
		incomplete(engine.Note{Code: engine.AboutFiguresFailed, Text: engine.AsError(err).Message})
		parent = &engine.Figures{ByKind: map[engine.Kind]*engine.KindFigures{}, RecordPartial: true}
		workers = make([]*engine.Figures, len(e.Workers))
		account(parent, totals, known)
	}
	countOwn(parent, e.Plan)
	for _, w := range workers {
		countOwn(w, e.Plan)
	}
	parent.LivePercentiles = e.LivePercentiles.compareExact(parent)
	if rate := e.meanRate(parent); rate > 0 && parent.Operations > 0 {
		parent.TargetQPS = &rate
	}
	parent.ByLoad = s.byLoad(ctx, e, parent)
	parent.Outages, parent.UnknownOutcomes = s.outages(ctx, e, parent)
	noteOutages(v, parent)
	s.serverTime(ctx, e, parent)
	if !parent.Accounting.Balanced {
		incomplete(engine.Note{Code: engine.AboutUnbalanced, Text: strings.Join(parent.Accounting.Problems, "; ")})
	}
	if e.RecordRemote {
		v.AddFigureNote(engine.Note{Code: engine.NoteRecordUnreachable})
	}
	if !e.LostTo.IsZero() && !e.Run.WarmupStartTime.IsZero() {
		v.Add(engine.CauseIncompleteRecord, engine.Note{Code: engine.AboutServerDown}, e.LostFrom, e.LostTo)
	}
	end := e.Run.MeasurementEndTime.Time
	if end.IsZero() {
		end = e.Run.EndTime.Time
	}
	scheduled, dropped := parent.Accounting.Measured()
	seen := int64(0)
	if !e.LostTo.IsZero() || !parent.Accounting.Balanced {
		seen = e.Run.TotalOps
	}
	v.Outcome(live.Outcome{From: e.Run.WarmupEndTime.Time, To: end, Operations: parent.Operations,
		Errors: parent.Errors.Count, CountedLive: seen, Warmup: parent.Accounting.Warmup,
		Scheduled: scheduled, Dropped: dropped, Ended: true, Search: e.Run.Scenario.Workload.IsSearch()})
	if parent.Failing != nil {
		v.SetFailing(failingTimes(parent, e.Run.Scenario.Workload.TolerateOutage()))
	}
	v.JudgeWitnesses(parent)
	v.JudgeFreezes(parent, e.Run.Scenario.Workload.ConcurrentConnections)
	v.JudgeHeldOver(parent, e.Run.Scenario.Workload.ConcurrentConnections)
	s.checkFallback(ctx, e, parent)
	s.checkBurst(ctx, e, parent)
	addNotes(v, parent)
	noteExtent(v, parent, e.Run.Scenario.Workload)
	if e.Plan != nil {
		noteStatements(v, parent, e.Plan.Statements)
	}
	noteNothingInserted(v, parent)
	addMisses(v, parent, e.Plan, e.Run.WarmupEndTime.Time, end)
	if e.Search == nil {
		addFailedKinds(v, parent, e.Run.WarmupEndTime.Time, end)
	}
	if e.Run.WarmupEndTime.IsZero() {
		v.SetUnmeasured()
	}
	result := s.parentResult(e, parent)
	if err := s.saveResults(ctx, e, result, workers); err != nil {
		if ctx.Err() != nil {
			return o
		}
		o.Problems = append(o.Problems, "The results could not be stored: "+engine.AsError(err).Message)
	}
	o.Summary = Summarize(e.Run, result)
	return o
}

// account completes the identity with what the workers counted and checks it.
func account(f *engine.Figures, t engine.Totals, known bool) {
	a := &f.Accounting
	counted := t.Accounting
	counted.Recorded, counted.Warmup, counted.Statements = a.Recorded, a.Warmup, a.Statements
	*a = counted
	if known {
		held := t.Connections
		f.Connections, f.KeysReplaced = &held, t.KeysReplaced
	}
	a.Check()
	if !known {
		a.Balanced, f.CountsMissing, a.Problems = false, true, []string{engine.ProblemCountsMissing}
	}
}
