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
	// least and most bound how far ahead START lies.
	least = 50 * time.Millisecond
	most  = time.Second
	// ways is how many times the longest way there START is given, beside least: a way is not always
	// as short as it was last. More was tried (6 of them): 50 nodes on 2 processors then began 220 ms after
	// the decision, because what they did to get ready had made the last ways long.
	ways = 2
	// writes is how many times as long as the last write the store is given for START.
	writes = 2
	// lateWord is from what on a run worker's lateness is in the words.
	lateWord = 20 * time.Millisecond
)

// Way is what is known of the way to a node.
type Way struct {
	// RTT is how long it took last to hear from the node, ClockError how wrong its time may be as
	// time of the server; 0 is not known.
	RTT, ClockError time.Duration
}

// Ahead is how far ahead START lies for nodes at the end of these ways, when the store took so
// long to write last: START is stored before it is sent. It is 0 for a single node, which has
// nobody to wait for.
func Ahead(to []Way, write time.Duration) time.Duration {
	if len(to) < 2 {
		return 0
	}
	var far, wrong time.Duration
	for _, w := range to {
		far, wrong = max(far, w.RTT), max(wrong, w.ClockError)
	}
	return min(least+ways*far/2+wrong+writes*write, most)
}

// Line collects when run workers began that START had begin at one instant. The zero Line waits
// for none.
type Line struct {
	waits map[string]bool
	nodes map[string]bool
	// began counts those that have.
	began       int
	first, last time.Time
	wrong, late time.Duration
	latest      string
	told        bool
}

// Set names the run workers that START is for.
func (l *Line) Set(workers []string) {
	*l = Line{waits: make(map[string]bool, len(workers)), nodes: map[string]bool{}}
	for _, id := range workers {
		l.waits[id] = true
	}
}

// Began takes when a run worker began, on its node: late by so much, and with a clock that may be
// so wrong. It returns Words once all have begun. Others than those of Set, and a second time, say nothing.
func (l *Line) Began(id, node string, at time.Time, late, wrong time.Duration) (words string) {
	if !l.waits[id] || at.IsZero() {
		return ""
	}
	delete(l.waits, id)
	l.nodes[node] = true
	l.began++
	if l.first.IsZero() || at.Before(l.first) {
		l.first = at
	}
	if at.After(l.last) {
		l.last = at
	}
	if l.wrong = max(l.wrong, wrong); late > l.late {
		l.late, l.latest = late, id
	}
	if len(l.waits) > 0 {
		return ""
	}
	return l.Words()
}

// Words say how far apart those that have begun did so, once; empty where that says nothing.
func (l *Line) Words() string {
	if l.told || len(l.nodes) < 2 {
		return ""
	}
	l.told = true
	var b strings.Builder
	fmt.Fprintf(&b, "%d run workers on %d nodes began within %.3g ms of one another", l.began, len(l.nodes),
		engine.Milliseconds(l.last.Sub(l.first)))
	if l.wrong > 0 {
		fmt.Fprintf(&b, ", where the clock of a node may be wrong by %.3g ms", engine.Milliseconds(l.wrong))
	}
	if l.late >= lateWord {
		fmt.Fprintf(&b, "; the latest, %s, began %.0f ms after the instant that START named", l.latest,
			engine.Milliseconds(l.late))
	}
	if n := len(l.waits); n > 0 {
		fmt.Fprintf(&b, "; %d did not begin", n)
	}
	return b.String() + "."
}
