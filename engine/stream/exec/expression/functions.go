package expression

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// functions by name, with the numbers of arguments they take.
var functions = map[string]struct{ least, most int }{
	"ABS": {1, 1}, "FLOOR": {1, 1}, "CEIL": {1, 1}, "ROUND": {1, 1}, "SQRT": {1, 1}, "LOWER": {1, 1}, "UPPER": {1, 1},
	"LENGTH": {1, 1}, "CONCAT": {1, 100}, "COALESCE": {1, 100}, "NULLIF": {2, 2},
}

// known are all names that a call can have, for suggestions.
var known = []string{"ABS", "FLOOR", "CEIL", "ROUND", "SQRT", "LOWER", "UPPER", "LENGTH", "CONCAT", "COALESCE",
	"NULLIF", "COUNT", "SUM", "AVG", "MIN", "MAX", "STDDEV", "QUANTILE", "LAST", "LAG"}

func (s Scope) call(c *sql.Call) (bound, error) {
	name := strings.ToUpper(c.Name.Text)
	f, ok := functions[name]
	if !ok && column.IsType(name) && len(c.Args) == 1 && c.Over == nil {
		return s.castTo(c.Args[0], sql.TypeName{Name: c.Name}, c.Name.At)
	}
	if !ok {
		names := append(slices.Clone(known), column.TypeNames...)
		if slices.Contains(names, name) {
			return bound{}, s.errorf(c.Name.At, "", "%s can not stand here", name)
		}
		return bound{}, s.errorf(c.Name.At, sql.Suggest(c.Name.Text, names...), "there is no function %s", c.Name.Text)
	}
	if c.Over != nil {
		return bound{}, s.errorf(c.Over.At, "only LAG has OVER", "%s has no OVER", name)
	}
	if c.Star || len(c.Args) < f.least || len(c.Args) > f.most {
		return bound{}, s.errorf(c.Name.At, "", "%s takes %d to %d arguments", name, f.least, f.most)
	}
	var args []bound
	for _, a := range c.Args {
		b, err := s.bind(a)
		if err != nil {
			return b, err
		}
		args = append(args, b)
	}
	switch name {
	case "COALESCE":
		return s.coalesce(args, c)
	case "NULLIF":
		x, once := share(args[0])
		equal, err := s.compare("=", x, args[1], c.Name.At)
		n := &caseOf{tests: []node{equal.node}, results: []node{literal(nil).node, x.node}, t: x.t,
			faults: s.Faults}
		return bound{node: &sharedScope{once, n}, t: x.t}, err
	case "CONCAT":
		return s.concat(args, c.Name.At, true)
	case "LOWER", "UPPER", "LENGTH":
		if args[0].t.Kind != column.Text {
			return args[0], s.errorf(c.Name.At, "", "%s takes a text, not %s", name, args[0].t)
		}
		t := column.TextType
		if name == "LENGTH" {
			t = column.Int64Type
		}
		return bound{node: &textFunc{x: args[0].node, name: name, t: t}, t: t}, nil
	}
	return s.numberFunc(name, args[0], c.Name.At)
}

func (s Scope) coalesce(args []bound, c *sql.Call) (bound, error) {
	t := args[0].t
	for i, a := range args {
		both, ok := Common(t, a.t)
		if !ok {
			return a, s.errorf(c.Args[i].Pos(), "cast one of them", "COALESCE has one type, not %s and %s", t, a.t)
		}
		t = both
	}
	n := &caseOf{t: t, faults: s.Faults}
	for i, a := range args {
		a, err := s.cast(a, t, c.Args[i].Pos())
		if err != nil {
			return a, err
		}
		n.tests, n.results = append(n.tests, &isNull{x: a.node, not: true}), append(n.results, a.node)
	}
	n.results = append(n.results, literal(nil).node)
	return bound{node: n, t: t}, nil
}

func (s Scope) concat(args []bound, at int, without bool) (bound, error) {
	n := &concat{without: without, faults: s.Faults}
	for _, a := range args {
		a, err := s.cast(a, column.TextType, at)
		if err != nil {
			return a, err
		}
		n.parts = append(n.parts, a.node)
	}
	return bound{node: n, t: column.TextType}, nil
}

// join is l || r. Where l is joined already it gets another part: what is joined from many is copied once, and not for
// each ||.
func (s Scope) join(l, r bound, at int) (bound, error) {
	c, is := l.node.(*concat)
	if !is || c.without {
		return s.concat([]bound{l, r}, at, false)
	}
	r, err := s.cast(r, column.TextType, at)
	if err != nil {
		return r, err
	}
	c.parts = append(c.parts, r.node)
	return l, nil
}

// maxText is how long a text may become before the last part of it, so that || does not fill the memory.
const maxText = 1 << 20

// concat is NULL where a part is, or goes without that part, as the function does in Postgres; a text that is too long,
// or has no room beside those of other rows, is NULL and counted as an overflow.
type concat struct {
	parts   []node
	without bool
	values  []*column.Vec
	out     result
	faults  *Faults
}

func (n *concat) eval(in *input, on []bool) *column.Vec {
	n.values = n.values[:0]
	for _, p := range n.parts {
		n.values = append(n.values, p.eval(in, on))
	}
	n.out.Reset(column.TextType)
	for i := range in.N {
		begin, null := len(n.out.Bytes), !isActive(on, i)
		for _, v := range n.values {
			if v.Null[i] && n.without {
				continue
			}
			if null = null || v.Null[i]; null {
				break
			}
			if so := len(n.out.Bytes); so-begin > maxText || so+len(v.Text(i)) > column.MaxText {
				null = true
				n.faults.Overflow++
				break
			}
			in.room(&n.out, len(v.Text(i)))
			n.out.Bytes = append(n.out.Bytes, v.Text(i)...)
		}
		if null {
			n.out.Bytes = n.out.Bytes[:begin]
		}
		n.out.Ends, n.out.Null = append(n.out.Ends, int32(len(n.out.Bytes))), append(n.out.Null, null)
	}
	return in.done(&n.out, 0)
}

// textFunc is LOWER, UPPER or LENGTH, which counts characters.
type textFunc struct {
	x    node
	name string
	t    column.Type
	out  result
}

func (n *textFunc) eval(in *input, on []bool) *column.Vec {
	x := n.x.eval(in, on)
	n.out.Reset(n.t)
	for i := range in.N {
		in.check()
		switch {
		case x.Null[i]:
			n.out.AppendNull()
		case n.name == "LENGTH":
			n.out.AppendInt(int64(utf8.RuneCount(x.Text(i))))
		case n.name == "LOWER":
			n.text(in, bytes.ToLower(x.Text(i)))
		default:
			n.text(in, bytes.ToUpper(x.Text(i)))
		}
	}
	return in.done(&n.out, 0)
}

func (n *textFunc) text(in *input, of []byte) {
	in.room(&n.out, len(of))
	n.out.AppendText(of)
}

// numberFunc binds functions of one number. ROUND is half to even for floats and half away from zero for decimals.
func (s Scope) numberFunc(name string, x bound, at int) (bound, error) {
	if x.t.Kind == column.Unknown {
		var err error
		if x, err = s.cast(x, column.Float64Type, at); err != nil {
			return x, err
		}
	}
	if !x.t.Numeric() {
		return x, s.errorf(at, "", "%s takes a number, not %s", name, x.t)
	}
	switch {
	case name == "ABS" && x.t.Kind != column.Float:
		if x.t.Kind == column.Int { // of -128 it has no room in INT8
			var err error
			if x, err = s.cast(x, column.Int64Type, at); err != nil {
				return x, err
			}
		}
		zero, err := s.cast(literal(int64(0)), x.t, at)
		if err != nil {
			return x, err
		}
		negative, err := s.compare("<", x, zero, at)
		if err != nil {
			return x, err
		}
		minus, err := s.arithmetic("-", zero, x, at)
		n := &caseOf{tests: []node{negative.node}, results: []node{minus.node, x.node}, t: x.t,
			faults: s.Faults}
		return bound{node: n, t: x.t}, err
	case name == "ROUND" && x.t.Kind == column.Decimal:
		return s.cast(x, column.Type{Kind: column.Decimal, Precision: column.MaxPrecision}, at)
	case name != "SQRT" && x.t.Kind == column.Int:
		return x, nil
	}
	x, err := s.cast(x, column.Float64Type, at)
	if err != nil {
		return x, err
	}
	f := map[string]func(float64) float64{"ABS": math.Abs, "FLOOR": math.Floor, "CEIL": math.Ceil,
		"ROUND": math.RoundToEven, "SQRT": math.Sqrt}[name]
	return bound{node: &floatFunc{x: x.node, f: f, faults: s.Faults}, t: column.Float64Type}, nil
}

// floatFunc applies a function; that which has no value, as the root of -1, is NULL and counted as an overflow.
type floatFunc struct {
	x      node
	f      func(float64) float64
	out    result
	faults *Faults
}

func (n *floatFunc) eval(in *input, on []bool) *column.Vec {
	x := n.x.eval(in, on)
	n.out.ResetSized(column.Float64Type, in.N)
	for i := range in.N {
		n.out.Null[i] = x.Null[i]
		v := n.f(x.Floats[i])
		if n.out.Floats[i] = v; !x.Null[i] && v != v && x.Floats[i] == x.Floats[i] {
			n.out.Null[i] = true
			if isActive(on, i) {
				n.faults.Overflow++
			}
		}
	}
	return in.done(&n.out, 0)
}
