package finalize

import (
	"slices"
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
	if w.IsSearch() || f.Operations == 0 || f.RecordPartial {
		return
	}
	if compare.TooShort(f.DurationSeconds) {
		v.AddFigureNote(engine.Note{Code: engine.NoteShort, Seconds: f.DurationSeconds, Planned: compare.MinSeconds})
	}
	if f.Operations < minOperations {
		v.AddFigureNote(engine.Note{Code: engine.NoteFewOperations, Count: f.Operations})
	}
	if w.WarmupSeconds == 0 {
		v.AddFigureNote(engine.Note{Code: engine.NoteNoWarmup})
	}
}

// addNotes notes what a reader of the figures should know of them.
func addNotes(v *live.Validity, f *engine.Figures) {
	if f.RecordPartial && f.Operations > 0 {
		n := engine.Note{Code: engine.NoteRecordPartial}
		if c := f.CoveredSeconds; c != nil {
			n.Seconds = *c
		}
		v.AddFigureNote(n)
	}
	if c := f.Connections; c != nil && (c.Lost > 0 || c.Refused > 0) {
		v.AddFigureNote(engine.Note{Code: engine.NoteConnectionsLost, Count: c.Lost, Total: c.Refused})
	}
	if f.Overran > 0 {
		v.AddFigureNote(engine.Note{Code: engine.NoteOverran, Count: f.Overran})
	}
	if f.Operations > 0 && f.DurationSeconds > 0 && !f.RecordPartial {
		late := float64(f.FinishedLate) / float64(f.Operations)
		if f.FinishedLate > 0 && (late > lateNote || f.DrainSeconds > lateNote*f.DurationSeconds) {
			v.AddFigureNote(engine.Note{Code: engine.NoteFinishedLate, Count: f.FinishedLate, Percent: 100 * late,
				Seconds: f.DrainSeconds})
		}
	}
	if ended := f.Operations - f.FinishedLate + f.CarriedOver; float64(f.CarriedOver) > lateNote*float64(ended) {
		v.AddFigureNote(engine.Note{Code: engine.NoteCarriedOver, Count: f.CarriedOver,
			Percent: 100 * float64(f.CarriedOver) / float64(ended)})
	}
	for _, k := range engine.Kinds() {
		found := f.ByKind[k]
		if found == nil || found.Count == 0 {
			continue
		}
		share := float64(found.NoRows) / float64(found.Count)
		if k == engine.KindInsert && share > noRowsNote {
			v.AddFigureNote(engine.Note{Code: engine.NoteNothingInserted, Percent: 100 * share})
		}
	}
	if n := f.KeysReplaced; n > 0 {
		v.AddFigureNote(engine.Note{Code: engine.NoteKeysReplaced, Count: n})
	}
	if f.RecordPartial {
		return // only what was seen while it went on tells of stalls
	}
	if f.ServiceMs != nil {
		return // latency from the due time shows a stall
	}
	v.SetStalls(stallNotes(v, f))
}

// Of the executions of a statement more than this share may find no row before the figures are doubted, and more than
// so many: a single one is chance.
const (
	missesShare = 0.01
	minMisses   = 5
)

// usualCure is said of a statement whose workload says nothing itself.
const usualCure = "what it asks for is not in the table: load it anew (target.prepare.if_exists: recreate), or give " +
	"the statement the kind GENERIC_SQL, if it need not find rows"

// addMisses doubts the figures where statements that look for rows found none, alone or inside of transactions.
func addMisses(v *live.Validity, f *engine.Figures, plan *engine.Plan, from, to time.Time) {
	for i := range f.ByStatement {
		s := &f.ByStatement[i]
		succeeded := s.Count - s.Errors
		if !expectsRows(s.Kind) || s.NoRows < minMisses || float64(s.NoRows) <= missesShare*float64(succeeded) {
			continue
		}
		about := engine.Note{Code: engine.AboutMisses, Count: s.NoRows, Total: succeeded, Statement: s.StatementID,
			Kind: s.Kind, Percent: 100 * float64(s.NoRows) / float64(succeeded), Text: usualCure}
		if plan != nil {
			for _, p := range plan.Statements {
				if p.ID == s.StatementID && p.NoRowsHint != "" {
					about.Text = p.NoRowsHint
				}
			}
		}
		v.Add(engine.CauseMisses, about, from, to)
	}
}

// noteNothingInserted notes which INSERTs inside of transactions inserted nothing; those alone are their kind's.
func noteNothingInserted(v *live.Validity, f *engine.Figures) {
	for i := range f.ByStatement {
		s := &f.ByStatement[i]
		if succeeded := s.Count - s.Errors; s.InTransaction && s.Kind == engine.KindInsert && s.NoRows >= minMisses &&
			float64(s.NoRows) > noRowsNote*float64(succeeded) {
			v.AddFigureNote(engine.Note{Code: engine.NoteNothingInserted, Statement: s.StatementID,
				Percent: 100 * float64(s.NoRows) / float64(succeeded)})
		}
	}
}

// countOwn counts the statements of one's own outside of transactions as reads and writes, by what they do: their kind
// does not say it.
func countOwn(f *engine.Figures, plan *engine.Plan) {
	if f == nil || plan == nil {
		return
	}
	writes := map[string]bool{}
	for _, s := range plan.Statements {
		writes[s.ID] = s.Writes
	}
	for i := range f.ByStatement {
		s := &f.ByStatement[i]
		does, known := writes[s.StatementID]
		switch {
		case s.InTransaction || s.Kind != engine.KindGenericSQL || !known:
		case does:
			f.Writes += s.Count
		default:
			f.Reads += s.Count
		}
	}
}

// noteStatements notes which of the user's own reads, of which no kind says that they find rows, never returned one:
// what their parameters look for may not be there.
func noteStatements(v *live.Validity, f *engine.Figures, plan []engine.Statement) {
	for i := range f.ByStatement {
		s := &f.ByStatement[i]
		reads := slices.ContainsFunc(plan, func(p engine.Statement) bool { return p.ID == s.StatementID && !p.Writes })
		if succeeded := s.Count - s.Errors; reads && s.Kind == engine.KindGenericSQL && s.Rows == 0 &&
			succeeded >= minExecutions {
			v.AddFigureNote(engine.Note{Code: engine.NoteNothingReturned, Count: succeeded, Statement: s.StatementID})
		}
	}
}

// addFailedKinds adds the kinds that failed every time. Of one that was tried a few times only there is a remark.
func addFailedKinds(v *live.Validity, f *engine.Figures, from, to time.Time) {
	failed, few := threshold.FailedKinds(f)
	for _, k := range few {
		v.AddFigureNote(engine.Note{Code: engine.NoteFewFailed, Count: f.ByKind[k].Count, Kind: k})
	}
	for _, k := range failed {
		about := engine.Note{Code: engine.AboutKindFailed, Count: f.ByKind[k].Count, Kind: k}
		if len(f.Errors.Top) > 0 {
			about.Text = f.Errors.Top[0].Message
		}
		v.Add(engine.CauseKindFailed, about, from, to)
	}
}

// failingTimes are those to be told: without statements of a kind that failed every time, which has a cause of its own,
// and without those of an outage that is tolerated for so long.
func failingTimes(f *engine.Figures, tolerated time.Duration) []engine.FailingTime {
	failed, _ := threshold.FailedKinds(f)
	return slices.DeleteFunc(slices.Clone(f.Failing), func(t engine.FailingTime) bool {
		return t.Kind != nil && slices.Contains(failed, *t.Kind) || borne(t, f, tolerated)
	})
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

// hiddenPercentiles are the percentiles that stalls make look better than they are. Those that
// are there already, because a stall went on beyond the measurement, tell of it themselves.
func hiddenPercentiles(f *engine.Figures) (hidden []engine.HiddenPercentile) {
	if f.Omission == nil || f.LatencyMs == nil {
		return nil
	}
	for _, p := range []engine.HiddenPercentile{
		{Name: "P99", WouldMs: f.Omission.P99Ms, Ms: f.LatencyMs.P99},
		{Name: "P99.9", WouldMs: f.Omission.P999Ms, Ms: f.LatencyMs.P999}} {
		if p.WouldMs > p.Ms && engine.LatencyText(p.WouldMs) != engine.LatencyText(p.Ms) {
			hidden = append(hidden, p)
		}
	}
	return hidden
}

// stallNotes say when a closed loop stood still, and what it did not see of that. Where the generator itself stood
// still, nothing is known of the target.
func stallNotes(v *live.Validity, f *engine.Figures) []engine.Note {
	var out []engine.Note
	own := 0
	for i, s := range f.Stalls {
		if i == maxListedStalls {
			out = append(out, engine.Note{Code: engine.NoteNoneAnsweredMore, Count: int64(len(f.Stalls) - i)})
			break
		}
		n := engine.Note{Code: engine.NoteNoneAnswered, At: s.From, Seconds: s.Seconds, Count: s.AnsweredOperations,
			Total: s.AnsweredOperations + s.MissedOperations}
		switch to := s.From.Add(time.Duration(s.Seconds * float64(time.Second))); {
		case s.AnsweredOperations > 0:
			n.Code = engine.NoteFewAnswered
		case v.AllStalled(s.From.Time, to):
			n.Cause = engine.StallOfGenerator
			own++
		case v.AnySilent(s.From.Time, to):
			n.Cause = engine.CauseSnapshotGap
		}
		out = append(out, n)
	}
	if hidden := hiddenPercentiles(f); len(hidden) > 0 && (own == 0 || own < len(f.Stalls)) {
		out = append(out, engine.Note{Code: engine.NoteHiddenLatency, Seconds: f.Omission.StalledSeconds,
			Count: f.Omission.MissedOperations, Hidden: hidden})
	}
	return out
}
