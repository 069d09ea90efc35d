package results

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
)

// mixed is a measurement with statements of different rates; fails says with which chance one fails at a time.
func mixed(seconds int, r *rand.Rand, perSecond map[statementKey]float64,
	fails func(key statementKey, at float64) float64) *endTimes {
	e := newEndTimes(&window{from: 0, to: int64(seconds) * int64(time.Second)})
	keys := slices.SortedFunc(maps.Keys(perSecond), func(a, b statementKey) int { return cmp.Compare(a.id, b.id) })
	for _, key := range keys {
		rate := perSecond[key]
		table := e.outcomeTable([]string{key.id}, []engine.Kind{key.kind})
		for i := range int(rate * float64(seconds)) {
			at := (float64(i) + r.Float64()) / rate
			e.addOutcome(table.of(0, 0), int64(at*1e9), r.Float64() >= fails(key, at))
		}
	}
	return e
}

var (
	often = statementKey{id: "often", kind: engine.KindPointLookup}
	rare  = statementKey{id: "rare", kind: engine.KindUpdate}
	mix   = map[statementKey]float64{often: 1000, rare: 1}
)

// TestARareStatementThatGoesOnFailingIsNamed: from whatever moment of a run on, to its end or not, also where others are
// a thousand times as frequent.
func TestARareStatementThatGoesOnFailingIsNamed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		from := rapid.Float64Range(10, 45).Draw(rt, "from")
		length := rapid.Float64Range(7, 20).Draw(rt, "length")
		to := min(from+length, 60)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		found := mixed(60, r, mix, func(key statementKey, at float64) float64 {
			if key == rare && at >= from && at < to {
				return 1
			}
			return 0
		}).failing()
		if len(found) != 1 || found[0].StatementID != "rare" || *found[0].Kind != engine.KindUpdate {
			rt.Fatalf("from %v to %v: %+v", from, to, found)
		}
		if f := found[0]; math.Abs(time.Duration(f.From.UnixNano()).Seconds()-from) > 2.5 ||
			math.Abs(f.Seconds-(to-from)) > 3 || f.Errors != f.Operations ||
			to == 60 && !f.ToTheEnd || to < 57.5 && f.ToTheEnd { // behind the last failure there may be no operation of it
			rt.Fatalf("from %v to %v: %+v", from, to, found)
		}
	})
}

// TestChanceIsNoFailingStatement: operations that fail now and then, as often as at any other time, are no time of
// failures.
func TestChanceIsNoFailingStatement(t *testing.T) {
	for name, share := range map[string]float64{"never": 0, "seldom": 0.01, "now and then": 0.1, "every third": 0.33} {
		found := 0
		for seed := range uint64(200) {
			r := rand.New(rand.NewPCG(seed, 9))
			e := mixed(60, r, map[statementKey]float64{{id: "a", kind: engine.KindInsert}: 1,
				{id: "b", kind: engine.KindInsert}: 7, often: 50}, func(statementKey, float64) float64 { return share })
			for _, f := range e.failing() {
				if f.Kind != nil {
					found++
				}
			}
		}
		if found > 1 {
			t.Errorf("%s: %d times in 200 runs of three statements", name, found)
		}
	}
}

// TestWhatAllOperationsTellIsToldOnce: where everything fails no statement is named beside that.
func TestWhatAllOperationsTellIsToldOnce(t *testing.T) {
	e := mixed(60, rand.New(rand.NewPCG(1, 1)), mix, func(_ statementKey, at float64) float64 {
		if at > 20 && at < 40 {
			return 1
		}
		return 0
	})
	if found := e.failing(); len(found) != 1 || found[0].Kind != nil {
		t.Errorf("%+v", found)
	}
}

// TestManyStatementsAreToldByTheirKind: beyond those that are told apart.
func TestManyStatementsAreToldByTheirKind(t *testing.T) {
	e := newEndTimes(&window{from: 0, to: int64(time.Minute)})
	ids := make([]string, 3*maxToldApart)
	for i := range ids {
		ids[i] = "s" + string(rune('0'+i%10)) + string(rune('0'+i/10%10)) + string(rune('0'+i/100))
	}
	table := e.outcomeTable(ids, []engine.Kind{engine.KindDelete})
	for i := range ids {
		for at := range int64(60) {
			e.addOutcome(table.of(int32(i), 0), at*int64(time.Second), i < len(ids)-1 || at < 30)
		}
	}
	if n := len(e.statements.of); n != maxToldApart+1 {
		t.Errorf("%d are told apart", n)
	}
}

// TestWhoReadsWhichPartChangesNothing: the parts of a record come to readers by chance, and the statements of a part in any
// order. The same statements are told apart, each with all of its executions, and the others are told together.
func TestWhoReadsWhichPartChangesNothing(t *testing.T) {
	ids := make([]string, 3*maxToldApart)
	for i := range ids {
		ids[i] = fmt.Sprintf("s%03d", i)
	}
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 5))
		readers := make([]*endTimes, rapid.IntRange(1, 4).Draw(rt, "readers"))
		for i := range readers {
			readers[i] = newEndTimes(&window{from: 0, to: int64(time.Minute)})
		}
		for part := range 12 {
			names := slices.Clone(ids)
			r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			e := readers[r.IntN(len(readers))]
			table := e.outcomeTable(names, []engine.Kind{engine.KindDelete})
			for i, name := range names {
				failed := part == 0 && (name == "s002" || name >= "s200") || name == "s001" && part < 6
				for at := range int64(8) {
					e.addOutcome(table.of(int32(i), 0), (20+at)*int64(time.Second), !failed)
				}
			}
		}
		for _, e := range readers[1:] {
			readers[0].merge(e)
		}
		all := readers[0]
		if n := len(all.statements.of); n != maxToldApart+1 {
			rt.Fatalf("%d are told apart", n)
		}
		for key, o := range all.statements.of {
			if ended, failed := o.within(binRange{0, len(o.ended)}); key.id != "" && (key.id > ids[maxToldApart-1] ||
				ended != 12*8 || failed != map[string]int64{"s001": 48, "s002": 8}[key.id]) {
				rt.Fatalf("%d of %d of %s failed", failed, ended, key.id)
			} else if key.id == "" && ended != 12*8*2*maxToldApart {
				rt.Fatalf("%d ended of those that are not told apart", ended)
			}
		}
	})
}

// TestAMomentOfFailuresIsNoStretchInALongRun: the bins of statements are as long as 6 s in a run of a day. What fails
// within 10 ms has not gone on failing, also where that is in two of them.
func TestAMomentOfFailuresIsNoStretchInALongRun(t *testing.T) {
	const day = 24 * 3600
	for name, c := range map[string]struct {
		from, apart time.Duration
		n           int
		failed      bool
	}{
		"within a bin":         {6*time.Hour + 2*time.Second, 3 * time.Millisecond, 3, false},
		"in two bins":          {6*time.Hour - 4*time.Millisecond, 3 * time.Millisecond, 4, false},
		"many in two bins":     {6*time.Hour - 40*time.Millisecond, 2 * time.Millisecond, 40, false},
		"at the end":           {24*time.Hour - 50*time.Millisecond, time.Millisecond, 25, false},
		"for 12 s":             {6*time.Hour + 2*time.Second, 3 * time.Second, 5, true},
		"for 12 s, to the end": {24*time.Hour - 12*time.Second, 2 * time.Second, 6, true},
		"for 4 s of a bin":     {6*time.Hour + 200*time.Millisecond, 400 * time.Millisecond, 12, true},
	} {
		e := mixed(day, rand.New(rand.NewPCG(1, 1)), map[statementKey]float64{often: 5},
			func(statementKey, float64) float64 { return 0 })
		other := newEndTimes(&window{from: 0, to: day * int64(time.Second)}) // of who has read every other execution
		add := func(e *endTimes, at time.Duration, success bool) {
			e.addOutcome(e.outcomeTable([]string{rare.id}, []engine.Kind{rare.kind}).of(0, 0), int64(at), success)
		}
		for i := range c.n {
			add([]*endTimes{e, other}[i%2], c.from+time.Duration(i)*c.apart, false)
		}
		for at := 5 * time.Minute; at < day*time.Second; at += 10 * time.Minute {
			add(e, at, true)
		}
		e.merge(other)
		if found := e.failing(); len(found) == 1 != c.failed || c.failed && found[0].StatementID != rare.id {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
