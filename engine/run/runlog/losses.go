package runlog

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// quietPeriod is how long no connection must be lost for a row of losses to be over.
const quietPeriod = 5 * time.Second

// ConnectionLosses follows the connections that a run worker loses and opens again, from its
// snapshots: it counts them, and knows the first and the last. It reads no clock.
type ConnectionLosses struct {
	phase  engine.Phase
	failed int64 // operations that lost their connection, in the phase so far
	open   int   // connections, as reported last
	streak LossStreak
}

// LossStreak are losses that belong together.
type LossStreak struct {
	Lost, Reopened int64
	First, Last    time.Time
}

// Observe takes a snapshot. began: it is the first loss of a row.
func (l *ConnectionLosses) Observe(s *engine.WorkerSnapshot) (began bool) {
	failed := s.ByClass[engine.ErrClassConnection]
	if s.Phase != l.phase {
		l.phase, l.failed = s.Phase, 0 // counters begin anew with the phase
	}
	if n := failed - l.failed; n > 0 {
		began = l.streak.Lost == 0
		if began {
			l.streak.First = s.Timestamp.Time
		}
		l.streak.Lost += n
		l.streak.Last = s.Timestamp.Time
	}
	l.failed = max(failed, l.failed)
	if l.streak.Lost > 0 && s.ActiveConnections > l.open {
		l.streak.Reopened += int64(s.ActiveConnections - l.open)
	}
	l.open = s.ActiveConnections
	return began
}

// OpenConnections is how many connections were open when it was heard of last.
func (l *ConnectionLosses) OpenConnections() int { return l.open }

// TakeEnded returns the row of losses that is over at a time, if there is one.
func (l *ConnectionLosses) TakeEnded(now time.Time, end bool) (row LossStreak, ok bool) {
	if l.streak.Lost == 0 || !end && now.Sub(l.streak.Last) < quietPeriod {
		return LossStreak{}, false
	}
	// Connections that were lost and found again within a second were never seen missing.
	row, l.streak = l.streak, LossStreak{}
	row.Reopened = max(row.Reopened, 0)
	return row, true
}
