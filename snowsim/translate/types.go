package translate

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// Type is a Snowflake type with what it is in Postgres.
type Type struct {
	// Name is Snowflake's canonical name: NUMBER, FLOAT, VARCHAR, TIMESTAMP_NTZ …
	Name             string
	Postgres         string
	Precision, Scale int
	Length           int // VARCHAR and BINARY; 0 is the greatest
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

// DataType reads a type.
func (p *Parser) DataType() Type {
	t := p.Peek()
	canonical, ok := typeNames[t.Text]
	if t.Kind != Word || !ok {
		if t.Kind == Word {
			p.Failf("Unsupported data type '%s'.", t.Text)
		}
		p.Unexpected()
	}
	p.Advance(1)
	d := Type{Name: canonical}
	var sizes []int
	if p.AcceptSymbol("(") {
		sizes = append(sizes, int(p.Integer()))
		if p.AcceptSymbol(",") {
			sizes = append(sizes, int(p.Integer()))
		}
		p.ExpectSymbol(")")
	}
	size := func(i, otherwise, low, high int) int {
		if i >= len(sizes) {
			return otherwise
		}
		if sizes[i] < low || sizes[i] > high {
			p.Failf("Unsupported data type '%s(%d)'.", t.Text, sizes[i])
		}
		return sizes[i]
	}
	switch canonical {
	case "INTEGER":
		d.Name, d.Precision = "NUMBER", 38
	case "NUMBER":
		d.Precision = size(0, 38, 1, 38)
		d.Scale = size(1, 0, 0, d.Precision)
	case "FLOAT":
		p.Accept("PRECISION")
		d.Postgres = "double precision"
	case "VARCHAR":
		if t.Text == "CHAR" || t.Text == "CHARACTER" || t.Text == "NCHAR" {
			p.Accept("VARYING")
			d.Length = 1
		}
		d.Length = size(0, d.Length, 1, 134217728)
		d.Postgres = "text"
		if d.Length > 0 && d.Length <= 10485760 {
			d.Postgres = "varchar(" + strconv.Itoa(d.Length) + ")"
		}
	case "BINARY":
		d.Length, d.Postgres = size(0, 0, 1, 67108864), "bytea"
	case "BOOLEAN":
		d.Postgres = "boolean"
	case "DATE":
		d.Postgres = "date"
	case "TIME":
		d.Scale = size(0, 9, 0, 9)
		d.Postgres = "time(" + strconv.Itoa(min(d.Scale, 6)) + ")"
	case "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIMESTAMP_TZ":
		d.Scale = size(0, 9, 0, 9)
		switch canonical {
		case "TIMESTAMP_NTZ":
			d.Postgres = "timestamp(" + strconv.Itoa(min(d.Scale, 6)) + ")"
		case "TIMESTAMP_LTZ":
			d.Postgres = "timestamptz(" + strconv.Itoa(min(d.Scale, 6)) + ")"
		default:
			d.Postgres = "snowsim.timestamp_tz"
		}
	case "VARIANT", "OBJECT", "ARRAY":
		d.Postgres = "snowsim." + strings.ToLower(canonical)
	}
	if d.Name == "NUMBER" {
		d.Postgres = "numeric(" + strconv.Itoa(d.Precision) + "," + strconv.Itoa(d.Scale) + ")"
	}
	return d
}

// cast writes e as a type.
func cast(e Expr, to Type) Expr {
	plain := e.Kind == StringConstant || e.Kind == BoundValue || e.Kind == Null
	if e.Kind == path {
		e = Expr{SQL: "(" + e.SQL + " #>> '{}')"}
		if to.Name == "VARCHAR" {
			plain = true
		}
	}
	switch to.Name {
	case "VARCHAR":
		if !plain {
			e.SQL = "snowsim.to_varchar(" + e.SQL + ")"
		}
		return Expr{SQL: e.SQL + "::" + to.Postgres}
	case "VARIANT", "OBJECT", "ARRAY":
		if plain {
			e.SQL += "::text"
		}
		return Expr{SQL: "to_jsonb(" + e.SQL + ")", Kind: path}
	case "TIMESTAMP_TZ":
		if plain {
			e.SQL += "::text"
		}
		return Expr{SQL: "snowsim.to_timestamp_tz(" + e.SQL + ")"}
	case "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "DATE", "TIME":
		if !plain {
			return Expr{SQL: "snowsim.to_" + strings.ToLower(to.Name) + "(" + e.SQL + ")"}
		}
	case "BINARY":
		return Expr{SQL: "snowsim.to_binary(" + e.SQL + ")"}
	}
	return Expr{SQL: "(" + e.SQL + ")::" + to.Postgres}
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
