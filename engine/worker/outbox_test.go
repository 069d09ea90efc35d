package worker

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
)

// TestDroppedLinesAreCountedByRun: a full outbox drops the oldest lines, and says how many of which run.
func TestDroppedLinesAreCountedByRun(t *testing.T) {
	o := newOutbox()
	line := func(run string) { o.Put(control.Log{LogEntry: engine.LogEntry{RunID: run}}) }
	for range 3 {
		line("a")
	}
	for range control.MostWaiting {
		line("b")
	}
	for range control.MostWaiting + 10 {
		o.Put(control.Snapshot{}) // are bounded for themselves
	}
	o.dropLines("c", 5)
	if a, b, c := o.linesDropped("a"), o.linesDropped("b"), o.linesDropped("c"); a != 3 || b != 0 || c != 5 {
		t.Errorf("%d, %d and %d lines were dropped", a, b, c)
	}
}
