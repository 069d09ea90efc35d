package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/aggregate"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/expression"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// aggregateBinder collects what an aggregate has to compute while expressions are rewritten to name its columns.
type aggregateBinder struct {
	*binder
	s     *sql.Select
	in    input
	items []item
	node  *Aggregate
	// known and keys are what aggregates and groups are told apart by, texts and groups how they are shown.
	known, keys, texts, groups []string
}

// aggregate binds GROUP BY, WINDOW and the aggregates of the select list and HAVING.
func (b *binder) aggregate(s *sql.Select, in input, items []item, filter sql.Expr) (input, []item,
	sql.Expr, error) {
	a := &aggregateBinder{binder: b, s: s, in: in, items: items, node: &Aggregate{In: in.node}}
	if s.Window == nil {
		return in, nil, nil, b.errorf(s.At, "add WINDOW TUMBLING(ts, SIZE 5 SECONDS)",
			"a stream has no end: what is added up needs a window")
	}
	if err := a.window(); err != nil {
		return in, nil, nil, err
	}
	n := a.node
	t := boundType(n.Time.Type)
	n.cols = []column.Column{{Name: "start", Type: t}, {Name: "end", Type: t}}
	for i, g := range s.Group {
		g = alias(g, items, in.cols)
		x, err := expression.Bind(g, b.scope(in.cols))
		if err != nil {
			return in, nil, nil, err
		}
		if x.Type.Kind == column.Unknown {
			return in, nil, nil, b.errorf(g.Pos(), "", "NULL is no group")
		}
		n.Groups, a.keys = append(n.Groups, x), append(a.keys, sql.Key(g))
		a.groups = append(a.groups, sql.Text(g))
		n.cols = append(n.cols, column.Column{Name: internal("group", i, 0).Name.Text, Type: x.Type})
	}
	var to []item
	for _, i := range items {
		x, err := sql.Rewrite(i.x, a.rewrite)
		if err != nil {
			return in, nil, nil, err
		}
		to = append(to, item{x, i.name, i.text})
	}
	var having sql.Expr
	if filter != nil {
		x, err := sql.Rewrite(filter, a.named)
		if err != nil {
			return in, nil, nil, err
		}
		if having, err = sql.Rewrite(alias(x, items, in.cols), a.rewrite); err != nil {
			return in, nil, nil, err
		}
	}
	n.text = strings.Join(a.texts, ", ")
	if len(a.groups) > 0 {
		n.text += " by " + strings.Join(a.groups, ", ")
	}
	return input{n, n.cols}, to, having, nil
}

// named puts an aggregate of the select list in place of its name in HAVING, also where a column of the rows has that
// name: AVG(x) AS x … HAVING x > 9 means the average. What is grouped by stays the group, and inside of an aggregate a
// name is that of a column.
func (a *aggregateBinder) named(e sql.Expr) (sql.Expr, error) {
	switch e := e.(type) {
	case *sql.Call:
		if e.Over == nil && aggregate.IsAggregate(e.Name.Text) {
			return e, nil
		}
	case *sql.Column:
		if e.Table.Text != "" || slices.Contains(a.keys, sql.Key(e)) ||
			slices.ContainsFunc(a.s.Group, func(g sql.Expr) bool { return a.sameColumn(e, g) }) {
			return e, nil
		}
		for _, i := range a.items {
			if sql.SameName(i.name, e.Name.Text) && aggregates([]item{i}, nil) {
				return i.x, nil
			}
		}
	}
	return nil, nil
}

// rewrite names the columns of the aggregate: groups, results, start and end. A column that is none of these stands for
// its value in the last row of the window.
func (a *aggregateBinder) rewrite(e sql.Expr) (sql.Expr, error) {
	key := sql.Key(e)
	for i, k := range a.keys {
		if k == key || a.sameColumn(e, a.s.Group[i]) {
			return internal("group", i, e.Pos()), nil
		}
	}
	switch e := e.(type) {
	case *sql.Call:
		if e.Over == nil && aggregate.IsAggregate(e.Name.Text) {
			return a.add(e)
		}
	case *sql.Column:
		if c := e.Name.Text; e.Table.Text == "" && (sql.SameName(c, "start") || sql.SameName(c, "end")) {
			return e, nil // the window's own, also where rows have such columns
		}
		return a.add(&sql.Call{Name: sql.Name{Text: "LAST", At: e.Pos()}, Args: []sql.Expr{e}})
	}
	return nil, nil
}

// sameColumn reports whether both are the same column, one with the name of its table and one without.
func (a *aggregateBinder) sameColumn(x, y sql.Expr) bool {
	l, ok := x.(*sql.Column)
	r, too := y.(*sql.Column)
	if !ok || !too || !sql.SameName(l.Name.Text, r.Name.Text) {
		return false
	}
	scope := a.scope(a.in.cols)
	i, err := scope.Find(l)
	if err != nil {
		return false
	}
	j, err := scope.Find(r)
	return err == nil && i == j
}

// add returns the column of an aggregate, which is computed once however often it is named.
func (a *aggregateBinder) add(c *sql.Call) (sql.Expr, error) {
	name := strings.ToUpper(c.Name.Text)
	var arg *expression.Expr
	q, most := 0.0, 1
	if name == "QUANTILE" {
		most = 2
	}
	if len(c.Args) != most && (!c.Star || name != "COUNT" || len(c.Args) > 0) {
		return nil, a.errorf(c.Name.At, map[string]string{"QUANTILE": "QUANTILE(x, 0.99)"}[name],
			"%s takes %d argument%s", name, most, map[bool]string{true: "s"}[most > 1])
	}
	t := column.Type{}
	if !c.Star {
		x := alias(c.Args[0], a.items, a.in.cols)
		if aggregates([]item{{x: x}}, nil) {
			return nil, a.errorf(c.Name.At, "add up in a subquery first", "%s can not hold another aggregate", name)
		}
		var err error
		if arg, err = expression.Bind(x, a.scope(a.in.cols)); err != nil {
			return nil, err
		}
		t = arg.Type
	}
	if name == "QUANTILE" {
		l, ok := c.Args[1].(*sql.Literal)
		q = -1
		if ok {
			switch v := l.Value.(type) {
			case float64:
				q = v
			case int64:
				q = float64(v)
			}
		}
	}
	f, err := aggregate.New(name, t, q)
	if err != nil {
		return nil, a.errorf(c.Name.At, "", "%v", err)
	}
	key := sql.Key(c)
	if i := slices.Index(a.known, key); i >= 0 {
		return internal("result", i, c.Name.At), nil
	}
	to := internal("result", len(a.texts), c.Name.At)
	n := a.node
	n.Functions, n.Args = append(n.Functions, f), append(n.Args, arg)
	a.known, a.texts = append(a.known, key), append(a.texts, sql.Text(c))
	n.cols = append(n.cols, column.Column{Name: to.Name.Text, Type: f.Result})
	return to, nil
}

// window binds the window of an aggregate. Behind a join, windows are those of the join.
func (a *aggregateBinder) window() error {
	w := a.s.Window
	if a.s.Join != nil {
		j := joinOf(a.in.node)
		x, err := expression.Bind(&sql.Column{Name: sql.Name{Text: "start", At: w.At}},
			a.scope([]column.Column{a.in.cols[0]}))
		if err != nil {
			return err
		}
		a.node.Time, a.node.Traced, a.node.Window = x, true, j.Window
		a.node.Window.Size, a.node.Window.Lateness = j.Window.Advance, 0
		return nil
	}
	at, i, err := a.timeColumn(w, a.in.cols, true)
	if err != nil {
		return err
	}
	x, err := expression.Bind(at, a.scope(a.in.cols))
	if err != nil {
		return err
	}
	a.node.Time, a.node.Traced = x, trace(a.in.node, i)
	a.node.Window, err = a.measure(w, x.Type)
	return err
}

// boundType is the type of start and end: that of the time, with room for a window before its least value.
func boundType(t column.Type) column.Type {
	if t.Kind == column.Int {
		return column.Int64Type
	}
	return t
}

// joinOf goes down to the join of the same SELECT.
func joinOf(n Node) *Join {
	for {
		if j, ok := n.(*Join); ok {
			return j
		}
		n = n.Inputs()[0]
	}
}

// times are the names of columns of time, the likeliest first.
var times = []string{"timestamp", "ts", "time", "start"}

// timeColumn returns the column of a window's time: the one it names, or the only one that can be.
func (b *binder) timeColumn(w *sql.Window, cols []column.Column, must bool) (*sql.Column, int, error) {
	if w.Time != nil {
		i, err := b.scope(cols).Find(w.Time)
		if err == nil || must {
			return w.Time, i, err
		}
	}
	found, only := -1, 0
	for i, c := range cols {
		if c.Type.Kind == column.Timestamp {
			found, only = i, only+1
		}
	}
	for k := len(times) - 1; k >= 0 && only != 1; k-- {
		for i, c := range cols {
			if sql.SameName(c.Name, times[k]) && (c.Type.Kind == column.Timestamp || c.Type.Kind == column.Int) {
				found = i
			}
		}
	}
	if found < 0 || only > 1 && !isTimeName(cols[found].Name) {
		return nil, 0, b.errorf(w.At, "write TUMBLING(ts, SIZE …) with the column", "which column is the time of rows?")
	}
	c := cols[found]
	return &sql.Column{Table: sql.Name{Text: c.Table, At: w.At},
		Name: sql.Name{Text: c.Name, At: w.At}}, found, nil
}

func isTimeName(name string) bool {
	for _, t := range times {
		if sql.SameName(t, name) {
			return true
		}
	}
	return false
}

// measure checks a window and turns its durations into units of its time.
func (b *binder) measure(w *sql.Window, t column.Type) (Window, error) {
	unit := time.Microsecond
	switch {
	case t.Kind == column.Int:
		unit = time.Millisecond
	case t.Kind != column.Timestamp:
		return Window{}, b.errorf(w.At, "", "the time of a window is TIMESTAMP or an integer of milliseconds, not %s", t)
	}
	switch {
	case w.Size < unit || w.Advance < unit:
		return Window{}, b.errorf(w.At, "", "a window has a size and an advance of at least %v", unit)
	case w.Size > maxWindow:
		return Window{}, b.errorf(w.At, "", "a window has a size of at most ten years")
	case w.Advance > w.Size:
		return Window{}, b.errorf(w.At, "did you mean a tumbling window, after a WHERE?",
			"a window that advances by more than its size leaves rows out")
	case w.Size/w.Advance > maxOverlap:
		return Window{}, b.impossible(w.At, "advance by more, or make the window smaller",
			"a row would be in %d windows, at most %d can be", w.Size/w.Advance, maxOverlap)
	case w.Size%unit != 0 || w.Advance%unit != 0:
		return Window{}, b.errorf(w.At, "", "the time of this window has no parts smaller than %v", unit)
	case w.Lateness > maxWindow:
		return Window{}, b.errorf(w.At, "", "LATENESS is at most ten years")
	}
	to := Window{Size: int64(w.Size / unit), Advance: int64(w.Advance / unit), Lateness: int64(w.Lateness / unit),
		Scale: int64(unit / time.Microsecond)}
	to.Span = to.Size
	to.text = fmt.Sprintf("tumbling windows of %v", w.Size)
	if w.Sliding {
		to.text = fmt.Sprintf("windows of %v every %v", w.Size, w.Advance)
	}
	if w.Lateness > 0 {
		to.text += fmt.Sprintf(", %v late at most", w.Lateness)
	}
	return to, nil
}

// trace finds the scan whose column the time is, through steps that only pass it on, and has it tell the time. Filters
// then do not hold the clock up.
func trace(n Node, i int) bool {
	switch n := n.(type) {
	case *scanNode:
		n.Time = i
		return true
	case *Filter:
		return trace(n.In, i)
	case *Lag:
		return i < len(n.In.Columns()) && trace(n.In, i)
	case *Project:
		return n.From[i] >= 0 && trace(n.In, n.From[i])
	case *Aggregate:
		// An aggregate says from when on its next windows begin; that is the time of both its columns.
		return i < 2
	case *Join:
		return i < 2
	}
	return false
}

// join binds INNER JOIN in a window.
func (b *binder) join(s *sql.Select, left input) (input, error) {
	right, err := b.table(s.Join.Table)
	if err != nil {
		return left, err
	}
	w := s.Window
	if w == nil {
		return left, b.errorf(s.Join.At, "add WINDOW TUMBLING(ts, SIZE 5 SECONDS)",
			"streams have no end: rows are joined within a window")
	}
	n := &Join{Left: left.node, Right: right.node, text: sql.Text(s.Join.On)}
	li, err := b.joinTime(w, left, right, &n.LeftTime)
	if err != nil {
		return left, err
	}
	ri, err := b.joinTime(w, right, left, &n.RightTime)
	if err != nil {
		return left, err
	}
	t := n.LeftTime.Type
	if t.Kind != n.RightTime.Type.Kind {
		return left, b.errorf(w.At, "cast one of them in a subquery", "the times of both sides are %s and %s", t,
			n.RightTime.Type)
	}
	if n.Window, err = b.measure(w, t); err != nil {
		return left, err
	}
	n.LeftTraced, n.RightTraced = trace(left.node, li), trace(right.node, ri)
	t = boundType(t)
	n.cols = append([]column.Column{{Name: "start", Type: t}, {Name: "end", Type: t}}, left.cols...)
	n.cols = append(n.cols, right.cols...)
	var rest sql.Expr
	for _, c := range conjuncts(s.Join.On) {
		if l, r := b.equality(c, left, right); l != nil {
			n.LeftKeys, n.RightKeys = append(n.LeftKeys, l), append(n.RightKeys, r)
		} else if rest == nil {
			rest = c
		} else {
			rest = &sql.Binary{Op: "AND", L: rest, R: c, At: c.Pos()}
		}
	}
	if rest != nil {
		if n.On, err = expression.Condition(rest, b.scope(n.cols)); err != nil {
			return left, err
		}
	}
	if len(n.LeftKeys) == 0 {
		return left, b.impossible(s.Join.On.Pos(), "ON a.id = b.id",
			"a join needs a column of one side that equals one of the other")
	}
	return input{n, n.cols}, nil
}

// joinTime binds the time of one side; a column that only the other side has is the other's.
func (b *binder) joinTime(w *sql.Window, side, other input, to **expression.Expr) (int, error) {
	must := false
	if w.Time != nil {
		_, here := b.scope(side.cols).Find(w.Time)
		_, there := b.scope(other.cols).Find(w.Time)
		must = here != nil && there != nil
	}
	c, i, err := b.timeColumn(w, side.cols, must)
	if err != nil {
		return 0, err
	}
	*to, err = expression.Bind(c, b.scope(side.cols))
	return i, err
}

// conjuncts are the parts of a AND b AND c.
func conjuncts(e sql.Expr) []sql.Expr {
	if a, ok := e.(*sql.Binary); ok && a.Op == "AND" {
		return append(conjuncts(a.L), conjuncts(a.R)...)
	}
	return []sql.Expr{e}
}

// equality binds l = r where each side of it needs one side of the join only, both of one type.
func (b *binder) equality(e sql.Expr, left, right input) (l, r *expression.Expr) {
	c, ok := e.(*sql.Binary)
	if !ok || c.Op != "=" {
		return nil, nil
	}
	both := b.scope(append(append([]column.Column(nil), left.cols...), right.cols...))
	if _, err := expression.Bind(e, both); err != nil {
		return nil, nil // said by whoever binds the whole
	}
	for _, order := range [][2]sql.Expr{{c.L, c.R}, {c.R, c.L}} {
		x, err := expression.Bind(order[0], b.scope(left.cols))
		if err != nil {
			continue
		}
		y, err := expression.Bind(order[1], b.scope(right.cols))
		if err != nil {
			continue
		}
		t, ok := expression.Common(x.Type, y.Type)
		if !ok || t.Kind == column.Unknown {
			continue
		}
		if x, err = expression.As(order[0], t, b.scope(left.cols)); err != nil {
			continue
		}
		if y, err = expression.As(order[1], t, b.scope(right.cols)); err == nil {
			return x, y
		}
	}
	return nil, nil
}
