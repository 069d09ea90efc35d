package derived

import "testing"

// LimitRows lowers how many rows a definition may return, for one test.
func LimitRows(t *testing.T, rows int64) {
	before := definitionLimits
	definitionLimits.Rows = rows
	t.Cleanup(func() { definitionLimits = before })
}
