package cli

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// issued are the operations of a run: when they were due and when they began, in ns, by run worker.
type issued struct{ due, began []int64 }

// recorded reads what all run workers of a run recorded, from the results and from the nodes.
func recorded(t *testing.T, runID, results string, nodes ...*clitest.RemoteNode) map[string]*issued {
	t.Helper()
	all := map[string]*issued{}
	parts, _ := filepath.Glob(filepath.Join(results, runID, "executions-*.parquet"))
	for _, n := range nodes {
		left, _ := filepath.Glob(filepath.Join(n.Dir, "spool", runID, "*", "*.parquet"))
		parts = append(parts, left...)
	}
	for _, path := range parts {
		part, err := record.OpenPart(path)
		if err != nil {
			t.Fatal(err)
		}
		id := part.Artifact().WorkerID
		if all[id] == nil {
			all[id] = &issued{}
		}
		for g := range part.RowGroups() {
			for _, c := range []struct {
				into *[]int64
				col  record.Column
			}{{&all[id].due, record.ColDueAt}, {&all[id].began, record.ColStartedAt}} {
				values, err := part.Int64s(g, c.col, nil)
				if err != nil {
					t.Fatal(err)
				}
				*c.into = append(*c.into, values...)
			}
		}
		_ = part.Close()
	}
	return all
}

// mostInASecond is the largest number of times, in ns, within any second.
func mostInASecond(times []int64) (most int) {
	slices.Sort(times)
	from := 0
	for i, at := range times {
		for at-times[from] >= int64(time.Second) {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}
