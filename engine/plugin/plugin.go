// Package plugin is the contract between the engine and plugins, version 1.
// plugins/host serves it through WebAssembly; plugintest is the conformance
// suite. The engine never sees a Wasm type.
package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
)

// The sentinel errors of the contract.
var (
	// ErrNotFound: no plugin of that name, version or hash.
	ErrNotFound = errors.New("no such plugin")
	// ErrRefused: the file is not a plugin this version accepts. The message says why.
	ErrRefused = errors.New("plugin refused")
	// ErrTrapped: the guest trapped, ran out of memory, or called exit. The instance is gone.
	ErrTrapped = errors.New("plugin trapped")
	// ErrOutOfFuel, an ErrTrapped: a call computed longer than it may.
	ErrOutOfFuel = fmt.Errorf("%w: out of fuel", ErrTrapped)
	// ErrOutOfTime, an ErrTrapped: a call held a processor longer than it may.
	ErrOutOfTime = fmt.Errorf("%w: out of time", ErrTrapped)
	// ErrTooDeep, an ErrTrapped: calls inside the guest were nested too deep.
	ErrTooDeep = fmt.Errorf("%w: calls nested too deep", ErrTrapped)
	// ErrOutOfMemory, an ErrTrapped: the guests of a plugin, or of all, hold as much
	// memory as they may.
	ErrOutOfMemory = fmt.Errorf("%w: no more memory for plugins", ErrTrapped)
	// ErrInvalidBatch: the guest returned a batch that does not decode or names
	// undeclared statements. The instance is gone.
	ErrInvalidBatch = errors.New("plugin returned an invalid batch")
	// ErrFailed: the guest reported an error of its own (ls_error).
	ErrFailed = errors.New("plugin reported an error")
	// ErrEnded: the workload's stream has ended.
	ErrEnded = errors.New("workload stream ended")
)

// The kinds of plugin.
const (
	KindWorkload = "workload"
	KindAdapter  = "adapter"
)

// Manifest is what ls_describe answers.
type Manifest struct {
	Kind        string          `json:"kind" enum:"workload,adapter"`
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Author      string          `json:"author,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // JSON Schema
	// Workload: the logical tables and the statements that do not depend on parameters.
	Tables []LogicalTable `json:"tables,omitempty"`
	// TablesVary is true when the tables depend on parameters: they are then asked
	// for with ls_call{"op":"tables"}, and Tables are those of the default parameters.
	TablesVary bool `json:"tables_vary,omitempty"`
	// Feed is true when the workload issues the operations of workload.feed, and none without.
	Feed       bool        `json:"feed,omitempty"`
	Statements []Statement `json:"statements,omitempty"`
	// Adapter: the driver it uses, its dialect, and what the table type supports.
	Driver  string        `json:"driver,omitempty"`
	Dialect string        `json:"dialect,omitempty"`
	Kinds   []engine.Kind `json:"kinds,omitempty"` // supported operation kinds; empty means all
	// Supports says more of an adapter's table type; nil leaves it open.
	Supports *Supports `json:"supports,omitempty"`
	// Sends is the SQL that an adapter may send; nil means DefaultSends.
	Sends *Sends `json:"sends,omitempty"`
	// Observes: the adapter answers OpObserve.
	Observes bool `json:"observes,omitempty"`
}

// Supports is what a table type can do.
type Supports struct {
	// ReadOnly: no statement under load may write.
	ReadOnly     bool `json:"read_only"`
	EnforcedKeys bool `json:"enforced_keys"`
	Indexes      bool `json:"indexes"` // secondary
	Clustering   bool `json:"clustering"`
	Transactions bool `json:"transactions"` // of several statements
	// GeneratesRows: the database makes sample rows of columns that have a Fill.
	GeneratesRows bool `json:"generates_rows"`
	// Reason says why Kinds or ReadOnly leave something out, and Instead what a user can do.
	Reason  string `json:"reason,omitempty"`
	Instead string `json:"instead,omitempty"`
}

// LogicalTable is a table that a workload needs.
type LogicalTable struct {
	Name string `json:"name"`
	// Columns of the sample table that is created when none exists.
	Columns []LogicalColumn `json:"columns"`
	Key     []string        `json:"key"`
	// Rows is how many sample rows the table begins with; 0 leaves it to
	// target.prepare.rows, unless the table is Empty.
	Rows int64 `json:"rows,omitempty"`
	// Empty: the table begins without rows (a history that runs write).
	Empty bool `json:"empty,omitempty"`
	// SizedBy names the number among the parameters that Rows is proportional to
	// (scale), for the error about an existing table of another size.
	SizedBy string `json:"sized_by,omitempty"`
	// Varies: runs add rows or delete some, so an existing table may hold any number.
	Varies bool `json:"varies,omitempty"`
	// AnyShape is true when the workload adapts to the columns of an existing
	// table (as mix does); otherwise an existing table must have these columns.
	AnyShape bool `json:"any_shape,omitempty"`
	// ComputedKeys: the workload knows every key and value it needs from Rows and its
	// parameters, so that nothing is sampled from the table.
	ComputedKeys bool `json:"computed_keys,omitempty"`
	// OwnKeys: the workload computes the keys of the rows that it has loaded, and takes sampled ones for others only.
	OwnKeys bool `json:"own_keys,omitempty"`
	// Inserts: the run inserts into the table as it is, with keys of rows that its foreign keys refer to. The adapter
	// looks for them (Free, and Values of an empty table) for no other run.
	Inserts bool `json:"inserts,omitempty"`
	// Indexes are made beside the key's, after the rows are loaded.
	Indexes []LogicalIndex `json:"indexes,omitempty"`
	// Options follow the columns when the table is created, keyed by dialect:
	// {"postgres": "WITH (fillfactor=100)"}.
	Options map[string]string `json:"options,omitempty"`
}

// LogicalIndex is a secondary index of a logical table.
type LogicalIndex struct {
	Columns []string `json:"columns"`
	Unique  bool     `json:"unique,omitempty"`
	// Include names columns kept in the index for reading, where the table type has that.
	Include []string `json:"include,omitempty"`
}

// LogicalColumn is a column of a logical table.
type LogicalColumn struct {
	Name     string           `json:"name"`
	Type     engine.ValueType `json:"type"`
	Nullable bool             `json:"nullable,omitempty"`
	// DBType overrides the adapter's choice, keyed by dialect: {"postgres": "numeric(12,2)"}.
	DBType map[string]string `json:"db_type,omitempty"`
	// Fill says how a database may make the column's sample values itself. Where all
	// columns of a table have one, rows need not be copied.
	Fill *Fill `json:"fill,omitempty"`
}

// Fill is how sample values of a column are made; rows count from 0. As is one
// of number, block, constant, integer, decimal, choice, letters, time; sdk.Fill
// says what each means.
type Fill struct {
	As     string   `json:"as"`
	From   int64    `json:"from,omitempty"`
	Step   int64    `json:"step,omitempty"`
	Min    int64    `json:"min,omitempty"`
	Max    int64    `json:"max,omitempty"`
	Scale  int64    `json:"scale,omitempty"`
	Prefix string   `json:"prefix,omitempty"`
	Values []string `json:"values,omitempty"`
}

// Statement is a statement that a workload declares.
type Statement struct {
	ID      string        `json:"id"`
	Kind    engine.Kind   `json:"kind"`
	Table   string        `json:"table,omitempty"` // logical
	Binds   []engine.Bind `json:"binds,omitempty"`
	Columns []string      `json:"columns,omitempty"`
	Writes  bool          `json:"writes,omitempty"`
	// Limit is the number of rows a RANGE_SCAN reads; 0 leaves it to a last bind without a column.
	Limit int `json:"limit,omitempty"`
	// SQL is the workload's own text by dialect; without it the adapter writes it.
	SQL map[string]string `json:"sql,omitempty"`
	// Transaction names the transactions that begin with this statement; "" means by its ID.
	Transaction string `json:"transaction,omitempty"`
	// Param is the parameter that asks for this statement, for the refusal by a table
	// type that does not support it: "weights.UPDATE".
	Param string `json:"param,omitempty"`
	// Note is a sentence for the run's notes.
	Note string `json:"note,omitempty"`
	// Hint is what helps when the database refuses the statement's values.
	Hint string `json:"hint,omitempty"`
	// NoRowsHint says what a user can do when it finds no rows.
	NoRowsHint string `json:"no_rows_hint,omitempty"`
	// BindOrder says, by dialect, which bind each parameter of SQL takes; see engine.Statement.
	BindOrder map[string][]int `json:"bind_order,omitempty"`
}

// Info is what inspecting a file tells.
type Info struct {
	engine.PluginRef
	SizeBytes int64    `json:"size_bytes"`
	ABI       string   `json:"abi"` // "1.0"
	Imports   []string `json:"imports"`
	Exports   []string `json:"exports"`
	Manifest  Manifest `json:"manifest"`
}

// Host loads plugins. It is safe for concurrent use.
type Host interface {
	// Inspect examines a file without registering it. A file that is not
	// acceptable returns ErrRefused with a sentence saying why.
	Inspect(ctx context.Context, wasm []byte) (Info, error)
	// Workload returns a plugin by "name", "name@version" or SHA-256.
	Workload(ctx context.Context, ref string) (Workload, error)
	// Adapter returns an adapter plugin likewise.
	Adapter(ctx context.Context, ref string) (Adapter, error)
	// List returns what is registered.
	List(ctx context.Context) ([]Info, error)
}

// OpenRequest is the document given to ls_open; a stream depends on it alone.
type OpenRequest struct {
	Seed     int64           `json:"seed"`
	KeySlot  int             `json:"key_slot"`
	KeySlots int             `json:"key_slots"`
	Params   json.RawMessage `json:"params"`
	Tables   []engine.Table  `json:"tables"`
	Pools    []engine.Pool   `json:"pools"`
	// Feed is what a stream that asks to be fed is given; nil when the run has no
	// feed. The stream closes it.
	Feed Feed `json:"-"`
	// Log takes what the plugin logs or prints, from INFO on and at a limited rate; dropped
	// lines were left out before it. It may be called from any goroutine that uses the stream; nil takes nothing.
	Log func(level engine.LogLevel, text string, dropped int) `json:"-"`
}

// Feed is operations from outside the plugin: a recording. Not safe for
// concurrent use.
type Feed interface {
	// Next puts the next operations into b: frozen statements, transactions whole,
	// and before an operation the delay since the one before it (the first: since
	// the beginning). At least one, or ErrEnded. What b holds is valid until the next call.
	Next(b *Batch) error
	Close() error
}

// Workload is a compiled workload plugin.
type Workload interface {
	Info() Info
	// Tables asks the plugin which tables it needs with these parameters (those of
	// the manifest when they do not vary). Rows counts tables in this order.
	Tables(ctx context.Context, params json.RawMessage) ([]LogicalTable, error)
	// Statements asks the plugin which statements it uses with these
	// parameters on these tables (manifest statements when it has no opinion).
	Statements(ctx context.Context, params json.RawMessage, tables []engine.Table) ([]Statement, error)
	// Rows writes the sample rows first … first+max-1 of a logical table (its
	// index in Tables). A pure function of its arguments. It may return fewer
	// rows than asked, at least one, or ErrEnded.
	Rows(ctx context.Context, params json.RawMessage, table int, first int64, max int) (Rows, error)
	// Open starts a stream on its own instance. statements is the run's frozen list.
	Open(ctx context.Context, req OpenRequest, statements []engine.Statement) (Stream, error)
}

// Rows are sample rows in decoded form.
type Rows interface {
	// Len is the number of rows.
	Len() int
	// Value returns column c of row r: nil, int64, float64, string, []byte, bool or time.Time.
	Value(r, c int) any
}

// Stream is one opened instance. It is not safe for concurrent use: one run
// worker owns it and its connections take batches under one lock. But Close may be called while
// a Fill is under way, which then fails, and does not wait for it.
type Stream interface {
	// Fill asks for at most max operations and decodes them into b, reusing its
	// memory; nothing of the guest's memory is referenced afterwards. A transaction
	// is never split: one that begins within max may end past it. Every BEGIN in b has
	// its end, and every ref in b lies in a transaction and names an earlier
	// operation of it. After any error but ErrEnded the stream is closed.
	Fill(b *Batch, max int) error
	Close() error
}

// Adapter is a compiled adapter plugin. Its operations are conversations: an
// answer either asks the host to run queries (and to call again with their
// results) or is final. Cold path only; safe for concurrent use.
type Adapter interface {
	Info() Info
	// Call sends one request document and returns the answer document.
	Call(ctx context.Context, request any, answer any) error
}
