package results

import (
	"math"
	"time"

	"github.com/loadstone-db/loadstone/engine/results/record"
)

// overrun is from how long after the end of the measurement on an execution is one of a run worker that was out of
// reach: a STOP takes far less. Of such a run worker nothing counts that it began after the end; of others what they
// began while the STOP was on its way does.
const overrun = time.Second

// addGroup adds a row group to the sums of its run worker: what was begun after the measurement to those of after.
func (r *reader) addGroup(s *partSums, p *record.Part, part, g int) error {
	late, n := r.beginsAfter(s)
	if late == nil {
		return r.add(s, p, part, g)
	}
	rest := make([]bool, r.N)
	for i, l := range late {
		rest[i] = r.Warmup[i] || !l
		r.Warmup[i] = r.Warmup[i] || l
	}
	if err := r.add(s, p, part, g); err != nil {
		return err
	}
	s.warmup -= n
	copy(r.Warmup, rest)
	ends := r.ends
	r.ends, r.late = nil, true // the ends are those of the measurement
	err := r.add(s.after, p, part, g)
	r.ends, r.late = ends, false
	s.after.recorded, s.after.warmup, s.after.inside = 0, 0, 0 // counted above
	return err
}

// beginsAfter says which executions of a row group were begun after the measurement, and how many operations; nil for
// none.
func (r *reader) beginsAfter(s *partSums) (late []bool, operations int64) {
	if r.window.to == math.MaxInt64 || r.window.lostEnd {
		return nil, 0
	}
	for i, due := range r.Due[:r.N] {
		if due <= r.window.to || r.Warmup[i] {
			continue
		}
		if late == nil {
			late = make([]bool, r.N)
			if s.after == nil {
				s.after = newSums()
			}
		}
		late[i], s.after.lastDue = true, max(s.after.lastDue, due)
		if r.Position[i] == 0 {
			operations++
		}
	}
	if s.after != nil {
		s.afterCount += operations
	}
	return late, operations
}

// settle decides about what was begun after the measurement, when all of it is known.
func (s *partSums) settle(w *window) {
	after := s.after
	if s.after = nil; after == nil {
		return
	}
	if after.lastDue-w.to > int64(overrun) {
		s.overran = s.afterCount
		return
	}
	s.merge(after)
}
