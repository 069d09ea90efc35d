package sdk

import "github.com/loadstone-db/loadstone/sdk/jsondoc"

// Query is SQL that an adapter asks the host to run on its behalf, reading only.
type Query struct {
	ID, SQL string
	// Args are the values of the query's parameters, as text.
	Args []string
	// TimeoutMs bounds the query, in ms; 0 leaves it to the host. When it passes, the
	// result carries an error.
	TimeoutMs int64
}

// Result is what a Query gave.
type Result struct {
	// Asked is false as long as the query was not asked for.
	Asked bool
	// Columns are the names of the result's columns; SHOW commands are read by them.
	Columns []string
	// Rows is an array of arrays.
	Rows *jsondoc.Value
	// Err is the database's error, "" when there was none; Code is its code.
	Err, Code string
}

// ResultOf returns the result of an earlier query of the conversation.
func ResultOf(req *jsondoc.Value, id string) Result {
	r := req.Get("results").Get(id)
	return Result{Asked: r != nil, Columns: r.Get("columns").Strings(), Rows: r.Get("rows"), Err: r.Get("error").Str(),
		Code: r.Get("code").Str()}
}

// Ask answers a request with queries: the host runs them, and calls again with
// their results. At most 8 times in a conversation.
func Ask(w *jsondoc.Writer, queries ...Query) {
	w.Object().Key("queries").Array()
	for _, q := range queries {
		w.Object().Key("id").Str(q.ID).Key("sql").Str(q.SQL)
		if len(q.Args) > 0 {
			w.Key("args").Strs(q.Args)
		}
		if q.TimeoutMs > 0 {
			w.Key("timeout_ms").Int(q.TimeoutMs)
		}
		w.EndObject()
	}
	w.EndArray().EndObject()
}

// RefusalError is an error about what the user asked for: it names the field of the
// template that has to be changed, and says how.
type RefusalError struct {
	// Field is a path in the template: "target.table_name".
	Field string
	// Message says what is wrong, and Hint what to do.
	Message, Hint string
}

func (r *RefusalError) Error() string { return r.Message }

// Write writes the answer that refuses a request.
func (r *RefusalError) Write(w *jsondoc.Writer) {
	w.Object().Key("refused").Object().Key("field").Str(r.Field).Key("message").Str(r.Message)
	optional(w, "hint", r.Hint)
	w.EndObject().EndObject()
}

// Sends is the SQL that an adapter may send, as patterns with the places {name},
// {table} (one of the run's), {value} and {*}; docs/extend/write-an-adapter.md says how they read. The
// host refuses everything else.
type Sends struct{ Query, Statements, DDL, Session []string }

// Supports is what a table type can do.
type Supports struct {
	// ReadOnly: no statement under load may write.
	ReadOnly bool
	// Keys are enforced, secondary Indexes exist, tables may be Clustered by columns,
	// and Transactions take several statements.
	EnforcedKeys, Indexes, Clustering, Transactions bool
	// GeneratesRows: the database makes sample rows of columns that have a Fill.
	GeneratesRows bool
	// Reason says why Kinds or ReadOnly leave something out, and Instead what a user can do.
	Reason, Instead string
}

func (s *Supports) write(w *jsondoc.Writer) {
	w.Object().Key("read_only").Bool(s.ReadOnly).Key("enforced_keys").Bool(s.EnforcedKeys).Key("indexes").Bool(s.Indexes).
		Key("clustering").Bool(s.Clustering).Key("transactions").Bool(s.Transactions).Key("generates_rows").
		Bool(s.GeneratesRows)
	optional(w, "reason", s.Reason)
	optional(w, "instead", s.Instead)
	w.EndObject()
}
