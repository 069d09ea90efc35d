package plugin

import (
	"encoding/json"

	"github.com/loadstone-db/loadstone/engine"
)

// The operations of an adapter (ls_call).
const (
	// OpInspect: {table_name} → exists, table, pool. What is there now?
	OpInspect = "inspect"
	// OpDDL: {table_name, logical, recreate} → ddl, after_load, swap. How is the table made?
	// With recreate it may be built beside the one that is there, and swap puts it in its place.
	OpDDL = "ddl"
	// OpLoad: {table_name, logical, recreate, rows} → load. Where do sample rows go, and can the
	// database make them itself? Rows is given when it should.
	OpLoad = "load"
	// OpStatements: {tables, statements} → statements with SQL. Workload
	// statements that brought SQL for the adapter's dialect keep it.
	OpStatements = "statements"
	// OpSession: {isolation_level} → session, isolation_level. What runs on every
	// connect? The level is absent for the server's own; an adapter that sets it repeats it.
	OpSession = "session"
	// OpClassifyError: {} → classes, error codes (or prefixes of codes) to classes.
	OpClassifyError = "classify_error"
)

// AdapterRequest is the document of an adapter call. Fields an operation does not use are absent.
type AdapterRequest struct {
	Op        string `json:"op"`
	TableName string `json:"table_name,omitempty"`
	// Logical is the workload's table behind TableName.
	Logical  *LogicalTable `json:"logical,omitempty"`
	Recreate bool          `json:"recreate,omitempty"`
	// Params are the adapter's parameters (target.params), with its defaults filled in.
	Params     json.RawMessage `json:"params,omitempty"`
	Rows       int64           `json:"rows,omitempty"`
	Tables     []engine.Table  `json:"tables,omitempty"`
	Statements []Statement     `json:"statements,omitempty"`
	// IsolationLevel is one in the words of the SQL standard, in lower case.
	IsolationLevel string `json:"isolation_level,omitempty"`
	// Warehouse is what the run executes on: the scenario's, "" for the connection's own.
	Warehouse string `json:"warehouse,omitempty"`
	// RunID, From, To and NowMs are for OpEnrich: the interval in which the run
	// executed (RFC 3339), and the moment of the request (ms since 1970), on the host's clock.
	RunID string `json:"run_id,omitempty"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
	NowMs int64  `json:"now_ms,omitempty"`
	// Kinds and Connections are for OpPreflight: the kinds of the run's operations, and how many connections it opens.
	Kinds       []engine.Kind `json:"kinds,omitempty"`
	Connections int           `json:"connections,omitempty"`
	// Prepare is for OpPreflight too: the run makes tables that are not there; with
	// Recreate it drops those that are.
	Prepare bool `json:"prepare,omitempty"`
	// Access is for OpPreflight: what the run does to each table.
	Access []TableAccess `json:"access,omitempty"`
	// Lacks are the abilities of its database that the server has not, as target.ServerInfo has them:
	// the adapter does not ask for what needs them, and says what it did not look at.
	Lacks []string `json:"lacks,omitempty"`
	// Results holds the results of all queries asked for so far in this conversation, by query id.
	Results map[string]QueryResult `json:"results,omitempty"`
}

// TableAccess is what a run does to one of its tables.
type TableAccess struct {
	// Table is the workload's name of the table, TableName the one that OpInspect gets.
	Table     string `json:"table"`
	TableName string `json:"table_name"`
	// Rights are SQL's words for what the statements need: SELECT always, INSERT, UPDATE, DELETE, TRUNCATE.
	Rights []string `json:"rights"`
}

// Query is SQL that the adapter asks the host to run on its behalf, read only.
type Query struct {
	ID   string `json:"id"`
	SQL  string `json:"sql"`
	Args []any  `json:"args,omitempty"`
	// TimeoutMs bounds the query; when it passes, the result carries an error
	// instead of ending the conversation. 0 means the host's default.
	TimeoutMs int64 `json:"timeout_ms,omitempty"`
}

// KeyQuery reads keys of a table, spread over all of it, in the order of the key. The host runs it when the table is
// as the run finds it, takes the rows as they come, and packs them.
type KeyQuery struct {
	SQL string `json:"sql"`
	// Columns are those of the table that each row has.
	Columns []string `json:"columns"`
	// TimeoutMs bounds the query. Limit is how many keys it gives at most.
	TimeoutMs int64 `json:"timeout_ms,omitempty"`
	Limit     int64 `json:"limit"`
}

// QueryResult is what a Query gave. Values are JSON: null, number, string, bool;
// 64-bit integers beyond 2^53, numerics, uuids and times are strings.
type QueryResult struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
	Error   string   `json:"error,omitempty"`
	Code    string   `json:"code,omitempty"`
}

// AdapterAnswer is the answer document. When Queries is not empty the host runs
// them and calls again; at most 8 rounds.
type AdapterAnswer struct {
	Queries []Query       `json:"queries,omitempty"`
	Exists  bool          `json:"exists,omitempty"`
	Table   *engine.Table `json:"table,omitempty"`
	Pool    *engine.Pool  `json:"pool,omitempty"`
	// Values is a sample of whole rows, with the columns that constraints bind and those that cannot be invented.
	Values *engine.Pool `json:"values,omitempty"`
	// Free are parts of new rows, for a unique constraint whose columns foreign keys bind.
	Free *engine.Pool `json:"free,omitempty"`
	// Keys answers OpInspect: how the host reads the table's keys, if there are any to read.
	Keys      *KeyQuery `json:"keys,omitempty"`
	DDL       []string  `json:"ddl,omitempty"`
	AfterLoad []string  `json:"after_load,omitempty"`
	// Swap answers OpDDL with recreate: what puts the new table in the place of the old
	// one. It is executed in one transaction, together with that of the run's other tables.
	Swap       []string           `json:"swap,omitempty"`
	Load       *LoadTarget        `json:"load,omitempty"`
	Statements []engine.Statement `json:"statements,omitempty"`
	// Settle answers OpStatements: SQL that has the database check at once what it would check at COMMIT. With it the
	// statements that the adapter wrote are tried before the load, in a transaction that is rolled back.
	Settle string `json:"settle,omitempty"`
	// Trial answers OpStatements: those statements are tried too, where there is nothing for Settle to check.
	Trial   bool     `json:"trial,omitempty"`
	Session []string `json:"session,omitempty"`
	// IsolationLevel repeats the request's when Session sets it.
	IsolationLevel string                       `json:"isolation_level,omitempty"`
	Classes        map[string]engine.ErrorClass `json:"classes,omitempty"`
	// Enrich answers OpEnrich, Warehouse OpPoll and OpPreflight.
	Enrich    *EnrichPlan       `json:"enrich,omitempty"`
	Warehouse *engine.Warehouse `json:"warehouse,omitempty"`
	// AutoSuspendSeconds answers OpPreflight: after so many without a query the warehouse suspends; 0 is never, or not
	// known.
	AutoSuspendSeconds int `json:"auto_suspend_seconds,omitempty"`
	// TryWrites answers OpPreflight: what the workload brings that writes is tried before the load, too, in a transaction
	// that is rolled back. Nobody knows beforehand whether the target takes it.
	TryWrites bool `json:"try_writes,omitempty"`
	// Burst answers OpPreflight: the target's processors are slowed down when credits are used up that they save while
	// they are idle. It is "yes", or "unknown"; empty is no.
	Burst string `json:"burst,omitempty"`
	// Observe answers OpObserve.
	Observe *ObservePlan `json:"observe,omitempty"`
	// HousekeepingWarehouse answers OpPreflight: polls and enrichment run there, where the run's own warehouse is made for
	// queries only.
	HousekeepingWarehouse string `json:"housekeeping_warehouse,omitempty"`
	// Checks, Resume and Restore answer OpPreflight. Resume is executed before the
	// run's connections are opened, Restore when everything about the run is over.
	Checks  []Check  `json:"checks,omitempty"`
	Resume  []string `json:"resume,omitempty"`
	Restore []string `json:"restore,omitempty"`
	// Notes are sentences for the run's log.
	Notes []string `json:"notes,omitempty"`
	// Refused ends the conversation: the user has to change the template.
	Refused *Refusal `json:"refused,omitempty"`
}

// Refusal says what is wrong with what the user asked for.
type Refusal struct {
	// Field is a path in the template: "target.table_name".
	Field   string `json:"field"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// LoadTarget says where sample rows go: Columns are in the order of the
// logical table's columns.
type LoadTarget struct {
	Table   string          `json:"table"` // quoted by the adapter
	Columns []engine.Column `json:"columns"`
	// Generate makes all rows on the server, instead of copying them; executed in
	// this order.
	Generate []GenerateStatement `json:"generate,omitempty"`
	// Final is the table that AfterLoad makes of Table, where the type is filled
	// through another; else empty. Quoted by the adapter.
	Final string `json:"final,omitempty"`
}

// GenerateStatement is one statement that makes so many rows.
type GenerateStatement struct {
	SQL  string `json:"sql"`
	Rows int64  `json:"rows"`
}
