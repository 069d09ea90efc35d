package flow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
)

// TestTextsHaveABound: texts of a batch that together have no room are NULL and counted, however they come to be; the
// others are as they should be. Ends of a vector count up to 2 GiB, which 2048 rows of 1 MiB would pass.
func TestTextsHaveABound(t *testing.T) {
	if testing.Short() {
		t.Skip("make check-ci: it takes many seconds")
	}
	long := "'" + strings.Repeat("x", 1<<20-16) + "'"
	for name, c := range map[string]struct {
		expression string
		size       int // of a text
	}{
		"joined": {"worker || " + long, 1<<20 - 8},
		"nested": {"(worker || " + long + ") || (worker || " + long + ")", 2 * (1<<20 - 8)},
		"chosen": {"CASE WHEN ok IS NULL THEN worker ELSE " + long + " END", 1<<20 - 16},
	} {
		t.Run(name, func(t *testing.T) {
			texts, nulls, bytes := 0, 0, 0
			q := flow.New(bind(t, "SELECT "+c.expression+" AS x FROM t INTO s"), flow.Options{Origins: []int{1}, Now: time.Now,
				Out: func(b *column.Batch) error {
					v := &b.Cols[0]
					for i := range b.N {
						if v.Null[i] {
							nulls++
							continue
						}
						if texts++; len(v.Text(i)) != c.size {
							t.Fatalf("row %d has %d bytes, not %d", i, len(v.Text(i)), c.size)
						}
						bytes += len(v.Text(i))
					}
					return nil
				}})
			const rows = 300
			if err := q.Push(0, 0, batches(1, rows)[0]); err != nil {
				t.Fatal(err)
			}
			if texts+nulls != rows || bytes > column.MaxText || bytes < column.MaxText-c.size {
				t.Errorf("%d texts of %d bytes together, and %d without room", texts, bytes, nulls)
			}
			if n := q.Counts().Overflow; n < int64(nulls) {
				t.Errorf("%d overflows are counted, and %d rows have no text", n, nulls)
			}
		})
	}
}
