// Package clock has the run workers of a run begin at one instant, wherever they are: how
// far ahead START must lie so that it reaches every node before, and how well that went. Pure:
// it knows no clock and sends nothing.
package clock

import (
	"fmt"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

const (
	// minStartDelay and most bound how far ahead START lies.
	minStartDelay = 50 * time.Millisecond
	maxStartDelay = time.Second
	// rttFactor is how many times the longest way there START is given, beside least: a way is not always
	// as short as it was last. More was tried (6 of them): 50 nodes on 2 processors then began 220 ms after
	// the decision, because what they did to get ready had made the last ways long.
	rttFactor = 2
	// writeFactor is how many times as long as the last write the store is given for START.
	writeFactor = 2
	// lateLogThreshold is from what on a run worker's lateness is in the words.
	lateLogThreshold = 20 * time.Millisecond
)

// NodeTiming is what is known of the way to a node.
type NodeTiming struct {
	// RTT is how long it took last to hear from the node, ClockError how wrong its time may be as
	// time of the server; 0 is not known.
	RTT, ClockError time.Duration
}

// StartDelay is how far ahead START lies for nodes at the end of these ways, when the store took so
// long to write last: START is stored before it is sent. It is 0 for a single node, which has
// nobody to wait for.
func StartDelay(to []NodeTiming, write time.Duration) time.Duration {
	if len(to) < 2 {
		return 0
	}
	var far, wrong time.Duration
	for _, w := range to {
		far, wrong = max(far, w.RTT), max(wrong, w.ClockError)
	}
	return min(minStartDelay+rttFactor*far/2+wrong+writeFactor*write, maxStartDelay)
}

// StartReport collects when run workers began that START had begin at one instant. The zero Line waits
// for none.
type StartReport struct {
	pending map[string]bool
	nodes   map[string]bool
	// started counts those that have.
	started     int
	first, last time.Time
	wrong, late time.Duration
	latest      string
	reported    bool
}

// Expect names the run workers that START is for.
func (l *StartReport) Expect(workers []string) {
	*l = StartReport{pending: make(map[string]bool, len(workers)), nodes: map[string]bool{}}
	for _, id := range workers {
		l.pending[id] = true
	}
}

// Record takes when a run worker began, on its node: late by so much, and with a clock that may be
// so wrong. It returns Words once all have begun. Others than those of Set, and a second time, say nothing.
func (l *StartReport) Record(id, node string, at time.Time, late, wrong time.Duration) (words string) {
	if !l.pending[id] || at.IsZero() {
		return ""
	}
	delete(l.pending, id)
	l.nodes[node] = true
	l.started++
	if l.first.IsZero() || at.Before(l.first) {
		l.first = at
	}
	if at.After(l.last) {
		l.last = at
	}
	if l.wrong = max(l.wrong, wrong); late > l.late {
		l.late, l.latest = late, id
	}
	if len(l.pending) > 0 {
		return ""
	}
	return l.Summary()
}

// Summary say how far apart those that have begun did so, once; empty where that says nothing.
func (l *StartReport) Summary() string {
	if l.reported || len(l.nodes) < 2 {
		return ""
	}
	l.reported = true
	var b strings.Builder
	fmt.Fprintf(&b, "%d run workers on %d nodes began within %.3g ms of one another", l.started, len(l.nodes),
		engine.Milliseconds(l.last.Sub(l.first)))
	if l.wrong > 0 {
		fmt.Fprintf(&b, ", where the clock of a node may be wrong by %.3g ms", engine.Milliseconds(l.wrong))
	}
	if l.late >= lateLogThreshold {
		fmt.Fprintf(&b, "; the latest, %s, began %.0f ms after the instant that START named", l.latest,
			engine.Milliseconds(l.late))
	}
	if n := len(l.pending); n > 0 {
		fmt.Fprintf(&b, "; %d did not begin", n)
	}
	return b.String() + "."
}
