package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestGarbageIsCollectedAsBeforeOnceTheRunBegins: what a start saves must not cost a run its memory.
func TestGarbageIsCollectedAsBeforeOnceTheRunBegins(t *testing.T) {
	now := func() int {
		percent := debug.SetGCPercent(-1)
		debug.SetGCPercent(percent)
		return percent
	}
	if before, set := os.LookupEnv("GOGC"); set {
		_ = os.Unsetenv("GOGC")
		defer func() { _ = os.Setenv("GOGC", before) }()
	}
	before := now()
	settle := TuneStartupGC()
	if got := now(); got != startGCPercent {
		t.Errorf("while the program starts: %d", got)
	}
	// A start that fills the least heap is a large one, and bounded from then on.
	runtime.GC()
	for end := time.Now().Add(10 * time.Second); now() != laterGCPercent && time.Now().Before(end); {
		runtime.Gosched()
	}
	if got := now(); got != laterGCPercent {
		t.Errorf("after the first collection: %d", got)
	}
	settle()
	if got := now(); got != before {
		t.Errorf("once the run begins: %d", got)
	}
	early := TuneStartupGC()
	early()
	runtime.GC()
	runtime.GC() // the first one's finalizers have run
	if got := now(); got != before {
		t.Errorf("after a collection in the run: %d", got)
	}
	debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	if settle(); now() != 77 {
		t.Errorf("settled twice: %d", now())
	}
	t.Setenv("GOGC", "50")
	if TuneStartupGC()(); now() != 77 {
		t.Errorf("against GOGC: %d", now())
	}
}
