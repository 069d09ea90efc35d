package outage_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/outage"
)

const second = int64(time.Second)

// at is a time of the tests, in seconds since the load began.
func at(seconds float64) int64 { return 1_790_000_000*second + int64(seconds*float64(second)) }

// history is what a run recorded.
type history struct{ ops []outage.Operation }

func (h *history) add(kind engine.Kind, due, ended float64, class engine.ErrorClass, code string) {
	h.ops = append(h.ops, outage.Operation{Kind: kind, Due: at(due), Ended: at(ended), OK: class == "", Class: class,
		Code: code})
}

// steady succeeds every interval in [from, to).
func (h *history) steady(kind engine.Kind, from, to, interval float64) {
	for i := 0; from+float64(i)*interval < to-interval/2; i++ {
		t := from + float64(i)*interval
		h.add(kind, t-0.001, t, "", "")
	}
}

// find computes the outages as the results do, in several courses that are merged.
func (h *history) find(measured, end float64) []engine.Outage {
	var courses [3]outage.Courses
	for i, op := range h.ops {
		courses[i%3].Add(at(0), op)
	}
	courses[0].Merge(&courses[1])
	courses[0].Merge(&courses[2])
	found := outage.Find(&courses[0], at(measured), at(end))
	for _, op := range h.ops {
		outage.Count(found, op)
	}
	return found
}

func near(t *testing.T, what string, got engine.Time, seconds float64) {
	t.Helper()
	if got.IsZero() || got.Sub(time.Unix(0, at(seconds))).Abs() > time.Millisecond {
		t.Errorf("%s is %s, want %s", what, got, time.Unix(0, at(seconds)).UTC())
	}
}

// TestOutagesAreFoundWhereTheyWere: outages of random lengths at random times, in random loads, are found to the
// nanosecond, with all that belongs to them; and nothing else is.
func TestOutagesAreFoundWhereTheyWere(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 45))
		rate := []float64{20, 100, 1000}[rng.IntN(3)]
		var h history
		type truth struct{ last, first float64 }
		var want []truth
		failed, unknown := 0, 0
		t0, last := 0.0, 0.0
		next := 12 + 5*rng.Float64()
		for now := 0.0; now < 100; now += rng.ExpFloat64() / rate {
			if now > next {
				down := 0.5 + 10/rate + 5*rng.Float64()
				for i := range 1 + rng.IntN(20) {
					class, code := engine.ErrClassConnection, "connection_lost"
					if i%3 == 0 {
						code = engine.CodeUnknownOutcome
						unknown++
					}
					h.add(engine.KindInsert, last, last+0.001+0.2*rng.Float64(), class, code)
					failed++
				}
				now += down
				want = append(want, truth{last, now})
				next = now + 12 + 10*rng.Float64()
			}
			if rng.IntN(50) == 0 { // not of an outage
				h.add(engine.KindInsert, now, now+0.0001, engine.ErrClassConstraint, "23505")
			}
			h.add(engine.KindInsert, now-0.002, now, "", "")
			t0, last = now, now
		}
		rng.Shuffle(len(h.ops), func(i, j int) { h.ops[i], h.ops[j] = h.ops[j], h.ops[i] })
		found := h.find(5, t0+0.001)
		if len(found) != len(want) {
			t.Fatalf("seed %d, %g a second: %d outages, want %d: %+v", seed, rate, len(found), len(want), found)
		}
		gotFailed, gotUnknown := 0, 0
		for i, o := range found {
			if o.LastSuccess.UnixNano() != at(want[i].last) || o.FirstSuccess.UnixNano() != at(want[i].first) ||
				o.Number != i+1 || o.Kind != nil || o.Warmup || o.ToTheEnd {
				t.Errorf("seed %d: %+v, want %+v", seed, o, want[i])
			}
			gotFailed, gotUnknown = gotFailed+int(o.Failed), gotUnknown+int(o.Unknown)
			if o.Errors[engine.OutageDown][engine.ErrClassConnection] != o.Failed {
				t.Errorf("seed %d: %v of %d failed while it was down", seed, o.Errors, o.Failed)
			}
			if len(o.ByKind) != 1 || o.ByKind[0].Kind != engine.KindInsert || o.ByKind[0].Failed != o.Failed ||
				o.ByKind[0].DownSeconds != o.DownSeconds {
				t.Errorf("seed %d: by kind %+v", seed, o.ByKind)
			}
		}
		if gotFailed != failed || gotUnknown != unknown {
			t.Errorf("seed %d: %d failed, %d unknown; want %d and %d", seed, gotFailed, gotUnknown, failed, unknown)
		}
	}
}

// TestWhatIsNoOutage: errors of what was asked for, a lost connection among many, a target that is slow.
func TestWhatIsNoOutage(t *testing.T) {
	for name, of := range map[string]func(h *history){
		"one connection of many": func(h *history) {
			h.steady(engine.KindUpdate, 0, 30, 0.01)
			h.add(engine.KindUpdate, 9, 10.005, engine.ErrClassConnection, "connection_lost")
		},
		"conflicts for seconds": func(h *history) {
			h.steady(engine.KindUpdate, 0, 10, 0.01)
			h.steady(engine.KindUpdate, 12, 30, 0.01)
			h.steady(engine.KindPointLookup, 0, 30, 0.01)
			for i := range 100 {
				h.add(engine.KindUpdate, 10, 10+float64(i)*0.02, engine.ErrClassSerialization, "40001")
			}
		},
		"a pause below a second": func(h *history) {
			h.steady(engine.KindUpdate, 0, 10, 0.01)
			h.steady(engine.KindUpdate, 10.9, 30, 0.01)
		},
		"a kind that is not asked for any more": func(h *history) {
			h.steady(engine.KindUpdate, 0, 10, 0.01)
			h.steady(engine.KindPointLookup, 0, 30, 0.01)
		},
		"one that comes seldom": func(h *history) {
			h.steady(engine.KindDelete, 0, 30, 2)
			h.steady(engine.KindPointLookup, 0, 30, 0.01)
			h.add(engine.KindDelete, 10, 10.001, engine.ErrClassTimeout, "client_timeout")
		},
		"cut off at the end": func(h *history) {
			h.steady(engine.KindUpdate, 0, 30, 0.01)
			h.add(engine.KindUpdate, 29, 35, engine.ErrClassCancelled, "drain_timeout")
		},
		"a rate that falls": func(h *history) {
			h.steady(engine.KindUpdate, 0, 10, 0.002)
			h.steady(engine.KindUpdate, 10, 30, 2)
		},
		"a load that pauses, and ends early": func(h *history) {
			h.steady(engine.KindUpdate, 0, 10, 0.002)
			h.steady(engine.KindUpdate, 14, 20, 0.002)
			h.steady(engine.KindPointLookup, 14, 20, 0.002)
		},
		"cut off, long after the last one was begun": func(h *history) {
			h.steady(engine.KindUpdate, 0, 28, 0.01)
			h.add(engine.KindUpdate, 29.9, 35, engine.ErrClassCancelled, "drain_timeout")
		},
		"nothing": func(*history) {},
	} {
		var h history
		of(&h)
		if found := h.find(1, 30); len(found) != 0 {
			t.Errorf("%s: %s", name, found[0].Text())
		}
	}
}

// TestTheCourseOfAnOutage: what belongs to which part of it, what was delayed, and when the rate was full again.
func TestTheCourseOfAnOutage(t *testing.T) {
	var h history
	h.steady(engine.KindPointLookup, 0, 10, 0.01)
	h.add(engine.KindPointLookup, 9.9, 9.98, engine.ErrClassConnection, "connection_lost")
	h.add(engine.KindPointLookup, 9.99, 10.2, engine.ErrClassConnection, "connection_lost")
	h.add(engine.KindPointLookup, 9.99, 12.3, engine.ErrClassTimeout, "client_timeout")
	for i := range 40 { // waited for a connection
		h.add(engine.KindPointLookup, 10+float64(i)*0.05, 12+float64(i)*0.002, "", "")
	}
	h.add(engine.KindPointLookup, 12.1, 12.5, engine.ErrClassConnection, "connection_lost")
	h.steady(engine.KindPointLookup, 12.1, 15, 0.02) // at half of the rate
	h.steady(engine.KindPointLookup, 15, 60, 0.01)
	found := h.find(1, 60)
	if len(found) != 1 {
		t.Fatalf("%+v", found)
	}
	o := found[0]
	near(t, "the last success", o.LastSuccess, 9.99)
	near(t, "the first success", o.FirstSuccess, 12)
	near(t, "the first failure", o.FirstFailure, 9.98)
	near(t, "the last failure", o.LastFailure, 12.5)
	if o.Failed != 4 || o.Errors[engine.OutageOnset][engine.ErrClassConnection] != 1 ||
		o.Errors[engine.OutageDown][engine.ErrClassConnection] != 1 ||
		o.Errors[engine.OutageRecovery][engine.ErrClassTimeout] != 1 ||
		o.Errors[engine.OutageRecovery][engine.ErrClassConnection] != 1 {
		t.Errorf("%d failed: %v", o.Failed, o.Errors)
	}
	if o.Delayed != 40 {
		t.Errorf("%d were delayed", o.Delayed)
	}
	if o.FullRateSeconds == nil || *o.FullRateSeconds < 4 || *o.FullRateSeconds > 5.1 {
		t.Errorf("full rate after %v", o.FullRateSeconds)
	}
	if o.RateBefore < 99 || o.RateBefore > 101 {
		t.Errorf("%g a second before", o.RateBefore)
	}
}

// TestOutagesOfAKind: a standby that takes reads and no writes; the target that is back for reads first.
func TestOutagesOfAKind(t *testing.T) {
	var h history
	h.steady(engine.KindPointLookup, 0, 10, 0.01)
	h.steady(engine.KindPointLookup, 12, 60, 0.01)
	h.steady(engine.KindInsert, 0.003, 10, 0.02)
	for i := range 300 {
		h.add(engine.KindInsert, 12+float64(i)*0.02, 12.001+float64(i)*0.02, engine.ErrClassAuth, "25006")
	}
	h.add(engine.KindInsert, 10, 10.05, engine.ErrClassConnection, "connection_lost")
	h.steady(engine.KindInsert, 20, 60, 0.02)
	found := h.find(1, 60)
	if len(found) != 2 || found[0].Kind != nil && found[1].Kind != nil {
		t.Fatalf("%+v", found)
	}
	if found[0].Kind != nil {
		found[0], found[1] = found[1], found[0]
	}
	if all := found[0]; all.DownSeconds < 1.98 || all.DownSeconds > 2.02 {
		t.Errorf("all: %s", all.Text())
	}
	writes := found[1]
	if writes.Kind == nil || *writes.Kind != engine.KindInsert || writes.DownSeconds < 9.9 || writes.DownSeconds > 10.1 ||
		writes.Failed != 301 {
		t.Errorf("writes: %s", writes.Text())
	}
	i := slices.IndexFunc(found[0].ByKind, func(k engine.OutageKind) bool { return k.Kind == engine.KindInsert })
	if i < 0 || found[0].ByKind[i].DownSeconds != writes.DownSeconds {
		t.Errorf("by kind: %+v", found[0].ByKind)
	}
}

// TestOutagesAtTheEdges: in the warm-up, to the end of the load, without a failure, several that are one.
func TestOutagesAtTheEdges(t *testing.T) {
	lost := func(h *history, when float64) {
		h.add(engine.KindUpdate, when, when, engine.ErrClassConnection, "connection_lost")
	}
	var warm history
	warm.steady(engine.KindUpdate, 0, 4, 0.01)
	lost(&warm, 4.01)
	warm.steady(engine.KindUpdate, 6, 30, 0.01)
	if found := warm.find(10, 30); len(found) != 1 || !found[0].Warmup {
		t.Errorf("in the warm-up: %+v", found)
	}
	var end history
	end.steady(engine.KindUpdate, 0, 25, 0.01)
	lost(&end, 25.01)
	found := end.find(1, 30)
	if len(found) != 1 || !found[0].ToTheEnd || !found[0].FirstSuccess.IsZero() || found[0].FullRateSeconds != nil ||
		found[0].DownSeconds < 5 || found[0].DownSeconds > 5.02 || found[0].Failed != 1 {
		t.Errorf("to the end: %+v", found)
	}
	var silent history
	silent.steady(engine.KindUpdate, 0, 10, 0.01)
	silent.add(engine.KindUpdate, 9.99, 13, "", "")
	silent.steady(engine.KindUpdate, 13.01, 30, 0.01)
	if found := silent.find(1, 30); len(found) != 1 || found[0].Failed != 0 || found[0].Delayed != 1 ||
		!found[0].FirstFailure.IsZero() {
		t.Errorf("without a failure: %+v", found)
	}
	var flaps history
	flaps.steady(engine.KindUpdate, 0, 10, 0.01)
	for _, from := range []float64{12, 14} { // it accepts for a moment
		lost(&flaps, from-1)
		flaps.steady(engine.KindUpdate, from, from+0.2, 0.01)
	}
	lost(&flaps, 15)
	flaps.steady(engine.KindUpdate, 16, 30, 0.01)
	if found := flaps.find(1, 30); len(found) != 1 || found[0].DownSeconds < 5.99 || found[0].Failed != 3 {
		t.Errorf("flapping: %+v", found)
	}
}

// TestALongCourse: bins become longer, and what is found stays exact.
func TestALongCourse(t *testing.T) {
	var h history
	h.steady(engine.KindUpdate, 0, 20_000, 0.5)
	h.add(engine.KindUpdate, 20_000, 20_000.1, engine.ErrClassConnection, "connection_lost")
	h.steady(engine.KindUpdate, 20_010, 30_000, 0.5)
	found := h.find(1, 30_000)
	if len(found) != 1 {
		t.Fatalf("%+v", found)
	}
	near(t, "the last success", found[0].LastSuccess, 19_999.5)
	near(t, "the first success", found[0].FirstSuccess, 20_010)
}

// TestABackgroundOfErrorsIsNoOutage: pauses of a load of which some operations always fail, at random, and a rate that
// falls meanwhile.
func TestABackgroundOfErrorsIsNoOutage(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 6))
		share := []float64{0.0001, 0.001, 0.01, 0.05}[seed%4]
		h := randomErrors(rng, 1000, share, 60, func(now float64) float64 {
			switch {
			case now > 45:
				return 2 * 1000
			case rng.IntN(1000) == 0:
				return 0.03 * 1000
			}
			return 0
		})
		for _, o := range h.find(1, 60) {
			t.Errorf("seed %d, %g %% fail: %s", seed, 100*share, o.Text())
		}
	}
}

// randomErrors is a load of which a share fails with timeouts. slow says how many operations' time is left out.
func randomErrors(rng *rand.Rand, rate, share, until float64, slow func(now float64) float64) *history {
	var h history
	for now := 0.0; now < until; now += rng.ExpFloat64()/rate + slow(now)/rate {
		if rng.Float64() < share {
			h.add(engine.KindUpdate, now-0.0001, now, engine.ErrClassTimeout, "statement_timeout")
			continue
		}
		h.add(engine.KindUpdate, now-0.0001, now, "", "")
	}
	return &h
}

// TestAnOutageEndsWhereErrorsGoOn: those that always come, those of before and those that begin with it.
func TestAnOutageEndsWhereErrorsGoOn(t *testing.T) {
	for name, before := range map[string]bool{"as before": true, "from then on": false} {
		for _, share := range []float64{0.01, 0.2} {
			rng := rand.New(rand.NewPCG(9, 9))
			background := randomErrors(rng, 1000, share, 150, func(float64) float64 { return 0 })
			var h history
			lost := int64(0)
			for _, op := range background.ops {
				switch {
				case op.Ended > at(30) && op.Ended < at(32):
					lost++
					op.OK, op.Class, op.Code = false, engine.ErrClassConnection, "connection_lost"
					h.ops = append(h.ops, op)
				case !op.OK && !before && op.Ended < at(30):
					op.OK, op.Class, op.Code = true, "", ""
					h.ops = append(h.ops, op)
				default:
					h.ops = append(h.ops, op)
				}
			}
			found := h.find(1, 150)
			if len(found) != 1 {
				t.Fatalf("errors %s: %+v", name, found)
			}
			o := found[0]
			most, longest := lost+int64(3*1000*share), 3*time.Second
			if !before {
				// The rate is full again at once, or never.
				longest = 63 * time.Second
				most = lost + int64(longest.Seconds()*1100*share)
			}
			if took := o.Until().Sub(o.LastSuccess.Time); o.Failed < lost || o.Failed > most || took > longest {
				t.Errorf("errors %s, %g %%: %s, over after %v", name, 100*share, o.Text(), took)
			}
		}
	}
}
