package postgres

import (
	"bytes"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestSampledRowsHaveABound: one for writing and for reading, so that what is written can be read.
func TestSampledRowsHaveABound(t *testing.T) {
	const limit = 1<<20 - 1
	packed, err := pack(bytes.Repeat([]byte("x"), limit), limit)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := unpack(packed, limit); err != nil || len(text) != limit {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, err := unpack(packed, limit-1); err == nil {
		t.Error("what is longer than the bound was cut")
	}
	if _, err := pack(bytes.Repeat([]byte("x"), limit+1), limit); !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("what cannot be read is written: %v", err)
	}
}
