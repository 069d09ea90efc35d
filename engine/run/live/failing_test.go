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
