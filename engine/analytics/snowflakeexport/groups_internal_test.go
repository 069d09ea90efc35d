package snowflakeexport

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
)

// TestGroupsOfParts: every part is in one group, in order, and no group of several parts has more executions than the
// history is held for at a time.
func TestGroupsOfParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var parts []engine.Artifact
		for _, rows := range rapid.SliceOf(rapid.Int64Range(0, 3*historyRows)).Draw(t, "rows") {
			parts = append(parts, engine.Artifact{RowCount: rows, SchemaVersion: len(parts)})
		}
		next := 0
		for _, group := range groups(parts) {
			var rows int64
			for _, a := range group {
				if a.SchemaVersion != next {
					t.Fatalf("part %d comes after %d", a.SchemaVersion, next-1)
				}
				next++
				rows += a.RowCount
			}
			if len(group) == 0 || len(group) > 1 && rows > historyRows {
				t.Fatalf("a group has %d parts with %d executions", len(group), rows)
			}
		}
		if next != len(parts) {
			t.Fatalf("%d of %d parts are in groups", next, len(parts))
		}
	})
}
