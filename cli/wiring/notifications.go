package wiring

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/store"
)

// OpenNotifications begins to tell of runs that end here; url is the address of the page.
func (s *Services) OpenNotifications(url func() string) *notify.Notifier {
	n := notify.Start(notify.Options{Settings: s.Store, Runs: finishedRuns{s}, Baselines: s.Store,
		Compare: s.Runs, Egress: s.reachable, URL: url, UserAgent: "Loadstone/" + s.options.Version, Log: s.Log})
	s.watched.notifier.Store(n)
	s.onClose(func(context.Context) error { n.Close(); return nil })
	return n
}

// finishedRuns are runs with their figures.
type finishedRuns struct{ s *Services }

// Run implements notify.Runs.
func (e finishedRuns) Run(ctx context.Context, runID string) (engine.Run, error) {
	return e.s.Store.Run(ctx, runID)
}

// Row implements notify.Runs.
func (e finishedRuns) Row(ctx context.Context, run engine.Run) (row store.RunRow, settled bool, err error) {
	detail, err := e.s.Runs.Detail(ctx, run.RunID)
	if err != nil {
		return row, false, err //nolint:wrapcheck // it is for users
	}
	row.Run = detail.Run
	if detail.Summary == nil {
		return row, run.Phase == engine.PhaseNone && run.Status.Terminal() && run.StartTime.IsZero(), nil
	}
	setFigures(&row, detail.Summary)
	return row, run.Phase != engine.PhaseProcessing, nil
}

// setFigures sets those of a row as lists of runs show them: a run whose record is lost has no rate.
func setFigures(row *store.RunRow, s *engine.Summary) {
	row.Passed, row.Verdict, row.Simulated, row.Emulated = &s.Passed, &s.Validity, s.Simulated, s.Emulated
	row.ErrorRate, row.QPS = s.Errors.Rate, s.QPS
	if s.LatencyMs != nil {
		row.P95Ms = &s.LatencyMs.P95
	}
}
