package finalize

import (
	"context"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/live"
)

// Server is one that answered beside the load of a run, from when it was asked first until LastSeen.
type Server struct {
	engine.ServerIdentity
	LastSeen time.Time
}

// outageReader finds the outages of a run; results that do not leave them unknown.
type outageReader interface {
	Outages(ctx context.Context, runID string, began, measured, ended time.Time) (found []engine.Outage, unknown int64,
		err error)
}

// outages are those of a run that reconnects, and how many operations of its record may have been committed; nil of any
// other run, and where the record cannot be read.
func (s *Service) outages(ctx context.Context, e Evidence, f *engine.Figures) ([]engine.Outage, *int64) {
	results, able := s.opts.Results.(outageReader)
	if !able || !e.Run.Scenario.Workload.Reconnects() {
		return nil, nil
	}
	began := e.Run.WarmupStartTime.Time
	if began.IsZero() {
		began = e.Run.StartTime.Time
	}
	measured := f.MeasuredFrom.Time
	if measured.IsZero() {
		measured = began
	}
	found, unknown, err := results.Outages(ctx, e.Run.RunID, began, measured, f.MeasuredTo.Time)
	if err != nil {
		s.opts.Log.Warn().Err(err).Str("run_id", e.Run.RunID).Msg("the outages cannot be computed")
		e.Validity.AddFigureNote(engine.Note{Code: engine.NoteOutagesUnknown})
		return nil, nil
	}
	found = slices.DeleteFunc(found, func(o engine.Outage) bool {
		// Where the generator stood still nothing is known of the target.
		return o.Failed == 0 && (e.Validity.AllStalled(o.LastSuccess.Time, o.Until()) ||
			e.Validity.AnySilent(o.LastSuccess.Time, o.Until()))
	})
	for i := range found {
		o := &found[i]
		o.Number = i + 1
		o.Before, o.After = serversOf(o, e.Servers)
	}
	if e.DropsKnown {
		live.AddDropped(found, e.Dropped)
	}
	if found == nil {
		found = []engine.Outage{}
	}
	return found, &unknown
}

// serversOf are what answered before an outage, and first after it.
func serversOf(o *engine.Outage, servers []Server) (before, after *engine.ServerIdentity) {
	for _, s := range servers {
		if !s.At.After(o.LastSuccess.Time) {
			before = &s.ServerIdentity
		}
		if after == nil && !o.FirstSuccess.IsZero() && !s.LastSeen.Before(o.FirstSuccess.Time) {
			after = &s.ServerIdentity
		}
	}
	return before, after
}

// noteOutages tells of the outages.
func noteOutages(v *live.Validity, f *engine.Figures) {
	for i := range f.Outages {
		v.AddFigureNote(engine.Note{Code: engine.NoteOutage, At: f.Outages[i].LastSuccess,
			Seconds: f.Outages[i].DownSeconds, Text: f.Outages[i].Text()})
	}
}

// borne reports whether operations failed then because of an outage that the template tolerates.
func borne(t engine.FailingTime, f *engine.Figures, tolerated time.Duration) bool {
	to := t.From.Add(time.Duration(t.Seconds * float64(time.Second)))
	return slices.ContainsFunc(f.Outages, func(o engine.Outage) bool {
		begin := o.Begin()
		return t.From.After(begin.Add(-failingSlack)) && !to.After(begin.Add(tolerated+failingSlack))
	})
}

// failingSlack is by how much a time in which operations failed is wider than the outage that it is: it is of whole
// parts of a second.
const failingSlack = time.Second
