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
func LimitPreview(t *testing.T, most time.Duration) {
	before := previewLimits
	previewLimits.Statement = most
	t.Cleanup(func() { previewLimits = before })
}

// Fail makes d ask f at each step of taking executions in.
func (d *Database) Fail(f func(step string) error) { d.fault = f }

// SmallParts has a table divided that has few partitions, for one test.
func SmallParts(t *testing.T, keys int) {
	before := keysInPart
	keysInPart = keys
	t.Cleanup(func() { keysInPart = before })
}

// SmallRows lowers how many bytes of rows are kept in memory, for one test.
func SmallRows(t *testing.T, bytes int) {
	before := smallRows
	smallRows = bytes
	t.Cleanup(func() { smallRows = before })
}

// StageName is the table that a refresh of many rows gathers them in.
func StageName(table string, epoch int64) string {
	_, name := stageName(refresh.Claim{Task: refresh.Task{Table: table}, Epoch: epoch})
	return name.Sanitize()
}
