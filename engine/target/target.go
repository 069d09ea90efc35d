// Package target is the contract of native database drivers: what the load
// engine and the preparation of a run need of a database. Drivers
// (target/postgres, target/snowflake) implement it; targettest is the
// conformance suite. Adapters choose a driver by name.
package target

import (
	"context"
	"errors"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// Config is how to reach a database.
type Config struct {
	DSN secret.Secret
	// Session statements are executed on every connect.
	Session          []string
	StatementTimeout time.Duration
	ConnectTimeout   time.Duration // 0 means 10 s, or 2 s where Reconnects
	ApplicationName  string
	// Warehouse overrides the connection's, where the database has such a thing.
	Warehouse string
	// Prepared says whether sessions keep prepared statements; nil leaves it to the driver,
	// which sends statements with each operation where a pooler shares sessions.
	Prepared *bool
	// RunID and WorkerID mark the sessions of a run in the database's own history,
	// where it keeps one; empty for what belongs to no run.
	RunID, WorkerID string
	// Reconnects: lost connections are opened again. A host that does not answer is given up soon, for the next one.
	Reconnects bool
	// Own are databases of the server that gives this out, in which no connection may land.
	Own []engine.OwnDatabase
}

// Driver opens connections to one kind of database.
type Driver interface {
	Name() string
	// Open checks the config, without connecting.
	Open(cfg Config) (Database, error)
}

// Traits are what a kind of database has besides tables and queries.
type Traits struct {
	// Title names it in sentences.
	Title string
	// History: it keeps one of single queries, which adapters read. Warehouses: queries
	// are executed on such things, which can be polled, and suspended and resumed.
	History, Warehouses bool
}

// TraitsProvider is an optional ability of a Driver: it tells the traits of its databases.
type TraitsProvider interface{ Traits() Traits }

// DriverTraits are those of a driver's databases, none when it tells none.
func DriverTraits(d Driver) Traits {
	t := Traits{Title: "The target"}
	if d, ok := d.(TraitsProvider); ok {
		t = d.Traits()
	}
	return t
}

// Drivers are drivers by the names that plans have of them.
type Drivers map[string]Driver

// Traits are those of the database that a run with a plan has; none before there is a plan.
func (d Drivers) Traits(plan *engine.Plan) Traits {
	if plan == nil {
		return Traits{}
	}
	return DriverTraits(d[plan.Driver])
}

// MaxResult bounds what Query reads, in bytes.
const MaxResult = 8 << 20

// ErrTooLarge is the error of a query whose rows have more than MaxResult bytes.
var ErrTooLarge = errors.New("the rows have more than 8 MB")

// Database is one reachable database.
type Database interface {
	// Check connects once and returns what it found. Errors are user-facing
	// (*engine.Error, CodeTarget): unreachable host, wrong password, no such database …
	Check(ctx context.Context) (ServerInfo, error)
	// Query runs one SQL text with text arguments and returns all rows; for
	// preparation and inspection, never for load. It is ErrTooLarge when they have
	// more than MaxResult bytes; the rest is not read.
	Query(ctx context.Context, sql string, args ...any) (*ResultSet, error)
	// Exec runs SQL texts one after the other, each on its own.
	Exec(ctx context.Context, sql ...string) error
	// Load copies rows into a table as fast as the database allows and reports
	// the rows so far through progress. next returns the next rows or nil at the end.
	// Either all rows are in afterwards or, on an error, none. next and progress
	// may run on another goroutine, one call at a time and none after the return.
	Load(ctx context.Context, table string, columns []engine.Column, next func() (plugin.Rows, error),
		progress func(rows int64)) (int64, error)
	// Connect opens one connection for load, with its session statements run and
	// the frozen statements prepared.
	Connect(ctx context.Context, statements []engine.Statement) (Conn, error)
	// Classify maps an error of this database onto a class; it never returns nil's class.
	Classify(err error) engine.ExecutionError
	// Close frees what Query, Exec and Load hold. Load connections are closed by their owners.
	Close() error
}

// ServerInfo tells what answered.
type ServerInfo struct {
	Version  string `json:"version"`
	Database string `json:"database"`
	User     string `json:"user"`
	// Local is true for a unix socket or a loopback address.
	Local bool `json:"local"`
	// Simulated is true for a stand-in that models a database: its figures say
	// nothing about the database that it stands in for.
	Simulated bool `json:"simulated"`
	// Emulated is true, and Simulated too, where another engine answers in the
	// database's place and models nothing: its times are that engine's.
	Emulated bool `json:"emulated"`
	// Lacks are the abilities that the database is expected to have and this server has
	// not: an emulator answers only some of what it stands in for. Empty for the database itself.
	Lacks []string `json:"lacks,omitempty"`
	// Pooled is true where sessions are a pooler's, which may give every transaction another one.
	Pooled         bool          `json:"pooled,omitempty"`
	MaxConnections int           `json:"max_connections"`
	RoundTrip      time.Duration `json:"-"`
	// Notes are sentences on what is remarkable and no failure.
	Notes []string `json:"notes,omitempty"`
}

// What a server may lack, as its driver finds out once, in Check.
const (
	// LacksWarehouses: it has no warehouses to look at, to resume or to poll.
	LacksWarehouses = "warehouses"
	// LacksGrants: it does not tell roles and what is granted to them.
	LacksGrants = "grants"
	// LacksHistory: it keeps no history of single queries.
	LacksHistory = "history"
	// LacksGenerator: it cannot make sample rows itself, so they are copied to it.
	LacksGenerator = "generator"
	// LacksSwap: it cannot put a table in another's place in one step.
	LacksSwap = "swap"
)

// ResultSet is a small, fully read result.
type ResultSet struct {
	Columns []string `json:"columns"`
	// Rows hold nil, int64, float64, string, bool or time.Time.
	Rows [][]any `json:"rows"`
}

// Result is what one execution gave.
type Result struct {
	Rows int32
	// QueryID is the database's name for the query; zero when it has none. It is
	// there for a query that failed, too, when the database had given it one.
	QueryID engine.QueryID
	// FirstByte is when the first byte of the answer had been read: what follows is
	// the decoding. It is zero when the driver does not know, and after Receive, where
	// the event loop knows it better.
	FirstByte time.Time
}

// Streamer is an optional ability of a Database: results of any size.
type Streamer interface {
	// Stream runs one SQL text as Query does, without its limit of bytes, and calls
	// row for each row as it arrives, after columns with their names. The values are as
	// in ResultSet; the slice is reused. An error of either ends the query and is returned.
	Stream(ctx context.Context, sql string, args []any, columns func(names []string) error,
		row func(values []any) error) error
}

// Stream runs a query on db row by row, through Query when db cannot stream.
func Stream(ctx context.Context, db Database, sql string, args []any, columns func(names []string) error,
	row func(values []any) error) error {
	if s, ok := db.(Streamer); ok {
		return s.Stream(ctx, sql, args, columns, row)
	}
	rs, err := db.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	if err := columns(rs.Columns); err != nil {
		return err
	}
	for _, values := range rs.Rows {
		if err := row(values); err != nil {
			return err
		}
	}
	return nil
}

// Conn is one load connection; one goroutine (or event loop) uses it at a time.
type Conn interface {
	// Exec runs one operation of the batch and waits for its end. The error is
	// the database's or the network's; Broken tells whether the connection survived it.
	Exec(ctx context.Context, b *plugin.Batch, op plugin.Op, res *Result) error
	// Broken reports that the connection cannot be used any more.
	Broken() bool
	// Cancel asks the server to cancel what is in flight, and does nothing when nothing is; safe to call from another
	// goroutine.
	Cancel(ctx context.Context) error
	// Close may be called from another goroutine, and twice; an Exec under way
	// then returns an error of class connection.
	Close() error
}

// ErrNoAnswer is in the error of an operation that was sent and whose answer never came, or not to its end: whether the
// database has done what it asked for is not known.
var ErrNoAnswer = errors.New("no answer came")

// NotSent marks the error of an operation whose request was not sent to its end: the database has not executed it.
func NotSent(err error) error { return notSentError{err} }

// WasNotSent reports whether an error is marked so.
func WasNotSent(err error) bool {
	var marked notSentError
	return errors.As(err, &marked)
}

type notSentError struct{ error }

func (e notSentError) Unwrap() error { return e.error }

// IdleConn is an optional ability of a Conn: it tells whether the other side has closed it while nothing was in flight.
type IdleConn interface {
	// Lost does not wait, and reads nothing. It may be called while nobody calls Exec; what is not known is false.
	Lost() bool
}

// Transaction is where a session stands, as the server said with its last answer.
type Transaction uint8

const (
	// TransactionUnknown is where the driver is not told, or the connection is lost.
	TransactionUnknown Transaction = iota
	// TransactionNone is outside of any transaction.
	TransactionNone
	// TransactionOpen is inside one that takes statements.
	TransactionOpen
	// TransactionFailed is inside one that takes nothing but its end.
	TransactionFailed
)

// CodeTransactionState is the code of an operation after which the session did not stand where the workload has it. The
// driver closes such a connection; the server did not.
const CodeTransactionState = "transaction_state"

// TransactionConn is an optional ability of a Conn: it knows where its session stands.
type TransactionConn interface {
	// Transaction may be called by who may call Exec, between operations.
	Transaction() Transaction
}

// TransactionOf is where the session of a connection stands.
func TransactionOf(c Conn) Transaction {
	if t, ok := c.(TransactionConn); ok {
		return t.Transaction()
	}
	return TransactionUnknown
}

// EventConn is an optional ability of a Conn: an event loop sends an operation
// and takes its answer when the socket has something to read, instead of blocking in Exec.
//
// From Enter to Leave only the loop uses Send, Flush, Touch and Receive, one goroutine
// at a time, and Exec is not called. Broken, Cancel and Close work as ever: Close ends
// what is in flight and wakes the loop, and the socket itself stays open until Leave.
type EventConn interface {
	Conn
	// Attach hands the socket to an event loop and returns its file descriptor,
	// which does not block. ok is false where that cannot be: TLS, other systems.
	Attach() (fd int, ok bool)
	// Detach takes the socket back; Close must follow.
	Detach()
	// Begin encodes an operation: into buf where that has room, else into memory that stays as it is until the operation
	// has ended. The loop sends request, unless there is an error: nothing is in flight then.
	Begin(buf []byte, b *plugin.Batch, op plugin.Op) (request []byte, err error)
	// Prefetch reads the memory that Feed is going to need, so that a loop can wait for
	// that of many connections at once. What it returns is of no use.
	Prefetch() int64
	// Feed takes bytes that have arrived. With done, res and err are as Exec gives them, or, where nothing was in
	// flight, err is why the connection is lost; without, the loop waits for more. A reply is short, and is sent first.
	Feed(data []byte, res *Result) (done bool, reply []byte, err error)
	// Fail ends the operation in flight, or the idle connection, whose socket has failed; io.EOF is the end of the
	// stream. It returns the operation's error.
	Fail(cause error, res *Result) error
}

// Identifier is an optional ability of a Database: it tells which server answers, on a connection beside the load.
type Identifier interface {
	Identity(ctx context.Context) (engine.ServerIdentity, error)
}

// CheckLimiter is an optional ability of a Database: it says how long Check may take as it was configured, with several
// hosts that are tried one after the other.
type CheckLimiter interface{ CheckLimit() time.Duration }

// Reader is an optional ability of a Database: queries that cannot write.
type Reader interface {
	// Read is Query in a transaction that only reads, ended by the database itself after
	// limit. An error about a lock that is held too long is user-facing, and names its holder.
	Read(ctx context.Context, sql string, limit time.Duration, args ...any) (*ResultSet, error)
}

// Read runs a query that reads, through Query when db has no better way.
func Read(ctx context.Context, db Database, sql string, limit time.Duration, args ...any) (*ResultSet, error) {
	if r, ok := db.(Reader); ok {
		return r.Read(ctx, sql, limit, args...)
	}
	return db.Query(ctx, sql, args...)
}

// LockLimiter is an optional ability of a Database: a statement that bounds, until the end of the transaction, how long
// each wait for a lock may last.
type LockLimiter interface {
	LockLimit(limit time.Duration) string
}

// RowReader is an optional ability of a Database: reading results of any size, by queries that cannot write.
type RowReader interface {
	// ReadRows is Read without its limit of bytes, and calls row for each row as it arrives. The slice of values is
	// reused. An error of row ends the query and is returned.
	ReadRows(ctx context.Context, sql string, limit time.Duration, row func(values []any) error) error
}

// ReadRows reads row by row, through Stream when db has no better way.
func ReadRows(ctx context.Context, db Database, sql string, limit time.Duration, row func(values []any) error) error {
	if r, ok := db.(RowReader); ok {
		return r.ReadRows(ctx, sql, limit, row)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return Stream(ctx, db, sql, nil, func([]string) error { return nil }, row)
}

// TableMarker is an optional ability of a Database: it keeps apart the tables that
// Loadstone made, and finds out what statements write to.
type TableMarker interface {
	// Mark notes in the database that Loadstone made a table, named as an adapter
	// quotes it. The note is bound to the very table: a copy or a successor of its name has none.
	Mark(ctx context.Context, table string) error
	// MarkSQL is what Mark executes, for a user to execute once on a table that a version
	// of Loadstone made which left no mark.
	MarkSQL(ctx context.Context, table string) (string, error)
	// Owned reports for each table whether Loadstone made it; false for one that is not there.
	Owned(ctx context.Context, tables ...string) ([]bool, error)
	// Writes lists what the statements write to, without executing any. Statements that
	// the database does not take, for want of a table too, are left out.
	Writes(ctx context.Context, statements []engine.Statement) ([]WriteTarget, error)
}

// Swapper is an optional ability of a Database: tables that were built beside others
// take their places. A database without it takes one text of several statements as one transaction.
type Swapper interface {
	// Swap executes what an adapter answered as its swap, all of it or, on an error, nothing.
	Swap(ctx context.Context, statements []string) error
}

// WriteTarget is a table that statements write to, or what else they may change.
type WriteTarget struct {
	// Table is its name with its schema, quoted where SQL wants it so.
	Table string `json:"table"`
	// Opaque: Table is a function or procedure, and what it writes is not known.
	Opaque bool `json:"opaque,omitempty"`
	// Operations are INSERT, UPDATE, DELETE, MERGE, TRUNCATE, CALL.
	Operations []string `json:"operations"`
	// Statements are the ids of those that write.
	Statements []string `json:"statements"`
	// Own: Loadstone made the table. System: the database's own catalog.
	Own    bool `json:"own"`
	System bool `json:"system,omitempty"`
	// Rows is about how many rows it has, -1 when that is not known.
	Rows int64 `json:"rows"`
	// Triggers are its own, and those of its partitions and of the tables that inherit from it.
	Triggers   int `json:"triggers"`
	Partitions int `json:"partitions,omitempty"`
	// Children inherit from it: what is done to its rows is done to theirs.
	Children int `json:"children,omitempty"`
	// ForeignServer has the rows, which are those of another database.
	ForeignServer string `json:"foreign_server,omitempty"`
	// View: Table is a view, whose triggers or rules write what they are made to write.
	View bool `json:"view,omitempty"`
	// Cascades are the tables that foreign keys change along with it.
	Cascades    []string `json:"cascades"`
	RowSecurity bool     `json:"row_security"`
}

// Observable is an optional ability of a Database: one connection that reads what the server does beside a load.
type Observable interface {
	// OpenObserver opens it. No statement on it can write, none is in a transaction, and the database ends each after
	// limit.
	OpenObserver(ctx context.Context, limit time.Duration) (Observer, error)
}

// Observer is such a connection; one goroutine at a time uses it.
type Observer interface {
	// Read runs a statement that has no parameters, prepared when it is asked for the first time. It gives up, and the
	// connection with it, when the answer is not there after twice the limit, or has more than MaxObserved bytes.
	Read(ctx context.Context, sql string) (*ResultSet, error)
	// Broken reports that the connection cannot be used any more.
	Broken() bool
	Close() error
}

// RunMarkLength is how much of a run's id its sessions are marked with, where their database shows a name of the
// client.
const RunMarkLength = 8

// MaxObserved bounds one answer to an Observer, in bytes.
const MaxObserved = 4 << 20
