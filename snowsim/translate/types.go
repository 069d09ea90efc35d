package translate

import (
	"strconv"
	"strings"
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
	if t.kind != word || !ok {
		if t.kind == word {
			p.failf("Unsupported data type '%s'.", t.text)
		}
		p.unexpected()
	}
	p.i++
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
		if t.text == "TIMESTAMP" {
			canonical = p.withTimeZone()
			d.name = canonical
		}
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

// withTimeZone reads what may follow TIMESTAMP; alone it is what the session's
// TIMESTAMP_TYPE_MAPPING says.
func (p *parser) withTimeZone() string {
	switch {
	case p.accept("WITH", "LOCAL", "TIME", "ZONE"):
		return "TIMESTAMP_LTZ"
	case p.accept("WITH", "TIME", "ZONE"):
		return "TIMESTAMP_TZ"
	case p.accept("WITHOUT", "TIME", "ZONE"):
		return "TIMESTAMP_NTZ"
	}
	if mapping, ok := p.session.Parameters["TIMESTAMP_TYPE_MAPPING"]; ok {
		p.volatile = true
		if canonical := typeNames[strings.ToUpper(mapping)]; strings.HasPrefix(canonical, "TIMESTAMP_") {
			return canonical
		}
	}
	return "TIMESTAMP_NTZ"
}

// cast writes e as a type.
func cast(e expr, to dataType) expr {
	plain := e.kind == stringConstant || e.kind == boundValue || e.kind == null
	if e.kind == path {
		if to.postgres == "snowsim.variant" || to.postgres == "snowsim.object" || to.postgres == "snowsim.array" {
			return e
		}
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
		return expr{sql: "to_jsonb(" + e.sql + ")", kind: path}
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

// tryCast is cast that gives NULL for what cannot be converted.
func tryCast(e expr, to dataType) expr {
	value := textOf(e)
	if e.kind == path {
		value = "(" + e.sql + " #>> '{}')"
	}
	return expr{sql: "snowsim.try_cast(" + value + ", NULL::" + to.postgres + ")"}
}

// Postgres's types by OID, of binds and of results.
const (
	oidBool        = 16
	oidBytea       = 17
	oidInt8        = 20
	oidInt2        = 21
	oidInt4        = 23
	oidText        = 25
	oidJSON        = 114
	oidFloat4      = 700
	oidFloat8      = 701
	oidVarchar     = 1043
	oidDate        = 1082
	oidTime        = 1083
	oidTimestamp   = 1114
	oidTimestamptz = 1184
	oidNumeric     = 1700
	oidJSONB       = 3802
)

// bindOID is the Postgres type of a bind; a text is left to the context, because
// Snowflake converts it to what it is compared with.
func bindOID(snowflake string) uint32 {
	switch snowflake {
	case "fixed":
		return oidNumeric
	case "real":
		return oidFloat8
	case "boolean":
		return oidBool
	case "date":
		return oidDate
	case "time":
		return oidTime
	case "timestamp_ntz":
		return oidTimestamp
	case "timestamp_ltz":
		return oidTimestamptz
	case "timestamp_tz": // expression converts it, with its offset
		return oidText
	case "binary":
		return oidBytea
	}
	return 0
}
