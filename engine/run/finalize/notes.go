package finalize

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/threshold"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/run/live"
)

// The shares from which on something is remarked.
const (
	lateNote        = 0.05
	noRowsNote      = 0.05
	maxListedStalls = 5
	// A statement that was executed less often may have met no row by chance.
	minExecutions = 20
	// Of fewer operations the P99 rests on less than ten.
	minOperations = 1000
)

// noteExtent notes that a measurement was too small to be held against anything: too short, too few operations, or
// cold. A search measures in short steps on purpose, and says itself what it repeated.
func noteExtent(v *live.Validity, f *engine.Figures, w engine.Workload) {
	if w.IsSearch() || f.Operations == 0 || f.CoveredSeconds != nil {
		return
	}
	if compare.TooShort(f.DurationSeconds) {
		v.AddFigureNote(fmt.Sprintf("The measurement took %.3g s: under %d s, chance and what comes seldom (a checkpoint, a "+
			"vacuum) decide the figures, and a comparison with this run alone is not judged.", f.DurationSeconds,
			compare.MinSeconds))
	}
	if f.Operations < minOperations {
		v.AddFigureNote(
			fmt.Sprintf("%s measured: P99 and what lies above rest on the slowest %d, and move with each of them.",
				were(f.Operations), (f.Operations+99)/100),
		)
	}
	if w.WarmupSeconds == 0 {
		v.AddFigureNote(
			"There was no warm-up: what the first operations met cold (connections, caches, plans) is in the figures.",
		)
	}
}

func were(n int64) string {
	if n == 1 {
		return "1 operation was"
	}
	return fmt.Sprintf("%d operations were", n)
}

// addNotes notes what a reader of the figures should know of them.
func addNotes(v *live.Validity, f *engine.Figures) {
	if c := f.CoveredSeconds; c != nil && f.Operations > 0 {
		if *c > 0 {
			v.AddFigureNote(
				fmt.Sprintf("Parts of the record are lost: rates are taken over the %.3g s for which it is there.", *c),
			)
		} else {
			v.AddFigureNote("Parts of the record are lost, and of no time is all of it there: there are no rates.")
		}
	}
	if c := f.Connections; c != nil && (c.Lost > 0 || c.Refused > 0) {
		v.AddFigureNote(
			fmt.Sprintf("While the load went on %d connections were lost, and %d attempts to open one were refused.",
				c.Lost, c.Refused),
		)
	}
	if f.Operations > 0 && f.DurationSeconds > 0 && f.CoveredSeconds == nil {
		late := float64(f.FinishedLate) / float64(f.Operations)
		if f.FinishedLate > 0 && (late > lateNote || f.DrainSeconds > lateNote*f.DurationSeconds) {
			v.AddFigureNote(fmt.Sprintf("%d operations (%.3g %%) ended after the measurement, up to %.3g s later: they are in "+
				"operations, latency and errors, and in no rate.",
				f.FinishedLate, 100*late, f.DrainSeconds))
		}
	}
	for _, k := range engine.Kinds() {
		found := f.ByKind[k]
		if found == nil || found.Count == 0 {
			continue
		}
		share := float64(found.NoRows) / float64(found.Count)
		if k == engine.KindInsert && share > noRowsNote {
			v.AddFigureNote(
				fmt.Sprintf("%.3g %% of the operations of kind INSERT succeeded and inserted no row, by the server's "+
					"own count: a trigger, a rule or ON CONFLICT left it out, or put it elsewhere.", 100*share),
			)
		}
		if expectsRows(k) && share > noRowsNote {
			v.AddFigureNote(fmt.Sprintf("%.3g %% of the operations of kind %s succeeded and found no row: they are faster than "+
				"those that find one.", 100*share, k))
		}
	}
	if n := f.KeysReplaced; n > 0 {
		v.AddFigureNote(fmt.Sprintf("%d operations were to look for rows that the run had failed to insert; they looked for "+
			"other rows instead.", n))
	}
	if f.CoveredSeconds != nil {
		return // only what was seen while it went on tells of stalls
	}
	if f.ServiceMs != nil {
		return // latency from the due time shows a stall
	}
	v.SetStalls(stallNote(v, f))
}

// noteStatements notes which of the user's own reads, of which no kind says that they find rows, never returned one:
// what their parameters look for may not be there.
func noteStatements(v *live.Validity, f *engine.Figures, plan []engine.Statement) {
	for i := range f.ByStatement {
		s := &f.ByStatement[i]
		reads := slices.ContainsFunc(plan, func(p engine.Statement) bool { return p.ID == s.StatementID && !p.Writes })
		if succeeded := s.Count - s.Errors; reads && s.Kind == engine.KindGenericSQL && s.Rows == 0 &&
			succeeded >= minExecutions {
			v.AddFigureNote(
				fmt.Sprintf("None of the %d executions of %s that succeeded returned a row: they are faster than those "+
					"that return one.", succeeded, s.StatementID),
			)
		}
	}
}

// addFailedKinds adds the kinds that failed every time. Of one that was tried a few times only there is a remark.
func addFailedKinds(v *live.Validity, f *engine.Figures, from, to time.Time) {
	failed, few := threshold.FailedKinds(f)
	for _, k := range few {
		v.AddFigureNote(fmt.Sprintf("%s of kind %s failed: too few to judge the kind by.", every(f.ByKind[k].Count), k))
	}
	for _, k := range failed {
		text := fmt.Sprintf("all %d operations of kind %s failed", f.ByKind[k].Count, k)
		if len(f.Errors.Top) > 0 {
			text += "; the most frequent error of the run: " + f.Errors.Top[0].Message
		}
		v.Add(engine.CauseKindFailed, text, from, to)
	}
}

func every(n int64) string {
	if n == 1 {
		return "The only operation"
	}
	return fmt.Sprintf("All %d operations", n)
}

// expectsRows reports whether an operation of a kind is expected to meet a row.
func expectsRows(k engine.Kind) bool {
	switch k {
	case engine.KindPointLookup, engine.KindRangeScan, engine.KindUpdate, engine.KindDelete:
		return true
	default:
		return false
	}
}

// formatMs writes a latency with three digits, and none behind the point of a long one.
func formatMs(ms float64) string {
	if ms >= 100 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.3g ms", ms)
}

// hiddenLatencyNote are the percentiles that stalls make look better than they are. Those that
// are there already, because a stall went on beyond the measurement, tell of it themselves.
func hiddenLatencyNote(f *engine.Figures) string {
	if f.Omission == nil || f.LatencyMs == nil {
		return ""
	}
	var parts []string
	for _, p := range []struct {
		name      string
		would, is float64
	}{{"P99", f.Omission.P99Ms, f.LatencyMs.P99}, {"P99.9", f.Omission.P999Ms, f.LatencyMs.P999}} {
		if would, is := formatMs(p.would), formatMs(p.is); p.would > p.is && would != is {
			parts = append(parts, fmt.Sprintf("the %s would be %s or more instead of %s", p.name, would, is))
		}
	}
	return strings.Join(parts, " and ")
}

// stallNote says when a closed loop stood still, and what it did not see of that. Where the generator itself stood
// still, nothing is known of the target.
func stallNote(v *live.Validity, f *engine.Figures) []string {
	var out []string
	own := 0
	for i, s := range f.Stalls {
		if i == maxListedStalls {
			out = append(out, fmt.Sprintf("No operation, or next to none, was answered for a second or more %d more times.",
				len(f.Stalls)-i))
			break
		}
		if s.AnsweredOperations > 0 {
			out = append(out, fmt.Sprintf("From %s on only %d operations were answered in %.3g s on all connections "+
				"(timeouts are no answers), where about %d were to be expected: the target answered next to nothing.",
				s.From.UTC().Format("15:04:05.000"), s.AnsweredOperations, s.Seconds, s.AnsweredOperations+s.MissedOperations))
			continue
		}
		why := "the target did not answer, or connections were lost"
		switch to := s.From.Add(time.Duration(s.Seconds * float64(time.Second))); {
		case v.AllStalled(s.From.Time, to):
			why = "Loadstone itself stood still, and knows nothing of the target meanwhile"
			own++
		case v.AnySilent(s.From.Time, to):
			why += ", or Loadstone itself did not run: it was not heard of all the while (snapshot_gap)"
		}
		out = append(out, fmt.Sprintf("From %s on no operation was answered for %.3g s on any connection (timeouts are no "+
			"answers), where about %d were to be expected: %s.",
			s.From.UTC().Format("15:04:05.000"), s.Seconds, s.MissedOperations, why))
	}
	if words := hiddenLatencyNote(f); words != "" && (own == 0 || own < len(f.Stalls)) {
		out = append(out, fmt.Sprintf("A closed loop asks nothing while it waits. Had users come at the same pace in the "+
			"%.3g s without any answer too, about %d operations more, %s (estimated; load_mode: QPS measures it).",
			f.Omission.StalledSeconds, f.Omission.MissedOperations, words))
	}
	return out
}
