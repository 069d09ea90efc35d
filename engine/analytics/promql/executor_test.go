package promql

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/worker/diskbudget"
)

// folder is a disk without a budget.
type folder string

func (f folder) Dir() string               { return string(f) }
func (folder) Apply(diskbudget.Event) bool { return false }

// TestWhatAnEarlierProcessMade goes when the next one begins, with a cache or without; other files stay.
func TestWhatAnEarlierProcessMade(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"leaf-1.parquet", "leaf-2.parquet", "part.parquet"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	NewExecutor(ExecutorOptions{Disk: folder(dir)})
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "part.parquet" {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestEveryCancellationIsAnswered: once while the work ends, and each that comes when there is nothing (any more).
func TestEveryCancellationIsAnswered(t *testing.T) {
	reading, let := make(chan struct{}), make(chan struct{})
	read := func(context.Context, Segment) (*series.Set, int64, error) {
		close(reading)
		<-let
		return nil, 0, os.ErrNotExist
	}
	a := NewExecutor(ExecutorOptions{Disk: folder(t.TempDir()), Log: zerolog.Nop(),
		Evaluate: NewEvaluator(read, DefaultOptions(), 1<<20)})
	said := make(chan protocol.FromNode, 10)
	s := a.Serve(func(m protocol.FromNode) { said <- m })
	defer s.Close()
	k := protocol.WorkKey{QueryID: "q", LeafID: "0", WorkID: "0-1"}
	hears := func() {
		t.Helper()
		if m, ok := (<-said).(protocol.WorkFailed); !ok || !m.Cancelled || m.WorkKey != k {
			t.Fatalf("%+v", m)
		}
	}
	s.Receive(protocol.CancelWork{WorkKey: k})
	hears()
	s.Receive(protocol.AssignWork{WorkKey: k, Task: []byte("{}"), Segments: []byte(`[{"run_id":"r"}]`)})
	if m, ok := (<-said).(protocol.WorkAccepted); !ok {
		t.Fatalf("%+v", m)
	}
	<-reading
	s.Receive(protocol.CancelWork{WorkKey: k})
	s.Receive(protocol.CancelWork{WorkKey: k})
	hears()
	close(let)
	s.Receive(protocol.CancelWork{WorkKey: k})
	hears()
}
