package derived

import (
	"testing"
	"time"
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
