package exec_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// counted counts the batches that are read.
type counted struct {
	*heavy
	reads *atomic.Int64
}

func (c counted) Read(b *column.Batch) error {
	defer c.reads.Add(1)
	return c.heavy.Read(b)
}

// TestBatchesThatAreReadAheadCount: those that wait while the query is busy with the first one, of all its sources.
func TestBatchesThatAreReadAheadCount(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var reads atomic.Int64
	var sources []connector.Source
	for range 10 {
		sources = append(sources, counted{newHeavy(), &reads})
	}
	batches := 0
	_, err := exec.Run(ctx, exec.Job{Plan: bound(t, "SELECT j FROM t INTO s"), Now: time.Now,
		Sources: [][]connector.Source{sources}, Budget: 16 << 20,
		Out: func(*column.Batch) error {
			if batches++; batches == 1 {
				for was := int64(-1); was != reads.Load(); time.Sleep(200 * time.Millisecond) {
					was = reads.Load() // until no more is read
				}
			}
			return nil
		}})
	var e *sql.Error
	if !errors.As(err, &e) || e.Kind != sql.StateLimit || !strings.Contains(e.Message, "rows of the source") ||
		batches > 2 {
		t.Errorf("after %d batches: %v", batches, err)
	}
}
