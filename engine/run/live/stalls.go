package live

import (
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// A stall is worth a remark when it lasts, and operations were missed in it.
const (
	stallLength = 3 * time.Second
	stallMissed = 50
	maxStalls   = 5
)

// stall follows the seconds in which no operation ended.
type stall struct {
	exact     bool      // remarks are those of the record
	began     time.Time // of the measurement
	ended     int64     // operations so far
	from, to  time.Time // zero while operations end
	remarks   []engine.Note
	forgotten int
}

// observe follows whether operations end. Seconds without a new snapshot say nothing.
func (s *stall) observe(at time.Time, snapshots []engine.WorkerSnapshot) {
	if s.began.IsZero() {
		s.began = at
	}
	var ended int64
	open, covered := 0, 0.0
	for i := range snapshots {
		if snapshots[i].Phase == engine.PhaseMeasurement {
			ended += snapshots[i].TickStarted
			if snapshots[i].PhaseService == nil || snapshots[i].InFlight > 0 { // an open loop may have nothing due
				open += snapshots[i].TargetConnections
			}
			covered = max(covered, snapshots[i].TickSeconds)
		}
	}
	switch {
	case ended > 0:
		s.end()
		s.ended += ended
	case open > 0 && s.from.IsZero():
		s.from, s.to = at.Add(-time.Duration(covered*float64(time.Second))), at
	case open > 0:
		s.to = at
	}
}

// end closes the stall under way.
func (s *stall) end() {
	if n := s.remark(); n.Code != "" {
		if len(s.remarks) < maxStalls {
			s.remarks = append(s.remarks, n)
		} else {
			s.forgotten++
		}
	}
	s.from = time.Time{}
}

// remark says what there is to say of the stall under way, if anything.
func (s *stall) remark() engine.Note {
	before, length := s.from.Sub(s.began).Seconds(), s.to.Sub(s.from)
	if s.from.IsZero() || before <= 0 || length < stallLength {
		return engine.Note{}
	}
	if rate := float64(s.ended) / before; rate*length.Seconds() >= stallMissed {
		return engine.Note{Code: engine.NoteNoneEnded, At: engine.At(s.from), Seconds: length.Seconds(), Old: rate}
	}
	return engine.Note{}
}

// SetStalls replaces what the ticks showed of stalls by what the record says.
func (v *Validity) SetStalls(remarks []engine.Note) { v.stall = stall{exact: true, remarks: remarks} }

// notes are the stalls that were worth a remark, the one under way too.
func (s *stall) notes() []engine.Note {
	out := slices.Clone(s.remarks)
	if s.exact {
		return out
	}
	if n := s.remark(); n.Code != "" {
		out = append(out, n)
	}
	if s.forgotten > 0 {
		out = append(out, engine.Note{Code: engine.NoteNoneEndedMore, Count: int64(s.forgotten)})
	}
	return out
}
