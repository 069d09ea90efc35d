package wiring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/results/record"
)

// TestASpoolThatCannotBeKeptIsRefused sets budgets below the size of a part and above the size of the disk. Parts that
// are already in the spool do not stop the node from starting, so that it can hand them over.
func TestASpoolThatCannotBeKeptIsRefused(t *testing.T) {
	dir := t.TempDir()
	free, size, ok := record.Space(dir)
	if !ok {
		t.Skip("the free space is not known here")
	}
	between := (free + size) / 2 >> 20
	for name, tc := range map[string]struct {
		budget int64
		left   bool // of a process before
		wrong  string
	}{
		"none is given":                 {budget: 0},
		"no limit":                      {budget: -1},
		"one that fits":                 {budget: 64},
		"less than a part":              {budget: 63, wrong: "take 64 MB"},
		"more than the disk":            {budget: size>>20 + 1, wrong: "stay free"},
		"more than the disk, with left": {budget: size>>20 + 1, left: true, wrong: "in size"},
		"more than is free":             {budget: between, wrong: "MB free"},
		"more than is free, with left":  {budget: between, left: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tc.left {
				if err := os.MkdirAll(filepath.Join(dir, "spool", "run-1"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			err := SpoolFlags{SpoolBudget: tc.budget}.Check(dir, -1)
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("%v", err)
			}
		})
	}
}
