package wiring

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/store"
)

// OpenNotices begins to tell of runs that end here; url is the address of the page.
func (s *Services) OpenNotices(url func() string) *notify.Notifier {
	n := notify.Start(notify.Options{Settings: s.Store, Runs: endedRuns{s}, Baselines: s.Store,
		Compare: s.Runs, Reach: s.reachable, URL: url, Agent: "Loadstone/" + s.options.Version, Log: s.Log})
	s.watched.notices.Store(n)
	s.onClose(func(context.Context) error { n.Close(); return nil })
	return n
}

// endedRuns are runs with their figures.
type endedRuns struct{ s *Services }

// Run implements notify.Runs.
func (e endedRuns) Run(ctx context.Context, runID string) (engine.Run, error) {
	return e.s.Store.Run(ctx, runID)
}

// Row implements notify.Runs.
func (e endedRuns) Row(ctx context.Context, run engine.Run) (row store.RunRow, settled bool, err error) {
	detail, err := e.s.Runs.Detail(ctx, run.RunID)
	if err != nil {
		return row, false, err //nolint:wrapcheck // it is for users
	}
	row.Run = detail.Run
	if detail.Summary == nil {
		return row, run.Phase == engine.PhaseNone && run.Status.Terminal() && run.StartTime.IsZero(), nil
	}
	figures(&row, detail.Summary)
	return row, run.Phase != engine.PhaseProcessing, nil
}

// figures sets those of a row as lists of runs show them: a run whose record is lost has no rate.
func figures(row *store.RunRow, s *engine.Summary) {
	row.Passed, row.Verdict, row.Simulated, row.Emulated = &s.Passed, &s.Validity, s.Simulated, s.Emulated
	row.ErrorRate = &s.Errors.Rate
	if s.Rated() {
		row.QPS = &s.QPS
	}
	if s.LatencyMs != nil {
		row.P95Ms = &s.LatencyMs.P95
	}
}
