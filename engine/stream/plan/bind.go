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

// Limits of windows.
const (
	maxWindow = 10 * 366 * 24 * time.Hour
	// maxOverlap is how many windows a row may be in.
	maxOverlap = 100_000
	// maxLag is how many rows LAG may go back.
	maxLag = 1_000
)

type binder struct {
	source  string
	schemas Schemas
	plan    *Plan
}

// Bind checks a SELECT. source is the text that it was parsed from. The error is a *sql.Error.
func Bind(source string, s *sql.Select, schemas Schemas) (*Plan, error) {
	b := &binder{source: source, schemas: schemas, plan: &Plan{Faults: &expression.Faults{}, Drop: s.DropOnOverflow}}
	root, err := b.query(s)
	if err != nil {
		return nil, err
	}
	b.plan.Root = root
	b.plan.Columns = append([]column.Column(nil), root.Columns()...)
	return b.plan, b.settings(s)
}

// The setting of a query: how many MiB it may hold.
const (
	memorySetting = "QUERY.MEMORY_MIB"
	maxMemoryMiB  = 1 << 16
)

// settings checks those of a query.
func (b *binder) settings(s *sql.Select) error {
	wrong := func(at int, hint, format string, args ...any) error {
		return sql.Errorf(sql.InvalidConfig, b.source, at, hint, format, args...)
	}
	for _, set := range s.Settings {
		mib, whole := set.Value.(int64)
		switch {
		case set.Path != memorySetting:
			return wrong(set.At, "there is "+memorySetting, "a query has no setting %s", set.Path)
		case !whole:
			return wrong(set.At, "SET(256 AS "+memorySetting+")", "%s is a whole number", memorySetting)
		case mib < 1 || mib > maxMemoryMiB:
			return wrong(set.At, "", "%s is between 1 and %d", memorySetting, maxMemoryMiB)
		case b.plan.Memory > 0:
			return wrong(set.At, "", "%s is given twice", memorySetting)
		}
		b.plan.Memory = int(mib) << 20
	}
	return nil
}

func (b *binder) errorf(at int, hint, format string, args ...any) error {
	return sql.Errorf(sql.BinderError, b.source, at, hint, format, args...)
}

// impossible is the error of a query that says what it means, and that no plan carries out within bounds.
func (b *binder) impossible(at int, hint, format string, args ...any) error {
	return sql.Errorf(sql.OptimizerError, b.source, at, hint, format, args...)
}

func (b *binder) scope(columns []column.Column) expression.Scope {
	return expression.Scope{Source: b.source, Columns: columns, Faults: b.plan.Faults}
}

// input is a step with the columns under the names that the query can use.
type input struct {
	node Node
	cols []column.Column
}

func (b *binder) table(t sql.Table) (input, error) {
	if t.Query != nil {
		n, err := b.query(t.Query)
		if err != nil {
			return input{}, err
		}
		return input{n, renamed(n.Columns(), t.Alias.Text)}, nil
	}
	cols, ok := b.schemas.Schema(t.Name.Text)
	if !ok {
		hint := sql.Suggest(t.Name.Text, b.schemas.Names()...)
		if hint == "" {
			hint = "CREATE LOGICAL SOURCE makes one"
		}
		return input{}, b.errorf(t.Name.At, hint, "there is no source %s", t.Name.Text)
	}
	s := &Scan{Index: len(b.plan.Scans), Source: t.Name.Text, At: t.Name.At, Columns: cols, Time: -1}
	b.plan.Scans = append(b.plan.Scans, s)
	alias := t.Alias.Text
	if alias == "" {
		alias = t.Name.Text
	}
	return input{&scanNode{s}, renamed(cols, alias)}, nil
}

func renamed(cols []column.Column, table string) []column.Column {
	to := append([]column.Column(nil), cols...)
	for i := range to {
		to[i].Table = table
	}
	return to
}

// query binds a SELECT and its subqueries, from the inside out.
func (b *binder) query(s *sql.Select) (Node, error) {
	in, err := b.table(s.From)
	if err != nil {
		return nil, err
	}
	if s.Join != nil {
		if in, err = b.join(s, in); err != nil {
			return nil, err
		}
	}
	if s.Where != nil {
		c, err := expression.Condition(s.Where, b.scope(in.cols))
		if err != nil {
			return nil, err
		}
		in.node = &Filter{In: in.node, Condition: c, text: sql.Text(s.Where)}
	}
	items, err := b.expand(s, in.cols)
	if err != nil {
		return nil, err
	}
	having := s.Having
	if in, items, having, err = b.lags(in, items, having); err != nil {
		return nil, err
	}
	if aggregates(items, having) || len(s.Group) > 0 || s.Window != nil && s.Join == nil {
		if in, items, having, err = b.aggregate(s, in, items, having); err != nil {
			return nil, err
		}
	} else if having != nil {
		having = alias(having, items, in.cols)
	}
	if having != nil {
		c, err := expression.Condition(having, b.scope(in.cols))
		if err != nil {
			return nil, err
		}
		in.node = &Filter{In: in.node, Condition: c, text: "HAVING " + sql.Text(s.Having)}
	}
	return b.project(in, items)
}

// item is an expression of the select list with its name, and its text as it was written.
type item struct {
	x    sql.Expr
	name string
	text string
}

// expand resolves * and names what has no name.
func (b *binder) expand(s *sql.Select, cols []column.Column) ([]item, error) {
	var items []item
	for _, i := range s.Items {
		if i.Expr != nil {
			name := i.Alias.Text
			if c, ok := i.Expr.(*sql.Column); ok && name == "" {
				name = c.Name.Text
			}
			if name == "" {
				name = fmt.Sprintf("column_%d", len(items)+1)
			}
			items = append(items, item{i.Expr, name, sql.Text(i.Expr)})
			continue
		}
		before := len(items)
		for _, c := range cols {
			if i.Table.Text == "" || sql.SameName(c.Table, i.Table.Text) {
				column := &sql.Column{Table: sql.Name{Text: c.Table, At: i.At},
					Name: sql.Name{Text: c.Name, At: i.At}}
				if c.Table == "" {
					column.Table = sql.Name{}
				}
				items = append(items, item{column, c.Name, c.Name})
			}
		}
		if len(items) == before {
			return nil, b.errorf(i.At, "", "there is no source %s", i.Table.Text)
		}
	}
	return items, nil
}

// project computes the select list.
func (b *binder) project(in input, items []item) (Node, error) {
	n := &Project{In: in.node}
	var texts []string
	scope := b.scope(in.cols)
	for i, it := range items {
		x, err := expression.Bind(it.x, scope)
		if err != nil {
			return nil, err
		}
		for _, c := range n.cols {
			if sql.SameName(c.Name, it.name) {
				return nil, b.errorf(it.x.Pos(), "name one of them with AS", "two columns are named %s", it.name)
			}
		}
		from := -1
		if c, ok := it.x.(*sql.Column); ok {
			if from, err = scope.Find(c); err != nil {
				return nil, err
			}
		}
		if x.Type.Kind == column.Unknown {
			return nil, b.errorf(it.x.Pos(), "write CAST(NULL AS TEXT)", "column %d has no type", i+1)
		}
		n.Items, n.From = append(n.Items, x), append(n.From, from)
		n.cols = append(n.cols, column.Column{Name: it.name, Type: x.Type})
		text := it.text
		if !sql.SameName(strings.Trim(text, "`"), it.name) {
			text += " AS " + it.name
		}
		texts = append(texts, text)
	}
	n.text = strings.Join(texts, ", ")
	return n, nil
}

// alias puts the expressions of the select list in place of their names, where no column has that name.
func alias(x sql.Expr, items []item, cols []column.Column) sql.Expr {
	to, err := sql.Rewrite(x, func(e sql.Expr) (sql.Expr, error) {
		c, ok := e.(*sql.Column)
		if !ok {
			return nil, nil
		}
		for _, col := range cols {
			if sql.SameName(col.Name, c.Name.Text) {
				return e, nil
			}
		}
		for _, i := range items {
			if c.Table.Text == "" && sql.SameName(i.name, c.Name.Text) {
				return i.x, nil
			}
		}
		return e, nil
	})
	if err != nil {
		return x
	}
	return to
}

// internal is a column that only the plan names.
func internal(prefix string, i, at int) *sql.Column {
	return &sql.Column{Name: sql.Name{Text: fmt.Sprintf("$%s%d", prefix, i), At: at}}
}

// lags adds a step for LAG … OVER in the select list and HAVING, if there is any. What is written twice is kept once.
func (b *binder) lags(in input, items []item, having sql.Expr) (input, []item, sql.Expr, error) {
	n := &Lag{In: in.node}
	var texts, keys []string
	cols := append([]column.Column(nil), in.cols...)
	scope := b.scope(in.cols)
	lag := func(e sql.Expr) (sql.Expr, error) {
		c, ok := e.(*sql.Call)
		if !ok || !sql.SameName(c.Name.Text, "LAG") {
			return nil, nil
		}
		if c.Over == nil {
			return nil, b.errorf(c.Name.At, "LAG(x) OVER (PARTITION BY worker)", "LAG needs OVER")
		}
		key := sql.Key(c)
		if i := slices.Index(keys, key); i >= 0 {
			return internal("lag", i, c.Name.At), nil
		}
		v := LagValue{Offset: 1}
		if len(c.Args) == 2 {
			l, ok := c.Args[1].(*sql.Literal)
			offset, whole := int64(0), false
			if ok {
				offset, whole = l.Value.(int64)
			}
			if !whole || offset < 1 || offset > maxLag {
				return nil, b.errorf(c.Args[1].Pos(), "", "LAG goes 1 to %d rows back", maxLag)
			}
			v.Offset = int(offset)
		} else if len(c.Args) != 1 || c.Star {
			return nil, b.errorf(c.Name.At, "LAG(x) OVER (PARTITION BY worker)", "LAG takes one or two arguments")
		}
		var err error
		if v.X, err = expression.Bind(c.Args[0], scope); err != nil {
			return nil, err
		}
		for _, p := range c.Over.Partition {
			x, err := expression.Bind(p, scope)
			if err != nil {
				return nil, err
			}
			v.Partition = append(v.Partition, x)
		}
		to := internal("lag", len(n.Values), c.Name.At)
		n.Values, keys = append(n.Values, v), append(keys, key)
		cols = append(cols, column.Column{Name: to.Name.Text, Type: v.X.Type})
		texts = append(texts, sql.Text(c))
		return to, nil
	}
	var changed []item
	for _, i := range items {
		x, err := sql.Rewrite(i.x, lag)
		if err != nil {
			return in, nil, nil, err
		}
		changed = append(changed, item{x, i.name, i.text})
	}
	filter, err := sql.Rewrite(having, lag)
	if err != nil {
		return in, nil, nil, err
	}
	if len(n.Values) == 0 {
		return in, items, having, nil
	}
	n.cols, n.text = cols, strings.Join(texts, ", ")
	return input{n, cols}, changed, filter, nil
}

// aggregates reports whether one of the expressions adds rows up.
func aggregates(items []item, having sql.Expr) bool {
	found := false
	look := func(e sql.Expr) (sql.Expr, error) {
		c, ok := e.(*sql.Call)
		found = found || ok && c.Over == nil && aggregate.IsAggregate(c.Name.Text)
		return nil, nil
	}
	for _, i := range items {
		_, _ = sql.Rewrite(i.x, look)
	}
	_, _ = sql.Rewrite(having, look)
	return found
}
