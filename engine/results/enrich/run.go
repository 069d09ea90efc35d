package enrich

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	resultsrecord "github.com/loadstone-db/loadstone/engine/results/record"
)

// Job is the enrichment of one run.
type Job struct {
	RunID string
	// From and To bound the ends of the run's executions.
	From, To time.Time
	Policy   Policy
	// Connect opens the history. It is called when there is something to look for,
	// again after it failed, and may answer a *SkipError.
	Connect func(ctx context.Context) (History, error)
	Results resultsrecord.Results
	// Dir is where parts are written before Keep takes them.
	Dir string
	// StorePart stores a finished part, whose file is at path, beside the executions.
	StorePart func(ctx context.Context, a engine.Artifact, path string) error
	// Progress is told the state whenever it changes; the value is the caller's. It may be nil.
	Progress func(engine.Enrichment)
	// Permanent says whether an error of the history stays however often it is
	// asked, and gives its sentence. nil: none does.
	Permanent func(error) (sentence string, forGood bool)
	// CheckDiskSpace is asked before each page; its error ends the job, which keeps what it has. nil: there is room.
	CheckDiskSpace func() error
	// Clock is nil for the system's.
	Clock Clock
}

// SkipError is the error of a target that keeps no history.
type SkipError struct{ Reason string }

func (s *SkipError) Error() string { return s.Reason }

// Clock tells the time and waits; tests put their own in its place.
type Clock interface {
	Now() time.Time
	// Wait returns nil when d has passed and ctx's error when it ended before.
	Wait(ctx context.Context, d time.Duration) error
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// jobRun is a job under way.
type jobRun struct {
	Job
	index index
	sums  [engine.NumKinds]serverTimes
	state engine.Enrichment
	// history is nil until it is open.
	history History
	// last is the number of the newest stored part.
	last  int
	notes map[string]bool
}

// Run polls the history until the course is over and returns what came of it.
// What an earlier process had matched counts. An error is returned only when ctx
// ended, or when the record or a part cannot be read or stored; what was matched up to
// then is kept.
func Run(ctx context.Context, j Job) (engine.Enrichment, error) {
	if j.Clock == nil {
		j.Clock = systemClock{}
	}
	w := &jobRun{Job: j, notes: map[string]bool{}}
	w.state = engine.Enrichment{Status: engine.EnrichmentRunning, StartedAt: engine.At(j.Clock.Now()),
		ByKind: map[engine.Kind]*engine.KindEnrichment{}}
	if err := w.open(ctx); err != nil {
		return w.state, err
	}
	begun := j.Clock.Now()
	course := NewPollSchedule(j.Policy, w.index.executions(), w.index.matched)
	v := course.Begin()
	for !v.Done {
		w.reportProgress()
		err := w.poll(ctx)
		w.state.Polls++
		if ctx.Err() != nil {
			w.finish()
			return w.state, ctx.Err()
		}
		elapsed := j.Clock.Now().Sub(begun)
		var own *storeError
		var skip *SkipError
		switch {
		case errors.As(err, &skip):
			v = course.finish(engine.EnrichmentSkipped, skip.Reason)
		case errors.As(err, &own):
			w.finish()
			return w.state, own.err
		case err != nil:
			sentence, forGood := err.Error(), false
			if j.Permanent != nil {
				sentence, forGood = j.Permanent(err)
			}
			v = course.PollFailed(elapsed, w.index.matched, forGood, sentence)
		default:
			v = course.PollSucceeded(elapsed, w.index.matched)
		}
		if v.Done {
			break
		}
		w.state.NextPollAt = engine.At(j.Clock.Now().Add(v.Wait))
		w.reportProgress()
		if err := j.Clock.Wait(ctx, v.Wait); err != nil {
			w.finish()
			return w.state, err
		}
		w.state.NextPollAt = engine.Time{}
	}
	w.state.Status, w.state.Reason, w.state.NextPollAt = v.Status, v.Reason, engine.Time{}
	w.state.EndedAt = engine.At(j.Clock.Now())
	w.state.Retryable = v.Status != engine.EnrichmentSkipped && w.index.matched < w.index.executions()
	w.finish()
	w.reportProgress()
	return w.state, nil
}

// storeError is an error of ours, not of the history.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// open reads the record and what is matched already.
func (w *jobRun) open(ctx context.Context) error {
	err := w.Results.QueryRows(ctx, w.RunID, func(q *resultsrecord.QueryRows) error { w.index.add(q); return nil })
	if err != nil {
		return fmt.Errorf("reading the query ids of the run: %w", err)
	}
	w.index.build()
	w.last, err = w.Results.Enriched(ctx, w.RunID, func(row *engine.EnrichedExecution) error {
		if e := w.index.find(row.QueryID); e != nil && w.index.match(e, row.ServerMs) && !e.warmup {
			w.sums[e.kind].add(row)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the enrichment so far: %w", err)
	}
	w.state.Executions, w.state.WithoutID = w.index.executions(), w.index.withoutID
	w.updateRatios()
	return nil
}

// poll reads the history once, and stores what it brought as a part.
func (w *jobRun) poll(ctx context.Context) (err error) {
	if w.history == nil {
		if w.history, err = w.Connect(ctx); err != nil {
			w.history = nil
			return err
		}
	}
	var part *resultsrecord.EnrichmentWriter
	defer func() {
		if part == nil {
			return
		}
		// What a poll matched before it failed is kept too.
		a, path, finishErr := part.Finish()
		if finishErr == nil {
			finishErr = w.StorePart(context.WithoutCancel(ctx), a, path)
		}
		if finishErr != nil {
			err = &storeError{fmt.Errorf("storing the enrichment: %w", finishErr)}
			return
		}
		w.last++
	}()
	policy := w.Policy
	if n := w.history.PageSize(); n > 0 {
		policy.PageSize = n
	}
	cursor := NewCursor(w.From, w.To, policy.PageSize, policy.MaxPages(w.index.executions()))
	for {
		from, to, ok := cursor.Next()
		if !ok {
			break
		}
		if w.CheckDiskSpace != nil {
			if err := w.CheckDiskSpace(); err != nil {
				return &storeError{err}
			}
		}
		rows, earliest := 0, to
		err := w.history.Page(ctx, from, to, func(row *engine.EnrichedExecution) error {
			rows++
			if row.EndedAt.IsZero() {
				return nil // it still runs
			}
			if row.EndedAt.Before(earliest) {
				earliest = row.EndedAt.Time
			}
			e := w.index.find(row.QueryID)
			if e == nil || !w.index.match(e, row.ServerMs) {
				return nil
			}
			row.Kind, row.Warmup, row.ClientMs, row.OverheadMs = e.kind, e.warmup, e.service, e.service-row.ServerMs
			if !e.warmup {
				w.sums[e.kind].add(row)
			}
			if part == nil {
				begun, err := resultsrecord.NewEnrichmentWriter(w.Dir, w.RunID, w.last+1)
				if err != nil {
					return &storeError{err}
				}
				part = begun
			}
			if err := part.Add(row); err != nil {
				return &storeError{err}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("reading a page of the history: %w", err)
		}
		cursor.Read(rows, earliest)
		w.state.Pages++
		w.updateRatios()
		if w.index.matched == w.index.executions() {
			break // the rest of the history is others'
		}
		w.reportProgress()
	}
	if cursor.Truncated() {
		w.addNote(fmt.Sprintf("The history holds more than %d pages for the time of the run; the oldest were not read.",
			cursor.Pages()))
	}
	if cursor.Gaps() > 0 {
		w.addNote(
			fmt.Sprintf("In %s more executions ended than a page holds; some of these cannot be asked for.",
				engine.Count(cursor.Gaps(), "millisecond")),
		)
	}
	return nil
}

func (w *jobRun) addNote(text string) {
	if !w.notes[text] {
		w.notes[text] = true
		w.state.Notes = append(w.state.Notes, text)
	}
}

// updateRatios brings the ratios up to date.
func (w *jobRun) updateRatios() {
	s := &w.state
	s.Matched = w.index.matched
	if s.Executions > 0 {
		ratio := float64(s.Matched) / float64(s.Executions)
		s.Ratio = &ratio
	}
	for k, n := range w.index.byKind {
		if n.executions > 0 {
			s.ByKind[engine.Kind(k)] = &engine.KindEnrichment{Executions: n.executions, Matched: n.matched,
				Ratio: float64(n.matched) / float64(n.executions)}
		}
	}
}

// finish computes the figures.
func (w *jobRun) finish() {
	w.updateRatios()
	for k, f := range w.state.ByKind {
		f.Figures = w.index.figures(&w.sums, k, false)
	}
	w.state.Total = w.index.figures(&w.sums, 0, true)
}

func (w *jobRun) reportProgress() {
	if w.Progress != nil {
		s := w.state
		s.ByKind, s.Notes = maps.Clone(s.ByKind), slices.Clone(s.Notes)
		w.Progress(s)
	}
}
