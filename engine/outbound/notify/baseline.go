package notify

import (
	"context"
	"errors"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Baselines knows which run the others of a template are held against; store.ErrNotFound without one.
type Baselines interface {
	Baseline(ctx context.Context, templateID string) (store.Baseline, error)
}

// Comparer compares the runs of side b with those of side a.
type Comparer interface {
	Compare(ctx context.Context, a, b []string, o compare.Options) (compare.Comparison, error)
}

// BaselineComparison is what a run is, held against the baseline of its template.
type BaselineComparison struct {
	BaselineRunID string          `json:"baseline_run_id"`
	Verdict       compare.Verdict `json:"verdict"`
	// Worse says in sentences which figures are worse.
	Worse []string `json:"worse"`
}

// figures are the metrics of a comparison in words.
var figures = map[string]string{"qps": "Throughput", "error_rate": "Error rate", "avg_ms": "Mean", "p50_ms": "P50",
	"p95_ms": "P95", "p99_ms": "P99"}

// compareTimeout is how long a comparison may take: a run of hours has many seconds.
const compareTimeout = 2 * time.Minute

// compareToBaseline holds a run against the baseline of its template. It is nil where that says nothing: without a
// baseline, for a search, whose figures are of many loads, and where the runs are too short or differ too little for
// the time measured.
func (n *Notifier) compareToBaseline(run engine.Run) *BaselineComparison {
	template := run.Scenario.TemplateID
	if n.o.Baselines == nil || n.o.Compare == nil || template == "" || run.Status != engine.StatusCompleted ||
		run.Scenario.Workload.IsSearch() {
		return nil
	}
	// One at a time: a matrix ends many runs at once, and a comparison is work.
	n.comparing.Lock()
	defer n.comparing.Unlock()
	ctx, cancel := context.WithTimeout(n.life, compareTimeout)
	defer cancel()
	log := n.o.Log.With().Str("run_id", run.RunID).Logger()
	base, err := n.o.Baselines.Baseline(ctx, template)
	if errors.Is(err, store.ErrNotFound) || err == nil && base.RunID == run.RunID {
		return nil
	}
	if err != nil {
		log.Warn().Err(err).Msg("the baseline of a run's template could not be read; its thresholds decide the notification")
		return nil
	}
	c, err := n.o.Compare.Compare(ctx, []string{base.RunID}, []string{run.RunID}, compare.Defaults())
	if err != nil {
		log.Warn().Err(err).Str("baseline_run_id", base.RunID).
			Msg("a run could not be compared with its baseline; its thresholds decide the notification")
		return nil
	}
	if c.Verdict == compare.Unclear {
		return nil
	}
	h := &BaselineComparison{BaselineRunID: base.RunID, Verdict: c.Verdict, Worse: []string{}}
	for _, m := range c.Metrics {
		if m.Verdict == compare.Worse {
			h.Worse = append(h.Worse, figures[m.Name]+": "+m.Reason)
		}
	}
	return h
}
