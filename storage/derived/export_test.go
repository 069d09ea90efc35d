package derived

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// LimitRows lowers how many rows a definition may return, for one test.
func LimitRows(t *testing.T, rows int64) {
	before := definitionLimits
	definitionLimits.Rows = rows
	t.Cleanup(func() { definitionLimits = before })
}

// LimitPreview lowers how long a preview may take, for one test.
func LimitPreview(t *testing.T, limit time.Duration) {
	before := previewLimits
	previewLimits.Statement = limit
	t.Cleanup(func() { previewLimits = before })
}

// SetStepHook makes d ask f at each step of taking executions in.
func (d *Database) SetStepHook(f func(step string) error) { d.stepHook = f }

// LimitPartitionsPerPart has a table divided that has few partitions, for one test.
func LimitPartitionsPerPart(t *testing.T, keys int) {
	before := partitionsPerPart
	partitionsPerPart = keys
	t.Cleanup(func() { partitionsPerPart = before })
}

// LimitRowsInMemory lowers how many bytes of rows are kept in memory, for one test.
func LimitRowsInMemory(t *testing.T, bytes int) {
	before := maxRowsInMemory
	maxRowsInMemory = bytes
	t.Cleanup(func() { maxRowsInMemory = before })
}

// StageName is the table that a refresh of many rows gathers them in.
func StageName(table string, epoch int64) string {
	_, name := stageName(refresh.Claim{Task: refresh.Task{Table: table}, Epoch: epoch})
	return name.Sanitize()
}
