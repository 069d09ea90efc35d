package dialect

import (
	"errors"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
)

// WriteSQL returns the SQL of a statement, and which bind each of its parameters
// takes; nil when they are the binds in their order.
func WriteSQL(s sdk.Statement, t *sdk.Table, all []sdk.Table) (string, []int, error) {
	for _, d := range [...]string{Key, "*", "ansi", "sql"} {
		if text := s.SQL[d]; text != "" {
			text, err := placeTables(text, s, t, all)
			return text, s.BindOrder[d], err
		}
	}
	if t == nil {
		return "", nil, errors.New("there is no table " + strconv.Quote(s.Table))
	}
	b := builder{s: &s, t: t}
	for i := range s.Binds {
		last := i == len(s.Binds)-1 && s.Kind == sdk.RangeScan && s.Limit == 0
		c := tableColumn(t, s.Binds[i].Column)
		if c == nil && !last {
			return "", nil, errors.New("table " + t.PhysicalName + " has no column " + strconv.Quote(s.Binds[i].Column))
		}
		b.columns = append(b.columns, c)
	}
	text, err := b.write()
	return text, b.bindOrder(), err
}

// placeTables puts the physical names of tables into SQL that the workload brought.
func placeTables(text string, s sdk.Statement, t *sdk.Table, all []sdk.Table) (string, error) {
	if strings.Contains(text, "{table}") {
		if t == nil {
			return "", errors.New("its SQL names {table}, but there is no table " + strconv.Quote(s.Table))
		}
		text = strings.ReplaceAll(text, "{table}", t.PhysicalName)
	}
	for _, other := range all {
		text = strings.ReplaceAll(text, "{table:"+other.Name+"}", other.PhysicalName)
	}
	if _, rest, left := strings.Cut(text, "{table:"); left {
		name, _, _ := strings.Cut(rest, "}")
		return "", errors.New("its SQL names {table:" + name + "}, but there is no table " + strconv.Quote(name))
	}
	return text, nil
}

// tableColumn finds a column by its name, whatever its case if there is no exact one.
func tableColumn(t *sdk.Table, name string) *sdk.Column {
	if c := t.Column(name); c != nil {
		return c
	}
	for i := range t.Columns {
		if name != "" && strings.EqualFold(t.Columns[i].Name, name) {
			return &t.Columns[i]
		}
	}
	return nil
}

// builder writes one statement and notes which bind each ? takes.
type builder struct {
	s *sdk.Statement
	t *sdk.Table
	// columns of the binds; nil for a limit.
	columns []*sdk.Column
	order   []int
}

// mark writes the parameter that takes bind i.
func (b *builder) mark(i int) string {
	b.order = append(b.order, i)
	return "?"
}

func (b *builder) bindOrder() []int {
	if len(b.order) == len(b.s.Binds) {
		same := true
		for i, n := range b.order {
			same = same && i == n
		}
		if same {
			return nil
		}
	}
	return b.order
}

func (b *builder) write() (string, error) {
	switch b.s.Kind {
	case sdk.PointLookup:
		where, err := b.equals(0)
		return "SELECT " + b.selected() + " FROM " + b.t.PhysicalName + where, err
	case sdk.RangeScan:
		return b.scan()
	case sdk.Insert:
		return b.insert()
	case sdk.Update:
		return b.update()
	case sdk.Delete:
		where, err := b.equals(0)
		return "DELETE FROM " + b.t.PhysicalName + where, err
	}
	return "", errors.New("a " + b.s.Kind + " statement needs SQL of its own for " + Key)
}

func (b *builder) selected() string {
	var names []string
	for _, n := range b.s.Columns {
		if c := tableColumn(b.t, n); c != nil {
			n = c.Name
		}
		names = append(names, n)
	}
	if len(names) == 0 {
		for _, c := range b.t.Columns {
			names = append(names, c.Name)
		}
	}
	return QuotedList(names)
}

// equals writes the WHERE clause that compares each bind from first on with its column.
func (b *builder) equals(first int) (string, error) {
	if first >= len(b.columns) {
		return "", errors.New("it names no key, and would touch every row")
	}
	var list []string
	for i := first; i < len(b.columns); i++ {
		list = append(list, Quoted(b.columns[i].Name)+" = "+b.mark(i))
	}
	return " WHERE " + strings.Join(list, " AND "), nil
}

// scan reads in key order from a key on. Snowflake does not order row values, so
// the comparison is spelled out, with one for the first column alone to prune by.
func (b *builder) scan() (string, error) {
	keys := len(b.columns)
	if b.s.Limit == 0 {
		if keys < 2 || b.s.Binds[keys-1].Column != "" {
			return "", errors.New("a range scan needs a limit")
		}
		keys--
	}
	if keys == 0 {
		return "", errors.New("a range scan needs a key to begin at")
	}
	var names []string
	for _, c := range b.columns[:keys] {
		names = append(names, c.Name)
	}
	where := Quoted(names[0]) + " >= " + b.mark(0)
	if keys > 1 {
		where += " AND " + b.after(names, 0)
	}
	text := "SELECT " + b.selected() + " FROM " + b.t.PhysicalName + " WHERE " + where + " ORDER BY " + QuotedList(names) +
		" LIMIT "
	if b.s.Limit > 0 {
		return text + strconv.Itoa(b.s.Limit), nil
	}
	return text + b.mark(keys), nil
}

// after writes that the columns from i on are those of the binds, or behind them.
func (b *builder) after(names []string, i int) string {
	if i == len(names)-1 {
		return Quoted(names[i]) + " >= " + b.mark(i)
	}
	return "(" + Quoted(names[i]) + " > " + b.mark(i) + " OR " + Quoted(names[i]) + " = " + b.mark(i) + " AND " +
		b.after(names, i+1) + ")"
}

// insert writes a row. Values of semi-structured columns go through PARSE_JSON,
// which VALUES does not take.
func (b *builder) insert() (string, error) {
	if len(b.columns) == 0 {
		return "", errors.New("the database fills every column itself, which Snowflake has no INSERT for")
	}
	var names, positions []string
	parsed := false
	for i, c := range b.columns {
		position := b.mark(i)
		if json := parser(c.DBType); json != "" {
			position, parsed = json+"("+position+")", true
		}
		names, positions = append(names, c.Name), append(positions, position)
	}
	head := "INSERT INTO " + b.t.PhysicalName + " (" + QuotedList(names) + ") "
	if parsed {
		return head + "SELECT " + strings.Join(positions, ", "), nil
	}
	return head + "VALUES (" + strings.Join(positions, ", ") + ")", nil
}

// parser is the function that makes a value of a semi-structured type of text.
func parser(dbType string) string {
	switch base, _, _ := strings.Cut(strings.ToUpper(dbType), "("); base {
	case "VARIANT", "OBJECT", "ARRAY":
		return "PARSE_JSON"
	}
	return ""
}

func (b *builder) update() (string, error) {
	set := 0
	for set < len(b.columns) && !b.t.IsKey(b.columns[set].Name) {
		set++
	}
	if set == 0 {
		return "", errors.New("an update needs a column to set before the key")
	}
	var list []string
	for i, c := range b.columns[:set] {
		position := b.mark(i)
		if json := parser(c.DBType); json != "" {
			position = json + "(" + position + ")"
		}
		list = append(list, Quoted(c.Name)+" = "+position)
	}
	where, err := b.equals(set)
	return "UPDATE " + b.t.PhysicalName + " SET " + strings.Join(list, ", ") + where, err
}
