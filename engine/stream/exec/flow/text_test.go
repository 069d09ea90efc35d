package flow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// TestLongTextsAreEvaluatedInPieces: texts of a batch that together take more than the query may hold are all there, and
// what it holds stays within that, however they come to be.
func TestLongTextsAreEvaluatedInPieces(t *testing.T) {
	const rows, budget = 300, 16 << 20
	long := "'" + strings.Repeat("x", 1<<20-16) + "'"
	for name, c := range map[string]struct {
		expression string
		size       int // of a text
	}{
		"joined": {"worker || " + long, 1<<20 - 8},
		"nested": {"(worker || " + long + ") || (worker || " + long + ")", 2 * (1<<20 - 8)},
		"chosen": {"CASE WHEN ok IS NULL THEN worker ELSE " + long + " END", 1<<20 - 16},
		"raised": {"UPPER(worker || " + long + ")", 1<<20 - 8},
	} {
		t.Run(name, func(t *testing.T) {
			texts, most := 0, 0
			account := memory.Limits{}.Open(memory.Holder{}, budget, nil)
			q := flow.New(bind(t, "SELECT "+c.expression+" AS x FROM t INTO s"), flow.Options{Origins: []int{1}, Now: time.Now,
				Account: account, Out: func(b *column.Batch) error {
					most = max(most, account.Used(), b.Size())
					v := &b.Cols[0]
					for i := range b.N {
						if texts++; v.Null[i] || len(v.Text(i)) != c.size {
							t.Fatalf("row %d has %d bytes, not %d", i, len(v.Text(i)), c.size)
						}
					}
					return nil
				}})
			if err := q.Push(0, 0, batches(1, rows)[0]); err != nil {
				t.Fatal(err)
			}
			if texts != rows || q.Counts().Overflow > 0 || most > budget {
				t.Errorf("%d texts, %d without room, %d bytes were held", texts, q.Counts().Overflow, most)
			}
		})
	}
}

// TestARowThatTakesTooMuchEndsTheQuery: the error names the expression, the limit and the option.
func TestARowThatTakesTooMuchEndsTheQuery(t *testing.T) {
	long := "'" + strings.Repeat("x", 1<<20-16) + "'"
	var columns []string
	for i := range 100 {
		columns = append(columns, fmt.Sprintf("kind || x AS c%d", i))
	}
	account := memory.Limits{}.Open(memory.Holder{}, 0, nil)
	q := flow.New(bind(t, "SELECT "+strings.Join(columns, ", ")+" FROM (SELECT kind, worker || "+long+
		" AS x FROM t) INTO s"), flow.Options{Origins: []int{1}, Now: time.Now,
		Account: account, Out: func(*column.Batch) error { return nil }})
	err := q.Push(0, 0, batches(1, 300)[0])
	var e *sql.Error
	if !errors.As(err, &e) || e.Kind != sql.StateLimit || !strings.Contains(e.Message, "64 MiB") ||
		!strings.Contains(e.Message, "kind || x") || !strings.Contains(e.Hint, "QUERY.MEMORY_MIB") {
		t.Errorf("it ended with %v", err)
	}
	if account.Used() > 4<<20 { // what rows take that fit
		t.Errorf("%d bytes are held after that", account.Used())
	}
}
