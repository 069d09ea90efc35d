package exec_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

// schemas are sources by name.
type schemas map[string][]column.Column

func (s schemas) Schema(name string) ([]column.Column, bool) {
	c, ok := s[strings.ToLower(name)]
	return c, ok
}
func (s schemas) Names() []string { return []string{"t", "u"} }

var tColumns = []column.Column{
	{Name: "ts", Type: column.Int64Type}, {Name: "at", Type: column.TimestampType}, {Name: "k", Type: column.TextType},
	{Name: "j", Type: column.Int64Type}, {Name: "v", Type: column.Int64Type}, {Name: "f", Type: column.Float64Type},
	{Name: "d", Type: column.Type{Kind: column.Decimal, Precision: 12, Scale: 3}}, {Name: "b", Type: column.BooleanType},
	{Name: "id", Type: column.Int64Type}, {Name: "s", Type: column.Type{Kind: column.Int, Bits: 16}},
	{Name: "g", Type: column.Type{Kind: column.Float, Bits: 32}}, {Name: "h", Type: column.Float64Type},
	{Name: "x", Type: column.TextType}, {Name: "e", Type: column.Type{Kind: column.Decimal, Precision: 18, Scale: 6}},
	{Name: "n", Type: column.Int64Type},
}

// edges are the values of the columns at the edges of their types.
var edges = map[string][]string{
	"s": {"-32768", "32767", "0", "12", "-7"},
	"g": {"NaN", "Infinity", "-Infinity", "0", "-0", "1.5", "-0.1", "3e38", "1e-40"},
	"h": {"NaN", "Infinity", "-Infinity", "0", "-0", "0.1", "-2.5", "1e300", "-1e300", "1e-300", "0.125", "1.005", "1e15"},
	"x": {"12", " -7 ", "3.5", "-0.005", "abc", "", "NaN", "1e3", "+5", ".5", "5.", "-", "9223372036854775808", "t",
		"1_000", "0x1p4"},
	"e": {"0", "0.000001", "-0.5", "999999999999.999999", "-999999999999.999999", "2.5", "1.005"},
	"n": {"0", "1", "-1", "9223372036854775807", "-9223372036854775808", "4611686018427387904", "1000"},
}

// aRow is a row as text, NULL where a pointer is nil, in the order of tColumns.
type aRow struct {
	ts     int64
	values []*string
}

// makeRows are rows of about an hour, some before 1970, with NULLs and NaNs.
func makeRows(r *rand.Rand, n int) []aRow {
	return makeRowsFrom(r, n, int64(r.IntN(10_000_000))-5_000_000)
}

func makeRowsFrom(r *rand.Rand, n int, begin int64) []aRow {
	rows := make([]aRow, n)
	seen := map[int64]bool{}
	for i := range rows {
		ts := begin + r.Int64N(3_600_000)
		for seen[ts] {
			ts = begin + r.Int64N(3_600_000)
		}
		seen[ts] = true
		maybe := func(s string) *string {
			if r.IntN(8) == 0 {
				return nil
			}
			return &s
		}
		f := strconv.FormatFloat(float64(r.IntN(20001)-10000)/64, 'g', -1, 64)
		if r.IntN(400) == 0 {
			f = "NaN"
		}
		at := time.UnixMicro(ts*1000 + r.Int64N(1000)).UTC().Format("2006-01-02T15:04:05.000000Z")
		stamp := strconv.FormatInt(ts, 10)
		rows[i] = aRow{ts, []*string{&stamp, &at, maybe([]string{"a", "A", "b", "äö", "", "a'b"}[r.IntN(6)]),
			maybe(strconv.Itoa(r.IntN(5))), maybe(strconv.Itoa(r.IntN(2001) - 1000)), maybe(f),
			maybe(fmt.Sprintf("%.3f", float64(r.IntN(2_000_001)-1_000_000)/1000)),
			maybe(strconv.FormatBool(r.IntN(2) == 0)), nil}}
		for _, c := range tColumns[len(rows[i].values):] {
			of := edges[c.Name]
			rows[i].values = append(rows[i].values, maybe(of[r.IntN(len(of))]))
		}
	}
	number(rows)
	return rows
}

// number gives rows their id, which is their place.
func number(rows []aRow) {
	for i := range rows {
		id := strconv.Itoa(i)
		rows[i].values[8] = &id
	}
}

// generator writes expressions that mean the same here and in Postgres.
type generator struct{ *rand.Rand }

func (g generator) one(of ...string) string { return of[g.IntN(len(of))] }

func (g generator) whole(depth int) string {
	if depth == 0 {
		return g.one("v", "j", "v", strconv.Itoa(g.IntN(100)-50))
	}
	a, b := g.whole(depth-1), g.whole(depth-1)
	switch g.IntN(9) {
	case 0, 1:
		return "(" + a + g.one(" + ", " - ", " * ") + b + ")"
	case 2:
		return "(" + a + g.one(" / ", " % ") + "NULLIF(" + b + ", 0))"
	case 3:
		return "(CASE WHEN " + g.condition(depth-1) + " THEN " + a + " ELSE " + b + " END)"
	case 4:
		return "COALESCE(" + a + ", " + b + ")"
	case 5:
		return "ABS(" + a + ")"
	case 6:
		return "CAST(" + g.decimal(depth-1) + " AS INT64)"
	case 7:
		return "LENGTH(" + g.one("k", "k || 'xy'", "UPPER(k)") + ")"
	}
	return a
}

func (g generator) float(depth int) string {
	if depth == 0 {
		return g.one("f", "f", "2.5e0", "CAST(v AS FLOAT64)")
	}
	a, b := g.float(depth-1), g.float(depth-1)
	switch g.IntN(4) {
	case 0:
		return "(" + a + g.one(" + ", " - ", " * ") + b + ")"
	case 1:
		return "(CASE WHEN " + g.condition(depth-1) + " THEN " + a + " END)"
	case 2:
		return "(" + a + " / NULLIF(" + b + ", 0e0))"
	}
	return a
}

func (g generator) decimal(depth int) string {
	if depth == 0 {
		return g.one("d", "d", "CAST(v AS DECIMAL(12, 3))")
	}
	a, b := g.decimal(depth-1), g.decimal(depth-1)
	return g.one("("+a+" + "+b+")", "("+a+" - "+b+")", a, "COALESCE("+a+", "+b+")")
}

func (g generator) condition(depth int) string {
	if depth > 0 && g.IntN(3) == 0 {
		a, b := g.condition(depth-1), g.condition(depth-1)
		return g.one("("+a+" AND "+b+")", "("+a+" OR "+b+")", "(NOT "+a+")")
	}
	compare := g.one(" = ", " <> ", " < ", " <= ", " > ", " >= ")
	return g.one("("+g.whole(0)+compare+g.whole(0)+")", "("+g.float(0)+compare+g.float(0)+")",
		"("+g.decimal(0)+compare+g.decimal(0)+")", "(k LIKE '"+g.one("a%", "%b", "_", "%ö%")+"')",
		"(k IN ('a', 'b'))", "(k = 'A')", "(j NOT IN (1, 2))", "(v BETWEEN -100 AND 500)", "(k"+compare+"'a')",
		"(b IS NOT NULL)", "b", "(f IS NULL)")
}

// result is an aggregate, as each side writes it, and how far the figures may be apart.
type result struct {
	ours, theirs string
	near         float64
}

func (g generator) aggregate() result {
	same := func(s string, near float64) result { return result{s, s, near} }
	switch g.IntN(10) {
	case 8: // two that differ in the case of a text only
		of := "SUM(CASE WHEN k = '%s' THEN v ELSE " + g.one("0", "j") + " END)"
		return same(fmt.Sprintf(of+" - 2 * "+of, "a", "A"), 0)
	case 0:
		return same("COUNT(*)", 0)
	case 1:
		return same("COUNT("+g.one(g.whole(1), "k", g.float(1))+")", 0)
	case 2:
		return same("SUM("+g.one(g.whole(2), g.decimal(1))+")", 0)
	case 3:
		return same("SUM("+g.float(1)+")", 1e-9)
	case 4:
		return same("AVG("+g.one(g.whole(1), g.float(1), g.decimal(1))+")", 1e-9)
	case 5:
		return same(g.one("MIN", "MAX")+"("+g.one(g.whole(1), g.float(1), g.decimal(1))+")", 0)
	case 6:
		which := g.one("MIN", "MAX")
		return result{which + "(k)", which + `(k COLLATE "C")`, 0}
	case 7:
		return same("STDDEV("+g.one("v", "f", "d", g.whole(1))+")", 1e-7)
	}
	q := g.one("0", "0.5", "0.9", "0.99", "1")
	x := "(ABS(" + g.whole(1) + ") + 1)"
	return result{"QUANTILE(" + x + ", " + q + ")", "PERCENTILE_CONT(" + q + ") WITHIN GROUP (ORDER BY " + x + ")", 0.0056}
}

// dialect is an expression of ours as Postgres spells it.
func dialect(s string) string {
	return strings.NewReplacer("INT64", "bigint", "FLOAT64", "double precision", "e0", "::double precision").Replace(s)
}

// fill makes tables t and u in Postgres.
func fill(t *testing.T, conn *pgx.Conn, tables map[string][]aRow) {
	t.Helper()
	for name, rows := range tables {
		sql := "CREATE TABLE " + name + " (at_us bigint GENERATED ALWAYS AS (floor(extract(epoch from \"at\" " +
			"AT TIME ZONE 'UTC') * 1000000)::bigint) STORED"
		var columns, values []string
		for i, c := range tColumns {
			as := map[column.Kind]string{column.Int: "bigint", column.Timestamp: "timestamptz", column.Text: "text",
				column.Float: "double precision", column.Boolean: "boolean"}[c.Type.Kind]
			switch {
			case c.Type.Kind == column.Decimal:
				as = fmt.Sprintf("numeric(%d, %d)", c.Type.Precision, c.Type.Scale)
			case c.Type.Bits == 32:
				as = "real"
			}
			sql += ", \"" + c.Name + "\" " + as
			if as == "text" {
				sql += ` COLLATE "C"`
			}
			columns = append(columns, `"`+c.Name+`"`)
			values = append(values, fmt.Sprintf("$%d::text::%s", i+1, as))
		}
		if _, err := conn.Exec(t.Context(), "DROP TABLE IF EXISTS "+name+"; "+sql+")"); err != nil {
			t.Fatal(err)
		}
		batch := &pgx.Batch{}
		for _, r := range rows {
			var args []any
			for _, v := range r.values {
				args = append(args, v)
			}
			batch.Queue(fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", name, strings.Join(columns, ", "),
				strings.Join(values, ", ")), args...)
		}
		if err := conn.SendBatch(t.Context(), batch).Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// theirs are the rows that Postgres gives, as text.
func theirs(t *testing.T, conn *pgx.Conn, sql string) [][]string {
	t.Helper()
	rows, err := conn.Query(context.Background(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	defer rows.Close()
	var all [][]string
	for rows.Next() {
		var one []string
		for _, raw := range rows.RawValues() {
			if raw == nil {
				one = append(one, "NULL")
				continue
			}
			one = append(one, string(raw))
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return all
}

// ours are the rows that a query gives over rows in random order, from random origins, in batches of random size; the
// disorder is what the lateness of the query allows.
func ours(t *testing.T, r *rand.Rand, query string, tables map[string][]aRow, disorder int64) (
	[][]string, flow.Counts,
) {
	t.Helper()
	parsed, err := sql.Parse(query)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	s := parsed[0].Statement.(*sql.CreateQuery).Select
	p, err := plan.Bind(query, s, schemas{"t": tColumns, "u": tColumns})
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	var all [][]string
	origins := originsOf(r, p, 3, disorder)
	q := flow.New(p, flow.Options{Origins: origins, Budget: 1 << 30, Now: time.Now, Out: into(&all)})
	feeders := feeding(r, p, origins, tables, disorder)
	for len(feeders) > 0 {
		i := r.IntN(len(feeders))
		f := feeders[i]
		if len(f.rows) == 0 {
			if err := q.End(f.scan, f.origin); err != nil {
				t.Fatal(err)
			}
			feeders = slices.Delete(feeders, i, i+1)
			continue
		}
		if err := q.Push(f.scan, f.origin, f.next(t, r)); err != nil {
			t.Fatalf("%v\n%s", err, query)
		}
	}
	return all, q.Counts()
}

// inOrder, for a disorder, has the rows of each source come from one origin, in the order of their id.
const inOrder = -1

// originsOf are how many origins each scan has, most at most.
func originsOf(r *rand.Rand, p *plan.Plan, most int, disorder int64) (origins []int) {
	for range p.Scans {
		if disorder == inOrder {
			most = 1
		}
		origins = append(origins, 1+r.IntN(most))
	}
	return origins
}

// into keeps rows as text.
func into(all *[][]string) func(b *column.Batch) error {
	return func(b *column.Batch) error {
		for i := range b.N {
			var one []string
			for c := range b.Cols {
				v := &b.Cols[c]
				switch {
				case v.Null[i]:
					one = append(one, "NULL")
				case v.Type.Kind == column.Timestamp:
					one = append(one, strconv.FormatInt(v.Ints[i], 10))
				default:
					one = append(one, string(v.AppendValue(nil, i)))
				}
			}
			*all = append(*all, one)
		}
		return nil
	}
}

// feeder has the rows of an origin, in the order in which they come.
type feeder struct {
	scan, origin int
	rows         []aRow
}

// next are some of them.
func (f *feeder) next(t *testing.T, r *rand.Rand) *column.Batch {
	n := min(1+r.IntN(100), len(f.rows))
	b := &column.Batch{}
	b.Reset(tColumns)
	for _, row := range f.rows[:n] {
		for c, v := range row.values {
			if v == nil {
				b.Cols[c].AppendNull()
			} else if err := b.Cols[c].AppendParsed([]byte(*v)); err != nil {
				t.Fatalf("%q: %v", *v, err)
			}
		}
		b.N++
	}
	f.rows = f.rows[n:]
	return b
}

// feeding gives each row to an origin of its scan, and puts those of each into an order that the lateness allows.
func feeding(r *rand.Rand, p *plan.Plan, origins []int, tables map[string][]aRow, disorder int64) (feeders []*feeder) {
	for scan, sc := range p.Scans {
		parts := make([]*feeder, origins[scan])
		for o := range parts {
			parts[o] = &feeder{scan: scan, origin: o}
		}
		for _, row := range tables[sc.Source] {
			f := parts[r.IntN(len(parts))]
			f.rows = append(f.rows, row)
		}
		for _, f := range parts {
			if disorder == inOrder {
				break
			}
			late := map[*string]int64{}
			for _, row := range f.rows {
				late[row.values[0]] = row.ts + r.Int64N(disorder+1)
			}
			slices.SortFunc(f.rows, func(a, b aRow) int { return int(late[a.values[0]] - late[b.values[0]]) })
		}
		feeders = append(feeders, parts...)
	}
	return feeders
}

// sameRows compares rows in any order: the first fields name a row, the others are figures.
func sameRows(got, want [][]string, names int, near []float64) string {
	key := func(r []string) string { return strings.Join(r[:names], "|") }
	byKey := map[string][]string{}
	for _, r := range got {
		if byKey[key(r)] != nil {
			return "twice: " + key(r)
		}
		byKey[key(r)] = r
	}
	for _, w := range want {
		g := byKey[key(w)]
		if g == nil {
			return fmt.Sprintf("missing: %v", w)
		}
		for i := names; i < len(w); i++ {
			if !sameValue(g[i], w[i], near[i-names]) {
				return fmt.Sprintf("figure %d: %v, and Postgres says %v", i-names+1, g, w)
			}
		}
		delete(byKey, key(w))
	}
	for k := range byKey {
		return "too many: " + k
	}
	return ""
}

func sameValue(got, want string, near float64) bool {
	if got == want {
		return true
	}
	g, err := strconv.ParseFloat(got, 64)
	w, too := strconv.ParseFloat(want, 64)
	if err != nil || too != nil {
		return false
	}
	scale := 1.0
	if near < 1e-3 { // sums cancel: what is lost is lost of the parts
		scale = 1e4
	}
	return math.Abs(g-w) <= near*max(math.Abs(w), min(scale, math.Abs(w)+1e4*near)) || math.IsNaN(g) && math.IsNaN(w)
}

// evaluate has a query answered over rows in random order.
type evaluate func(t *testing.T, r *rand.Rand, query string, tables map[string][]aRow, disorder int64) ([][]string,
	flow.Counts)

// TestWindowsAreThoseOfPostgres: random queries over rows in random order give what Postgres gives over the same rows.
func TestWindowsAreThoseOfPostgres(t *testing.T) { windows(t, ours, many(150), 1) }

// many is how many of so many queries make test has time for; make check-ci runs all.
func many(n int) int {
	if testing.Short() {
		return n / 4
	}
	return n
}

func windows(t *testing.T, answer evaluate, queries int, seed uint64) {
	conn, tables := database(t, 1)
	g := generator{rand.New(rand.NewPCG(seed, 18))}
	rowsSeen, windows := 0, 0
	for n := range queries {
		advance := int64(1000 * (1 + g.IntN(300)))
		size := advance
		time := g.one("ts", "at")
		window := fmt.Sprintf("TUMBLING(%s, SIZE %d ms", time, size)
		if g.IntN(2) == 0 {
			size = advance + int64(1000*g.IntN(600))
			window = fmt.Sprintf("SLIDING(%s, SIZE %d ms, ADVANCE BY %d ms", time, size, advance)
		}
		disorder := g.Int64N(600_000)
		var keys, ourItems, theirItems []string
		for _, k := range []string{"k", "j", "b"} {
			if g.IntN(3) == 0 {
				keys = append(keys, k)
			}
		}
		var near []float64
		for i := range 1 + g.IntN(4) {
			r := g.aggregate()
			ourItems = append(ourItems, fmt.Sprintf("%s AS r%d", r.ours, i))
			theirItems = append(theirItems, dialect(r.theirs))
			near = append(near, r.near)
		}
		where := g.condition(2)
		having := "COUNT(*) > " + g.one("0", "1", "5")
		ourKeys, group := "", ""
		for _, k := range keys {
			ourKeys += ", " + k
		}
		if len(keys) > 0 {
			group = "GROUP BY " + strings.Join(keys, ", ")
		}
		query := fmt.Sprintf("SELECT start, end%s, %s FROM t WHERE %s %s WINDOW %s, LATENESS %d ms) HAVING %s INTO s",
			ourKeys, strings.Join(ourItems, ", "), where, group, window, disorder, having)
		unit := map[string]int{"ts": 1, "at": 1000}[time]
		sql := fmt.Sprintf(`SELECT w * %[1]d * %[7]d, (w * %[1]d + %[2]d) * %[7]d%[3]s, %[4]s FROM t, LATERAL generate_series(
			floor((ts - %[2]d)::numeric / %[1]d)::bigint + 1, floor(ts::numeric / %[1]d)::bigint) AS w
			WHERE %[5]s GROUP BY w%[3]s HAVING %[6]s`, advance, size, ourKeys, strings.Join(theirItems, ", "), dialect(where), having, unit)
		got, counts := answer(t, g.Rand, query, tables, disorder)
		want := theirs(t, conn, sql)
		for _, r := range [][][]string{got, want} {
			for i := range r {
				for j := range r[i] {
					r[i][j] = truth(r[i][j])
				}
			}
		}
		if counts.Late != 0 || counts.Cast+counts.Overflow != 0 {
			t.Fatalf("query %d: %+v\n%s", n, counts, query)
		}
		if what := sameRows(got, want, 2+len(keys), near); what != "" {
			t.Fatalf("query %d: %s\n%s\n%s", n, what, query, sql)
		}
		rowsSeen, windows = rowsSeen+len(tables["t"]), windows+len(want)
	}
	t.Logf("%d queries over %d rows, %d groups in windows", queries, rowsSeen, windows)
}

// truth is how Postgres writes truth values, as we do.
func truth(s string) string {
	switch s {
	case "t":
		return "true"
	case "f":
		return "false"
	}
	return s
}

// TestJoinsAreThoseOfPostgres: the same of joins within windows, added up by window.
func TestJoinsAreThoseOfPostgres(t *testing.T) { joins(t, ours) }

func joins(t *testing.T, answer evaluate) {
	conn, tables := database(t, 2)
	g := generator{rand.New(rand.NewPCG(2, 18))}
	pairs := 0
	for n := range 30 {
		advance := int64(1000 * (30 + g.IntN(300)))
		size := advance * int64(1+g.IntN(3))
		disorder := g.Int64N(300_000)
		on := g.one("t.k = u.k", "t.j = u.j AND t.v < u.v", "t.k = u.k AND u.j = t.j", "t.j + 1 = u.j AND t.f > u.f")
		where := g.one("t.v > 0", "u.b", "t.k IS NOT NULL", "t.d < u.d")
		query := fmt.Sprintf(`SELECT start, end, t.j, COUNT(*) AS n, SUM(u.v) AS s, MIN(t.d - u.d) AS m FROM t JOIN u ON %s
			WHERE %s GROUP BY t.j WINDOW SLIDING(ts, SIZE %d ms, ADVANCE BY %d ms, LATENESS %d ms) INTO s`, on, where, size,
			advance, disorder)
		sql := fmt.Sprintf(
			`WITH tw AS (SELECT t.*, w FROM t, LATERAL generate_series(floor((ts - %[2]d)::numeric / %[1]d)::bigint + 1,
			floor(ts::numeric / %[1]d)::bigint) AS w), uw AS (SELECT u.*, w FROM u, LATERAL generate_series(
			floor((ts - %[2]d)::numeric / %[1]d)::bigint + 1, floor(ts::numeric / %[1]d)::bigint) AS w)
			SELECT t.w * %[1]d, t.w * %[1]d + %[2]d, t.j, COUNT(*), SUM(u.v), MIN(t.d - u.d)
			FROM tw t JOIN uw u ON t.w = u.w AND %[3]s WHERE %[4]s GROUP BY t.w, t.j`,
			advance,
			size,
			on,
			where,
		)
		got, counts := answer(t, g.Rand, query, tables, disorder)
		want := theirs(t, conn, sql)
		if counts.Late != 0 {
			t.Fatalf("query %d: %+v", n, counts)
		}
		if what := sameRows(got, want, 3, []float64{0, 0, 0}); what != "" {
			t.Fatalf("query %d: %s\n%s\n%s", n, what, query, sql)
		}
		pairs += len(want)
	}
	t.Logf("30 joins, %d groups in windows", pairs)
}

// database has the tables t and u with the same rows.
func database(t *testing.T, seed uint64) (*pgx.Conn, map[string][]aRow) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	tables := map[string][]aRow{"t": makeRows(r, 1500), "u": makeRows(r, 300)}
	if seed == 2 {
		tables["t"] = tables["t"][:300]
		// Both in the same hour.
		for i, row := range tables["u"] {
			tables["u"][i].ts = tables["t"][i].ts + int64(r.IntN(1000))
			s := strconv.FormatInt(tables["u"][i].ts, 10)
			row.values[0] = &s
		}
	}
	conn, err := pgx.Connect(t.Context(), pgtest.Start(t).NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	fill(t, conn, tables)
	return conn, tables
}
