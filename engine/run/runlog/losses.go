package runlog

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// calm is how long no connection must be lost for a row of losses to be over.
const calm = 5 * time.Second

// Losses follows the connections that a run worker loses and opens again, from its
// snapshots: it counts them, and knows the first and the last. It reads no clock.
type Losses struct {
	phase  engine.Phase
	failed int64 // operations that lost their connection, in the phase so far
	open   int   // connections, as reported last
	row    Row
}

// Row are losses that belong together.
type Row struct {
	Lost, Reopened int64
	First, Last    time.Time
}

// See takes a snapshot. began: it is the first loss of a row.
func (l *Losses) See(s *engine.WorkerSnapshot) (began bool) {
	failed := s.ByClass[engine.ErrClassConnection]
	if s.Phase != l.phase {
		l.phase, l.failed = s.Phase, 0 // counters begin anew with the phase
	}
	if n := failed - l.failed; n > 0 {
		began = l.row.Lost == 0
		if began {
			l.row.First = s.Timestamp.Time
		}
		l.row.Lost += n
		l.row.Last = s.Timestamp.Time
	}
	l.failed = max(failed, l.failed)
	if l.row.Lost > 0 && s.ActiveConnections > l.open {
		l.row.Reopened += int64(s.ActiveConnections - l.open)
	}
	l.open = s.ActiveConnections
	return began
}

// Open is how many connections were open when it was heard of last.
func (l *Losses) Open() int { return l.open }

// Over returns the row of losses that is over at a time, if there is one.
func (l *Losses) Over(now time.Time, end bool) (row Row, ok bool) {
	if l.row.Lost == 0 || !end && now.Sub(l.row.Last) < calm {
		return Row{}, false
	}
	// Connections that were lost and found again within a second were never seen missing.
	row, l.row = l.row, Row{}
	row.Reopened = max(row.Reopened, 0)
	return row, true
}
