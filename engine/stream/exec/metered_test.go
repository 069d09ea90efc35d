package exec_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// dear gives a batch of a thousand rows, each of which waits ten seconds, and is given up at the second minute.
type dear struct {
	*scripted
	until time.Time
}

var errGivenUp = errors.New("it cannot keep up")

func (s dear) Read(b *column.Batch) error {
	b.Reset(tColumns)
	for b.N = 0; b.N < 1000; b.N++ {
		b.Cols[0].AppendInt(int64(b.N))
		for i := range b.Cols[1:] {
			b.Cols[i+1].AppendNull()
		}
	}
	return nil
}

func (s dear) Took(time.Duration) (wait time.Duration, err error) {
	if !time.Now().Before(s.until) {
		return 0, errGivenUp
	}
	return 10 * time.Second, nil
}

// TestWhoIsGivenUpWithinABatchEndsThere: what a query has read may take it longer than its run; it is told before that
// it cannot keep up.
func TestWhoIsGivenUpWithinABatchEndsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		c, err := exec.Run(t.Context(), exec.Job{Plan: bound(t, perSecond), Now: time.Now,
			Sources: [][]connector.Source{{dear{script(), begin.Add(2 * time.Minute)}}},
			Out:     func(*column.Batch) error { return nil }})
		if took := time.Since(begin); !errors.Is(err, errGivenUp) || took > 3*time.Minute || c.In > 1000 {
			t.Errorf("after %v and %d rows: %v", took, c.In, err)
		}
	})
}
