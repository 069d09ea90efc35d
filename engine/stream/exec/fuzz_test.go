package exec_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// FuzzBind: whatever can be parsed is bound and carried out over rows, or refused with a place; without panic, and what
// comes out is of the types that were promised.
func FuzzBind(f *testing.F) {
	g := generator{rand.New(rand.NewPCG(18, 4))}
	for range 40 {
		f.Add(anyQuery(g, 1) + " INTO s")
	}
	for _, x := range []string{"CASE k WHEN 'a' THEN 1 ELSE d END", "d / 0", "CAST(f AS DECIMAL(18, 18))",
		"at + 9223372036854775807", "INT8(v) * UINT64(j)", "k::TIMESTAMP - at", "NULLIF(v, NULL) IN (1, 2.5, NULL)",
		"NOT (b AND NULL) OR k LIKE '%_'", "-(-9223372036854775808)", "CONCAT(k, 1.5, at, b)", "1e308 * 1e308"} {
		f.Add("SELECT " + x + " AS x FROM t INTO s")
		f.Add("SELECT MAX(" + x + ") AS x FROM t GROUP BY k WINDOW TUMBLING(ts, SIZE 1 MIN) INTO s")
	}
	f.Add("SELECT start FROM t WINDOW SLIDING(at, SIZE 10 YEARS, ADVANCE BY 10 YEARS) INTO s")
	f.Add("SELECT start FROM t WINDOW SLIDING(at, SIZE 1 us, ADVANCE BY 2 us) INTO s")
	rows := makeRows(g.Rand, 30)
	f.Fuzz(func(t *testing.T, source string) {
		parsed, err := sql.Parse(source)
		if err != nil || len(parsed) != 1 {
			return
		}
		s, is := parsed[0].Statement.(*sql.CreateQuery)
		if !is {
			return
		}
		p, err := plan.Bind(source, s.Select, schemas{"t": tColumns, "u": tColumns})
		if err != nil {
			var known *sql.Error
			if !errors.As(err, &known) || known.Line == 0 {
				t.Fatalf("an error without a place: %v", err)
			}
			return
		}
		origins := make([]int, len(p.Scans))
		for i := range origins {
			origins[i] = 1
		}
		const most = 100_000 // a join may give a row for each pair, of each window
		gave := 0
		enough := errors.New("enough")
		q := flow.New(p, flow.Options{Origins: origins, Budget: 4 << 20, Now: time.Now, Out: func(b *column.Batch) error {
			for c := range b.Cols {
				if b.Cols[c].Len() != b.N || b.Cols[c].Type.Kind != p.Columns[c].Type.Kind {
					t.Fatalf("column %d is %d of %v, %d of %v were promised", c, b.Cols[c].Len(), b.Cols[c].Type, b.N,
						p.Columns[c].Type)
				}
			}
			if gave += b.N; gave > most {
				return enough
			}
			return nil
		}})
		begin := time.Now()
		for i := range origins {
			b := &column.Batch{}
			b.Reset(tColumns)
			for _, row := range rows {
				for c, v := range row.values {
					if v == nil || b.Cols[c].AppendParsed([]byte(*v)) != nil {
						b.Cols[c].AppendNull()
					}
				}
				b.N++
			}
			if err = q.Push(i, 0, b); err != nil {
				break
			}
		}
		for i := range origins {
			if err == nil {
				err = q.End(i, 0)
			}
		}
		var known *sql.Error
		if err != nil && !errors.Is(err, enough) && !errors.As(err, &known) {
			t.Fatalf("it ended with %v", err)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Fatalf("%d rows took %v", len(rows), took)
		}
	})
}
