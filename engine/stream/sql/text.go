package sql

import (
	"strconv"
	"strings"
	"unicode"
)

// Text is an expression as it could be written; parsing it gives the same tree.
func Text(e Expr) string {
	var w writer
	write(&w, e)
	return w.String()
}

// Key is equal for two expressions where they mean the same: as Text, with names, and no texts, in one case.
func Key(e Expr) string {
	w := writer{fold: true}
	write(&w, e)
	return w.String()
}

// writer writes expressions; with fold all names that are the Same are one.
type writer struct {
	strings.Builder
	fold bool
}

// name is a name in back quotes where it needs them.
func (w *writer) name(n string) string {
	if w.fold {
		n = strings.Map(folded, n)
	}
	return quote(n)
}

// folded is the least of the characters that differ from one only in case.
func folded(r rune) rune {
	least := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		least = min(least, other)
	}
	return least
}

// quote is a name in back quotes where it needs them.
func quote(n string) string {
	p := &lexer{source: n}
	t, err := p.next()
	if err == nil && t.kind == word && t.end == len(n) && !reserved[strings.ToUpper(n)] &&
		!SameName(n, "TRUE") && !SameName(n, "FALSE") && !SameName(n, "NULL") {
		return n
	}
	return "`" + strings.ReplaceAll(n, "`", "``") + "`"
}

func write(b *writer, e Expr) {
	switch e := e.(type) {
	case *Literal:
		b.WriteString(literal(e.Value))
	case *Column:
		if e.Table.Text != "" {
			b.WriteString(b.name(e.Table.Text) + ".")
		}
		b.WriteString(b.name(e.Name.Text))
	case *Unary:
		b.WriteString("(" + e.Op + " ")
		// A number takes the sign that stands before it as its own.
		if _, ok := e.X.(*Literal); ok && e.Op == "-" {
			b.WriteString("(")
			write(b, e.X)
			b.WriteString(")")
		} else {
			write(b, e.X)
		}
		b.WriteString(")")
	case *Binary:
		b.WriteString("(")
		write(b, e.L)
		b.WriteString(" " + e.Op + " ")
		write(b, e.R)
		b.WriteString(")")
	case *IsNull:
		b.WriteString("(")
		write(b, e.X)
		b.WriteString(map[bool]string{false: " IS NULL)", true: " IS NOT NULL)"}[e.Not])
	case *In:
		b.WriteString("(")
		write(b, e.X)
		b.WriteString(map[bool]string{false: " IN ", true: " NOT IN "}[e.Not])
		list(b, e.List)
		b.WriteString(")")
	case *Case:
		writeCase(b, e)
	case *Cast:
		b.WriteString("CAST(")
		write(b, e.X)
		b.WriteString(" AS " + e.Type.text(b.name) + ")")
	case *Call:
		b.WriteString(b.name(e.Name.Text))
		if e.Star {
			b.WriteString("(*)")
		} else {
			list(b, e.Args)
		}
		if e.Over != nil {
			b.WriteString(" OVER (")
			for i, x := range e.Over.Partition {
				b.WriteString(map[bool]string{true: "PARTITION BY ", false: ", "}[i == 0])
				write(b, x)
			}
			b.WriteString(")")
		}
	}
}

func writeCase(b *writer, e *Case) {
	b.WriteString("CASE")
	if e.Operand != nil {
		b.WriteString(" ")
		write(b, e.Operand)
	}
	for _, w := range e.When {
		b.WriteString(" WHEN ")
		write(b, w.If)
		b.WriteString(" THEN ")
		write(b, w.Then)
	}
	if e.Else != nil {
		b.WriteString(" ELSE ")
		write(b, e.Else)
	}
	b.WriteString(" END")
}

func list(b *writer, all []Expr) {
	b.WriteString("(")
	for i, x := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		write(b, x)
	}
	b.WriteString(")")
}

// String is the type as it could be written.
func (t TypeName) String() string { return t.text(quote) }

func (t TypeName) text(name func(string) string) string {
	s := name(t.Name.Text)
	for i, n := range t.Args {
		s += map[bool]string{true: "(", false: ", "}[i == 0] + strconv.FormatInt(n, 10)
	}
	if len(t.Args) > 0 {
		s += ")"
	}
	return s
}

func literal(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case bool:
		return strings.ToUpper(strconv.FormatBool(v))
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		s := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
		return s
	case string:
		return "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(v) + "'"
	}
	return "NULL"
}

// Rewrite returns e with each part replaced by what change returns for it, nil to go on into its parts. The tree that
// it was made from is left alone.
func Rewrite(e Expr, change func(Expr) (Expr, error)) (Expr, error) {
	if e == nil {
		return nil, nil
	}
	if to, err := change(e); to != nil || err != nil {
		return to, err
	}
	var failed error
	in := func(x Expr) Expr {
		if failed != nil || x == nil {
			return x
		}
		var to Expr
		to, failed = Rewrite(x, change)
		return to
	}
	all := func(list []Expr) []Expr {
		var to []Expr
		for _, x := range list {
			to = append(to, in(x))
		}
		return to
	}
	var to Expr
	switch e := e.(type) {
	case *Unary:
		to = &Unary{Op: e.Op, X: in(e.X), At: e.At}
	case *Binary:
		to = &Binary{Op: e.Op, L: in(e.L), R: in(e.R), At: e.At}
	case *IsNull:
		to = &IsNull{X: in(e.X), Not: e.Not, At: e.At}
	case *In:
		to = &In{X: in(e.X), List: all(e.List), Not: e.Not, At: e.At}
	case *Cast:
		to = &Cast{X: in(e.X), Type: e.Type, At: e.At}
	case *Call:
		c := *e
		c.Args = all(e.Args)
		if e.Over != nil {
			c.Over = &Over{Partition: all(e.Over.Partition), At: e.Over.At}
		}
		to = &c
	case *Case:
		c := &Case{Operand: in(e.Operand), Else: in(e.Else), At: e.At}
		for _, w := range e.When {
			c.When = append(c.When, When{If: in(w.If), Then: in(w.Then)})
		}
		to = c
	default:
		to = e
	}
	return to, failed
}
