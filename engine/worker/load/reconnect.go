package load

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// This part keeps a group going through an outage of its target (workload.on_disconnect: reconnect). Each slot opens
// its connection again by itself: at once, then with pauses of up to a second. Nothing else stops: the arrivals of an
// open loop go on being due, wait for a connection, and are dropped where more than max_in_flight wait.

func (g *Group) reconnects() bool { return g.cfg.Workload.Reconnects() }

// mayHaveCommitted reports of an operation that failed on a connection which is lost whether the target may have done
// what it asked for: a COMMIT, or a write outside of transactions, that was sent and whose answer never came.
func (s *slot) mayHaveCommitted(g *Group, err error) bool {
	if !g.reconnects() || !errors.Is(err, target.ErrNoAnswer) {
		return false
	}
	op := s.progress.Op().Statement
	if s.progress.Transaction() {
		return op == plugin.StatementCommit
	}
	return int(op) < len(g.writes) && g.writes[op]
}

// proved notes that an operation was answered on the slot's new connection.
func (s *slot) proved(g *Group) {
	s.unproved = false
	g.mu.Lock()
	g.awaySince = 0
	g.mu.Unlock()
}

// away notes whether no connection is left, and reports whether it has been so for too long. It needs mu.
func (g *Group) away(none bool) (tooLong bool) {
	if !g.reconnects() {
		return false
	}
	now := g.clock.now()
	if none && g.awaySince == 0 {
		g.awaySince = now
	}
	return g.awaySince != 0 && now-g.awaySince >= int64(g.cfg.Workload.ReconnectFor())
}

// awayTooLong ends a group whose target has not come back.
func (g *Group) awayTooLong(reason string, cause error) {
	g.fail(&engine.Error{Code: engine.CodeTarget, Cause: cause,
		Message: fmt.Sprintf("The target has not answered for %g s: %s.", g.cfg.Workload.ReconnectFor().Seconds(),
			strings.TrimSuffix(reason, ".")),
		Hint: "See that it comes back, or raise workload.reconnect_for_seconds."})
}

// sweepPause is how long after a lost connection the idle ones are looked at: a server that goes down needs a moment to
// end all sessions.
const sweepPause = 20 * time.Millisecond

// sweepLater has slots that wait for an arrival look whether their connections are lost as well, so that they open
// others before they are asked for something. An event loop notices by itself.
func (g *Group) sweepLater() {
	if !g.reconnects() || g.queue == nil || g.sweeping.Swap(true) {
		return
	}
	time.AfterFunc(sweepPause, func() {
		g.sweeping.Store(false)
		g.queue.sweep()
	})
}

// sweep takes the slots whose idle connections are lost out of the line, to reconnect.
func (q *queue) sweep() {
	var stale []*slot
	q.mu.Lock()
	for range q.idle.n {
		s, _ := q.idle.pop()
		if conn, able := s.connection().(target.IdleConn); able && s.seat == nil && conn.Lost() {
			stale = append(stale, s)
		} else {
			q.idle.push(s)
		}
	}
	q.mu.Unlock()
	for _, s := range stale {
		s.stale.Store(true)
		s.hand(false)
	}
}

// withdraw takes a slot out of the line; false says that it has been handed something already.
func (q *queue) withdraw(s *slot) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.idle.remove(func(x *slot) bool { return x == s })
}

// errIdleLost is why a connection is opened again that was lost while nothing was in flight.
var errIdleLost = engine.ExecutionError{Class: engine.ErrClassConnection, Code: "connection_lost",
	Message: "the server closed it while nothing was in flight"}
