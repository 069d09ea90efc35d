package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/worker/diskbudget"
)

// TestPartsThatAreGoneAreForgotten, with their folder when nothing of their run worker waits.
func TestPartsThatAreGoneAreForgotten(t *testing.T) {
	dir := t.TempDir()
	n := NewNode(Options{NodeID: "n", SpoolDir: dir, SpoolBytes: -1, Log: zerolog.Nop()})
	defer n.Close()
	folder := n.spool("run", "worker-0")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	part := func(i int) engine.Artifact {
		return engine.Artifact{RunID: "run", WorkerID: "worker-0", ResultID: "r", Name: fmt.Sprintf("p-%d.parquet", i),
			SHA256: "ab"}
	}
	const parts = 3
	for i := range parts {
		if err := os.WriteFile(filepath.Join(folder, part(i).Name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		key := protocol.PartWorkID(part(i))
		n.disk.apply(diskbudget.Grow{Key: key, Kind: diskbudget.Record, Run: "run", Bytes: 1})
		n.disk.apply(diskbudget.Finished{Key: key})
		n.ready([]engine.Artifact{part(i)}, folder, false)
	}
	// What the run worker has counted, which a later process tells with its parts.
	counted := filepath.Join(folder, countsFile)
	if err := os.WriteFile(counted, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range parts {
		if n.State().Parts != parts-i {
			t.Errorf("%d parts after %d", n.State().Parts, i)
		}
		if _, err := os.Stat(counted); err != nil {
			t.Errorf("after %d parts: %v", i, err)
		}
		a := part(i)
		n.acknowledged(protocol.ArtifactAck{RunID: a.RunID, WorkerID: a.WorkerID, Name: a.Name, SHA256: a.SHA256})
		if _, err := os.Stat(filepath.Join(folder, a.Name+record.StoredSuffix)); err == nil {
			t.Errorf("%s is still there", a.Name)
		}
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder is still there")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.stored)+len(n.waits)+len(n.parts) > 0 || n.disk.b.Used() != 0 {
		t.Errorf("%v, %v, %v, %d", n.stored, n.waits, n.parts, n.disk.b.Used())
	}
}
