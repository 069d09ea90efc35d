package compare

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/segment"
)

// TestTheLastPointIsOfTheMeasurement: seconds are whole, and a measurement ends within one. What ended after it, in the
// drain, was divided by what the point covers of the measurement: 474/s of a load that did 220/s.
func TestTheLastPointIsOfTheMeasurement(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	kind, statement := PartKey{Kind: engine.KindPointLookup}, PartKey{engine.KindPointLookup, "get", false}
	// 220/s from 2.4 s to 5.65 s, and then 100 more that were in flight, 80 of them in the same second.
	const count = 132 + 215 + 220 + 143 + 100
	var rows []segment.Row
	add := func(second int32, warm bool, operations int64) {
		r := segment.Row{Second: second, Operations: operations, Errors: operations / 4, LatencySchema: 5}
		r.Warmup = warm
		rows = append(rows, r)
	}
	add(2, true, 90)
	add(2, false, 132)
	add(3, true, 5) // carried over
	add(3, false, 215)
	add(4, false, 220)
	add(5, false, 143+80)
	for name, c := range map[string]struct {
		kindLate int64
		lost     bool
		want     int64
	}{
		"each part says what ended late": {100, false, 143},
		"a version that did not":         {0, false, 223},
		"parts of the record are lost":   {100, true, 223},
	} {
		for _, most := range []int{1000, 2} {
			sum := &engine.Summary{Figures: engine.Figures{FinishedLate: 100,
				ByKind: map[engine.Kind]*engine.KindFigures{engine.KindPointLookup: {Count: count, FinishedLate: c.kindLate}},
				ByStatement: []engine.StatementFigures{{StatementID: "get", Kind: engine.KindPointLookup, Count: count,
					FinishedLate: c.kindLate}}}}
			if c.lost {
				sum.RecordPartial, sum.CoveredSeconds = true, new(3.0)
			}
			b := newBins(start, at(2.4), at(5.65), most)
			s := &statementSeconds{parts: map[PartKey][]binTotals{}, total: map[PartKey]int64{}}
			for i := range rows {
				if n, ok := b.index(int(rows[i].Second)); ok {
					s.add(kind, n, len(b.length), &rows[i], nil)
					s.add(statement, n, len(b.length), &rows[i], nil)
				}
			}
			s.cutLast(b, sum)
			want := c.want
			if most == 2 {
				want += 220 // the last two seconds are one point
			}
			for _, p := range []PartKey{kind, statement} {
				if last := s.parts[p][b.high]; last.operations != want || last.errors > want/4+1 {
					t.Errorf("%s, %d points: the last has %d operations and %d errors in %v s; want %d", name, most,
						last.operations, last.errors, b.length[b.high], want)
				}
			}
		}
	}
}
