package translate

import (
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// Describe is plan.Plan.Describe: Postgres's types as Snowflake's, and the names
// that Postgres cut short.
func (a *Account) Describe(fields []pgconn.FieldDescription) []protocol.Column {
	columns := make([]protocol.Column, len(fields))
	for i, f := range fields {
		columns[i] = columnOfField(f, a.timestampTZ)
		columns[i].Name = a.Display(f.Name)
	}
	return columns
}

func columnOfField(f pgconn.FieldDescription, timestampTZ uint32) protocol.Column {
	c := protocol.Column{Nullable: true}
	switch f.DataTypeOID {
	case pgtype.BoolOID:
		c.Type = "boolean"
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		c.Type, c.Precision = "fixed", 38
	case pgtype.NumericOID:
		c.Type, c.Precision, c.Scale = "fixed", 38, -1
		if f.TypeModifier >= 4 {
			c.Precision, c.Scale = int((f.TypeModifier-4)>>16), int((f.TypeModifier-4)&0xffff)
		}
	case pgtype.Float4OID, pgtype.Float8OID:
		c.Type = "real"
	case pgtype.DateOID:
		c.Type = "date"
	case pgtype.TimeOID:
		c.Type, c.Scale = "time", scaleOf(f)
	case pgtype.TimestampOID:
		c.Type, c.Scale = "timestamp_ntz", scaleOf(f)
	case pgtype.TimestamptzOID:
		c.Type, c.Scale = "timestamp_ltz", scaleOf(f)
	case timestampTZ:
		c.Type, c.Scale = "timestamp_tz", 9
	case pgtype.JSONOID, pgtype.JSONBOID:
		c.Type = "variant"
	case pgtype.ByteaOID:
		c.Type, c.Length, c.ByteLength = "binary", 8388608, 8388608
	default:
		c.Type, c.Length, c.ByteLength = "text", MaxText, MaxText
		if f.DataTypeOID == pgtype.VarcharOID && f.TypeModifier > 4 {
			c.Length = int(f.TypeModifier - 4)
			c.ByteLength = min(4*c.Length, MaxText)
		}
	}
	return c
}

// scaleOf is the number of decimals of seconds; a column that declares 6 may
// have been declared with up to 9, which Postgres does not have.
func scaleOf(f pgconn.FieldDescription) int {
	if f.TypeModifier >= 0 && f.TypeModifier < 6 {
		return int(f.TypeModifier)
	}
	return 9
}
