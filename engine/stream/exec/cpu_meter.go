package exec

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
)

// maxSlice is how much processor time is spent on rows of a metered source before its account is looked at.
const maxSlice = 10 * time.Millisecond

// maxWait bounds how long a query waits before it looks whether it is to end.
const maxWait = 500 * time.Millisecond

// cpuMeter pushes the rows of a metered source in pieces that take so long, and waits when it has to.
type cpuMeter struct {
	source interface {
		Took(d time.Duration) (wait time.Duration, err error)
	}
	// rows is how many are pushed at once: few until it is known what a row takes.
	rows  int
	piece column.Piece
}

// push pushes a batch.
func (r *reader) push(ctx context.Context, q *flow.Query, b *column.Batch, drain <-chan struct{}) error {
	m := r.meter
	if m == nil {
		return q.Push(r.scan, r.origin, b)
	}
	for from := 0; ; {
		to := min(from+max(m.rows, 1), b.N)
		piece := b
		if to-from < b.N {
			piece = m.piece.Slice(b, from, to)
		}
		piece.HasWatermark, piece.Watermark = b.HasWatermark, b.Watermark
		if to < b.N && b.HasWatermark {
			piece.Watermark = column.MinTime // there are more
		}
		took, err := cpuTime(func() error { return q.Push(r.scan, r.origin, piece) })
		if err != nil {
			return err
		}
		if n := to - from; n > 0 {
			perRow := max(took/time.Duration(n), 1)
			m.rows = max(1, min(2*n, int(maxSlice/perRow)))
		}
		for {
			wait, err := m.source.Took(took)
			if err != nil {
				return err
			}
			if wait <= 0 || !pause(ctx, min(wait, maxWait), drain) {
				break
			}
			took = 0
		}
		if from = to; from >= b.N {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// pause waits, and reports whether there is reason to wait on.
func pause(ctx context.Context, d time.Duration, drain <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-drain:
	}
	return false
}
