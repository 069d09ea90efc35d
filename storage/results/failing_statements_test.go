package results

import (
	"cmp"
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
			math.Abs(f.Seconds-(to-from)) > 3 || f.Errors != f.Operations || f.ToTheEnd != (to == 60) {
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
