// This part finds the time line of a run that another server has begun: by how much it is
// ahead of the clock of who goes on with the run, and when its load began and was measured. The
// nodes know, who have heard both servers. It reads no clock and sends nothing.

package recovery

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

const (
	// clockTolerance is by how much clocks may differ, beyond what is known of them, before it is said.
	clockTolerance = 10 * time.Millisecond
	// reportErrorFrom and lateWord are from what on an error and a lateness are said.
	reportErrorFrom = 20 * time.Millisecond
	reportLateFrom  = 100 * time.Millisecond
)

// Timeline is what run workers have said of the time of their run.
type Timeline struct {
	waitingFor map[string]bool
	// initialGroups are the run workers that the run began with, of the groups before that number.
	initialGroups int
	measuring     bool
	compared      bool
	// offset is by how much the run's line is ahead of this server's clock, to within wrong.
	offset, uncertainty time.Duration
	// began and measured are when the first one did, latest when the last one was measured.
	began, measured, latest time.Time
	last                    string
}

// NewTimeline waits for run workers of a run that began with so many, and is being measured or not. Those that have
// joined since tell of the clocks, and not of when the run began: they began later.
func NewTimeline(workers []string, first int, measuring bool) *Timeline {
	l := &Timeline{waitingFor: make(map[string]bool, len(workers)), initialGroups: first, measuring: measuring}
	for _, id := range workers {
		l.waitingFor[id] = true
	}
	return l
}

// Observe takes what a run worker says; others than those that are waited for say nothing.
func (l *Timeline) Observe(w protocol.WorkerState) {
	if !l.waitingFor[w.WorkerID] {
		return
	}
	if w.LineError > 0 && (!l.compared || w.LineError < l.uncertainty) {
		l.compared, l.offset, l.uncertainty = true, w.LineAhead, w.LineError
	}
	joined := w.WorkerGroupID >= l.initialGroups
	if w.LineError <= 0 || l.measuring && w.MeasuresSince.IsZero() && !w.Status.Ended() && !joined {
		return // it will say more
	}
	delete(l.waitingFor, w.WorkerID)
	if joined {
		return
	}
	l.began = earlier(l.began, w.BeganAt)
	l.measured = earlier(l.measured, w.MeasuresSince)
	if w.MeasuresSince.After(l.latest) {
		l.latest, l.last = w.MeasuresSince, w.WorkerID
	}
}

// earlier is the first of two times, of which either may be zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// AwaitTimeout is how long who takes a run over waits for what its nodes say of its time, and AwaitTimeoutStopping the
// same where somebody waits for it to stop.
const (
	AwaitTimeout         = 3 * time.Second
	AwaitTimeoutStopping = 300 * time.Millisecond
)

// Await takes messages until all that are waited for have said what they know, for limit at most. It
// gives what hears makes of each message to the line, and returns the messages: nobody else has seen them.
func Await[M any](
	ctx context.Context,
	limit time.Duration,
	l *Timeline,
	inbox *protocol.Mailbox[M],
	hears func(M) (protocol.WorkerState, bool),
) (said []M) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for len(l.waitingFor) > 0 {
		select {
		case <-inbox.Ready():
			m, ok := inbox.Take()
			if !ok {
				continue
			}
			said = append(said, m)
			if w, speaks := hears(m); speaks {
				l.Observe(w)
			}
		case <-ctx.Done():
			return said
		}
	}
	return said
}

// Offset is by how much the run's time is ahead of a clock that says now, when that which nodes compare
// theirs with says nodes. The run was heard of at seen, in its own time, before that.
func (l *Timeline) Offset(now, nodes, seen time.Time) time.Duration {
	if !l.compared {
		return max(seen.Sub(now), 0) // at least
	}
	return l.offset + nodes.Round(0).Sub(now.Round(0))
}

// Began is when the load began, and Measured when its measurement did, on the first run worker and in
// the run's time; zero where none has said so.
func (l *Timeline) Began() time.Time { return l.began }

// Measured is explained with Began.
func (l *Timeline) Measured() time.Time { return l.measured }

// Note say what the verdict should tell of the time of a run that was taken over by a server whose clock
// it is ahead of by that much; nothing where all is well.
func (l *Timeline) Note(ahead time.Duration) string {
	var said []string
	switch {
	case !l.compared:
		said = append(said, "No node has said how the clock of the server that went on with the run compares with that "+
			"of the one before: the measurement is longer or shorter by as much as they differ.")
	case l.uncertainty >= reportErrorFrom, ahead.Abs() > clockTolerance+l.uncertainty:
		way := "behind"
		if ahead < 0 {
			way = "ahead of"
		}
		said = append(said, fmt.Sprintf("The clock of the server that went on with the run is %.3g s %s the run's time, by "+
			"which the run went on, to within %.3g ms.", ahead.Abs().Seconds(), way, engine.Milliseconds(l.uncertainty)))
	}
	if late := l.latest.Sub(l.measured); late >= reportLateFrom {
		said = append(said, fmt.Sprintf("%s was told of the measurement %.3g s after the first run worker, when the run was "+
			"taken over: what it executed before counts as warm-up.", l.last, late.Seconds()))
	}
	return strings.Join(said, " ")
}
