package exec_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// anyQuery writes a query that may or may not be right.
func anyQuery(g generator, depth int) string {
	arg := func() string {
		return g.one("ts", "at", "k", "j", "v", "f", "d", "b", "NULL", "v + j", "f / v", "start", "t.k", "u.k", "x", "1",
			"'a'",
			"CAST(NULL AS TEXT)", "k || 'x'", "at - at", "CASE WHEN b THEN v END")
	}
	item := func() string {
		switch g.IntN(5) {
		case 0, 1:
			return g.one("COUNT", "SUM", "AVG", "MIN", "MAX", "STDDEV", "LAST") + "(" + arg() + ")"
		case 2:
			return g.one("COUNT(*)", "QUANTILE("+arg()+", 0.9)", "MAX("+arg()+") - MIN("+arg()+")")
		case 3:
			return "LAG(" + arg() + g.one("", ", 3") + ") OVER (" + g.one("", "PARTITION BY "+arg()) + ")"
		}
		return arg()
	}
	var items []string
	for i := range 1 + g.IntN(3) {
		items = append(items, item()+" AS "+g.one("x", "v", fmt.Sprintf("c%d", i)))
	}
	list := g.one(strings.Join(items, ", "), strings.Join(items, ", "), "*", "start, end, "+items[0])
	from := g.one("t", "t", "t", "u AS t", "t JOIN u ON t.k = u.k", "t JOIN u ON t.j = u.v AND t.v > u.v")
	if depth > 0 && g.IntN(2) == 0 {
		from = "(" + anyQuery(g, depth-1) + ") " + g.one("", "t", "JOIN u ON x = u.v")
	}
	query := "SELECT " + list + " FROM " + from
	if g.IntN(3) == 0 {
		query += " WHERE " + g.one("b", "v > 0", "k IS NULL", "x = 1", "COUNT(*) > 1")
	}
	if g.IntN(2) == 0 {
		query += " GROUP BY " + arg() + g.one("", ", "+arg())
	}
	if g.IntN(4) > 0 {
		query += " WINDOW " + g.one("TUMBLING(ts, SIZE 5 MIN)", "SLIDING(at, SIZE 10 MIN, ADVANCE BY 4 MIN)",
			"TUMBLING(SIZE 1 HOUR, LATENESS 1 MIN)", "TUMBLING(start, SIZE 1 MIN)", "SLIDING(t.ts, SIZE 1 H, ADVANCE 1 MIN)")
	}
	if g.IntN(3) == 0 {
		query += " HAVING " + g.one("COUNT(*) > 1", "x > 0", "v IS NOT NULL", "MAX(f) > AVG(f)", "end > start")
	}
	return query
}

// TestWhateverIsBoundCanBeRun: a query is refused with a place, or runs to its end and holds nothing then.
func TestWhateverIsBoundCanBeRun(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(18, 3))}
	rows := makeRows(g.Rand, 60)
	fill := func(b *column.Batch) {
		b.Reset(tColumns)
		for _, row := range rows {
			for c, v := range row.values {
				if v == nil || b.Cols[c].AppendParsed([]byte(*v)) != nil {
					b.Cols[c].AppendNull()
				}
			}
			b.N++
		}
	}
	b := &column.Batch{}
	fill(b)
	ran, gave, refused := 0, 0, map[string]int{}
	queries := many(6000)
	for range queries {
		query := anyQuery(g, 2) + " INTO s"
		parsed, err := sql.Parse(query)
		if err != nil {
			t.Fatalf("%s\n%v", query, err)
		}
		s := parsed[0].Statement.(*sql.CreateQuery).Select
		p, err := plan.Bind(query, s, schemas{"t": tColumns, "u": tColumns})
		if err != nil {
			var known *sql.Error
			if !errors.As(err, &known) || known.Kind != sql.BinderError || known.Line == 0 {
				t.Fatalf("%s\n%v", query, err)
			}
			refused[strings.Join(strings.Fields(known.Message)[:2], " ")]++
			continue
		}
		origins := make([]int, len(p.Scans))
		for i := range origins {
			origins[i] = 2
		}
		q := flow.New(p, flow.Options{Origins: origins, Now: time.Now, Out: func(b *column.Batch) error {
			for c := range b.Cols {
				if b.Cols[c].Len() != b.N || b.Cols[c].Type.Kind != p.Columns[c].Type.Kind {
					t.Fatalf("%s\ncolumn %d is %d of %v", query, c, b.Cols[c].Len(), b.Cols[c].Type)
				}
			}
			gave += b.N
			return nil
		}})
		ran++
		lag := strings.Contains(query, "LAG")
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Fatalf("%s\n%s\n%v", query, p.Text(), r)
				}
			}()
			for i := range 2 * len(p.Scans) {
				if err := q.Push(i/2, i%2, b); err != nil {
					t.Fatalf("%s\n%v", query, err)
				}
			}
			for i := range 2 * len(p.Scans) {
				if err := q.End(i/2, i%2); err != nil {
					t.Fatalf("%s\n%v", query, err)
				}
			}
			if n := q.Counts().State; n != 0 && !lag {
				t.Fatalf("%s\nholds %d bytes at its end", query, n)
			}
		}()
	}
	if ran < queries/12 || len(refused) < 5 || gave == 0 {
		t.Errorf("%d ran and gave %d rows, refused: %v", ran, gave, refused)
	}
	t.Logf("%d ran and gave %d rows, refused: %v", ran, gave, refused)
}
