package live

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestATableThatIsGoneIsNoValidMeasurement: what failed in a row for seconds is in all figures, however much went well
// before.
func TestATableThatIsGoneIsNoValidMeasurement(t *testing.T) {
	type second struct{ ended, failed int64 }
	times := func(n int, s second) (list []second) {
		for range n {
			list = append(list, s)
		}
		return list
	}
	fine, gone, few, none := second{100, 1}, second{90, 90}, second{1, 1}, second{}
	for name, c := range map[string]struct {
		seconds []second
		search  bool
		want    string // part of the only cause; empty: none
	}{
		"dropped near the end":      {append(times(20, fine), times(4, gone)...), false, "failed for 4 s, up to 100 %"},
		"away, and back":            {slices.Concat(times(9, fine), times(5, gone), times(9, fine)), false, "for 5 s"},
		"in two parts":              {append(times(9, fine), gone, gone, none, none, gone, fine), false, "for 5 s"},
		"a moment":                  {append(append(times(9, fine), gone, gone), times(9, fine)...), false, ""},
		"few of them":               {append(times(20, second{2, 0}), times(9, few)...), false, ""},
		"of a long measurement":     {append(times(900, second{100, 0}), times(6, gone)...), false, ""},
		"most of it":                {append(times(2, fine), times(9, gone)...), false, "failed for 9 s"},
		"all of it, told otherwise": {times(9, gone), false, "100 % of the operations failed"},
		"a search":                  {append(times(20, fine), times(4, gone)...), true, ""},
	} {
		v := NewValidity()
		var o Outcome
		for i, s := range c.seconds {
			at := epoch.Add(time.Duration(i+1) * time.Second)
			o = Outcome{From: epoch, To: at, Operations: o.Operations + s.ended, Errors: o.Errors + s.failed, Search: c.search}
			v.Outcome(o)
			v.Observe(at, engine.PhaseMeasurement, &Second{Snapshots: []engine.WorkerSnapshot{{WorkerID: "worker-0",
				Phase: engine.PhaseMeasurement, TickSeconds: 1, PhaseSeconds: float64(i + 1), TickStarted: s.ended,
				TickErrors: s.failed}}})
		}
		o.Ended = true
		v.Outcome(o)
		got := v.Clone().Verdict().Causes
		// Where that was over half of all, that is said too.
		got = got[:min(len(got), 1)]
		if c.want == "" && len(got) != 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0].Detail, c.want)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestTheRecordDecidesWhatFailed: a table that is gone when the measurement ends is told, however short that was, and
// what the ticks showed is replaced.
func TestTheRecordDecidesWhatFailed(t *testing.T) {
	stretch := func(second, length float64, toTheEnd bool) engine.FailingTime {
		return engine.FailingTime{From: engine.At(epoch.Add(time.Duration(second * float64(time.Second)))), Seconds: length,
			Operations: 400, Errors: 380, ToTheEnd: toTheEnd}
	}
	rare := stretch(100, 9, false)
	rare.Kind, rare.StatementID, rare.Operations, rare.Errors = new(engine.KindUpdate), "book", 9, 9
	for name, c := range map[string]struct {
		times  []engine.FailingTime
		errors int64 // of 100 000
		search bool
		want   string
	}{
		"gone at the end":                 {[]engine.FailingTime{stretch(596, 4, true)}, 380, false, "failed for 4 s, up to 95 %"},
		"away for a moment, of very much": {[]engine.FailingTime{stretch(100, 4, false)}, 380, false, ""},
		"away for a moment":               {[]engine.FailingTime{stretch(100, 4, false)}, 3800, false, "failed for 4 s"},
		"a rare statement for a moment":   {[]engine.FailingTime{rare}, 9, false, "9 of 9 executions of book (UPDATE) failed within 9 s"},
		"a search":                        {[]engine.FailingTime{stretch(596, 4, true)}, 380, true, ""},
		"nothing":                         {nil, 380, false, ""},
	} {
		v := NewValidity()
		v.mark(engine.CauseFailing, "", epoch, epoch.Add(5*time.Second), 100, engine.Note{Code: engine.AboutFailing})
		v.SetFailing(c.times)
		v.Outcome(Outcome{From: epoch, To: epoch.Add(10 * time.Minute), Operations: 100_000, Errors: c.errors, Ended: true,
			Search: c.search})
		got := v.Clone().Verdict().Causes
		if c.want == "" && len(got) != 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0].Detail, c.want)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// statementFailing is a time in which executions of a statement failed.
func statementFailing(second, length float64, failed, of int64) engine.FailingTime {
	return engine.FailingTime{From: engine.At(epoch.Add(time.Duration(second * float64(time.Second)))), Seconds: length,
		Operations: of, Errors: failed, Kind: new(engine.KindUpdate), StatementID: "book"}
}

// TestAFailingStatementIsToldAsItWas: each of its times with its own counts, also where little lies between two, and as
// no rarity where it is none.
func TestAFailingStatementIsToldAsItWas(t *testing.T) {
	for name, c := range map[string]struct {
		times  []engine.FailingTime
		errors int64 // of 1000
		want   []string
	}{
		"a rare one": {[]engine.FailingTime{statementFailing(100, 9, 9, 9)}, 9,
			[]string{"9 of 9 executions of book (UPDATE) failed within 9 s: the figures of all operations hardly show it"}},
		"two times": {[]engine.FailingTime{statementFailing(100, 9, 9, 9), statementFailing(111, 5, 4, 5)}, 13,
			[]string{"9 of 9 executions of book (UPDATE) failed within 9 s",
				"4 of 5 executions of book (UPDATE) failed within 5 s"}},
		"nearly a half of all": {[]engine.FailingTime{statementFailing(300, 300, 225, 225)}, 225,
			[]string{"failed within 300 s: that is 22.5 % of all operations of the measurement"}},
	} {
		v := NewValidity()
		v.SetFailing(c.times)
		v.Outcome(Outcome{From: epoch, To: epoch.Add(10 * time.Minute), Operations: 1000, Errors: c.errors, Ended: true})
		got := v.Clone().Verdict().Causes
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(got[i].Detail, want) || strings.Contains(want, "that is") &&
				strings.Contains(got[i].Detail, "hardly") {
				t.Errorf("%s: %s", name, got[i].Detail)
			}
		}
	}
}

// TestOnlyWhatWouldBeToldIsCountedAsMore: of times of failures that are not told none is said to be more.
func TestOnlyWhatWouldBeToldIsCountedAsMore(t *testing.T) {
	times := func(n, ofStatements int) (out []engine.FailingTime) {
		for i := range n {
			next := statementFailing(float64(10*i), 4, 40, 40)
			if i >= ofStatements {
				next.Kind, next.StatementID = nil, ""
			}
			out = append(out, next)
		}
		return out
	}
	for name, c := range map[string]struct {
		times      []engine.FailingTime
		errors     int64 // of 1 000 000
		search     bool
		told, more int
	}{
		"a search":                      {times(40, 40), 1600, true, 0, 0},
		"too short to weigh":            {times(40, 0), 1600, false, 0, 0},
		"some too short to weigh":       {times(40, 10), 1600, false, 10, 0},
		"all too many":                  {times(40, 0), 20_000, false, 25, 15},
		"those of statements too many":  {times(60, 40), 2400, false, 25, 15},
		"more than are kept, of no use": {times(130, 0), 5200, false, 0, 0},
		"more than are kept":            {times(130, 0), 20_000, false, 25, 105},
	} {
		v := NewValidity()
		v.SetFailing(c.times)
		v.Outcome(Outcome{From: epoch, To: epoch.Add(time.Hour), Operations: 1_000_000, Errors: c.errors, Ended: true,
			Search: c.search})
		verdict := v.Clone().Verdict()
		more := 0
		for _, n := range verdict.ReadNotes() {
			if n.Code == engine.NoteMoreCauses {
				more += int(n.Count)
			}
		}
		if len(verdict.Causes) != c.told || more != c.more {
			t.Errorf("%s: %d are told, and %d more", name, len(verdict.Causes), more)
		}
	}
}
