package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loadstone-db/loadstone/engine"
)

// countsFile lies beside a run worker's parts from when its load is over until
// the last of them is acknowledged: what the worker counted is part of its record, and
// a process that is killed before the server has stored it leaves both.
const countsFile = "counts.json"

type counts struct {
	ResultID string `json:"test_id"`
	// Account has a name of its own: what an earlier version wrote under another is not taken for counts of 0.
	Account *engine.Totals `json:"account"`
}

// writeCounts writes the file whole, or not at all.
func writeCounts(dir string, c counts) error {
	b, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("keeping the counts: %w", err)
	}
	path := filepath.Join(dir, countsFile)
	if err := os.WriteFile(path+".tmp", b, 0o640); err != nil {
		return fmt.Errorf("keeping the counts: %w", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("keeping the counts: %w", err)
	}
	return nil
}

// readCounts are the counts beside the parts in dir, nil when the worker was killed before it wrote them.
func readCounts(dir, resultID string) *engine.Totals {
	var c counts
	b, err := os.ReadFile(filepath.Join(dir, countsFile))
	if err != nil || json.Unmarshal(b, &c) != nil || c.ResultID != resultID {
		return nil
	}
	return c.Account
}

// deleteCounts removes what keepCounts wrote.
func deleteCounts(dir string) {
	_ = os.Remove(filepath.Join(dir, countsFile))
	_ = os.Remove(filepath.Join(dir, countsFile+".tmp"))
}
