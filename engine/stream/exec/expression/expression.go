// Package expression binds expressions to the columns of a batch, checking names and types once, and evaluates them
// column by column. Evaluation allocates nothing once its vectors have grown to the size of a batch.
//
// An expression that has no value for a row, since something is divided by zero, a result has no room in its type or a
// text is no number, is NULL there, and the row is counted (Faults): a stream does not end for one row.
package expression

import (
	"errors"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Faults counts values that could not be computed and became NULL.
type Faults struct {
	DivisionByZero, Overflow, Cast int64
}

// Scope is what names mean: the columns of the batches that the expression will be evaluated over.
type Scope struct {
	// Source is the text that the expression stands in, for the places of errors.
	Source  string
	Columns []column.Column
	Faults  *Faults
}

// Expr is an expression that is bound. One goroutine may evaluate it; the result is valid until the next call.
type Expr struct {
	Type column.Type
	node node
	// of is what was bound, for errors.
	of sql.Expr
	in input
}

// node evaluates. Where on is not nil, only rows that it names matter: others may hold anything, and count no faults.
type node interface {
	eval(in *input, on []bool) *column.Vec
}

// Eval returns the value of every row. What it holds is counted by m; nil counts nothing, and bounds nothing. The error
// is ErrPiece, ErrStopped or a *MemoryError.
func (e *Expr) Eval(in *column.Batch, m *Memory) (v *column.Vec, err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		a, is := r.(abort)
		if !is {
			panic(r)
		}
		if err = a.err; !errors.Is(err, ErrPiece) && !errors.Is(err, ErrStopped) {
			err = e.tooMuch(err)
		}
	}()
	e.in.Batch, e.in.m = in, m
	return e.node.eval(&e.in, nil), nil
}

// bound is a node with its type, and the literal that it is, if it is one.
type bound struct {
	node
	t       column.Type
	literal bool
}

// Bind checks names and types. The error is a *sql.Error.
func Bind(e sql.Expr, s Scope) (*Expr, error) {
	b, err := s.bind(e)
	if err != nil {
		return nil, err
	}
	return &Expr{Type: b.t, node: b.node, of: e}, nil
}

// Condition binds what has to be a truth value.
func Condition(e sql.Expr, s Scope) (*Expr, error) {
	b, err := s.condition(e)
	if err != nil {
		return nil, err
	}
	return &Expr{Type: b.t, node: b.node, of: e}, nil
}

// As binds e with the result cast to t, as storing it in a column of that type does.
func As(e sql.Expr, t column.Type, s Scope) (*Expr, error) {
	b, err := s.bind(e)
	if err != nil {
		return nil, err
	}
	if b, err = s.cast(b, t, e.Pos()); err != nil {
		return nil, err
	}
	return &Expr{Type: b.t, node: b.node, of: e}, nil
}

func (s Scope) errorf(at int, hint, format string, args ...any) error {
	return sql.Errorf(sql.BinderError, s.Source, at, hint, format, args...)
}

// Find returns the index of a column.
func (s Scope) Find(c *sql.Column) (int, error) {
	found := -1
	known := make([]string, 0, len(s.Columns))
	for i, col := range s.Columns {
		known = append(known, col.Name)
		if !sql.SameName(col.Name, c.Name.Text) || c.Table.Text != "" && !sql.SameName(col.Table, c.Table.Text) {
			continue
		}
		if found >= 0 {
			return 0, s.errorf(c.Pos(), "write "+s.Columns[found].Table+"."+col.Name+" or "+col.Table+"."+col.Name,
				"the column %s is in both streams", c.Name.Text)
		}
		found = i
	}
	if found < 0 {
		hint := sql.Suggest(c.Name.Text, known...)
		if hint == "" && len(known) > 0 {
			hint = "there are " + enumerate(known)
		}
		return 0, s.errorf(c.Pos(), hint, "there is no column %s", sql.Text(c))
	}
	return found, nil
}

// enumerate lists names, at most ten of them; those that users did not give are left out.
func enumerate(names []string) string {
	list := ""
	n := 0
	for _, name := range names {
		if name == "" || name[0] == '$' {
			continue
		}
		if n++; n > 10 {
			return list + " …"
		}
		if list != "" {
			list += ", "
		}
		list += name
	}
	return list
}

func (s Scope) bind(e sql.Expr) (bound, error) {
	switch e := e.(type) {
	case *sql.Literal:
		return literal(e.Value), nil
	case *sql.Column:
		i, err := s.Find(e)
		if err != nil {
			return bound{}, err
		}
		return bound{node: columnRef(i), t: s.Columns[i].Type}, nil
	case *sql.Unary:
		return s.unary(e)
	case *sql.Binary:
		return s.binary(e)
	case *sql.IsNull:
		x, err := s.bind(e.X)
		return bound{node: &isNull{x: x.node, not: e.Not}, t: column.BooleanType}, err
	case *sql.In:
		return s.in(e)
	case *sql.Case:
		return s.caseOf(e)
	case *sql.Cast:
		return s.castTo(e.X, e.Type, e.At)
	case *sql.Call:
		return s.call(e)
	}
	return bound{}, s.errorf(-1, "", "this is no expression")
}

func (s Scope) condition(e sql.Expr) (bound, error) {
	b, err := s.bind(e)
	if err == nil && b.t.Kind == column.Unknown {
		b, err = s.cast(b, column.BooleanType, e.Pos())
	}
	if err == nil && b.t.Kind != column.Boolean {
		err = s.errorf(e.Pos(), "compare it with something", "a condition is true or false, this is %s", b.t)
	}
	return b, err
}

func literal(v any) bound {
	c := &constant{}
	switch v := v.(type) {
	case bool:
		c.one.Reset(column.BooleanType)
		c.one.AppendBool(v)
	case int64:
		c.one.Reset(column.Int64Type)
		c.one.AppendInt(v)
	case float64:
		c.one.Reset(column.Float64Type)
		c.one.AppendFloat(v)
	case string:
		c.one.Reset(column.TextType)
		c.one.AppendText([]byte(v))
	default:
		c.one.AppendNull()
	}
	return bound{node: c, t: c.one.Type, literal: true}
}

func (s Scope) unary(e *sql.Unary) (bound, error) {
	if e.Op == "NOT" {
		x, err := s.condition(e.X)
		return bound{node: &not{x: x.node}, t: column.BooleanType}, err
	}
	x, err := s.bind(e.X)
	if err != nil {
		return x, err
	}
	if !x.t.Numeric() {
		return x, s.errorf(e.At, "", "%s has no sign", x.t)
	}
	zero := literal(int64(0))
	return s.arithmetic("-", zero, x, e.At)
}

func (s Scope) binary(e *sql.Binary) (bound, error) {
	if e.Op == "AND" || e.Op == "OR" {
		l, err := s.condition(e.L)
		if err != nil {
			return l, err
		}
		r, err := s.condition(e.R)
		return bound{node: &logic{l: l.node, r: r.node, or: e.Op == "OR"}, t: column.BooleanType}, err
	}
	l, err := s.bind(e.L)
	if err != nil {
		return l, err
	}
	r, err := s.bind(e.R)
	if err != nil {
		return r, err
	}
	switch e.Op {
	case "=", "<>", "<", "<=", ">", ">=":
		return s.compare(e.Op, l, r, e.At)
	case "||":
		return s.join(l, r, e.At)
	case "LIKE":
		if l.t.Kind != column.Text || r.t.Kind != column.Text {
			return l, s.errorf(e.At, "", "LIKE compares texts, not %s with %s", l.t, r.t)
		}
		return bound{node: &like{l: l.node, r: r.node, faults: s.Faults}, t: column.BooleanType}, nil
	}
	return s.arithmetic(e.Op, l, r, e.At)
}

// common casts both sides to one type.
func (s Scope) common(l, r bound, at int) (bound, bound, error) {
	t, ok := Common(l.t, r.t)
	if !ok && l.literal && l.t.Kind == column.Text && r.t.Kind == column.Timestamp {
		t, ok = r.t, true
	}
	if !ok && r.literal && r.t.Kind == column.Text && l.t.Kind == column.Timestamp {
		t, ok = l.t, true
	}
	if !ok {
		hint := "cast one of them, as CAST(x AS " + l.t.String() + ")"
		return l, r, s.errorf(at, hint, "%s and %s do not go together", l.t, r.t)
	}
	l, err := s.cast(l, t, at)
	if err != nil {
		return l, r, err
	}
	r, err = s.cast(r, t, at)
	return l, r, err
}

// Common is the type that values of both types have room in.
func Common(a, b column.Type) (column.Type, bool) {
	switch {
	case a.Kind == column.Unknown:
		return b, true
	case b.Kind == column.Unknown || a == b:
		return a, true
	case a.Kind == column.Int && b.Kind == column.Int:
		return column.Int64Type, true
	case !a.Numeric() || !b.Numeric():
		return a, a.Kind == b.Kind
	case a.Kind == column.Float || b.Kind == column.Float:
		return column.Float64Type, true
	}
	scale := max(a.Scale, b.Scale)
	return column.Type{Kind: column.Decimal, Precision: column.MaxPrecision, Scale: scale}, true
}

func (s Scope) compare(op string, l, r bound, at int) (bound, error) {
	l, r, err := s.common(l, r, at)
	if err != nil {
		return l, err
	}
	return bound{node: &comparison{l: l.node, r: r.node, kind: l.t.Kind, want: wants[op]}, t: column.BooleanType}, nil
}

// wants says which of less, equal and greater make a comparison true.
var wants = map[string][3]bool{"=": {false, true, false}, "<>": {true, false, true}, "<": {true, false, false},
	"<=": {true, true, false}, ">": {false, false, true}, ">=": {false, true, true}}

func (s Scope) arithmetic(op string, l, r bound, at int) (bound, error) {
	lt, rt := l.t.Kind == column.Timestamp, r.t.Kind == column.Timestamp
	switch {
	case lt && rt && op == "-":
		return bound{node: &timeDifference{l: l.node, r: r.node}, t: column.Float64Type}, nil
	case lt && (op == "+" || op == "-") && r.t.Numeric(), rt && op == "+" && l.t.Numeric():
		if rt {
			l, r = r, l
		}
		r, err := s.cast(r, column.Float64Type, at)
		return bound{node: &timeShift{l: l.node, r: r.node, minus: op == "-", faults: s.Faults}, t: l.t}, err
	}
	for _, x := range []bound{l, r} {
		if !x.t.Numeric() && x.t.Kind != column.Unknown {
			return l, s.errorf(at, "", "%s can not be reckoned with by %s", x.t, op)
		}
	}
	t, _ := Common(l.t, r.t)
	if t.Kind == column.Unknown {
		t = column.Int64Type
	}
	for _, x := range []*bound{&l, &r} {
		if x.t.Kind == column.Unknown {
			var err error
			if *x, err = s.cast(*x, t, at); err != nil {
				return l, err
			}
		}
	}
	switch t.Kind {
	case column.Int:
		t = column.Int64Type
	case column.Float:
		t = column.Float64Type
	case column.Decimal:
		switch op {
		case "/":
			t = column.Float64Type
		case "*":
			return s.product(l, r, at)
		}
	}
	var err error
	if l, err = s.cast(l, t, at); err != nil {
		return l, err
	}
	if r, err = s.cast(r, t, at); err != nil {
		return r, err
	}
	if t.Kind == column.Float {
		return bound{node: &floatArith{l: l.node, r: r.node, op: op[0], faults: s.Faults}, t: t}, nil
	}
	return bound{node: &intArith{l: l.node, r: r.node, op: op[0], t: t, faults: s.Faults}, t: t}, nil
}

// product multiplies decimals: their scales add up.
func (s Scope) product(l, r bound, at int) (bound, error) {
	scale := l.t.Scale + r.t.Scale
	if scale > column.MaxPrecision {
		return l, s.errorf(at, "cast one of them to fewer digits, or to FLOAT64",
			"the product would have %d digits behind the point, at most %d are there", scale, column.MaxPrecision)
	}
	t := column.Type{Kind: column.Decimal, Precision: column.MaxPrecision, Scale: scale}
	return bound{node: &intArith{l: l.node, r: r.node, op: '*', t: t, faults: s.Faults}, t: t}, nil
}

func (s Scope) in(e *sql.In) (bound, error) {
	x, err := s.bind(e.X)
	if err != nil {
		return x, err
	}
	x, once := share(x)
	n := &in{not: e.Not}
	for _, item := range e.List {
		y, err := s.bind(item)
		if err != nil {
			return y, err
		}
		c, err := s.compare("=", x, y, item.Pos())
		if err != nil {
			return c, err
		}
		n.equal = append(n.equal, c.node)
	}
	return bound{node: &sharedScope{once, n}, t: column.BooleanType}, nil
}

// test is the condition of a branch: that it is true, or what the operand of its CASE has to equal.
func (s Scope) test(x sql.Expr, equals bool, operand bound) (bound, error) {
	if !equals {
		return s.condition(x)
	}
	y, err := s.bind(x)
	if err != nil {
		return y, err
	}
	return s.compare("=", operand, y, x.Pos())
}

func (s Scope) caseOf(e *sql.Case) (bound, error) {
	n := &caseOf{faults: s.Faults}
	var results []bound
	var at []int
	t := column.Type{}
	result := func(x sql.Expr) error {
		b, err := s.bind(x)
		if err != nil {
			return err
		}
		both, ok := Common(t, b.t)
		if !ok {
			return s.errorf(x.Pos(), "cast one of them", "a CASE has one type, not %s and %s", t, b.t)
		}
		t, results, at = both, append(results, b), append(at, x.Pos())
		return nil
	}
	var operand bound
	var once *sharedOperand
	if e.Operand != nil {
		x, err := s.bind(e.Operand)
		if err != nil {
			return x, err
		}
		operand, once = share(x)
	}
	for _, w := range e.When {
		c, err := s.test(w.If, e.Operand != nil, operand)
		if err != nil {
			return c, err
		}
		n.tests = append(n.tests, c.node)
		if err := result(w.Then); err != nil {
			return c, err
		}
	}
	if e.Else == nil {
		results, at = append(results, literal(nil)), append(at, e.At)
	} else if err := result(e.Else); err != nil {
		return bound{}, err
	}
	for i, r := range results {
		r, err := s.cast(r, t, at[i])
		if err != nil {
			return r, err
		}
		n.results = append(n.results, r.node)
	}
	n.t = t
	if once != nil {
		return bound{node: &sharedScope{once, n}, t: t}, nil
	}
	return bound{node: n, t: t}, nil
}

func (s Scope) castTo(x sql.Expr, name sql.TypeName, at int) (bound, error) {
	t, err := column.TypeNamed(name.Name.Text, name.Args)
	if err != nil {
		return bound{}, s.errorf(name.Name.At, sql.Suggest(name.Name.Text, column.TypeNames...), "%v", err)
	}
	b, err := s.bind(x)
	if err != nil {
		return b, err
	}
	return s.cast(b, t, at)
}

// cast returns b as t; literals are cast at once, so that what can never be is refused at its place.
func (s Scope) cast(b bound, t column.Type, at int) (bound, error) {
	if b.t == t {
		return b, nil
	}
	if !castable(b.t.Kind, t.Kind) {
		return b, s.errorf(at, "", "%s can not become %s", b.t, t)
	}
	to := bound{node: &cast{x: b.node, from: b.t, to: t, faults: s.Faults}, t: t}
	if c, ok := b.node.(*constant); ok {
		v := (&cast{x: c, from: b.t, to: t, faults: &Faults{}}).eval(&input{Batch: &column.Batch{N: 1}}, nil)
		if v.Null[0] && !c.one.Null[0] {
			return b, s.errorf(at, "", "%s is no %s", c.one.AppendValue(nil, 0), t)
		}
		once := &constant{}
		once.one.Reset(t)
		once.one.AppendFrom(v, 0)
		to = bound{node: once, t: t, literal: true}
	}
	return to, nil
}

// castable says which kinds can become which.
func castable(from, to column.Kind) bool {
	switch {
	case from == to, from == column.Unknown, from == column.Text, to == column.Text:
		return true
	case from == column.Boolean:
		return to == column.Int
	case to == column.Boolean:
		return from == column.Int
	case from == column.Timestamp, to == column.Timestamp:
		return from == column.Int || to == column.Int
	}
	return true
}
