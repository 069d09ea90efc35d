package snowflake

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/sdk"
)

// maxIdentifier is how many characters a name of Snowflake may have.
const maxIdentifier = 255

// namePart is a part of a name as the user wrote it.
type namePart struct {
	text string
	// exact: it was quoted, so its case counts.
	exact bool
}

// name is the part as Snowflake reads it.
func (p namePart) name() string {
	if p.exact {
		return p.text
	}
	return strings.ToUpper(p.text)
}

// tableName is the name of a table; database and schema may be absent.
type tableName struct{ database, schema, table namePart }

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func quotedList(names []string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = quoted(n)
	}
	return strings.Join(list, ", ")
}

// literal writes a string constant; a backslash begins an escape there.
func literal(s string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "'", "''") + "'"
}

// pattern writes a string constant for LIKE that matches s alone.
func pattern(s string) string {
	return literal(strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(s))
}

// plainName reports whether a name needs no quotes.
func plainName(s string) bool {
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

// columnName is the name that a workload's column gets in a new table: as an
// unquoted name would be read.
func columnName(s string) string {
	if plainName(s) {
		return strings.ToUpper(s)
	}
	return s
}

const nameField = "target.table_name"

func badName(message, hint string) error {
	return &sdk.RefusalError{Field: nameField, Message: message, Hint: hint}
}

// parseName reads table, schema.table or database.schema.table. A part in double
// quotes keeps its case, and may hold anything but a zero byte.
func parseName(s string) (tableName, error) {
	var n tableName
	parts, err := splitName(s)
	if err != nil {
		return n, err
	}
	switch len(parts) {
	case 1:
		n.table = parts[0]
	case 2:
		n.schema, n.table = parts[0], parts[1]
	case 3:
		n.database, n.schema, n.table = parts[0], parts[1], parts[2]
	default:
		return n, badName("the table's name has more than three parts",
			"write database.schema.table; a part that holds dots stands in double quotes")
	}
	return n, nil
}

func splitName(s string) ([]namePart, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return nil, badName("the table's name is missing", "name a table: orders, sales.orders, \"Order Lines\"")
	case strings.IndexByte(s, 0) >= 0:
		return nil, badName("the table's name holds a zero byte", "no name of Snowflake can")
	case !utf8.ValidString(s):
		return nil, badName("the table's name is not valid UTF-8", "")
	}
	var parts []namePart
	for {
		p, rest, err := takePart(s)
		if err != nil {
			return nil, err
		}
		if p.text == "" {
			return nil, badName("the table's name "+strconv.Quote(s)+" has an empty part", "")
		}
		if n := utf8.RuneCountInString(p.text); n > maxIdentifier {
			return nil, badName("the table's name has a part of "+strconv.Itoa(n)+" characters",
				"a name of Snowflake has at most "+strconv.Itoa(maxIdentifier))
		}
		parts = append(parts, p)
		if rest == "" {
			return parts, nil
		}
		s = rest[1:]
	}
}

// takePart takes one part off s; rest begins with the dot behind it, or is empty.
func takePart(s string) (p namePart, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		p.text = s
		if dot := strings.IndexByte(s, '.'); dot >= 0 {
			p.text, rest = s[:dot], s[dot:]
		}
		if p.text != "" && !plainName(p.text) {
			return p, "", badName("the table's name "+strconv.Quote(p.text)+" holds what a name without quotes cannot",
				"put it in double quotes: "+quoted(p.text))
		}
		return p, rest, nil
	}
	p.exact = true
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
		p.text, rest = b.String(), s[i+1:]
		if rest != "" && rest[0] != '.' {
			return p, "", badName("the table's name "+strconv.Quote(s)+" goes on after its closing quote",
				"a quote within a name is written twice")
		}
		return p, rest, nil
	}
	return p, "", badName("the table's name "+strconv.Quote(s)+" has an opening quote without a closing one", "")
}

// sql is the name for SQL, quoted.
func (n tableName) sql() string {
	text := quoted(n.table.name())
	if n.schema.text != "" {
		text = quoted(n.schema.name()) + "." + text
	}
	if n.database.text != "" {
		text = quoted(n.database.name()) + "." + text
	}
	return text
}

// sibling is a table beside this one, whose name ends in suffix.
func (n tableName) sibling(suffix string) tableName {
	base := []rune(n.table.name())
	n.table = namePart{text: string(base[:min(len(base), maxIdentifier-len(suffix))]) + suffix, exact: true}
	return n
}

// resolveQuery finds the table: as Snowflake reads the name, or else as it is written.
func (n tableName) resolveQuery() sdk.Query {
	from := "INFORMATION_SCHEMA.TABLES"
	if n.database.text != "" {
		from = quoted(n.database.name()) + "." + from
	}
	q := sdk.Query{ID: "resolve"}
	match := func(p namePart, column string) string {
		q.Args = append(q.Args, p.name())
		if p.exact || p.name() == p.text {
			return column + " = ?"
		}
		q.Args = append(q.Args, p.text)
		return column + " IN (?, ?)"
	}
	schema := "TABLE_SCHEMA = CURRENT_SCHEMA()"
	if n.schema.text != "" {
		schema = match(n.schema, "TABLE_SCHEMA")
	}
	table := match(n.table, "TABLE_NAME")
	q.Args = append(q.Args, n.table.name())
	q.SQL = "SELECT TABLE_CATALOG, TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ROW_COUNT FROM " + from +
		" WHERE " + schema + " AND " + table + " ORDER BY IFF(TABLE_NAME = ?, 0, 1), TABLE_SCHEMA LIMIT 1"
	return q
}

// whereQuery asks where a name without a schema is looked for.
var whereQuery = sdk.Query{ID: "where", SQL: "SELECT CURRENT_DATABASE(), CURRENT_SCHEMA(), CURRENT_WAREHOUSE()"}

// found is a table that is there.
type found struct {
	name tableName
	// kind is BASE TABLE, VIEW, EXTERNAL TABLE …
	kind string
	// estimate of the rows by Snowflake's own count, -1 where it keeps none.
	estimate int64
}

func readFound(r sdk.Result) (f found, ok bool) {
	if r.Err != "" || r.Rows.Len() == 0 {
		return f, false
	}
	row := r.Rows.At(0)
	f.name = tableName{database: namePart{row.At(0).Str(), true}, schema: namePart{row.At(1).Str(), true},
		table: namePart{row.At(2).Str(), true}}
	f.kind = row.At(3).Str()
	if f.estimate, ok = row.At(4).Int(); !ok {
		f.estimate = -1
	}
	return f, true
}

// field is the value of a column of a SHOW command; what columns it has differs
// between releases, so they go by name.
func field(r sdk.Result, row int, column string) string {
	for i, c := range r.Columns {
		if strings.EqualFold(c, column) {
			return r.Rows.At(row).At(i).Str()
		}
	}
	return ""
}
