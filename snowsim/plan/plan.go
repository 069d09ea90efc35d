// Package plan is the seam between the stand-in's server, which speaks
// Snowflake's protocol and keeps sessions, and its translator, which knows SQL.
//
// For each statement the translator makes a Plan. A plan either runs SQL on
// Postgres or is answered in Go (SHOW, USE, history); it may change the session,
// and it tells the warehouse model what the statement costs. The server runs
// the plan on the session's Postgres connection, in the session's transaction,
// encodes the rows in Snowflake's formats and records the execution.
package plan

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/snowsim/history"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// Host is what a translator may ask of the server. It is safe for concurrent use.
type Host interface {
	// Postgres is the database that holds all data. The translator uses it for a
	// catalog of its own; statements of a session run on the session's connection.
	Postgres() *pgxpool.Pool
	// Warehouses are the account's warehouses.
	Warehouses() Warehouses
	// Cancel ends the statement with a query id, when it runs; Abort ends all on a
	// warehouse and returns how many there were.
	Cancel(queryID string) bool
	Abort(warehouse string) int
	// History holds the executions so far.
	History() *history.Store
	// Now is the account's time, UTC.
	Now() time.Time
	// Roles are the roles that exist, in upper case.
	Roles() []string
	// Database names the database and the schema that exist from the start.
	Database() (database, schema string)
}

// Warehouses is the account's list of warehouses. Names are as stored: upper
// case unless they were quoted. Errors are *Error.
type Warehouses interface {
	// List returns the warehouses sorted by name, as SHOW WAREHOUSES tells them.
	List() []warehouse.State
	// Get returns one of them.
	Get(name string) (warehouse.State, bool)
	// Create makes a warehouse; replace drops one of the same name first.
	Create(spec warehouse.Spec, replace bool) error
	// Alter changes the spec of a warehouse by calling change on a copy.
	Alter(name string, change func(*warehouse.Spec) error) error
	Drop(name string) error
	Resume(name string) error
	Suspend(name string) error
}

// Translator turns Snowflake's SQL into plans. It is safe for concurrent use.
type Translator interface {
	// Plan translates one statement. It is called for every execution, so texts
	// that repeat should be remembered. Errors that a client should see are *Error.
	Plan(ctx context.Context, s *Session, sql string, binds []Bind) (*Plan, error)
	// Split splits a text into its statements, comments and trailing semicolons
	// removed; one statement gives one element, none gives none.
	Split(sql string) ([]string, error)
}

// Session is what a statement is translated in: a copy that the server makes
// for the statement. Names are as stored (upper case unless quoted), empty when not set.
type Session struct {
	ID        int64
	User      string
	Account   string
	Role      string
	Warehouse string
	Database  string
	Schema    string
	// Parameters are the session's parameters by upper-case name, those that were set.
	Parameters map[string]string
	// QueryID is the id of this statement, LastQueryID that of the one before.
	QueryID     string
	LastQueryID string
	// Transaction reports whether BEGIN was said and neither COMMIT nor ROLLBACK.
	Transaction bool
	// DescribeOnly: the statement is not executed, and its ? need no values.
	DescribeOnly bool
}

// Bind is one bound value, as it will be given to the statement.
type Bind struct {
	// Type is Snowflake's name in lower case: "fixed", "real", "text", "boolean",
	// "date", "time", "timestamp_ntz", "timestamp_ltz", "timestamp_tz", "binary", "variant", …
	Type string
	// Array is true for an array bind: the statement runs once for each element,
	// Value is then the first one's.
	Array bool
	// Value is the value as Postgres reads it as text; nil is NULL.
	Value *string
}

// Plan is how one statement is executed. SQL or Local is set, or neither for a
// statement without work of its own (BEGIN, USE).
type Plan struct {
	Type StatementType

	// SQL is one Postgres statement with $1 … $n.
	SQL string
	// Params tells for each of $1 … $n what goes there.
	Params []Param
	// Before and After run on the same connection in the same transaction as SQL,
	// which the server opens when the session has none. With one of them set, SQL may be empty.
	Before, After func(ctx context.Context, conn *pgx.Conn) error
	// Columns are the result's columns. nil leaves it to Describe, and without
	// that to the server: a Postgres type has a Snowflake type of its own.
	Columns []Column
	// Describe returns the columns for Postgres's.
	Describe func(fields []pgconn.FieldDescription) []Column

	// Status is what the statement reports when it has no rows of its own; empty is
	// "Statement executed successfully."
	Status string

	// Local answers the statement in Go.
	Local func(ctx context.Context) (*Result, error)

	// Transaction begins or ends the session's transaction.
	Transaction Transaction
	// Effect changes the session when the plan has succeeded.
	Effect Effect
	// DDL ends a transaction first, as in Snowflake, and forgets prepared statements.
	DDL bool
	// Work is what the statement asks of a warehouse; the zero value asks for none.
	Work warehouse.Work
	// Table is the table that is read or written, for the history; Tables are all that
	// the statement names, DATABASE.SCHEMA.TABLE.
	Table  string
	Tables []string
	// Creates: the statement makes a table, which an interactive warehouse does not.
	Creates bool
}

// Param is one parameter of a plan's SQL.
type Param struct {
	// Bind is the index of the bound value, from 0.
	Bind int
	// OID is the parameter's Postgres type; 0 leaves it to Postgres.
	OID uint32
}

// Effect is a change of the session. An empty pointer leaves things as they are.
type Effect struct {
	Database, Schema, Role, Warehouse *string
	// Set are parameters to set, Unset those to forget, both by upper-case name.
	Set   map[string]string
	Unset []string
}

// Transaction is what a statement does to the transaction.
type Transaction int

// The statements of transactions.
const (
	None Transaction = iota
	Begin
	Commit
	Rollback
)

// StatementType is Snowflake's statementTypeId.
type StatementType int64

// Statement types as the protocol numbers them. Drivers look at Select, at the
// range of DML and at Multi.
const (
	Select           StatementType = 0x1000
	Insert           StatementType = 0x3100
	Update           StatementType = 0x3200
	Delete           StatementType = 0x3300
	Merge            StatementType = 0x3400
	MultiTableInsert StatementType = 0x3500
	AlterSession     StatementType = 0x4100
	Use              StatementType = 0x4300
	Show             StatementType = 0x4400
	Describe         StatementType = 0x4500
	TransactionType  StatementType = 0x5000
	DDL              StatementType = 0x6000
	Multi            StatementType = 0xA000
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

// Result is an answer made in Go. A row has nil, string, int64, float64, bool,
// time.Time, []byte, or anything that prints for a number ("12.50").
type Result struct {
	Columns []Column
	Rows    [][]any
}

// Text is a column VARCHAR of the greatest length.
func Text(name string) Column {
	return Column{Name: name, Type: "text", Length: 16777216, ByteLength: 16777216, Nullable: true}
}

// Number is a column NUMBER(38, 0).
func Number(name string) Column {
	return Column{Name: name, Type: "fixed", Precision: 38, Nullable: true}
}

// Decimal is a column NUMBER(38, scale).
func Decimal(name string, scale int) Column {
	return Column{Name: name, Type: "fixed", Precision: 38, Scale: scale, Nullable: true}
}

// TimestampLTZ is a column TIMESTAMP_LTZ(3), as SHOW and the history have it.
func TimestampLTZ(name string) Column {
	return Column{Name: name, Type: "timestamp_ltz", Scale: 3, Nullable: true}
}

// Status is the result of statements that only report success.
func Status(message string) *Result {
	return &Result{Columns: []Column{Text("status")}, Rows: [][]any{{message}}}
}

// Error is an error as a Snowflake account reports it.
type Error struct {
	// Code is Snowflake's number with leading zeros, "002003"; State the SQLSTATE.
	Code, State string
	Message     string
	Cause       error
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%s): %s", e.Code, e.State, e.Message) }

func (e *Error) Unwrap() error { return e.Cause }

// CompilationError is an error that is found before a statement runs.
func CompilationError(code, state, format string, args ...any) *Error {
	return &Error{Code: code, State: state, Message: "SQL compilation error:\n" + fmt.Sprintf(format, args...)}
}

// SyntaxError is 001003; message ends Snowflake's sentence, "syntax error line 1 at position 7 unexpected 'FORM'."
func SyntaxError(format string, args ...any) *Error {
	return CompilationError("001003", "42000", format, args...)
}

// DoesNotExist is 002003 for an object of a kind: "Table", "Schema", "Object" …
func DoesNotExist(kind, name string) *Error {
	return CompilationError("002003", "42S02", "%s '%s' does not exist or not authorized.", kind, name)
}

// Unsupported is 000002, what an account like this one cannot do.
func Unsupported(format string, args ...any) *Error {
	return &Error{Code: "000002", State: "0A000", Message: "Unsupported feature '" + fmt.Sprintf(format, args...) + "'."}
}

// NotSimulated is 000002 for what an account can do and the stand-in cannot; it says so,
// and where to read what it can.
func NotSimulated(format string, args ...any) *Error {
	e := Unsupported(format, args...)
	e.Message += " It is not simulated: docs/snowflake.md lists the SQL that the stand-in understands."
	return e
}
