package enrich

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// AggregateJob asks an account's aggregates for a run.
type AggregateJob struct {
	RunID    string
	From, To time.Time
	// Ended is when the run's last execution ended: the latency counts from then on.
	Ended    time.Time
	Now      time.Time
	Plan     plugin.EnrichPlan
	Database target.Database
	// Statements are the run's, by whose text the aggregates are told apart, Client
	// the figures that the client measured.
	Statements []engine.Statement
	Client     []engine.StatementFigures
	// Expected executions of the run.
	Expected int64
	// Polls is how often they were asked for before.
	Polls int
	// Permanent says whether an error stays however often is asked, and gives its
	// sentence. nil: none does.
	Permanent func(error) (sentence string, forGood bool)
}

// aggregateSchedule is when aggregates that were not whole are asked for again, in
// parts of their latency since the run's end. Few times: each may start a warehouse.
var aggregateSchedule = []float64{0.25, 0.5, 1}

// NextAggregate is when a run's aggregates are asked for again, zero when their latency has passed.
func NextAggregate(ended, available, now time.Time) time.Time {
	for _, part := range aggregateSchedule {
		if at := ended.Add(time.Duration(part * float64(available.Sub(ended)))); at.After(now) {
			return at
		}
	}
	return time.Time{}
}

var aggregateNames = []string{"QUERY_TYPE", "QUERY_TEXT", "CALLS", "THROTTLED", "INTERVAL_START", "INTERVAL_END",
	"SUM_MS", "COMPILATION_SUM_MS", "EXECUTION_SUM_MS",
	"QUEUED_SUM_MS", "P50_CALLS", "P90_CALLS", "P99_CALLS", "P999_CALLS", "MAX_MS"}

// maxAggregates bounds the statements that are kept: those with the most calls.
const maxAggregates = 100

// Aggregate returns what the aggregates say, nil where there are none to ask.
// What goes wrong is its status.
func Aggregate(ctx context.Context, j AggregateJob) *engine.AggregateEnrichment {
	if j.Plan.Aggregate == "" {
		return nil
	}
	delay := time.Duration(j.Plan.AggregateDelaySeconds) * time.Second
	a := &engine.AggregateEnrichment{Status: engine.EnrichmentCompleted, AvailableAt: engine.At(j.Ended.Add(delay)),
		Expected: j.Expected, Polls: j.Polls + 1, Rows: []engine.AggregateStatements{}}
	ahead := time.Duration(j.Plan.ClockOffsetMs) * time.Millisecond
	var at []int
	err := target.Stream(ctx, j.Database, j.Plan.Aggregate,
		[]any{argument(j.From.Add(ahead)), argument(j.To.Add(ahead)), j.RunID},
		func(names []string) error {
			at = columnPositions(names, aggregateNames)
			if i := slices.Index(at, -1); i >= 0 {
				return fmt.Errorf("the aggregates have no column %s", aggregateNames[i])
			}
			return nil
		},
		func(values []any) error {
			row, from, to, err := j.row(values, at)
			if err != nil || row.Calls == 0 {
				return err
			}
			if a.FromTime.IsZero() || from.Before(a.FromTime.Time) {
				a.FromTime = engine.At(from.Add(-ahead))
			}
			if to.Add(-ahead).After(a.ToTime.Time) {
				a.ToTime = engine.At(to.Add(-ahead))
			}
			a.Calls += row.Calls
			a.Throttled += row.Throttled
			a.Rows = append(a.Rows, row)
			return nil
		})
	slices.SortFunc(a.Rows, func(x, y engine.AggregateStatements) int { return int(y.Calls - x.Calls) })
	a.Rows = a.Rows[:min(len(a.Rows), maxAggregates)]
	late := j.Now.Before(a.AvailableAt.Time)
	switch {
	case err != nil:
		sentence, forGood := strings.TrimSpace(err.Error()), false
		if j.Permanent != nil {
			sentence, forGood = j.Permanent(err)
		}
		a.Status, a.Reason = engine.EnrichmentFailed, "The aggregates could not be read: "+sentence
		if late && !forGood {
			a.Status = engine.EnrichmentPending
		}
	case a.Calls >= j.Expected:
		a.Reason = "The aggregates cover every execution."
	case late && a.Calls == 0:
		a.Status, a.Reason = engine.EnrichmentPending,
			"The account has not published the aggregates of this run yet; it may take as long as until the time given."
	case late:
		a.Status, a.Reason = engine.EnrichmentPending,
			fmt.Sprintf("The account has published %d of %d executions so far; it may take as long as until the time given.",
				a.Calls, j.Expected)
	default:
		a.Status, a.Reason = engine.EnrichmentPartial,
			fmt.Sprintf("The aggregates cover %d of %d executions.", a.Calls, j.Expected)
	}
	if a.Status == engine.EnrichmentPending {
		a.NextPollAt = engine.At(NextAggregate(j.Ended, a.AvailableAt.Time, j.Now))
	}
	return a
}

// row reads one row of the aggregates.
func (j *AggregateJob) row(values []any, at []int) (out engine.AggregateStatements, from, to engine.Time, err error) {
	n := make([]float64, len(at))
	for i := range at {
		switch i {
		case 0, 1:
		case 4:
			from, err = instant(values[at[i]])
		case 5:
			to, err = instant(values[at[i]])
		default:
			n[i], err = number(values[at[i]])
		}
		if err != nil {
			return out, from, to, fmt.Errorf("column %s: %w", aggregateNames[i], err)
		}
	}
	out.QueryType, _ = values[at[0]].(string)
	text, _ := values[at[1]].(string)
	out.Calls, out.Throttled = int64(n[2]), int64(n[3])
	if out.Calls > 0 {
		calls := n[2]
		out.AvgMs, out.CompilationMs, out.ExecutionMs, out.QueuedMs = n[6]/calls, n[7]/calls, n[8]/calls, n[9]/calls
		out.P50Ms, out.P90Ms, out.P99Ms, out.P999Ms, out.MaxMs = n[10]/calls, n[11]/calls, n[12]/calls, n[13]/calls, n[14]
	}
	for i := range j.Statements {
		s := &j.Statements[i]
		if sameStatement(s.SQL, text) {
			kind := s.Kind
			out.StatementID, out.Kind = s.ID, &kind
			for f := range j.Client {
				if c := &j.Client[f]; c.StatementID == s.ID && c.Kind == s.Kind {
					out.Client = c.LatencyMs
				}
			}
			break
		}
	}
	return out, from, to, nil
}

// sameStatement compares the texts of statements as a history may write them.
func sameStatement(a, b string) bool {
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}
