package translate

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// dataType is a Snowflake type with what it is in Postgres.
type dataType struct {
	// name is Snowflake's canonical name: NUMBER, FLOAT, VARCHAR, TIMESTAMP_NTZ …
	name             string
	postgres         string
	precision, scale int
	length           int // VARCHAR and BINARY; 0 is the greatest
}

// typeNames are the types by the names that Snowflake takes.
var typeNames = func() map[string]string {
	all := map[string]string{}
	for canonical, names := range map[string]string{
		"NUMBER":  "NUMBER DECIMAL DEC NUMERIC",
		"INTEGER": "INT INTEGER BIGINT SMALLINT TINYINT BYTEINT",
		"FLOAT":   "FLOAT FLOAT4 FLOAT8 DOUBLE REAL",
		"VARCHAR": "VARCHAR STRING TEXT NVARCHAR NVARCHAR2 CHAR CHARACTER NCHAR",
		"BINARY":  "BINARY VARBINARY", "BOOLEAN": "BOOLEAN", "DATE": "DATE", "TIME": "TIME",
		"TIMESTAMP_NTZ": "TIMESTAMP_NTZ TIMESTAMPNTZ DATETIME TIMESTAMP", "TIMESTAMP_LTZ": "TIMESTAMP_LTZ TIMESTAMPLTZ",
		"TIMESTAMP_TZ": "TIMESTAMP_TZ TIMESTAMPTZ", "VARIANT": "VARIANT", "OBJECT": "OBJECT", "ARRAY": "ARRAY"} {
		for _, n := range strings.Fields(names) {
			all[n] = canonical
		}
	}
	return all
}()

// dataType reads a type.
func (p *parser) dataType() dataType {
	t := p.peek()
	canonical, ok := typeNames[t.text]
	if mapped := p.session.Parameters["TIMESTAMP_TYPE_MAPPING"]; t.text == "TIMESTAMP" && typeNames[mapped] != "" {
		canonical = typeNames[mapped]
	}
	if t.kind != tokenWord || !ok {
		if t.kind == tokenWord {
			p.failf("Unsupported data type '%s'.", t.text)
		}
		p.unexpected()
	}
	p.advance(1)
	d := dataType{name: canonical}
	var sizes []int
	if p.acceptSymbol("(") {
		sizes = append(sizes, int(p.integer()))
		if p.acceptSymbol(",") {
			sizes = append(sizes, int(p.integer()))
		}
		p.expectSymbol(")")
	}
	size := func(i, otherwise, low, high int) int {
		if i >= len(sizes) {
			return otherwise
		}
		if sizes[i] < low || sizes[i] > high {
			p.failf("Unsupported data type '%s(%d)'.", t.text, sizes[i])
		}
		return sizes[i]
	}
	switch canonical {
	case "INTEGER":
		d.name, d.precision = "NUMBER", 38
	case "NUMBER":
		d.precision = size(0, 38, 1, 38)
		d.scale = size(1, 0, 0, d.precision)
	case "FLOAT":
		p.accept("PRECISION")
		d.postgres = "double precision"
	case "VARCHAR":
		if t.text == "CHAR" || t.text == "CHARACTER" || t.text == "NCHAR" {
			p.accept("VARYING")
			d.length = 1
		}
		d.length = size(0, d.length, 1, 134217728)
		d.postgres = "text"
		if d.length > 0 && d.length <= 10485760 {
			d.postgres = "varchar(" + strconv.Itoa(d.length) + ")"
		}
	case "BINARY":
		d.length, d.postgres = size(0, 0, 1, 67108864), "bytea"
	case "BOOLEAN":
		d.postgres = "boolean"
	case "DATE":
		d.postgres = "date"
	case "TIME":
		d.scale = size(0, 9, 0, 9)
		d.postgres = "time(" + strconv.Itoa(min(d.scale, 6)) + ")"
	case "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIMESTAMP_TZ":
		d.scale = size(0, 9, 0, 9)
		switch canonical {
		case "TIMESTAMP_NTZ":
			d.postgres = "timestamp(" + strconv.Itoa(min(d.scale, 6)) + ")"
		case "TIMESTAMP_LTZ":
			d.postgres = "timestamptz(" + strconv.Itoa(min(d.scale, 6)) + ")"
		default:
			d.postgres = "snowsim.timestamp_tz"
		}
	case "VARIANT", "OBJECT", "ARRAY":
		d.postgres = "snowsim." + strings.ToLower(canonical)
	}
	if d.name == "NUMBER" {
		d.postgres = "numeric(" + strconv.Itoa(d.precision) + "," + strconv.Itoa(d.scale) + ")"
	}
	return d
}

// inputFormat is the session's format for texts that become a value of a type; empty is AUTO.
func (p *parser) inputFormat(to string) string {
	name := to + "_INPUT_FORMAT"
	if strings.HasPrefix(to, "TIMESTAMP") {
		name = "TIMESTAMP_INPUT_FORMAT"
	}
	if format := p.session.Parameters[name]; !strings.EqualFold(format, "AUTO") {
		return format
	}
	return ""
}

// isText reports an expression that is a text constant or a text that is bound.
func (p *parser) isText(e expr) bool {
	return e.kind == exprString || e.kind == exprBind && p.untyped(e)
}

// cast is cast by the session's input formats.
func (p *parser) cast(e expr, to dataType) expr {
	switch format := p.inputFormat(to.name); {
	case format == "" || !p.isText(e):
	case to.name == "DATE", to.name == "TIMESTAMP_NTZ", to.name == "TIMESTAMP_LTZ":
		return expr{sql: "to_timestamp(" + e.sql + "::text, " + literal(formats.Replace(strings.ToUpper(format))) + ")::" +
			to.postgres}
	}
	return cast(e, to)
}

// cast writes e as a type.
func cast(e expr, to dataType) expr {
	plain := e.kind == exprString || e.kind == exprBind || e.kind == exprNull
	if e.kind == exprPath {
		e = expr{sql: "(" + e.sql + " #>> '{}')"}
		if to.name == "VARCHAR" {
			plain = true
		}
	}
	switch to.name {
	case "VARCHAR":
		if !plain {
			e.sql = "snowsim.to_varchar(" + e.sql + ")"
		}
		return expr{sql: e.sql + "::" + to.postgres}
	case "VARIANT", "OBJECT", "ARRAY":
		if plain {
			e.sql += "::text"
		}
		return expr{sql: "to_jsonb(" + e.sql + ")", kind: exprPath}
	case "TIMESTAMP_TZ":
		if plain {
			e.sql += "::text"
		}
		return expr{sql: "snowsim.to_timestamp_tz(" + e.sql + ")"}
	case "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "DATE", "TIME":
		if !plain {
			return expr{sql: "snowsim.to_" + strings.ToLower(to.name) + "(" + e.sql + ")"}
		}
	case "BINARY":
		return expr{sql: "snowsim.to_binary(" + e.sql + ")"}
	}
	return expr{sql: "(" + e.sql + ")::" + to.postgres}
}

// bindOID is the Postgres type of a bind; a text is left to the context, because
// Snowflake converts it to what it is compared with.
func bindOID(snowflake string) uint32 {
	switch snowflake {
	case "fixed":
		return pgtype.NumericOID
	case "real":
		return pgtype.Float8OID
	case "boolean":
		return pgtype.BoolOID
	case "date":
		return pgtype.DateOID
	case "time":
		return pgtype.TimeOID
	case "timestamp_ntz":
		return pgtype.TimestampOID
	case "timestamp_ltz":
		return pgtype.TimestamptzOID
	case "binary":
		return pgtype.ByteaOID
	}
	return 0
}
