package snowflakeexport_test

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestDeletedFilesAreNotCalledUnreadable: the run of which the account knows nothing yet says what became of them.
func TestDeletedFilesAreNotCalledUnreadable(t *testing.T) {
	w := newWorldWithSchema(t)
	w.parts, w.lost, w.late = map[string]int{"a": 20}, "a", engine.At(noon)
	if r, err := w.take(t, 1); err != nil || !strings.Contains(r.Note, "were deleted") {
		t.Errorf("%+v, %v", r, err)
	}
}
