package protocol

// StatementType is Snowflake's statementTypeId.
type StatementType int64

// Statement types as the protocol numbers them. Drivers look at Select, at the
// range of DML.
const (
	Select          StatementType = 0x1000
	Insert          StatementType = 0x3100
	Update          StatementType = 0x3200
	Delete          StatementType = 0x3300
	AlterSession    StatementType = 0x4100
	Use             StatementType = 0x4300
	Show            StatementType = 0x4400
	TransactionType StatementType = 0x5000
	DDL             StatementType = 0x6000
)

// Column is one column of a result, with Snowflake's metadata.
type Column struct {
	Name string
	// Type is the wire name: "fixed", "real", "text", "boolean", "date", "time",
	// "timestamp_ntz", "timestamp_ltz", "timestamp_tz", "variant", "object", "array", "binary".
	Type       string
	Precision  int
	Scale      int
	Length     int // characters or bytes of text and binary
	ByteLength int
	Nullable   bool
}

// Text is a column VARCHAR of the greatest length.
func Text(name string) Column {
	return Column{Name: name, Type: "text", Length: 16777216, ByteLength: 16777216, Nullable: true}
}

// Number is a column NUMBER(38, 0).
func Number(name string) Column {
	return Column{Name: name, Type: "fixed", Precision: 38, Nullable: true}
}

// TimestampLTZ is a column TIMESTAMP_LTZ(3), as SHOW and the history have it.
func TimestampLTZ(name string) Column {
	return Column{Name: name, Type: "timestamp_ltz", Scale: 3, Nullable: true}
}
