package history

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAJournalThatBeginsIdleIsFlushed: its timer goes off before its first execution, and again after it.
// The race detector sees whether the two goroutines agree on the timer.
func TestAJournalThatBeginsIdleIsFlushed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.jsonl")
	j, err := OpenJournal(path, New(Options{}))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * journalFlush)
	j.Add(&Record{})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(journalFlush / 10) {
		written, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(written) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the execution is not written while the journal is open")
		}
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}
