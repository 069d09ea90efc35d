package exec_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/expression"
)

// term is an expression as it is written here and for Postgres, where values that cannot be computed are NULL too (see
// pgFunctions).
type term struct {
	ours, theirs string
	t            column.Type
}

// writer writes random expressions over columns; of each kind there is at least one column.
type writer struct {
	*rand.Rand
	cols []term
}

func (w writer) one(of ...string) string { return of[w.IntN(len(of))] }

// quoted is a text as both sides write it.
func quoted(s string) (ours, theirs string) {
	theirs = "'" + strings.ReplaceAll(s, "'", "''") + "'"
	return strings.ReplaceAll(theirs, `\`, `\\`), theirs
}

// column is one of a kind, or else what begin gives.
func (w writer) column(kind column.Kind, begin func() term) term {
	var of []term
	for _, c := range w.cols {
		if c.t.Kind == kind {
			of = append(of, c)
		}
	}
	if len(of) == 0 || w.IntN(5) == 0 {
		return begin()
	}
	return of[w.IntN(len(of))]
}

func decimalOf(precision, scale uint8) column.Type {
	return column.Type{Kind: column.Decimal, Precision: precision, Scale: scale}
}

// cast is what theirs has to do where ours casts, by hand or to a common type.
func (x term) cast(to column.Type) term {
	if x.t == to {
		return x
	}
	y := term{ours: x.ours, t: to}
	numeric := fmt.Sprintf("(%s)::numeric", x.theirs)
	if x.t.Kind == column.Float { // which Postgres would round to 15 digits
		numeric = fmt.Sprintf("f_exact((%s)::%s)", x.theirs, map[uint8]string{32: "real", 64: "float8"}[x.t.Bits])
	}
	switch to.Kind {
	case column.Int:
		least, most := int64(-1<<63), int64(1<<63-1)
		switch {
		case to.Unsigned && to.Bits < 64:
			least, most = 0, 1<<to.Bits-1
		case to.Unsigned:
			least = 0
		case to.Bits < 64:
			least, most = -1<<(to.Bits-1), 1<<(to.Bits-1)-1
		}
		switch x.t.Kind {
		case column.Float:
			numeric = fmt.Sprintf("f_round((%s)::float8)", x.theirs)
		case column.Text:
			numeric = fmt.Sprintf("t_int(%s)", x.theirs)
		case column.Boolean:
			numeric = fmt.Sprintf("(%s)::int::numeric", x.theirs)
		case column.Timestamp:
			numeric = fmt.Sprintf("floor((%s)::numeric / 1000)", x.theirs)
		case column.Decimal:
			numeric = fmt.Sprintf("round((%s)::numeric)", x.theirs)
		}
		y.theirs = fmt.Sprintf("i_chk(%s, %d, %d)", numeric, least, most)
	case column.Float:
		y.theirs = fmt.Sprintf("(%s)::float8", x.theirs)
		if x.t.Kind == column.Text {
			y.theirs = fmt.Sprintf("t_float(%s)", x.theirs)
		}
		if to.Bits == 32 {
			y.theirs = fmt.Sprintf("f_small(%s)", y.theirs)
		}
	case column.Decimal:
		if x.t.Kind == column.Text {
			numeric = fmt.Sprintf("t_numeric(%s)", x.theirs)
		}
		y.theirs = fmt.Sprintf("d_chk(%s, %d, %d)", numeric, to.Precision, to.Scale)
	case column.Text:
		y.theirs = fmt.Sprintf("(%s)::text", x.theirs)
	case column.Boolean:
		y.theirs = fmt.Sprintf("((%s) <> 0)", x.theirs)
	case column.Timestamp:
		y.theirs = fmt.Sprintf("at_chk((%s)::numeric * 1000)", x.theirs)
	default:
		y.theirs = x.theirs
	}
	return y
}

// castTo is CAST as it is written.
func (x term) castTo(to column.Type) term {
	y := x.cast(to)
	y.ours = fmt.Sprintf("CAST(%s AS %s)", x.ours, to)
	if x.t == to {
		y.theirs = x.theirs
	}
	return y
}

// common has both sides of one type.
func common(x, y term) (term, term) {
	t, ok := expression.Common(x.t, y.t)
	if !ok {
		panic(fmt.Sprintf("%v and %v", x, y))
	}
	return x.cast(t), y.cast(t)
}

// reckon is l op r of numbers.
func reckon(l, r term, op string) term {
	ours := "(" + l.ours + " " + op + " " + r.ours + ")"
	name := map[string]string{"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod"}[op]
	t, _ := expression.Common(l.t, r.t)
	switch {
	case t.Kind == column.Float || op == "/" && t.Kind == column.Decimal:
		t = column.Float64Type
		l, r = l.cast(t), r.cast(t)
		return term{ours, fmt.Sprintf("f_%s((%s)::float8, (%s)::float8)", name, l.theirs, r.theirs), t}
	case t.Kind == column.Decimal && op == "*":
		scale := l.t.Scale + r.t.Scale
		return term{ours, fmt.Sprintf("d_chk((%s)::numeric * (%s)::numeric, 18, %d)", l.theirs, r.theirs, scale),
			decimalOf(18, scale)}
	case t.Kind == column.Decimal:
		l, r = l.cast(t), r.cast(t)
		if op == "%" {
			return term{ours, fmt.Sprintf("mod(%s, NULLIF(%s, 0))", l.theirs, r.theirs), t}
		}
		return term{ours, fmt.Sprintf("d_chk(%s %s %s, 18, %d)", l.theirs, op, r.theirs, t.Scale), t}
	}
	return term{ours, fmt.Sprintf("i_%s(%s, %s)", name, l.theirs, r.theirs), column.Int64Type}
}

// of writes an expression of a kind.
func (w writer) of(kind column.Kind, depth int) term {
	switch kind {
	case column.Int:
		return w.whole(depth)
	case column.Float:
		return w.float(depth)
	case column.Decimal:
		return w.decimal(depth)
	case column.Text:
		return w.text(depth)
	case column.Timestamp:
		return w.time(depth)
	}
	return w.condition(depth)
}

var (
	numbers = []column.Kind{column.Int, column.Int, column.Float, column.Decimal}
	kinds   = []column.Kind{column.Int, column.Float, column.Decimal, column.Text, column.Boolean, column.Timestamp}
	ints    = []column.Type{column.Int64Type, {Kind: column.Int, Bits: 8}, {Kind: column.Int, Bits: 32},
		{Kind: column.Int, Bits: 16, Unsigned: true}, {Kind: column.Int, Bits: 64, Unsigned: true}}
	floats   = []column.Type{column.Float64Type, column.Float64Type, {Kind: column.Float, Bits: 32}}
	decimals = []column.Type{decimalOf(12, 3), decimalOf(5, 2), decimalOf(18, 6), decimalOf(9, 0)}
)

func pick[T any](w writer, of []T) T { return of[w.IntN(len(of))] }

func (w writer) whole(depth int) term {
	if depth <= 0 {
		return w.column(column.Int, func() term {
			n := pick(w, []string{"0", "1", "7", "-3", "1000", "9223372036854775807", "-9007199254740993"})
			return term{n, "(" + n + ")::bigint", column.Int64Type}
		})
	}
	x := w.whole(depth - 1)
	switch w.IntN(14) {
	case 0, 1, 2, 3:
		return reckon(x, w.whole(depth-1), w.one("+", "-", "*", "/", "%"))
	case 4, 5, 6:
		return w.branches(column.Int, depth)
	case 7:
		return term{"ABS(" + x.ours + ")", fmt.Sprintf("i_chk(abs((%s)::numeric), 0, 9223372036854775807)", x.theirs),
			column.Int64Type}
	case 8:
		return term{"(- " + x.ours + ")", fmt.Sprintf("i_sub(0, %s)", x.theirs), column.Int64Type}
	case 9, 10, 11:
		from := pick(w, []column.Kind{column.Int, column.Float, column.Decimal, column.Text, column.Boolean,
			column.Timestamp})
		return w.of(from, depth-1).castTo(pick(w, ints))
	case 12:
		k := w.text(depth - 1)
		return term{"LENGTH(" + k.ours + ")", "length(" + k.theirs + ")::bigint", column.Int64Type}
	}
	return term{w.one("ROUND", "FLOOR", "CEIL") + "(" + x.ours + ")", x.theirs, x.t}
}

func (w writer) float(depth int) term {
	if depth <= 0 {
		return w.column(column.Float, func() term {
			n := pick(w, []string{"0e0", "0.1", "2.5", "1e300", "1e-300", "-7.25"})
			return term{n, "(" + n + ")::float8", column.Float64Type}
		})
	}
	x := w.float(depth - 1)
	wide := "(" + x.theirs + ")::float8"
	switch w.IntN(14) {
	case 0, 1, 2:
		return reckon(x, w.of(pick(w, numbers), depth-1), w.one("+", "-", "*", "/"))
	case 3:
		return reckon(w.decimal(depth-1), w.decimal(depth-1), "/")
	case 4, 5:
		return w.branches(column.Float, depth)
	case 6, 7, 8:
		from := pick(w, []column.Kind{column.Int, column.Float, column.Decimal, column.Text})
		return w.of(from, depth-1).castTo(pick(w, floats))
	case 9:
		return term{"ABS(" + x.ours + ")", "abs(" + wide + ")", column.Float64Type}
	case 10:
		f := w.one("FLOOR", "CEIL", "ROUND")
		return term{f + "(" + x.ours + ")", f + "(" + wide + ")", column.Float64Type}
	case 11:
		return term{"SQRT(" + x.ours + ")", "f_sqrt(" + wide + ")", column.Float64Type}
	case 12:
		a, b := w.time(depth-1), w.time(depth-1)
		return term{"(" + a.ours + " - " + b.ours + ")", "((" + a.theirs + " - " + b.theirs + ")::float8 / 1000)",
			column.Float64Type}
	}
	return x
}

func (w writer) decimal(depth int) term {
	if depth <= 0 {
		return w.column(column.Decimal, func() term {
			n, t := w.one("0", "1.005", "-2.5", "99999.994"), pick(w, decimals[:1])
			return term{"CAST('" + n + "' AS " + t.String() + ")", fmt.Sprintf("round(%s, %d)", n, t.Scale), t}
		})
	}
	x := w.decimal(depth - 1)
	switch w.IntN(10) {
	case 0, 1, 2:
		y := w.of(w.oneKind(column.Decimal, column.Decimal, column.Int), depth-1)
		ops := []string{"+", "-", "%"}
		if x.t.Scale+y.t.Scale <= 9 {
			ops = append(ops, "*")
		}
		return reckon(x, y, pick(w, ops))
	case 3, 4:
		return w.branches(column.Decimal, depth)
	case 5, 6, 7:
		from := w.of(w.oneKind(column.Int, column.Decimal, column.Float, column.Text), depth-1)
		return from.castTo(pick(w, decimals))
	case 8:
		return term{"ABS(" + x.ours + ")", "abs(" + x.theirs + ")", x.t}
	}
	return term{"ROUND(" + x.ours + ")", fmt.Sprintf("d_chk(%s, 18, 0)", x.theirs), decimalOf(18, 0)}
}

func (w writer) oneKind(of ...column.Kind) column.Kind { return of[w.IntN(len(of))] }

func (w writer) text(depth int) term {
	if depth <= 0 {
		return w.column(column.Text, func() term {
			o, t := quoted(w.one("a", "", "x'y", "ö", `\%`, "12"))
			return term{o, t + "::text", column.TextType}
		})
	}
	x := w.text(depth - 1)
	switch w.IntN(9) {
	case 8:
		y := w.text(depth - 1)
		return term{"CONCAT(" + x.ours + ", " + y.ours + ")", "concat(" + x.theirs + ", " + y.theirs + ")", column.TextType}
	case 0, 1:
		y := w.text(depth - 1)
		return term{"(" + x.ours + " || " + y.ours + ")", "(" + x.theirs + " || " + y.theirs + ")", column.TextType}
	case 2, 3:
		return w.branches(column.Text, depth)
	case 4, 5:
		return w.of(w.oneKind(column.Int, column.Decimal, column.Boolean), depth-1).castTo(column.TextType)
	}
	return x
}

func (w writer) time(depth int) term {
	x := w.column(column.Timestamp, func() term {
		return term{"TIMESTAMP '1970-01-01T00:30:00.000001Z'", "(1800000001)::bigint", column.TimestampType}
	})
	if depth <= 0 {
		return x
	}
	switch w.IntN(5) {
	case 0, 1:
		n, op := w.of(pick(w, numbers), depth-1), w.one("+", "-")
		return term{"(" + x.ours + " " + op + " " + n.ours + ")",
			fmt.Sprintf("at_shift(%s, %s(%s)::float8)", x.theirs, op, n.theirs), column.TimestampType}
	case 2:
		return w.branches(column.Timestamp, depth)
	case 3:
		return w.whole(depth - 1).castTo(column.TimestampType)
	}
	return x
}

// branches are CASE, COALESCE and NULLIF.
func (w writer) branches(kind column.Kind, depth int) term {
	x, y := w.of(kind, depth-1), w.of(kind, depth-1)
	switch w.IntN(5) {
	case 0:
		l, r := common(x, y)
		return term{"NULLIF(" + x.ours + ", " + y.ours + ")",
			"CASE WHEN " + l.theirs + " = " + r.theirs + " THEN NULL ELSE " + x.theirs + " END", x.t}
	case 1:
		l, r := common(x, y)
		return term{"COALESCE(" + x.ours + ", " + y.ours + ")", "COALESCE(" + l.theirs + ", " + r.theirs + ")", l.t}
	case 2: // without ELSE
		c := w.condition(depth - 1)
		return term{"(CASE WHEN " + c.ours + " THEN " + x.ours + " END)",
			"(CASE WHEN " + c.theirs + " THEN " + x.theirs + " END)", x.t}
	case 3:
		of := pick(w, kinds)
		what, is := w.of(of, depth-1), w.of(of, depth-1)
		a, b := common(what, is)
		l, r := common(x, y)
		return term{fmt.Sprintf("(CASE %s WHEN %s THEN %s ELSE %s END)", what.ours, is.ours, x.ours, y.ours),
			fmt.Sprintf("(CASE WHEN %s = %s THEN %s ELSE %s END)", a.theirs, b.theirs, l.theirs, r.theirs), l.t}
	}
	c, d := w.condition(depth-1), w.condition(depth-1)
	l, r := common(x, y)
	return term{fmt.Sprintf("(CASE WHEN %s THEN %s WHEN %s THEN %s END)", c.ours, x.ours, d.ours, y.ours),
		fmt.Sprintf("(CASE WHEN %s THEN %s WHEN %s THEN %s END)", c.theirs, l.theirs, d.theirs, r.theirs), l.t}
}

func (w writer) condition(depth int) term {
	is := func(ours, theirs string) term { return term{"(" + ours + ")", "(" + theirs + ")", column.BooleanType} }
	if depth <= 0 && w.IntN(2) == 0 {
		return w.column(column.Boolean, func() term { return is("1 = 1", "1 = 1") })
	}
	if depth > 0 && w.IntN(3) == 0 {
		a, b := w.condition(depth-1), w.condition(depth-1)
		switch op := w.one(" AND ", " OR ", "NOT", "CASE"); op {
		case "NOT":
			return is("NOT "+a.ours, "NOT "+a.theirs)
		case "CASE":
			c := w.condition(depth - 1)
			return is("CASE WHEN "+a.ours+" THEN "+b.ours+" ELSE "+c.ours+" END",
				"CASE WHEN "+a.theirs+" THEN "+b.theirs+" ELSE "+c.theirs+" END")
		default:
			return is(a.ours+op+b.ours, a.theirs+op+b.theirs)
		}
	}
	kind := pick(w, kinds)
	other := kind
	if kind == column.Int || kind == column.Float || kind == column.Decimal {
		other = pick(w, numbers)
	}
	x, y := w.of(kind, depth-1), w.of(other, depth-1)
	l, r := common(x, y)
	switch w.IntN(8) {
	case 0:
		return is(x.ours+" IS NULL", x.theirs+" IS NULL")
	case 1:
		return is(x.ours+" IS NOT NULL", x.theirs+" IS NOT NULL")
	case 2:
		z := w.of(kind, depth-1)
		m, n := common(x, z)
		not, and := w.one("", "NOT "), " OR "
		both := fmt.Sprintf("%s = %s%s%s = %s", l.theirs, r.theirs, and, m.theirs, n.theirs)
		if not != "" {
			both = "NOT (" + both + ")"
		}
		return is(fmt.Sprintf("%s %sIN (%s, %s)", x.ours, not, y.ours, z.ours), both)
	case 3:
		if kind == column.Boolean {
			break
		}
		z := w.of(kind, depth-1)
		m, n := common(x, z)
		return is(fmt.Sprintf("%s BETWEEN %s AND %s", x.ours, y.ours, z.ours),
			fmt.Sprintf("%s >= %s AND %s <= %s", l.theirs, r.theirs, m.theirs, n.theirs))
	case 4:
		if kind != column.Text {
			break
		}
		o, t := quoted(w.one("%", "", "_", "a%", "%b", "%ö%", "_%_", `%\%%`, "%1_"))
		return is(x.ours+" LIKE "+o, x.theirs+" LIKE "+t)
	}
	op := w.one(" = ", " <> ", " < ", " <= ", " > ", " >= ")
	return is(x.ours+op+y.ours, l.theirs+op+r.theirs)
}

// pgFunctions reckon in Postgres as streams do: what has no value is NULL.
const pgFunctions = `
CREATE FUNCTION i_chk(n numeric, low numeric, high numeric) RETURNS bigint LANGUAGE sql IMMUTABLE AS
	'SELECT CASE WHEN n BETWEEN low AND high THEN n::bigint END';
CREATE FUNCTION i_add(a bigint, b bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
	'SELECT i_chk(a::numeric + b, -9223372036854775808, 9223372036854775807)';
CREATE FUNCTION i_sub(a bigint, b bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
	'SELECT i_chk(a::numeric - b, -9223372036854775808, 9223372036854775807)';
CREATE FUNCTION i_mul(a bigint, b bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
	'SELECT i_chk(a::numeric * b, -9223372036854775808, 9223372036854775807)';
CREATE FUNCTION i_div(a bigint, b bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
	'SELECT i_chk(div(a::numeric, NULLIF(b, 0)::numeric), -9223372036854775808, 9223372036854775807)';
CREATE FUNCTION i_mod(a bigint, b bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
	'SELECT mod(a::numeric, NULLIF(b, 0)::numeric)::bigint';
CREATE FUNCTION d_chk(n numeric, digits int, scale int) RETURNS numeric LANGUAGE sql IMMUTABLE AS
	'SELECT CASE WHEN abs(round(n, scale)) < 10::numeric ^ (digits - scale) THEN round(n, scale) END';
CREATE FUNCTION f_exact(x float8) RETURNS numeric LANGUAGE sql IMMUTABLE AS
	$$SELECT CASE WHEN abs(x) < 'Infinity' THEN x::text::numeric END$$;
CREATE FUNCTION f_exact(x real) RETURNS numeric LANGUAGE sql IMMUTABLE AS
	$$SELECT CASE WHEN abs(x) < 'Infinity' THEN x::text::numeric END$$;
CREATE FUNCTION f_round(x float8) RETURNS numeric LANGUAGE sql IMMUTABLE AS
	'SELECT CASE WHEN x >= -9223372036854775808 AND x < 9223372036854775808 THEN round(x)::bigint::numeric END';
CREATE FUNCTION f_small(x float8) RETURNS real LANGUAGE plpgsql IMMUTABLE AS $$BEGIN
	RETURN x::real;
EXCEPTION WHEN numeric_value_out_of_range THEN
	RETURN CASE WHEN abs(x) < 1 THEN 0 END;
END$$;
CREATE FUNCTION f_add(a float8, b float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$BEGIN
	RETURN a + b;
EXCEPTION WHEN numeric_value_out_of_range THEN RETURN NULL;
END$$;
CREATE FUNCTION f_sub(a float8, b float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$BEGIN
	RETURN a - b;
EXCEPTION WHEN numeric_value_out_of_range THEN RETURN NULL;
END$$;
CREATE FUNCTION f_mul(a float8, b float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$BEGIN
	RETURN a * b;
EXCEPTION WHEN numeric_value_out_of_range THEN
	RETURN CASE WHEN SQLERRM LIKE '%underflow%' THEN 0 END;
END$$;
CREATE FUNCTION f_div(a float8, b float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$BEGIN
	RETURN CASE WHEN b <> 0 OR a = 'NaN' THEN a / b END;
EXCEPTION WHEN numeric_value_out_of_range THEN
	RETURN CASE WHEN SQLERRM LIKE '%underflow%' THEN 0 END;
END$$;
CREATE FUNCTION f_sqrt(x float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS
	'SELECT CASE WHEN x >= 0 THEN sqrt(x) END';
CREATE FUNCTION t_int(x text) RETURNS numeric LANGUAGE sql IMMUTABLE AS
	$$SELECT CASE WHEN x ~ '^\s*[-+]?[0-9]+\s*$' THEN x::numeric END$$;
CREATE FUNCTION t_numeric(x text) RETURNS numeric LANGUAGE sql IMMUTABLE AS
	$$SELECT CASE WHEN x ~ '^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?\s*$' THEN x::numeric END$$;
CREATE FUNCTION t_float(x text) RETURNS float8 LANGUAGE sql IMMUTABLE AS
	$$SELECT CASE WHEN t_numeric(x) IS NOT NULL OR lower(btrim(x)) IN ('nan', 'infinity', '-infinity', 'inf')
		THEN x::float8 END$$;
CREATE FUNCTION at_chk(n numeric) RETURNS bigint LANGUAGE sql IMMUTABLE AS
	'SELECT i_chk(n, -62135596800000000, 253402300799999999)';
CREATE FUNCTION at_shift(a bigint, ms float8) RETURNS bigint LANGUAGE sql IMMUTABLE AS
	$$SELECT CASE WHEN abs(ms) < 1e15 THEN at_chk(a + round(ms * 1000)::bigint) END$$;`
