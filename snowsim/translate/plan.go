package translate

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/snowsim/history"
	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// Host is the server as the translator sees it. It is safe for concurrent use.
type Host interface {
	// Postgres is the database that holds all data. The translator uses it for a
	// catalog of its own; statements of a session run on the session's connection.
	Postgres() *pgxpool.Pool
	// Warehouses are the account's warehouses.
	Warehouses() Warehouses
	// History holds the executions so far.
	History() *history.Store
	// Now is the account's time, UTC.
	Now() time.Time
	// Roles are the roles that exist, in upper case.
	Roles() []string
	// Transactions are the open ones, AbortTransaction undoes one; by is the session that asks for it.
	Transactions() []OpenTransaction
	AbortTransaction(ctx context.Context, id, by int64) error
	// Database names the database and the schema that exist from the start.
	Database() (database, schema string)
}

// Warehouses is the account's list of warehouses. Names are as stored: upper
// case unless they were quoted. Errors are *Error.
type Warehouses interface {
	// List returns the warehouses sorted by name, as in SHOW WAREHOUSES.
	List() []warehouse.State
	// Get returns one of them.
	Get(name string) (warehouse.State, bool)
	// Create adds a warehouse.
	Create(spec warehouse.Spec) error
	// Alter changes the spec of a warehouse by calling change on a copy.
	Alter(name string, change func(*warehouse.Spec) error) error
	Drop(name string) error
	Resume(name string) error
	Suspend(name string) error
}

// Session is the session of a statement: a copy that the server makes
// for the statement. Names are as stored (upper case unless quoted), empty when not set.
type Session struct {
	ID        int64
	User      string
	Account   string
	Role      string
	Warehouse string
	Database  string
	Schema    string
	// Parameters are the session's parameters by upper-case name: those that were set, and the defaults.
	Parameters map[string]string
	// Defaults are what the user and the account decide where the session sets nothing.
	Defaults map[string]Default
	// Transaction reports whether a transaction is open.
	Transaction bool
	// TransactionID names it.
	TransactionID int64
	// DescribeOnly: the statement is not executed, and its ? need no values.
	DescribeOnly bool
}

// Default is the value of a session parameter that a user or the account has set.
type Default struct{ Value, Level string }

// Plan is how one statement is executed. SQL or Local is set, or neither for a
// statement without work of its own (BEGIN, USE).
type Plan struct {
	Type protocol.StatementType

	// SQL is one Postgres statement with $1 … $n.
	SQL string
	// Params are the values of $1 … $n.
	Params []protocol.Param
	// Before runs on the same connection in the same transaction as SQL, which the server
	// opens when the session has none. When it is set, SQL may be empty.
	Before func(ctx context.Context, conn *pgx.Conn) error
	// Columns are the result's columns; nil leaves it to Describe.
	Columns []protocol.Column
	// Describe returns the columns for those of Postgres; it is set where SQL is and Columns is not.
	Describe func(fields []pgconn.FieldDescription) []protocol.Column

	// Status is what the statement reports when it has no rows of its own; empty is
	// "Statement executed successfully."
	Status string

	// Local answers the statement in Go.
	Local func(ctx context.Context) (*Result, error)

	// Transaction begins or ends the session's transaction.
	Transaction Transaction
	// TransactionName is the name of one that is begun, if it has one.
	TransactionName string
	// Effect changes the session when the plan has succeeded.
	Effect Effect
	// DDL ends a transaction first, as in Snowflake, and forgets prepared statements.
	DDL bool
	// Work is the load on a warehouse; the zero value needs none.
	Work warehouse.Work
	// Tables are all tables that the statement names, DATABASE.SCHEMA.TABLE.
	Tables []string
	// Creates reports that the statement creates a table, which an interactive warehouse refuses.
	Creates bool
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

// Result is an answer made in Go. A row has nil, string, int64 or time.Time.
type Result struct {
	Columns []protocol.Column
	Rows    [][]any
}

// Status is the result of statements that only report success.
func Status(message string) *Result {
	return &Result{Columns: []protocol.Column{protocol.Text("status")}, Rows: [][]any{{message}}}
}

// statusPlan is a plan that only reports success.
func (p *parser) statusPlan(message string) *Plan {
	return &Plan{Type: protocol.DDL,
		Local: func(context.Context) (*Result, error) { return Status(message), nil }}
}

// ddlPlan is a plan that changes the catalog in a transaction of its own.
func (p *parser) ddlPlan(message string, do step) *Plan {
	p.volatile = true
	return &Plan{Type: protocol.DDL, DDL: true, Before: do, SQL: "SELECT " + literal(message) +
		"::text AS status",
		Columns: []protocol.Column{protocol.Text("status")},
		Params:  []protocol.Param{}}
}

// showPlan answers a SHOW with rows made in Go.
func (p *parser) showPlan(r *Result) *Plan {
	return &Plan{Type: protocol.Show, Local: func(context.Context) (*Result, error) { return r, nil }}
}

// step is something to be done on the connection before the statement.
type step func(ctx context.Context, conn *pgx.Conn) error
