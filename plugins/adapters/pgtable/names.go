package pgtable

import (
	"errors"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// maxIdentifier is how many bytes of a name Postgres keeps.
const maxIdentifier = 63

// tableName is a table's name as the user wrote it.
type tableName struct {
	schema, table string
	// exact: the user quoted it, so it is not tried in lower case.
	exact bool
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// literal quotes a string for SQL, whatever standard_conforming_strings says.
func literal(s string) string {
	s = strings.ReplaceAll(s, `'`, `''`)
	if strings.Contains(s, `\`) {
		return ` E'` + strings.ReplaceAll(s, `\`, `\\`) + `'`
	}
	return `'` + s + `'`
}

// parseName reads table, schema.table, or either part in double quotes. Unquoted
// parts are taken as they are written, blanks and punctuation included.
func parseName(s string) (tableName, error) {
	var n tableName
	s = strings.TrimSpace(s)
	if s == "" {
		return n, errors.New("the table's name is missing")
	}
	if strings.IndexByte(s, 0) >= 0 {
		return n, errors.New("the table's name holds a zero byte")
	}
	var parts []string
	for {
		part, rest, wasQuoted, err := namePart(s)
		if err != nil {
			return n, err
		}
		n.exact = n.exact || wasQuoted
		if part == "" {
			return n, errors.New("the table's name " + strconv.Quote(s) + " has an empty part")
		}
		if len(part) > maxIdentifier {
			return n, errors.New("the name " + strconv.Quote(part) + " has " + strconv.Itoa(len(part)) +
				" bytes; Postgres keeps " + strconv.Itoa(maxIdentifier))
		}
		parts = append(parts, part)
		if rest == "" {
			break
		}
		s = rest[1:]
	}
	switch len(parts) {
	case 1:
		n.table = parts[0]
	case 2:
		n.schema, n.table = parts[0], parts[1]
	default:
		return n, errors.New("the table's name has more than two parts: write schema.table, with a part that holds dots " +
			"in double quotes")
	}
	return n, nil
}

// namePart takes one part off s; rest begins with the dot that follows it, or is empty.
func namePart(s string) (part, rest string, wasQuoted bool, err error) {
	if !strings.HasPrefix(s, `"`) {
		if dot := strings.IndexByte(s, '.'); dot >= 0 {
			return s[:dot], s[dot:], false, nil
		}
		return s, "", false, nil
	}
	var b []byte
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			b = append(b, s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '"' {
			b = append(b, '"')
			i++
			continue
		}
		rest = s[i+1:]
		if rest != "" && rest[0] != '.' {
			return "", "", true, errors.New("the table's name " + strconv.Quote(s) + " goes on after its closing quote")
		}
		return string(b), rest, true, nil
	}
	return "", "", true, errors.New("the table's name " + strconv.Quote(s) + " has an opening quote without a closing one")
}

// sql is the name for SQL, quoted.
func (n tableName) sql() string {
	if n.schema == "" {
		return quoted(n.table)
	}
	return quoted(n.schema) + "." + quoted(n.table)
}

// match is the condition for the table over pg_class c and pg_namespace n, as written or as
// an unquoted name folds, and the one for as written alone.
func (n tableName) match() (where, first string) {
	match := func(schema, table string) string {
		if schema == "" {
			return "(c.relname = " + literal(table) + " AND pg_catalog.pg_table_is_visible(c.oid))"
		}
		return "(c.relname = " + literal(table) + " AND n.nspname = " + literal(schema) + ")"
	}
	where = match(n.schema, n.table)
	first = where
	if !n.exact {
		where += " OR " + match(strings.ToLower(n.schema), strings.ToLower(n.table))
	}
	return where, first
}

// resolveQuery finds the table: as written first, then as an unquoted name folds.
func (n tableName) resolveQuery() sdk.Query {
	where, first := n.match()
	return sdk.Query{ID: "resolve",
		SQL: `SELECT c.oid::text, n.nspname::text, c.relname::text, c.relkind::text, c.reltuples::float8::text,
 pg_catalog.has_table_privilege(c.oid, 'SELECT')::text, pg_catalog.pg_table_size(c.oid)::text, n.oid = pg_catalog.pg_my_temp_schema()
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r','p','v','m','f') AND (` + where + `)
ORDER BY (` + first + `) DESC, c.oid LIMIT 1`}
}

// foundTable is what resolveQuery gave.
type foundTable struct {
	oid, kind string
	name      tableName
	estimate  float64
	readable  bool
	bytes     int64
}

func readFound(r sdk.Result) (f foundTable, ok bool) {
	if r.Err != "" || r.Rows.Len() == 0 {
		return f, false
	}
	row := r.Rows.At(0)
	f.oid, f.kind = row.At(0).Str(), row.At(3).Str()
	f.name = tableName{schema: row.At(1).Str(), table: row.At(2).Str(), exact: true}
	f.estimate, _ = row.At(4).Float()
	f.readable = row.At(5).Str() == "true" || row.At(5).Str() == "t"
	f.bytes, _ = row.At(6).Int()
	return f, true
}

// isTrue reads a boolean that may travel as text.
func isTrue(v *jsondoc.Value) bool { return v.Str() == "true" || v.Str() == "t" }
