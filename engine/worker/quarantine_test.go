package worker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
)

// TestANodeTellsOfPartsThatItKeepsAside starts on a part that is not torn, and cannot be opened.
func TestANodeTellsOfPartsThatItKeepsAside(t *testing.T) {
	spool := t.TempDir()
	dir := filepath.Join(spool, "run", "worker-3")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "executions-worker-3-00001.parquet")
	if err := os.WriteFile(path, []byte("PAR1........not a footer\x08\x00\x00\x00PAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := NewNode(Options{NodeID: "n", SpoolDir: spool, Log: zerolog.Nop()})
	n.salvageSpool()
	h := n.hello()
	if len(h.Quarantined) != 1 || h.Quarantined[0].RunID != "run" || h.Quarantined[0].WorkerID != "worker-3" ||
		h.Quarantined[0].Reason == "" {
		t.Fatalf("the node tells of %+v", h.Quarantined)
	}
	if _, err := os.Stat(filepath.Join(dir, h.Quarantined[0].Name)); err != nil {
		t.Error(err)
	}
}
