package cli

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// issuedOperations are the operations of a run: when they were due and when they began, in ns, by run worker.
type issuedOperations struct{ due, began []int64 }

// recordedOperations reads what all run workers of a run recorded, from the results and from the nodes.
func recordedOperations(
	t *testing.T,
	runID, results string,
	nodes ...*clitest.RemoteNode,
) map[string]*issuedOperations {
	t.Helper()
	all := map[string]*issuedOperations{}
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
			all[id] = &issuedOperations{}
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

// maxPerSecond is the largest number of times, in ns, within any second.
func maxPerSecond(times []int64) (limit int) {
	slices.Sort(times)
	from := 0
	for i, at := range times {
		for at-times[from] >= int64(time.Second) {
			from++
		}
		limit = max(limit, i-from+1)
	}
	return limit
}
