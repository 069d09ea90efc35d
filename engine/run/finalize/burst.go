package finalize

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// burstSlot is the length of the intervals in which a slowdown is looked for.
const burstSlot = 5 * time.Second

// checkBurst says whether the target became slower at once in the middle of a steady load: instances that save credits
// while they are idle do, when the credits are used up, and nothing else tells.
func (s *Service) checkBurst(ctx context.Context, e Evidence, f *engine.Figures) {
	w := e.Run.Scenario.Workload
	results, able := s.opts.Results.(intervalReader)
	if e.Plan == nil || e.Plan.Burst == "" || !able || f.Operations == 0 || f.RecordPartial || w.IsSearch() ||
		len(w.Stages) > 0 || len(e.changes) > 0 {
		return
	}
	var cuts []time.Time
	for at := f.MeasuredFrom.Time; !at.After(f.MeasuredTo.Time); at = at.Add(burstSlot) {
		cuts = append(cuts, at)
	}
	if len(cuts) < 2*steadySlots+1 {
		return
	}
	slots, err := results.Between(ctx, e.Run.RunID, cuts)
	if err != nil {
		s.opts.Log.Warn().Err(err).Str("run_id", e.Run.RunID).Msg("whether the target became slower is not known")
		return
	}
	speeds := make([]float64, len(slots))
	for i, slot := range slots {
		speeds[i] = float64(slot.Rated()) / slot.Length()
		if w.LoadMode == engine.LoadQPS { // the schedule decides the rate; how long an operation takes tells
			speeds[i] = 0
			if h, err := histogram.FromData(slot.Latency); err == nil && h.Count() > 0 {
				speeds[i] = 1e9 / h.Quantile(0.5)
			}
		}
	}
	at, before, after := slowdown(speeds)
	if at < 0 {
		return
	}
	if w.LoadMode == engine.LoadQPS {
		before, after = 1e3/before, 1e3/after // milliseconds
	}
	note := engine.Note{Code: engine.AboutBurst, Old: before, New: after, At: engine.At(cuts[at])}
	if e.Plan.Burst != engine.BurstYes {
		note.Code = engine.NoteBurstUnknown
		e.Validity.AddNote(note)
		return
	}
	e.Validity.Add(engine.CauseBurst, note, cuts[at], f.MeasuredTo.Time)
}

// steadySlots are how many intervals there have to be on either side of a slowdown: a shorter one may be anything.
const steadySlots = 6

// slowdown finds where a series falls by 30 % at least, at once and for good; at is -1 where it does not.
func slowdown(speeds []float64) (at int, before, after float64) {
	best, found := 0, -1
	for k := steadySlots; k <= len(speeds)-steadySlots; k++ {
		b, a := median(speeds[:k]), median(speeds[k:])
		if a <= 0 || a > 0.7*b {
			continue
		}
		// Nearly all before are above what lies between, and nearly all after below it.
		middle, above, below := math.Sqrt(a*b), 0, 0
		for i, v := range speeds {
			switch {
			case i < k && v > middle:
				above++
			case i >= k && v < middle:
				below++
			}
		}
		if above*10 < k*9 || below*10 < (len(speeds)-k)*9 {
			continue
		}
		// Most of the fall is within a few intervals; a table that grows becomes slower by and by.
		near, far := median(speeds[k-3:k]), median(speeds[k:k+3])
		if far <= 0 || math.Log(near/far) < 0.7*math.Log(b/a) {
			continue
		}
		if right := above + below; right > best {
			best, found = right, k
			before, after = b, a
		}
	}
	return found, before, after
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
