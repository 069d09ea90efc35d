package record

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestRecordingEndsAtTheReserve lets the disk fill up while a writer records: what
// was recorded is whole, and the error says why there is no more.
func TestRecordingEndsAtTheReserve(t *testing.T) {
	const more = 1 << 60 // than any disk has
	opts := testOptions(t.TempDir())
	opts.Reserve = 1
	w, err := NewWriter(opts)
	if err != nil {
		t.Fatal(err)
	}
	recs := realistic(1000, 4, 100, 0, 100)
	if err := w.Write(recs); err != nil {
		t.Fatal(err)
	}
	opts.Reserve, w.opts.Reserve = more, more
	w.spaceCheckedAt = time.Now().Add(-2 * spaceCheckInterval)
	err = w.Write(recs)
	if !engine.HasCode(err, engine.CodeUnavailable) ||
		!strings.Contains(err.Error(), " MB left, and 1099511627776 MB are kept free") ||
		w.Write(recs) == nil {
		t.Fatalf("below the reserve: %v", err)
	}
	parts, err := w.Close()
	if err == nil || len(parts) != 1 || parts[0].RowCount != 1000 {
		t.Errorf("kept %+v, %v", parts, err)
	}
	if _, err := NewWriter(opts); !engine.HasCode(err, engine.CodeUnavailable) {
		t.Errorf("a new recording below the reserve: %v", err)
	}
	opts.Reserve = 0
	if _, err := NewWriter(opts); err != nil {
		t.Errorf("without a reserve: %v", err)
	}
}

func TestTheDefaultReserve(t *testing.T) {
	if got := Reserve(t.TempDir(), 7); got != 7 {
		t.Errorf("given: %d", got)
	}
	if got := Reserve(t.TempDir(), -1); got != 0 {
		t.Errorf("none: %d", got)
	}
	if got := Reserve(t.TempDir(), 0); got < minReserve || got > maxReserve {
		t.Errorf("default: %d", got)
	}
}
