package exec_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// oneByOne are the rows that a query over t gives, and what it counts: rows come from one origin in the order in which
// they are, each a batch of its own, so that it is known how far the source has come.
func oneByOne(t *testing.T, query string, rows []aRow) (all [][]string, _ flow.Counts) {
	t.Helper()
	parsed, err := sql.Parse(query)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	p, err := plan.Bind(query, parsed[0].Statement.(*sql.CreateQuery).Select, schemas{"t": tColumns})
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	q := flow.New(p, flow.Options{Origins: []int{1}, Budget: 1 << 30, Now: time.Now, Out: into(&all)})
	b := &column.Batch{}
	for _, row := range rows {
		b.Reset(tColumns)
		for c, v := range row.values {
			if v == nil {
				b.Cols[c].AppendNull()
			} else if err := b.Cols[c].AppendParsed([]byte(*v)); err != nil {
				t.Fatal(err)
			}
		}
		b.N = 1
		if err := q.Push(0, 0, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.End(0, 0); err != nil {
		t.Fatal(err)
	}
	return all, q.Counts()
}

// TestLateRowsAreThoseOfPostgres: a row counts in those of its windows that were not given out when it came, and is
// counted as late where it has none: both are what Postgres finds by the latest time of the rows before it.
func TestLateRowsAreThoseOfPostgres(t *testing.T) {
	conn, tables := database(t, 3)
	g := generator{rand.New(rand.NewPCG(3, 18))}
	rows := tables["t"][:600]
	for i := range rows { // whole seconds, so that rows lie on the edges of windows
		rows[i].ts -= rows[i].ts % 1000
		stamp, at := strconv.FormatInt(rows[i].ts, 10), time.UnixMilli(rows[i].ts).UTC().Format(time.RFC3339)
		rows[i].values[0], rows[i].values[1] = &stamp, &at
	}
	late, groups := int64(0), 0
	for n := range 30 {
		advance := int64(1000 * (1 + g.IntN(60)))
		if g.IntN(4) == 0 {
			advance += g.Int64N(1000)
		}
		size := advance
		stamp, unit := g.one("ts", "at"), int64(1)
		if stamp == "at" {
			unit = 1000
		}
		lateness := g.Int64N(60_000)
		if g.IntN(2) == 0 {
			lateness -= lateness % 1000
		}
		window := fmt.Sprintf("TUMBLING(%s, SIZE %d ms", stamp, size)
		if g.IntN(2) == 0 {
			size += advance * g.Int64N(4)
			if g.IntN(2) == 0 {
				size += g.Int64N(advance)
			}
			window = fmt.Sprintf("SLIDING(%s, SIZE %d ms, ADVANCE BY %d ms", stamp, size, advance)
		}
		come := map[int64]int64{}
		for _, row := range rows {
			come[row.ts] = row.ts + g.Int64N(120_000)
		}
		slices.SortFunc(rows, func(a, b aRow) int { return cmp.Compare(come[a.ts], come[b.ts]) })
		number(rows)
		fill(t, conn, map[string][]aRow{"t": rows})
		where := g.condition(1)
		query := fmt.Sprintf("SELECT start, k, COUNT(*) AS n, SUM(v) AS s, MAX(d) AS m FROM t WHERE %s GROUP BY k "+
			"WINDOW %s, LATENESS %d ms) INTO s", where, window, lateness)
		of := map[string]string{"ts": "ts", "at": "at_us"}[stamp]
		came := fmt.Sprintf("WITH came AS (SELECT *, max(%s) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND "+
			"1 PRECEDING) AS clock FROM t) ", of)
		open := fmt.Sprintf("(clock IS NULL OR %%s + %d > clock)", lateness*unit)
		a, s := advance*unit, size*unit
		sql := came + fmt.Sprintf("SELECT w * %[1]d, k, COUNT(*), SUM(v), MAX(d) FROM came, LATERAL generate_series("+
			"floor((%[3]s - %[2]d)::numeric / %[1]d)::bigint + 1, floor(%[3]s::numeric / %[1]d)::bigint) AS w "+
			"WHERE %[4]s AND %[5]s GROUP BY w, k", a, s, of, dialect(where), fmt.Sprintf(open,
			fmt.Sprintf("w * %d + %d", a, s)))
		got, counts := oneByOne(t, query, rows)
		if what := sameRows(got, theirs(t, conn, sql), 2, []float64{0, 0, 0}); what != "" {
			t.Fatalf("query %d: %s\n%s\n%s", n, what, query, sql)
		}
		last := fmt.Sprintf("floor(%s::numeric / %d) * %d + %d", of, a, a, s)
		want := theirs(t, conn, came+fmt.Sprintf("SELECT COUNT(*) FROM came WHERE %s AND NOT %s", dialect(where),
			fmt.Sprintf(open, last)))[0][0]
		if strconv.FormatInt(counts.Late, 10) != want {
			t.Fatalf("query %d: %d rows were late, and Postgres says %s\n%s", n, counts.Late, want, query)
		}
		late, groups = late+counts.Late, groups+len(got)
	}
	t.Logf("30 queries gave %d groups in windows; %d rows were late", groups, late)
	if late == 0 {
		t.Error("no row was late")
	}
}
