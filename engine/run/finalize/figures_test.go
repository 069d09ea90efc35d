package finalize

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/live"
)

func TestTheWindowIsThatOfTheMeasurement(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	for name, c := range map[string]struct {
		reason   engine.StopReason
		stopped  float64
		told     float64 // when the run workers were, 0: nobody remembers
		search   bool
		from, to float64
	}{
		"its time is up":            {engine.StopDurationElapsed, 60.3, 0.25, false, 0.25, 60.25},
		"after a restart":           {engine.StopDurationElapsed, 60.3, 0, false, 0.3, 60.3},
		"a user stopped it":         {engine.StopUserRequested, 3, 0.25, false, 0.25, 3},
		"a user, after a restart":   {engine.StopUserRequested, 3, 0, false, 0, 3},
		"the workload ended before": {engine.StopDurationElapsed, 3, 0.25, false, -1, -1},
		"a search found its answer": {engine.StopDurationElapsed, 3, 0.25, true, 0.25, 3},
	} {
		r := engine.Run{StopReason: c.reason, WarmupEndTime: engine.At(begin), MeasurementEndTime: engine.At(at(c.stopped))}
		r.Scenario.Workload.DurationSeconds = 60
		if c.search {
			r.Scenario.Workload.LoadMode = engine.LoadFindMax
		}
		e := Evidence{Run: r}
		if c.told > 0 {
			e.MeasureAt = at(c.told)
		}
		w := e.window()
		if c.from < 0 {
			if !w.From.Equal(e.MeasureAt) || !w.To.IsZero() {
				t.Errorf("%s: %+v", name, w)
			}
		} else if !w.From.Equal(at(c.from)) || !w.To.Equal(at(c.to)) {
			t.Errorf("%s: from %v to %v", name, w.From.Sub(begin), w.To.Sub(begin))
		}
	}
	if w := (Evidence{Run: engine.Run{StopReason: engine.StopUserRequested, WarmupEndTime: engine.At(begin)}}).
		window(); !w.To.IsZero() {
		t.Errorf("stopped in the warm-up: %+v", w)
	}
}

// Where the number of connections changes on purpose, the record is told how many there were at most.
func TestTheWindowKnowsTheMostConnections(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		w      engine.Workload
		search *engine.FindMaxResult
		most   int
		varies bool
	}{
		"constant": {engine.Workload{ConcurrentConnections: 7, DurationSeconds: 10}, nil, 7, false},
		"stages": {engine.Workload{ConcurrentConnections: 2, DurationSeconds: 20,
			Stages: []engine.Stage{{DurationSeconds: 10, Connections: new(40), Ramp: engine.RampLinear},
				{DurationSeconds: 10, Connections: new(5), Ramp: engine.RampStep}}}, nil, 40, true},
		"a search": {engine.Workload{LoadMode: engine.LoadFindMax, DurationSeconds: 20},
			&engine.FindMaxResult{History: []engine.FindMaxStep{{TotalTargetConnections: 4}, {TotalTargetConnections: 64},
				{TotalTargetConnections: 32}}}, 64, true},
	} {
		w := Evidence{Search: c.search,
			Run: engine.Run{StopReason: engine.StopUserRequested, WarmupEndTime: engine.At(begin),
				MeasurementEndTime: engine.At(begin.Add(time.Minute)),
				Scenario:           engine.Scenario{Workload: c.w}}}.window()
		if w.Connections != c.most || w.Varies != c.varies {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

// A user who changed the load has changed the pace: a second without an answer at the new one is no stall for that.
func TestTheWindowKnowsOfAChangedLoad(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(second int, to engine.EventData) engine.Event {
		return engine.Event{Type: engine.EventLoadChanged, Data: to,
			CreatedAt: engine.At(begin.Add(time.Duration(second) * time.Second))}
	}
	connections := func(n int) engine.EventData { return engine.EventData{TargetConnections: &n} }
	rate := 7.0
	for name, c := range map[string]struct {
		changes []engine.Event
		most    int
		varies  bool
	}{
		"fewer":            {[]engine.Event{at(20, connections(1))}, 7, true},
		"more, then fewer": {[]engine.Event{at(20, connections(50)), at(30, connections(1))}, 50, true},
		"in the warm-up":   {[]engine.Event{at(-2, connections(3))}, 3, false},
		"after the end":    {[]engine.Event{at(61, connections(30))}, 7, false},
		"the rate":         {[]engine.Event{at(20, engine.EventData{TargetQPS: &rate})}, 7, true},
	} {
		w := Evidence{changes: c.changes, MeasureAt: begin,
			Run: engine.Run{StopReason: engine.StopUserRequested, WarmupEndTime: engine.At(begin),
				MeasurementEndTime: engine.At(begin.Add(time.Minute)), Scenario: engine.Scenario{
					Workload: engine.Workload{ConcurrentConnections: 7, DurationSeconds: 60}}}}.window()
		if w.Connections != c.most || w.Varies != c.varies {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

func TestRemarksOnFigures(t *testing.T) {
	covered := 5.0
	for name, c := range map[string]struct {
		f    engine.Figures
		want string // part of the only note; empty: no note
	}{
		"nothing to say": {engine.Figures{Operations: 1000, DurationSeconds: 10, FinishedLate: 16, DrainSeconds: 0.01},
			""},
		"a long drain": {engine.Figures{Operations: 1000, DurationSeconds: 10, FinishedLate: 1, DrainSeconds: 0.6},
			"1 operations (0.1 %) ended after the measurement"},
		"many in a short one": {engine.Figures{Operations: 1000, DurationSeconds: 10, FinishedLate: 51, DrainSeconds: 0.1},
			"51 operations (5.1 %)"},
		"a record with holes": {engine.Figures{Operations: 1000, DurationSeconds: 5, RecordPartial: true, CoveredSeconds: &covered},
			"rates are taken over the 5 s"},
		"a record of nothing": {engine.Figures{Operations: 1000, RecordPartial: true}, "there are no rates"},
		"inserts that do none": {byKind(engine.KindInsert, engine.KindFigures{Count: 100, NoRows: 100}),
			"100 % of the operations of kind INSERT succeeded and inserted no row"},
		"a few inserts":      {byKind(engine.KindInsert, engine.KindFigures{Count: 100, NoRows: 5}), ""},
		"nobody counts rows": {byKind(engine.KindGenericSQL, engine.KindFigures{Count: 100, NoRows: 100}), ""},
		"a stall": {engine.Figures{Operations: 1000, DurationSeconds: 10, LatencyMs: &engine.LatencyMs{},
			Stalls: []engine.Stall{{Seconds: 1.4, MissedOperations: 7000}}},
			"no operation was answered for 1.4 s on any connection (timeouts are no answers), where about 7000"},
		"a stall of an open loop": {engine.Figures{Operations: 1000, DurationSeconds: 10, ServiceMs: &engine.LatencyMs{},
			Stalls: []engine.Stall{{Seconds: 1.4}}}, ""},
	} {
		v := live.NewValidity()
		addNotes(v, &c.f)
		notes := v.Verdict().Notes
		if c.want == "" && len(notes) != 0 || c.want != "" && (len(notes) != 1 || !strings.Contains(notes[0], c.want)) {
			t.Errorf("%s: %q", name, notes)
		}
	}
	v := live.NewValidity()
	addNotes(v, &engine.Figures{Operations: 300_000, DurationSeconds: 60, LatencyMs: &engine.LatencyMs{P99: 3},
		Stalls:   []engine.Stall{{Seconds: 1.4, MissedOperations: 7000}},
		Omission: &engine.Omission{StalledSeconds: 1.4, MissedOperations: 7000, P99Ms: 800}})
	if notes := v.Verdict().Notes; len(notes) != 2 ||
		!strings.Contains(notes[1], "the P99 would be 800 ms or more instead of 3 ms") {
		t.Errorf("%q", notes)
	}
	// A target is not blamed for what the generator did not do.
	from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stood := func(v *live.Validity, at time.Time) {
		v.Observe(at, engine.PhaseMeasurement, &live.Second{Nodes: []live.NodeSample{{NodeID: "local",
			Resources: engine.Resources{MaxStallMs: 1100}}}})
	}
	missing := func(v *live.Validity, at time.Time) {
		v.Add(engine.CauseSnapshotGap, engine.TextNote("another server went on"), at.Add(-time.Second), at)
	}
	for name, tt := range map[string]struct {
		note func(*live.Validity, time.Time)
		at   time.Time
		want string
		own  bool // nothing is known of the target: there is no estimate of what it has hidden
	}{
		"it stood still": {stood, from.Add(2 * time.Second), "expected: Loadstone itself stood still", true},
		"it stood still later": {stood, from.Add(6 * time.Second),
			"expected: the target did not answer, or connections were lost.", false},
		"nobody was heard of": {missing, from.Add(2 * time.Second),
			"expected: the target did not answer, or connections were lost, or Loadstone itself did not run", false},
		"nobody was heard of later": {missing, from.Add(6 * time.Second),
			"expected: the target did not answer, or connections were lost.", false},
	} {
		v := live.NewValidity()
		tt.note(v, tt.at)
		addNotes(v, &engine.Figures{Operations: 1000, DurationSeconds: 10, LatencyMs: &engine.LatencyMs{},
			Stalls:   []engine.Stall{{From: engine.At(from), Seconds: 1.4, MissedOperations: 7000}},
			Omission: &engine.Omission{StalledSeconds: 1.4, MissedOperations: 7000, P99Ms: 800}})
		estimates := 1
		if tt.own {
			estimates = 0
		}
		if notes := v.Verdict().Notes; len(notes) != 1+estimates || !strings.Contains(notes[0], tt.want) {
			t.Errorf("%s: %q", name, notes)
		}
	}
	// The stall went on in the drain: what waited there is slower than what would have come.
	for p99, want := range map[float64]string{12: "the P99 would be 1874 ms or more instead of 12 ms (estimated",
		6920: ""} {
		v := live.NewValidity()
		addNotes(v, &engine.Figures{Operations: 2589, DurationSeconds: 5, LatencyMs: &engine.LatencyMs{P99: p99, P999: 6924},
			Omission: &engine.Omission{StalledSeconds: 1.92, MissedOperations: 1613, P99Ms: 1874, P999Ms: 6917}})
		if notes := strings.Join(v.Verdict().Notes, "|"); !strings.Contains(notes, want) ||
			strings.Contains(notes, "P99.9") || want == "" && notes != "" {
			t.Errorf("%g: %q", p99, notes)
		}
	}
}

// TestStatementsThatFindNoRowsAreDoubted: alone and inside of transactions, with the parameter that cures it.
func TestStatementsThatFindNoRowsAreDoubted(t *testing.T) {
	plan := &engine.Plan{
		Statements: []engine.Statement{{ID: "update_account", NoRowsHint: "workload.params.scale has to be theirs"}},
	}
	for name, c := range map[string]struct {
		f    engine.StatementFigures
		want string // of the cause; empty: none
	}{
		"all of a transaction's": {engine.StatementFigures{StatementID: "update_account", Kind: engine.KindUpdate,
			InTransaction: true, Count: 1801, NoRows: 1801}, "1801 of 1801 executions of update_account (UPDATE) that succeeded " +
			"changed no row (100 %): they are faster than those that find one; workload.params.scale has to be theirs"},
		"a few lookups": {engine.StatementFigures{StatementID: "find", Kind: engine.KindPointLookup, Count: 1000, Errors: 200,
			NoRows: 9}, "9 of 800 executions of find (POINT_LOOKUP) that succeeded found no row (1.12 %)"},
		"what to do":       {engine.StatementFigures{StatementID: "gone", Kind: engine.KindDelete, Count: 9, NoRows: 9}, usualCure},
		"one in a hundred": {engine.StatementFigures{StatementID: "find", Kind: engine.KindPointLookup, Count: 1000, NoRows: 10}, ""},
		"chance":           {engine.StatementFigures{StatementID: "find", Kind: engine.KindPointLookup, Count: 100, NoRows: 4}, ""},
		"nobody looks for rows": {engine.StatementFigures{StatementID: "own", Kind: engine.KindGenericSQL, Count: 100,
			NoRows: 100}, ""},
	} {
		v := live.NewValidity()
		addMisses(v, &engine.Figures{ByStatement: []engine.StatementFigures{c.f}}, plan, time.Unix(0, 0), time.Unix(10, 0))
		causes := v.Verdict().Causes
		if c.want == "" && len(causes) != 0 || c.want != "" && (len(causes) != 1 || causes[0].Cause != engine.CauseMisses ||
			!strings.Contains(causes[0].Detail, c.want)) {
			t.Errorf("%s: %+v", name, causes)
		}
	}
	// INSERTs inside of transactions that insert nothing are remarked on.
	v := live.NewValidity()
	noteNothingInserted(v, &engine.Figures{ByStatement: []engine.StatementFigures{
		{StatementID: "log", Kind: engine.KindInsert, InTransaction: true, Count: 100, NoRows: 6}}})
	if notes := v.Verdict().Notes; len(notes) != 1 ||
		!strings.Contains(notes[0], "6 % of the executions of log inside of transactions succeeded and inserted no row") {
		t.Errorf("%q", notes)
	}
}

// TestOwnStatementsAreReadsOrWrites: what they do says it, their kind does not.
func TestOwnStatementsAreReadsOrWrites(t *testing.T) {
	f := &engine.Figures{Reads: 5, Writes: 7, ByStatement: []engine.StatementFigures{
		{StatementID: "see", Kind: engine.KindGenericSQL, Count: 100},
		{StatementID: "see", Kind: engine.KindGenericSQL, InTransaction: true, Count: 1000},
		{StatementID: "call", Kind: engine.KindGenericSQL, Count: 10},
		{StatementID: "find", Kind: engine.KindPointLookup, Count: 5},
		{StatementID: "t", Kind: engine.KindTransaction, Count: 500},
		{StatementID: "unknown", Kind: engine.KindGenericSQL, Count: 50}}}
	countOwn(f, &engine.Plan{Statements: []engine.Statement{{ID: "see", Kind: engine.KindGenericSQL},
		{ID: "call", Kind: engine.KindGenericSQL, Writes: true}, {ID: "find"}}})
	if f.Reads != 105 || f.Writes != 17 {
		t.Errorf("%d reads, %d writes", f.Reads, f.Writes)
	}
}

// TestOwnReadsThatFindNothingAreRemarkedOn: a SELECT of the user's own is of no kind that is expected to meet a row,
// and one with wrong parameters, which finds nothing and is fast, was VALID without a word.
func TestOwnReadsThatFindNothingAreRemarkedOn(t *testing.T) {
	plan := []engine.Statement{{ID: "find"}, {ID: "call", Writes: true}}
	for name, c := range map[string]struct {
		id           string
		kind         engine.Kind
		errors, rows int64
		says         bool
	}{
		"nothing was found": {"find", engine.KindGenericSQL, 3, 0, true},
		"a row was":         {"find", engine.KindGenericSQL, 0, 1, false},
		"too few to say":    {"find", engine.KindGenericSQL, 20, 0, false},
		"it writes":         {"call", engine.KindGenericSQL, 0, 0, false},
		"its kind says so":  {"find", engine.KindPointLookup, 0, 0, false},
	} {
		v := live.NewValidity()
		noteStatements(v, &engine.Figures{ByStatement: []engine.StatementFigures{{StatementID: c.id, Kind: c.kind,
			Count: 30, Errors: c.errors, Rows: c.rows}}}, plan)
		notes := v.Verdict().Notes
		if c.says != (len(notes) == 1) || c.says && !strings.Contains(notes[0], "None of the 27 executions of find") {
			t.Errorf("%s: %q", name, notes)
		}
	}
}

// A kind of which all operations failed is doubted, and one that was tried a few times only remarked on.
func TestAKindThatFailedAFewTimesIsRemarkedOn(t *testing.T) {
	for n, want := range map[int64]string{1: "The only operation of kind DELETE failed: too few",
		3: "All 3 operations of kind DELETE failed: too few", 5: ""} {
		v := live.NewValidity()
		addFailedKinds(v, &engine.Figures{Operations: 1000, Errors: engine.ErrorFigures{Count: n},
			ByKind: map[engine.Kind]*engine.KindFigures{engine.KindDelete: {Count: n, Errors: n}}}, time.Unix(0, 0),
			time.Unix(10, 0))
		verdict := v.Verdict()
		notes := strings.Join(verdict.Notes, "|")
		if (verdict.Verdict == engine.VerdictDegraded) != (want == "") || want == "" && notes != "" ||
			!strings.HasPrefix(notes, want) {
			t.Errorf("%d failed: %+v", n, verdict)
		}
	}
}

func byKind(k engine.Kind, f engine.KindFigures) engine.Figures {
	return engine.Figures{Operations: f.Count, DurationSeconds: 10, ByKind: map[engine.Kind]*engine.KindFigures{k: &f}}
}

// What was noted while a run went on survives a process that did not see it; what
// follows from the figures is made anew.
func TestNotesSurviveARecovery(t *testing.T) {
	v := live.NewValidity()
	v.AddNote(engine.Note{Code: engine.NoteTargetLocal})
	v.AddFigureNote(engine.TextNote("it follows from the figures"))
	verdict := v.Verdict()
	if !slices.Contains(verdict.Notes, "it follows from the figures") ||
		!slices.Equal(verdict.LiveNotes, []string{"The target is on the same machine as the load generator."}) {
		t.Errorf("%+v", verdict)
	}
}

func TestAnAccountWithoutTheCountsOfAWorkerSaysOnlyThat(t *testing.T) {
	f := &engine.Figures{Accounting: engine.Accounting{Recorded: 15872, Warmup: 1507}}
	account(f, engine.Totals{}, false)
	if a := f.Accounting; a.Balanced || !f.CountsMissing || len(a.Problems) != 1 || a.Recorded != 15872 {
		t.Errorf("the account is %+v", a)
	}
	told := engine.Totals{Accounting: engine.Accounting{Scheduled: 3, Started: 3, Succeeded: 3}}
	f = &engine.Figures{Accounting: engine.Accounting{Recorded: 2}}
	account(f, told, true)
	if a := f.Accounting; a.Balanced || len(a.Problems) != 1 || f.CountsMissing {
		t.Errorf("the account of told counts is %+v", a)
	}
}

// TestARunThatLostItsServersEndsWithItsLoad: run workers end by themselves after a minute without a server, and the next
// one came 20 s later: 119/s over 66 s were 91/s over 86 s.
func TestARunThatLostItsServersEndsWithItsLoad(t *testing.T) {
	from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds float64) time.Time { return from.Add(time.Duration(seconds * float64(time.Second))) }
	for name, c := range map[string]struct {
		reason         engine.StopReason
		to, last, want float64
	}{
		"its servers were away":    {engine.StopWorkerFailure, 86, 66, 66},
		"a run worker died":        {engine.StopWorkerFailure, 86, 85.5, 86},
		"a user stopped a silence": {engine.StopUserRequested, 86, 66, 86},
		"its time was up":          {engine.StopDurationElapsed, 86, 66, 86},
		"nothing ended":            {engine.StopWorkerFailure, 86, -1, 86},
		"what ended in the drain":  {engine.StopWorkerFailure, 86, 90, 86},
	} {
		if got := endOfLoad(engine.Window{From: from, To: at(c.to)}, c.reason, at(c.last)); !got.Equal(at(c.want)) {
			t.Errorf("%s: %v", name, got.Sub(from))
		}
	}
	if got := endOfLoad(engine.Window{}, engine.StopWorkerFailure, from); !got.IsZero() {
		t.Errorf("an end that is not known is %v", got)
	}
}
