package sdk

import "github.com/loadstone-db/loadstone/sdk/jsondoc"

// Query is SQL that an adapter asks the host to run on its behalf, reading only.
type Query struct {
	ID, SQL string
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
	return Result{Asked: r != nil, Columns: r.Get("columns").Strings(), Rows: r.Get("rows"), Err: r.Get("error").Str(), Code: r.Get("code").Str()}
}

// Ask answers a request with queries: the host runs them, and calls again with
// their results. At most 8 times in a conversation.
func Ask(w *jsondoc.Writer, queries ...Query) {
	w.Object().Key("queries").Array()
	for _, q := range queries {
		w.Object().Key("id").Str(q.ID).Key("sql").Str(q.SQL)
		if q.TimeoutMs > 0 {
			w.Key("timeout_ms").Int(q.TimeoutMs)
		}
		w.EndObject()
	}
	w.EndArray().EndObject()
}
