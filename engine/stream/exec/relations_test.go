package exec_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// relation is what a query can read: a source or a subquery, here and in Postgres.
type relation struct {
	ours, theirs string
	cols         []term
	// near are how far figures of a column may be apart, 0 of those that have to be the same.
	near map[string]float64
	// time is the index of the time of rows; inOrder says that rows come in its order.
	time    int
	inOrder bool
	// order is what Postgres has to order by where rows come in a known order, in partitions by at least these columns.
	order     string
	partition []int
	// unique says that no two rows have one time.
	unique bool
}

// maker writes random queries.
type maker struct {
	writer
	names int
	// lateness covers the disorder of sources, in milliseconds; known says that rows come in the order of their id.
	lateness int64
	known    bool
}

func (m *maker) name() string {
	m.names++
	return fmt.Sprintf("c%d", m.names)
}

// source is one of the tables.
func (m *maker) source(name string) relation {
	r := relation{ours: name, theirs: name, unique: true}
	if m.known {
		r.order = "id"
	}
	for _, c := range tColumns {
		r.cols = append(r.cols, term{c.Name, theirName(c.Name), c.Type})
	}
	r.time = m.IntN(2) // ts or at
	return r
}

// theirName is a column's in Postgres, where times are numbers.
func theirName(name string) string {
	if name == "at" {
		return "at_us"
	}
	return name
}

// over has expressions name the columns of a relation that have to be the same everywhere.
func (m *maker) over(r relation) writer {
	w := m.writer
	w.cols = slices.DeleteFunc(slices.Clone(r.cols), func(c term) bool { return r.near[c.ours] > 0 })
	return w
}

// from is how a relation stands behind FROM.
func (r relation) from(alias string) (ours, theirs string) {
	if !strings.HasPrefix(r.theirs, "SELECT") {
		return r.ours + " AS " + alias, r.theirs + " AS " + alias
	}
	return "(" + r.ours + ") " + alias, "(" + r.theirs + ") AS " + alias
}

// window is a window over the time of a relation, in its unit.
type window struct {
	ours          string
	size, advance int64
}

func (m *maker) window(r relation, time string, smallest int64) window {
	unit, word := int64(1), "ms"
	if r.cols[r.time].t.Kind == column.Timestamp {
		unit = 1000
	}
	w := window{advance: (smallest + m.Int64N(20*smallest)) * 1000}
	if m.IntN(4) == 0 { // no round number
		w.advance += 1 + m.Int64N(999)
	}
	w.size = w.advance
	late := ""
	if l := m.lateness; !r.inOrder && l > 0 {
		late = fmt.Sprintf(", LATENESS %d ms", l)
	}
	if m.IntN(2) == 0 {
		if w.size += m.Int64N(5) * w.advance; m.IntN(2) == 0 {
			w.size += m.Int64N(w.advance) // and no multiple of the other
		}
		w.ours = fmt.Sprintf("WINDOW SLIDING(%s, SIZE %d %s, ADVANCE BY %d %s%s)", time, w.size, word, w.advance, word, late)
	} else {
		w.ours = fmt.Sprintf("WINDOW TUMBLING(%s, SIZE %d %s%s)", time, w.size, word, late)
	}
	w.size, w.advance = w.size*unit, w.advance*unit
	return w
}

// starts are the windows that a time is in.
func (w window) starts(time string) string {
	return fmt.Sprintf("LATERAL generate_series(floor((%[3]s - %[2]d)::numeric / %[1]d)::bigint + 1, "+
		"floor(%[3]s::numeric / %[1]d)::bigint) AS w", w.advance, w.size, time)
}

// projected is a SELECT without a window: a filter, expressions, and LAG where the order of rows is known. Its time is
// named, or may have any name, or none.
func (m *maker) projected(in relation, timeName string) relation {
	alias := m.name()
	ours, theirs := in.from(alias)
	w := m.over(in)
	out := relation{inOrder: in.inOrder, unique: in.unique, near: map[string]float64{}, time: -1}
	var oi, ti []string
	add := func(x term, name string) int {
		oi, ti = append(oi, x.ours+" AS "+name), append(ti, x.theirs+" AS "+theirName(name))
		out.cols = append(out.cols, term{name, theirName(name), x.t})
		return len(out.cols) - 1
	}
	if in.time >= 0 {
		name := timeName
		if name == "" {
			name = m.name()
		}
		out.time = add(in.cols[in.time], name)
	}
	for _, p := range in.partition {
		out.partition = append(out.partition, add(in.cols[p], m.name()))
	}
	for i, c := range in.cols {
		if i != in.time && m.IntN(4) == 0 {
			name := m.name()
			add(c, name)
			out.near[name] = in.near[c.ours]
		}
	}
	for range 1 + m.IntN(4) {
		add(w.of(pick(w, kinds), 1+m.IntN(3)), m.name())
	}
	if in.order != "" && m.IntN(2) == 0 {
		add(m.lag(w, in), m.name())
	}
	if in.order != "" {
		out.order = "ord"
		ti = append(ti, in.order+" AS ord")
	}
	out.ours, out.theirs = "SELECT "+strings.Join(oi, ", ")+" FROM "+ours, "SELECT "+strings.Join(ti, ", ")+" FROM "+theirs
	if m.IntN(2) == 0 {
		c := w.condition(2)
		out.ours, out.theirs = out.ours+" WHERE "+c.ours, out.theirs+" WHERE "+c.theirs
	}
	return out
}

// lag is LAG … OVER of some partition.
func (m *maker) lag(w writer, in relation) term {
	x := w.of(pick(w, kinds), m.IntN(2))
	var ours, theirs []string
	for _, p := range in.partition {
		ours, theirs = append(ours, in.cols[p].ours), append(theirs, in.cols[p].theirs)
	}
	for range m.IntN(3) {
		p := w.of(w.oneKind(column.Int, column.Text, column.Boolean, column.Float), m.IntN(2))
		// A number alone would be a column by its place.
		ours, theirs = append(ours, p.ours), append(theirs, "("+p.theirs+")")
	}
	by, theirBy := "", ""
	if len(ours) > 0 {
		by, theirBy = "PARTITION BY "+strings.Join(ours, ", "), "PARTITION BY "+strings.Join(theirs, ", ")
	}
	n := 1 + m.IntN(3)
	return term{fmt.Sprintf("LAG(%s, %d) OVER (%s)", x.ours, n, by),
		fmt.Sprintf("LAG(%s, %d) OVER (%s ORDER BY %s)", x.theirs, n, theirBy, in.order), x.t}
}

// total is an aggregate with how far it may be off; what may be is in no condition.
type total struct {
	term
	near float64
}

func (m *maker) total(w writer, unique bool, time string) total {
	x := w.of(pick(w, kinds), m.IntN(3))
	n := w.of(pick(w, numbers), m.IntN(3))
	wide := n.theirs
	if n.t.Kind == column.Float {
		wide = "(" + n.theirs + ")::float8"
	}
	switch m.IntN(9) {
	case 0:
		return total{term{"COUNT(*)", "COUNT(*)", column.Int64Type}, 0}
	case 1:
		return total{term{"COUNT(" + x.ours + ")", "COUNT(" + x.theirs + ")", column.Int64Type}, 0}
	case 2:
		switch n.t.Kind {
		case column.Int:
			return total{term{"SUM(" + n.ours + ")", "i_chk(SUM(" + wide + "), -9223372036854775808, 9223372036854775807)",
				column.Int64Type}, 0}
		case column.Decimal:
			t := decimalOf(18, n.t.Scale)
			return total{term{"SUM(" + n.ours + ")", fmt.Sprintf("d_chk(SUM(%s), 18, %d)", wide, t.Scale), t}, 0}
		}
		return m.ofFloats("SUM", w)
	case 3:
		if n.t.Kind == column.Float {
			return m.ofFloats("AVG", w)
		}
		return total{term{"AVG(" + n.ours + ")", "AVG(" + wide + ")::float8", column.Float64Type}, 1e-12}
	case 4:
		if n.t.Kind != column.Float {
			n = w.column(column.Decimal, func() term { return w.column(column.Int, func() term { return n }) })
			return total{term{"STDDEV(" + n.ours + ")", "STDDEV(" + n.theirs + ")::float8", column.Float64Type}, 1e-7}
		}
		return m.ofFloats("STDDEV", w)
	case 5:
		q := m.one("0", "0.25", "0.5", "0.9", "0.99", "1")
		ours, theirs := m.positive(w)
		return total{term{"QUANTILE(" + ours + ", " + q + ")",
			"PERCENTILE_CONT(" + q + ") WITHIN GROUP (ORDER BY " + theirs + ")", column.Float64Type}, 0.0056}
	case 6:
		if unique {
			ours := "LAST(" + x.ours + ")"
			if slices.Contains(w.cols, x) && m.IntN(2) == 0 {
				ours = x.ours // a column that is neither grouped nor added up
			}
			return total{term{ours, "(array_agg(" + x.theirs + " ORDER BY " + time + " DESC))[1]", x.t}, 0}
		}
	}
	f := m.one("MIN", "MAX")
	switch x.t.Kind {
	case column.Boolean:
		return total{term{f + "(" + x.ours + ")", map[string]string{"MIN": "bool_and", "MAX": "bool_or"}[f] + "(" +
			x.theirs + ")", x.t}, 0}
	case column.Text:
		return total{term{f + "(" + x.ours + ")", f + "((" + x.theirs + `) COLLATE "C")`, x.t}, 0}
	}
	return total{term{f + "(" + x.ours + ")", f + "(" + x.theirs + ")", x.t}, 0}
}

// positive is a number of any type whose magnitude quantiles hold, or the same below 0: between values of both signs
// they would be near 0, and far from it by how they compare.
func (m *maker) positive(w writer) (ours, theirs string) {
	sign := m.one("", "- ")
	switch kind := pick(w, numbers); kind {
	case column.Int:
		v := w.column(kind, func() term { return term{"7", "7::bigint", column.Int64Type} })
		return fmt.Sprintf("%s(ABS(CAST(%s AS INT16)) + 1)", sign, v.ours),
			fmt.Sprintf("%s(abs(i_chk(%s, -32768, 32767)) + 1)", sign, v.theirs)
	default:
		v := w.column(kind, func() term { return w.of(kind, 0) })
		theirs = "(" + v.theirs + ")::float8"
		const between = "%s(CASE WHEN ABS(%[2]s) BETWEEN 0.001 AND 1000000 THEN ABS(%[2]s) END)"
		return fmt.Sprintf(between, sign, v.ours), fmt.Sprintf(between, sign, theirs)
	}
}

// ofFloats adds up floats whose sum has room whatever the order is, NaN and infinities among them.
func (m *maker) ofFloats(f string, w writer) total {
	n := w.column(column.Float, func() term { return w.float(0) })
	v := "(" + n.theirs + ")::float8"
	return total{term{fmt.Sprintf("%s(CASE WHEN ABS(%[2]s) < 1e6 OR ABS(%[2]s) > 1e306 THEN %[2]s END)", f, n.ours),
		fmt.Sprintf("%s(CASE WHEN abs(%[2]s) < 1e6 OR abs(%[2]s) > 1e306 THEN %[2]s END)", f, v),
		column.Float64Type}, map[string]float64{"SUM": 1e-9, "AVG": 1e-9, "STDDEV": 1e-7}[f]}
}

// aggregated is a SELECT with a window; extra are columns of the FROM that it has to read.
func (m *maker) aggregated(in relation, timeName string) relation {
	alias := m.name()
	ours, theirs := in.from(alias)
	if in.order != "" && m.IntN(2) == 0 { // LAG of the same SELECT
		x := m.lag(m.over(in), in)
		name := m.name()
		inner := fmt.Sprintf("(SELECT %s.*, %s AS %s FROM %s) AS %s", alias, x.theirs, name, theirs, alias)
		if m.IntN(2) == 0 {
			c := m.over(in).condition(1)
			ours += " WHERE " + c.ours
			inner = fmt.Sprintf("(SELECT %s.*, %s AS %s FROM %s WHERE %s) AS %s", alias, x.theirs, name, theirs, c.theirs, alias)
		}
		in.cols = append(slices.Clone(in.cols), term{x.ours, name, x.t})
		return m.added(in, ours, inner, "", timeName)
	}
	where := ""
	if m.IntN(2) == 0 {
		c := m.over(in).condition(2)
		ours, where = ours+" WHERE "+c.ours, c.theirs
	}
	return m.added(in, ours, theirs, where, timeName)
}

func (m *maker) added(in relation, ours, theirs, where, timeName string) relation {
	time := in.cols[in.time]
	smallest := int64(10)
	if in.inOrder {
		smallest = 60
	}
	w := m.window(in, time.ours, smallest)
	theirs += ", " + w.starts(time.theirs) + " WHERE " + time.theirs + " IS NOT NULL"
	if where != "" {
		theirs += " AND " + where
	}
	return m.grouped(in, ours, theirs, w, "w", time.theirs, timeName)
}

// grouped writes the groups, totals and HAVING of a window.
func (m *maker) grouped(in relation, ours, theirs string, w window, series, time, timeName string) relation {
	over := m.over(in)
	timeType := column.TimestampType
	if in.cols[in.time].t.Kind == column.Int {
		timeType = column.Int64Type
	}
	out := relation{inOrder: true, near: map[string]float64{}}
	var oi, ti, groups []string
	add := func(x total, name string) {
		oi, ti = append(oi, x.ours+" AS "+name), append(ti, x.theirs+" AS "+theirName(name))
		out.cols = append(out.cols, term{name, theirName(name), x.t})
		out.near[name] = x.near
	}
	if timeName == "" {
		timeName = m.name()
	}
	add(total{term{"start", fmt.Sprintf("%s * %d", series, w.advance), timeType}, 0}, timeName)
	if m.IntN(2) == 0 {
		add(total{term{"end", fmt.Sprintf("%s * %d + %d", series, w.advance, w.size), timeType}, 0}, m.name())
	}
	by := []string{series}
	plain := over
	plain.cols = slices.DeleteFunc(slices.Clone(over.cols), func(c term) bool { return strings.HasPrefix(c.ours, "LAG") })
	for range m.IntN(3) {
		k := plain.of(plain.oneKind(column.Text, column.Int, column.Boolean, column.Float, column.Decimal), m.IntN(2))
		if k.t.Kind == column.Int && m.IntN(2) == 0 {
			k = reckon(k, term{"3", "3::bigint", column.Int64Type}, "%")
		}
		out.partition = append(out.partition, len(out.cols))
		add(total{k, 0}, m.name())
		by, groups = append(by, fmt.Sprint(len(out.cols))), append(groups, k.ours)
	}
	out.unique = len(groups) == 0
	for range 1 + m.IntN(4) {
		add(m.total(over, in.unique, time), m.name())
	}
	out.order, ti = "ord", append(ti, series+" AS ord")
	group := ""
	if len(groups) > 0 {
		group = " GROUP BY " + strings.Join(groups, ", ")
	}
	out.ours = "SELECT " + strings.Join(oi, ", ") + " FROM " + ours + group + " " + w.ours
	out.theirs = "SELECT " + strings.Join(ti, ", ") + " FROM " + theirs + " GROUP BY " + strings.Join(by, ", ")
	if m.IntN(2) == 0 {
		having := writer{m.Rand, nil}
		for range 3 {
			if x := m.total(plain, in.unique, time); x.near == 0 {
				having.cols = append(having.cols, x.term)
			}
		}
		c := having.condition(1)
		out.ours, out.theirs = out.ours+" HAVING "+c.ours, out.theirs+" HAVING "+c.theirs
	}
	return out
}

// joined is a join within a window, added up or as its pairs are.
func (m *maker) joined(left, right relation, timeName string) relation {
	a, b := m.name(), m.name()
	lo, lt := left.from(a)
	ro, rt := right.from(b)
	both := relation{near: map[string]float64{}, time: 0, inOrder: true}
	both.cols = []term{{"start", "", left.cols[left.time].t}}
	if both.cols[0].t.Kind == column.Int {
		both.cols[0].t = column.Int64Type
	}
	for alias, r := range map[string]relation{a: left, b: right} {
		for _, c := range r.cols {
			if r.near[c.ours] == 0 {
				both.cols = append(both.cols, term{alias + "." + c.ours, alias + "." + c.theirs, c.t})
			}
		}
	}
	slices.SortFunc(both.cols[1:], func(x, y term) int { return strings.Compare(x.ours, y.ours) })
	w := m.window(relation{cols: left.cols, time: left.time, inOrder: left.inOrder && right.inOrder},
		left.cols[left.time].ours, 10)
	both.cols[0].theirs = fmt.Sprintf("%s.w * %d", a, w.advance)
	side := func(r relation, from, alias string) string {
		t := r.cols[r.time].theirs
		return fmt.Sprintf("(SELECT %s.*, w FROM %s, %s WHERE %s IS NOT NULL) AS %s", alias, from, w.starts(t), t, alias)
	}
	on, theirOn := m.on(left, right, a, b)
	over := m.over(relation{cols: both.cols[1:]})
	if m.IntN(3) == 0 {
		c := over.condition(1)
		on, theirOn = on+" AND "+c.ours, theirOn+" AND "+c.theirs
	}
	ours := fmt.Sprintf("%s JOIN %s ON %s", lo, ro, on)
	theirs := fmt.Sprintf("%s JOIN %s ON %s.w = %s.w AND %s", side(left, lt, a), side(right, rt, b), a, b, theirOn)
	where := "TRUE"
	if m.IntN(2) == 0 {
		c := over.condition(1)
		ours, where = ours+" WHERE "+c.ours, c.theirs
	}
	theirs += " WHERE " + where
	if m.IntN(2) == 0 {
		r := both
		r.cols = append([]term{both.cols[0]}, over.cols...)
		return m.grouped(r, ours, theirs, w, a+".w", "", timeName)
	}
	if timeName == "" {
		timeName = m.name()
	}
	first := term{timeName, theirName(timeName), both.cols[0].t}
	out := relation{inOrder: true, near: map[string]float64{}, cols: []term{first}}
	oi, ti := []string{"start AS " + first.ours}, []string{both.cols[0].theirs + " AS " + first.theirs}
	for range 1 + m.IntN(4) {
		x, name := over.of(pick(over, kinds), m.IntN(3)), m.name()
		oi, ti = append(oi, x.ours+" AS "+name), append(ti, x.theirs+" AS "+name)
		out.cols = append(out.cols, term{name, name, x.t})
	}
	out.ours = "SELECT " + strings.Join(oi, ", ") + " FROM " + ours + " " + w.ours
	out.theirs = "SELECT " + strings.Join(ti, ", ") + " FROM " + theirs
	return out
}

// on is that a column, or a few, of one side equal those of the other.
func (m *maker) on(left, right relation, a, b string) (ours, theirs string) {
	l, r := m.over(left), m.over(right)
	prefixed := func(cols []term, alias string) (to []term) {
		for _, c := range cols {
			to = append(to, term{alias + "." + c.ours, alias + "." + c.theirs, c.t})
		}
		return to
	}
	l.cols, r.cols = prefixed(l.cols, a), prefixed(r.cols, b)
	var os, ts []string
	for range 1 + m.IntN(2) {
		kind := m.oneKind(column.Text, column.Int, column.Boolean, column.Decimal, column.Float)
		other := kind
		if kind != column.Text && kind != column.Boolean {
			other = pick(m.writer, numbers)
		}
		x, y := l.column(kind, func() term { return l.of(kind, 1) }), r.column(other, func() term { return r.of(other, 1) })
		if !strings.Contains(x.ours, a+".") || !strings.Contains(y.ours, b+".") {
			continue
		}
		p, q := common(x, y)
		if m.IntN(2) == 0 {
			os = append(os, y.ours+" = "+x.ours)
		} else {
			os = append(os, x.ours+" = "+y.ours)
		}
		ts = append(ts, p.theirs+" = "+q.theirs)
	}
	if len(os) == 0 {
		x, y := left.cols[left.time], right.cols[right.time]
		return a + "." + x.ours + " = " + b + "." + y.ours, a + "." + x.theirs + " = " + b + "." + y.theirs
	}
	return strings.Join(os, " AND "), strings.Join(ts, " AND ")
}
