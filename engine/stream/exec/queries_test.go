package exec_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// mostDisorder is how much later than rows of a later time one comes at most, of those that come in the order of their
// id; milliseconds.
const mostDisorder = 60_000

// query is a random one: filters, expressions and LAG, windows, joins in windows, and these within each other.
func (m *maker) query() relation {
	base := func() relation { return m.source(m.one("t", "t", "u")) }
	switch m.IntN(12) {
	case 0:
		return m.projected(base(), "")
	case 1, 2:
		return m.aggregated(base(), "")
	case 3:
		return m.aggregated(m.projected(base(), ""), "")
	case 4:
		return m.projected(m.aggregated(base(), ""), "")
	case 5:
		return m.aggregated(m.aggregated(base(), ""), "")
	case 6:
		return m.projected(m.aggregated(m.projected(base(), ""), ""), "")
	case 7:
		return m.aggregated(m.projected(m.aggregated(base(), ""), ""), "")
	}
	name := m.one("ts", "at")
	of := func(depth int) relation {
		r := m.source(m.one("t", "u"))
		if r.time = 0; name == "at" {
			r.time = 1
		}
		switch m.IntN(depth) {
		case 1:
			return m.projected(r, name)
		case 2:
			return m.aggregated(r, name)
		case 3:
			return m.joined(r, m.projected(r, name), name)
		}
		return r
	}
	j := m.joined(of(4), of(3), "")
	switch m.IntN(4) {
	case 0:
		return m.aggregated(j, "")
	case 1:
		return m.projected(j, "")
	}
	return j
}

// TestRandomQueriesAreThoseOfPostgres: a random query gives what Postgres gives over the same rows, in whichever order
// they come, in one process and in several. LOADSTONE_QUERIES says how many rounds there are, LOADSTONE_SEED which one
// alone is lived.
func TestRandomQueriesAreThoseOfPostgres(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), pgtest.Start(t).NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), pgFunctions); err != nil {
		t.Fatal(err)
	}
	rounds, first := uint64(4), uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("LOADSTONE_QUERIES"), 10, 64); err == nil {
		rounds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("LOADSTONE_SEED"), 10, 64); err == nil {
		rounds, first = 1, n
	}
	gave, queries := 0, 0
	for seed := first; seed < first+rounds; seed++ {
		r := rand.New(rand.NewPCG(seed, 31))
		begin := r.Int64N(10_000_000) - 5_000_000
		tables := map[string][]aRow{"t": makeRowsFrom(r, 250, begin), "u": makeRowsFrom(r, 100, begin)}
		for _, rows := range tables {
			late := map[int64]int64{}
			for _, row := range rows {
				late[row.ts] = row.ts + r.Int64N(mostDisorder+1)
			}
			slices.SortFunc(rows, func(a, b aRow) int { return cmp.Compare(late[a.ts], late[b.ts]) })
			number(rows)
		}
		fill(t, conn, tables)
		for n := range uint64(50) {
			rows, problem := compared(t, conn, seed, n, tables)
			gave, queries = gave+rows, queries+1
			if problem != "" {
				t.Errorf("round %d, query %d: %s", seed, n, problem)
			}
			if t.Failed() && os.Getenv("LOADSTONE_ALL") == "" {
				return
			}
		}
	}
	t.Logf("%d queries gave %d rows", queries, gave)
	if gave < queries {
		t.Error("there was little to compare")
	}
}

// compared answers a query on both sides.
func compared(t *testing.T, conn *pgx.Conn, seed, n uint64, tables map[string][]aRow) (rows int, problem string) {
	r := rand.New(rand.NewPCG(seed, n+1000))
	m := &maker{writer: writer{r, nil}}
	disorder := int64(inOrder)
	if m.known = m.IntN(3) == 0; m.known {
		m.lateness = mostDisorder
	} else {
		disorder = m.Int64N(300_000)
		m.lateness = disorder
	}
	q := m.query()
	answer := evaluate(ours)
	if m.IntN(2) == 0 {
		answer = split
	}
	query := q.ours + " INTO s"
	if parsed, err := sql.Parse(query); err != nil {
		return 0, err.Error()
	} else if _, err = plan.Bind(query, parsed[0].Statement.(*sql.CreateQuery).Select,
		schemas{"t": tColumns, "u": tColumns}); err != nil {
		if strings.Contains(err.Error(), " is no ") {
			return 0, "" // a constant that can never be cast is refused
		}
		return 0, err.Error()
	}
	got, counts := answer(t, r, query, tables, disorder)
	want := theirs(t, conn, "SELECT "+names(q)+" FROM ("+q.theirs+") AS q")
	if counts.Late+counts.Ahead != 0 {
		problem = fmt.Sprintf("rows were late, or ahead: %+v", counts)
	} else {
		problem = sameAnswer(got, want, q)
	}
	if problem != "" {
		problem += "\n" + query + "\n" + q.theirs
	}
	return len(want), problem
}

func names(q relation) string {
	var list []string
	for _, c := range q.cols {
		list = append(list, c.theirs)
	}
	return strings.Join(list, ", ")
}

// canonical is a value as both sides write it.
func canonical(s string, of column.Type) string {
	switch of.Kind {
	case column.Boolean:
		return truth(s)
	case column.Decimal, column.Float:
		if f, err := strconv.ParseFloat(s, 64); err == nil && of.Kind == column.Float {
			return strconv.FormatFloat(f+0, 'g', -1, int(of.Bits))
		}
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		if s == "-0" {
			s = "0"
		}
	}
	return s
}

// sameAnswer compares rows, whatever their order: sorted by what has to be the same.
func sameAnswer(got, want [][]string, q relation) string {
	var exact, near []int
	for i, c := range q.cols {
		if q.near[c.ours] == 0 {
			exact = append(exact, i)
		} else {
			near = append(near, i)
		}
	}
	for _, rows := range [][][]string{got, want} {
		for _, row := range rows {
			for i, c := range q.cols {
				row[i] = canonical(row[i], c.t)
			}
		}
		slices.SortFunc(rows, func(a, b []string) int {
			for _, i := range exact {
				if c := cmp.Compare(a[i], b[i]); c != 0 {
					return c
				}
			}
			for _, i := range near {
				x, _ := strconv.ParseFloat(a[i], 64)
				y, _ := strconv.ParseFloat(b[i], 64)
				if c := cmp.Compare(x, y); c != 0 {
					return c
				}
			}
			return 0
		})
	}
	for k := range min(len(got), len(want)) {
		for i, c := range q.cols {
			if !nearly(got[k][i], want[k][i], q.near[c.ours]) {
				return fmt.Sprintf("%s of row %d of %d is %s, and Postgres says %s of %d:\n%v\n%v", c.ours, k, len(got), got[k][i],
					want[k][i], len(want), got[k], want[k])
			}
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("there are %d rows, and Postgres has %d", len(got), len(want))
	}
	return ""
}

// nearly compares a figure that may be off.
func nearly(got, want string, near float64) bool {
	if got == want {
		return true
	}
	g, err := strconv.ParseFloat(got, 64)
	w, too := strconv.ParseFloat(want, 64)
	if err != nil || too != nil || near == 0 {
		return false
	}
	least := 0.0 // sums cancel: what is lost is lost of the parts
	if near < 1e-3 {
		least = 1e3
	}
	return math.Abs(g-w) <= near*max(math.Abs(w), least)
}
