package cli

import (
	"os"
	"runtime/debug"
	"testing"
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
	settle := seldomCollect()
	if got := now(); got != 4*defaultGCPercent {
		t.Errorf("while plugins are made ready: %d", got)
	}
	settle()
	debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	if settle(); now() != 77 {
		t.Errorf("settled twice: %d", now())
	}
	t.Setenv("GOGC", "50")
	if seldomCollect()(); now() != 77 {
		t.Errorf("against GOGC: %d", now())
	}
}
