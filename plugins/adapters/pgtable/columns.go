package pgtable

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// column is a column of an existing table, with what only inspecting needs.
type column struct {
	sdk.Column
	number string
	// sampled columns take their values from existing rows.
	sampled bool
	// checkedDomain: a domain of the column's type has checks.
	checkedDomain bool
	// expression is what the database computes a generated column with.
	expression string
}

// columnsQuery lists the columns. A domain counts as the type under it; its
// checks make the column one whose values are sampled.
func columnsQuery(oid, kind string) sdk.Query {
	updatable, behind := "true", ""
	of := "a"
	if kind == "v" {
		updatable = "pg_catalog.pg_column_is_updatable(a.attrelid::regclass, a.attnum, true)"
		// A column of the table behind a view that has its name is it, and what is left out there gets its default.
		behind = " LEFT JOIN pg_catalog.pg_attribute v ON v.attrelid = " + baseOf(oid) +
			" AND v.attname = a.attname AND v.attnum > 0 AND NOT v.attisdropped AND v.atttypid = a.atttypid"
		of = "v"
	}
	return sdk.Query{ID: "columns", SQL: `WITH RECURSIVE base(col, typ, mod, checked, required, domainchecks) AS (
 SELECT a.attnum, a.atttypid, a.atttypmod, false, false, false FROM pg_catalog.pg_attribute a WHERE a.attrelid = ` + oid +
		`::oid AND a.attnum > 0 AND NOT a.attisdropped
 UNION ALL
 SELECT b.col, t.typbasetype, t.typtypmod, true, b.required OR t.typnotnull,
  b.domainchecks OR EXISTS (SELECT 1 FROM pg_catalog.pg_constraint k WHERE k.contypid = t.oid AND k.contype = 'c') FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.typ WHERE t.typtype = 'd')
SELECT coalesce(` + of + `.attnum, -a.attnum)::text, a.attname::text, pg_catalog.format_type(b.typ, b.mod), pg_catalog.format_type(b.typ, NULL),
 (NOT (coalesce(` + of + `.attnotnull, false) OR b.required))::text, coalesce(` + of + `.atthasdef, false)::text, coalesce(` + of + `.attidentity::text, ''), coalesce(` + of + `.attgenerated::text, ''), t.typtype::text, t.typcategory::text, b.checked::text, b.mod::text,
 b.domainchecks::text, coalesce((SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d WHERE d.adrelid = ` + of + `.attrelid AND d.adnum = ` + of + `.attnum), ''), (` + updatable + `)::text
FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.typ AND t.typtype <> 'd'
 JOIN pg_catalog.pg_attribute a ON a.attrelid = ` + oid + `::oid AND a.attnum = b.col` + behind + `
ORDER BY a.attnum`}
}

// baseOf is the table behind a view, as far as it is one alone, in SQL.
func baseOf(oid string) string {
	return `(SELECT CASE WHEN count(DISTINCT b.oid) = 1 THEN min(b.oid::int8) END::oid FROM pg_catalog.pg_rewrite r
  JOIN pg_catalog.pg_depend d ON d.objid = r.oid AND d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass
  JOIN pg_catalog.pg_class b ON b.oid = d.refobjid AND b.relkind IN ('r','p','f') WHERE r.ev_class = ` + oid + `::oid)`
}

// keysQuery lists the unique indexes that can serve as a key, the primary key first.
func keysQuery(oid string) sdk.Query {
	return sdk.Query{ID: "keys", SQL: `SELECT i.indisprimary::text, i.indnkeyatts::text, i.indkey::text,
 (NOT EXISTS (SELECT 1 FROM pg_catalog.pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts-1]) AND NOT a.attnotnull))::text
FROM pg_catalog.pg_index i
WHERE i.indrelid = ` + oid + `::oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indimmediate
ORDER BY i.indisprimary DESC, i.indnkeyatts, i.indexrelid`}
}

func readColumns(r sdk.Result) []column {
	var list []column
	for i := 0; i < r.Rows.Len(); i++ {
		row := r.Rows.At(i)
		base := row.At(3).Str()
		c := column{number: row.At(0).Str()}
		c.Name, c.DBType = row.At(1).Str(), row.At(2).Str()
		// An extension's type is itself in whichever schema it is.
		if strings.HasSuffix(base, ".citext") {
			base, c.DBType = "citext", "citext"
		}
		c.Type = pluginType(base)
		c.Nullable = isTrue(row.At(4))
		identity, generated := row.At(6).Str(), row.At(7).Str()
		c.HasDefault = isTrue(row.At(5)) && generated == "" || identity == "d"
		c.Generated = generated != "" || identity == "a" || row.At(14).Str() == "false" || row.At(14).Str() == "f"
		c.checkedDomain = isTrue(row.At(12))
		if generated != "" {
			c.expression = row.At(13).Str()
		}
		c.Fresh = identity != "" || generated == "" && isFresh(row.At(13).Str())
		c.sampled = isTrue(row.At(10)) || row.At(8).Str() != "b" || row.At(9).Str() == "A"
		if mod, _ := row.At(11).Int(); mod > 4 && (base == "character varying" || base == "character") {
			c.MaxLength = int(mod - 4)
		}
		if base == "character" && c.MaxLength == 0 {
			c.MaxLength = 1
		}
		if !invented(base) {
			c.sampled = true
		}
		list = append(list, c)
	}
	return list
}

// pluginType is the nearest plugin type of a database type without its modifier.
func pluginType(base string) string {
	switch base {
	case "smallint", "integer", "bigint", "oid":
		return sdk.I64
	case "real", "double precision":
		return sdk.F64
	case "boolean":
		return sdk.Bool
	case "bytea":
		return sdk.Bytes
	case "timestamp without time zone", "timestamp with time zone", "date":
		return sdk.Timestamp
	}
	return sdk.Text
}

// invented reports whether a workload can make values of this type up.
func invented(base string) bool {
	switch base {
	case "smallint", "integer", "bigint", "oid", "real", "double precision", "boolean", "bytea",
		"timestamp without time zone", "timestamp with time zone", "date",
		"text", "character varying", "character", "name", "citext", "numeric", "money", "uuid", "json", "jsonb",
		"inet", "time without time zone", "interval":
		return true
	}
	return false
}

// readKey returns the best key, and marks columns that other indexes keep unique by themselves.
func readKey(r sdk.Result, columns []column) []string {
	var key []string
	for i := 0; i < r.Rows.Len(); i++ {
		row := r.Rows.At(i)
		n, _ := row.At(1).Int()
		var names []*column
		for _, number := range strings.Fields(row.At(2).Str()) {
			if int64(len(names)) == n {
				break
			}
			for j := range columns {
				if columns[j].number == number {
					names = append(names, &columns[j])
				}
			}
		}
		if int64(len(names)) != n || n == 0 {
			continue
		}
		if key == nil && isTrue(row.At(3)) {
			for _, c := range names {
				key = append(key, c.Name)
			}
			continue
		}
		if len(names) == 1 {
			names[0].Unique = true
		}
	}
	return key
}

// freshFunctions give another value each time; of any other function that is not known.
var freshFunctions = [...]string{
	"nextval",
	"gen_random_uuid",
	"gen_random_bytes",
	"uuidv4",
	"uuidv7",
	"uuid_generate_v1",
	"uuid_generate_v1mc",
	"uuid_generate_v4",
	"random",
	"clock_timestamp",
}

// isFresh reports that a default calls a function which gives another value each time. The time of a transaction is the
// same for all of its rows, and what stands in quotes is a constant.
func isFresh(expression string) bool {
	code := outsideQuotes(strings.ToLower(expression))
	for _, function := range freshFunctions {
		for from := 0; ; {
			at := strings.Index(code[from:], function+"(")
			if at < 0 {
				break
			}
			if at += from; at == 0 || !isWordByte(code[at-1]) {
				return true
			}
			from = at + 1
		}
	}
	return false
}

// outsideQuotes is an expression without its strings; quotes in a string are doubled.
func outsideQuotes(expression string) string {
	parts := strings.Split(expression, "'")
	code := ""
	for i := 0; i < len(parts); i += 2 {
		code += parts[i] + " "
	}
	return code
}

// sampleExpression writes a column as the text that readSample understands.
func sampleExpression(c column) string {
	name := quoted(c.Name)
	switch c.Type {
	case sdk.Timestamp:
		// Batches carry times of these years: neither infinity nor what is before the common era.
		return "CASE WHEN pg_catalog.isfinite(" + name + ") AND " + name + " >= '0001-01-02' AND " + name +
			" < '9999-12-31' THEN (extract(epoch FROM " + name + ") * 1000000)::int8::text END"
	case sdk.Bytes:
		return "pg_catalog.encode(" + name + ", 'hex')"
	}
	return name + "::text"
}

// writeSample writes one sampled value in its plugin type.
func writeSample(w *jsondoc.Writer, c column, v *jsondoc.Value) {
	if v.IsNull() {
		w.Null()
		return
	}
	switch c.Type {
	case sdk.I64, sdk.Timestamp:
		if n, ok := v.Int(); ok {
			w.Int(n)
			return
		}
		w.Null()
	case sdk.F64:
		f, err := strconv.ParseFloat(v.Str(), 64)
		if err != nil {
			w.Null()
			return
		}
		w.Float(f)
	case sdk.Bool:
		w.Bool(isTrue(v))
	default:
		w.Str(v.Str())
	}
}
