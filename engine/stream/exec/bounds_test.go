package exec_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// made is a source of so many rows, which are made as they are read.
type made struct {
	rows, next int
	row        func(b *column.Batch, i int)
}

func (m *made) Read(b *column.Batch) error {
	b.Reset(tColumns)
	if m.next == m.rows {
		return io.EOF
	}
	for ; b.N < 1024 && m.next < m.rows; m.next++ {
		m.row(b, m.next)
		for c := range b.Cols {
			if b.Cols[c].Len() == b.N {
				b.Cols[c].AppendNull()
			}
		}
		b.N++
	}
	return nil
}
func (m *made) Malformed() int64 { return 0 }
func (m *made) Close() error     { return nil }

// alike is a row whose columns j are equal, with the text of k.
func alike(text string) func(b *column.Batch, i int) {
	return func(b *column.Batch, i int) {
		b.Cols[0].AppendInt(int64(i) % 1000)
		b.Cols[2].AppendText([]byte(text))
		b.Cols[3].AppendInt(1)
	}
}

// TestAQueryEndsWhileARowTakesLong: a join of equal keys, and a window of which a row closes very many, are ended when
// the query is, and not when they are through.
func TestAQueryEndsWhileARowTakesLong(t *testing.T) {
	far := func(b *column.Batch, i int) { b.Cols[0].AppendInt(int64(i) * 400_000_000) }
	for name, c := range map[string]struct {
		query   string
		sources [][]connector.Source
	}{
		"a join": {"SELECT t.j AS x FROM t JOIN u ON t.j = u.j WINDOW TUMBLING(ts, SIZE 1 SEC) INTO s",
			[][]connector.Source{{&made{rows: 20_000, row: alike("")}}, {&made{rows: 20_000, row: alike("")}}}},
		"windows": {"SELECT COUNT(*) AS n FROM t WINDOW SLIDING(ts, SIZE 10 DAYS, ADVANCE BY 1 MIN) INTO s",
			[][]connector.Source{{&made{rows: 2000, row: far}}}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			given, after := 0, 0
			_, err := exec.Run(ctx, exec.Job{Plan: bound(t, c.query), Now: time.Now, Sources: c.sources,
				Out: func(*column.Batch) error {
					if given++; given == 3 {
						cancel()
					} else if given > 3 {
						after++
					}
					return nil
				}})
			if !errors.Is(err, context.Canceled) || after > 1 {
				t.Errorf("%d batches came after the end, %v", after, err)
			}
		})
	}
}

// TestPairsOfLongTextsStayWhatTheyAre: a text of a megabyte that meets many rows is in each of the pairs.
func TestPairsOfLongTextsStayWhatTheyAre(t *testing.T) {
	long, pairs := strings.Repeat("x", 1<<20), 0
	_, err := exec.Run(t.Context(), exec.Job{Now: time.Now,
		Plan:    bound(t, "SELECT t.k AS x, u.k AS y FROM t JOIN u ON t.j = u.j WINDOW TUMBLING(ts, SIZE 1 SEC) INTO s"),
		Sources: [][]connector.Source{{&made{rows: 1, row: alike(long)}}, {&made{rows: 300, row: alike("y")}}},
		Out: func(b *column.Batch) error {
			for i := range b.N {
				if b.Cols[0].Null[i] || len(b.Cols[0].Text(i)) != len(long) || string(b.Cols[1].Text(i)) != "y" {
					t.Fatalf("pair %d has lost its text", pairs+i)
				}
			}
			pairs += b.N
			return nil
		}})
	if err != nil || pairs != 300 {
		t.Errorf("%d pairs, %v", pairs, err)
	}
}

// TestWindowsWithARowEachTakeWhatTheySay: what a query holds is bounded by what it takes, also where each row has a
// part of a window of its own, which takes more than the row.
func TestWindowsWithARowEachTakeWhatTheySay(t *testing.T) {
	const limit = 8 << 20
	row := func(b *column.Batch, i int) {
		b.Cols[0].AppendInt(int64(i) * 10)
		b.Cols[3].AppendInt(int64(i))
	}
	for name, c := range map[string]struct{ query string }{
		"sums": {"SELECT COUNT(*) AS n FROM t WINDOW TUMBLING(ts, SIZE 1 ms, LATENESS 1 YEARS) INTO s"},
		"groups": {"SELECT j, k, SUM(v) AS a, MAX(f) AS c, COUNT(*) AS n FROM t GROUP BY j, k " +
			"WINDOW TUMBLING(ts, SIZE 1 ms, LATENESS 1 YEARS) INTO s"},
		"pairs": {"SELECT t.j AS x FROM t JOIN u ON t.j = u.j WINDOW TUMBLING(ts, SIZE 1 ms, LATENESS 1 YEARS) INTO s"},
	} {
		t.Run(name, func(t *testing.T) {
			most := uint64(0)
			memory := func() uint64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			before := memory()
			watched := func(b *column.Batch, i int) {
				if row(b, i); i%4096 == 0 {
					most = max(most, memory())
				}
			}
			sources := [][]connector.Source{{&made{rows: 1 << 22, row: watched}}}
			if name == "pairs" {
				sources = append(sources, []connector.Source{&made{rows: 1 << 22, row: row}})
			}
			_, err := exec.Run(t.Context(), exec.Job{Plan: bound(t, c.query), Now: time.Now, Budget: limit,
				Sources: sources, Out: func(*column.Batch) error { return nil }})
			var e *sql.Error
			if !errors.As(err, &e) || e.Kind != sql.StateLimit {
				t.Fatalf("it ended with %v", err)
			}
			if took := most - min(most, before); took > 4*limit {
				t.Errorf("a state of %d MiB took %d MiB", limit>>20, took>>20)
			}
		})
	}
}
