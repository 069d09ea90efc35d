package dialect

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/sdk"
)

// MaxIdentifier is how many characters a name of Snowflake may have.
const MaxIdentifier = 255

// NamePart is a part of a name as the user wrote it.
type NamePart struct {
	Text string
	// exact: it was quoted, so its case counts.
	Exact bool
}

// Name is the part as Snowflake reads it.
func (p NamePart) Name() string {
	if p.Exact {
		return p.Text
	}
	return strings.ToUpper(p.Text)
}

// TableName is the name of a table; database and schema may be absent.
type TableName struct{ Database, Schema, Table NamePart }

// Quoted is a name in quotes.
func Quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// QuotedList are names in quotes, with commas between.
func QuotedList(names []string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = Quoted(n)
	}
	return strings.Join(list, ", ")
}

// Literal writes a string constant; a backslash begins an escape there.
func Literal(s string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "'", "''") + "'"
}

// Pattern writes a string constant for LIKE that matches s alone.
func Pattern(s string) string {
	return Literal(strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(s))
}

// PlainName reports whether a name needs no quotes.
func PlainName(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		case i > 0 && (c >= '0' && c <= '9' || c == '$'):
		default:
			return false
		}
	}
	return s != ""
}

// ColumnName is the name that a workload's column gets in a new table: as an
// unquoted name would be read.
func ColumnName(s string) string {
	if PlainName(s) {
		return strings.ToUpper(s)
	}
	return s
}

// NameField is the field of a template that a table is named in.
const NameField = "target.table_name"

// BadName refuses the name of a table.
func BadName(message, hint string) error {
	return &sdk.RefusalError{Field: NameField, Message: message, Hint: hint}
}

// ParseName reads table, schema.table or database.schema.table. A part in double
// quotes keeps its case, and may hold anything but a zero byte.
func ParseName(s string) (TableName, error) {
	var n TableName
	parts, err := splitName(s)
	if err != nil {
		return n, err
	}
	switch len(parts) {
	case 1:
		n.Table = parts[0]
	case 2:
		n.Schema, n.Table = parts[0], parts[1]
	case 3:
		n.Database, n.Schema, n.Table = parts[0], parts[1], parts[2]
	default:
		return n, BadName("the table's name has more than three parts",
			"write database.schema.table; a part that holds dots stands in double quotes")
	}
	return n, nil
}

func splitName(s string) ([]NamePart, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return nil, BadName("the table's name is missing", "name a table: orders, sales.orders, \"Order Lines\"")
	case strings.IndexByte(s, 0) >= 0:
		return nil, BadName("the table's name holds a zero byte", "no name of Snowflake can")
	case !utf8.ValidString(s):
		return nil, BadName("the table's name is not valid UTF-8", "")
	}
	var parts []NamePart
	for {
		p, rest, err := takePart(s)
		if err != nil {
			return nil, err
		}
		if p.Text == "" {
			return nil, BadName("the table's name "+strconv.Quote(s)+" has an empty part", "")
		}
		if n := utf8.RuneCountInString(p.Text); n > MaxIdentifier {
			return nil, BadName("the table's name has a part of "+strconv.Itoa(n)+" characters",
				"a name of Snowflake has at most "+strconv.Itoa(MaxIdentifier))
		}
		parts = append(parts, p)
		if rest == "" {
			return parts, nil
		}
		s = rest[1:]
	}
}

// takePart takes one part off s; rest begins with the dot behind it, or is empty.
func takePart(s string) (p NamePart, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		p.Text = s
		if dot := strings.IndexByte(s, '.'); dot >= 0 {
			p.Text, rest = s[:dot], s[dot:]
		}
		if p.Text != "" && !PlainName(p.Text) {
			return p, "", BadName("the table's name "+strconv.Quote(p.Text)+" holds what a name without quotes cannot",
				"put it in double quotes: "+Quoted(p.Text))
		}
		return p, rest, nil
	}
	p.Exact = true
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		p.Text, rest = b.String(), s[i+1:]
		if rest != "" && rest[0] != '.' {
			return p, "", BadName("the table's name "+strconv.Quote(s)+" goes on after its closing quote",
				"a quote within a name is written twice")
		}
		return p, rest, nil
	}
	return p, "", BadName("the table's name "+strconv.Quote(s)+" has an opening quote without a closing one", "")
}

// SQL is the name for SQL, quoted.
func (n TableName) SQL() string {
	text := Quoted(n.Table.Name())
	if n.Schema.Text != "" {
		text = Quoted(n.Schema.Name()) + "." + text
	}
	if n.Database.Text != "" {
		text = Quoted(n.Database.Name()) + "." + text
	}
	return text
}

// Sibling is a table beside this one, whose name ends in suffix.
func (n TableName) Sibling(suffix string) TableName {
	base := []rune(n.Table.Name())
	n.Table = NamePart{Text: string(base[:min(len(base), MaxIdentifier-len(suffix))]) + suffix, Exact: true}
	return n
}

// ResolveQuery finds the table: as Snowflake reads the name, or else as it is written.
func (n TableName) ResolveQuery() sdk.Query {
	from := "INFORMATION_SCHEMA.TABLES"
	if n.Database.Text != "" {
		from = Quoted(n.Database.Name()) + "." + from
	}
	q := sdk.Query{ID: "resolve"}
	match := func(p NamePart, column string) string {
		q.Args = append(q.Args, p.Name())
		if p.Exact || p.Name() == p.Text {
			return column + " = ?"
		}
		q.Args = append(q.Args, p.Text)
		return column + " IN (?, ?)"
	}
	schema := "TABLE_SCHEMA = CURRENT_SCHEMA()"
	if n.Schema.Text != "" {
		schema = match(n.Schema, "TABLE_SCHEMA")
	}
	table := match(n.Table, "TABLE_NAME")
	q.Args = append(q.Args, n.Table.Name())
	q.SQL = "SELECT TABLE_CATALOG, TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ROW_COUNT FROM " + from +
		" WHERE " + schema + " AND " + table + " ORDER BY IFF(TABLE_NAME = ?, 0, 1), TABLE_SCHEMA LIMIT 1"
	return q
}

// Exactly is a part of a name that means what it says, as one in quotes does.
func Exactly(text string) NamePart { return NamePart{Text: text, Exact: true} }

// Key is the key of SQL that workloads bring for Snowflake.
const Key = "snowflake"

// PhysicalColumns are the names that columns get in a new table, quoted.
func PhysicalColumns(names []string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = ColumnName(n)
	}
	return QuotedList(list)
}
