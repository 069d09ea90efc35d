package catalog

import (
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// Row is a row of a table of the catalog. The key is the entity's, whatever it looks like; values are string or int64,
// times in microseconds since 1970.
type Row struct {
	Key    string
	Values []any
}

// idDigits is how many digits the id has that a key begins with, so that keys are in the order of ids.
const idDigits = 20

// ShownKey is a key as readers are told it: the id of a query or physical source, the id of a query with a worker of a
// fragment (17/node-a), and the name of all else.
func ShownKey(key string) string {
	if len(key) < idDigits || strings.Trim(key[:idDigits], "0123456789") != "" {
		return key
	}
	id := strings.TrimLeft(key[:idDigits-1], "0") + key[idDigits-1:idDigits]
	if len(key) == idDigits {
		return id
	}
	return id + "/" + key[idDigits:]
}

func columns(kind column.Type, names string) (list []column.Column) {
	for name := range strings.FieldsSeq(names) {
		list = append(list, column.Column{Name: name, Type: kind})
	}
	return list
}

var (
	text  = column.Type{Kind: column.Text}
	whole = column.Type{Kind: column.Int, Bits: 64}
	clock = column.Type{Kind: column.Timestamp}
)

// Tables are the tables of the catalog that can be watched, with their columns.
var Tables = map[string][]column.Column{
	// A worker is named by its host, which is its id, and its slots are its capacity.
	"workers": append(columns(text, "host_name state peers id"),
		columns(whole, "slots used_slots grpc_port data_port capacity")...),
	"queries": append(append(columns(text, "name state desired_state sink statement failure created_by owner"),
		columns(whole, "id")...), columns(clock, "since created_at")...),
	"query_fragments": append(columns(text, "query host_name state failure"), columns(whole, "query_id attempts")...),
	"logical_sources": columns(text, "name schema"),
	"physical_sources": append(columns(text, "logical_source placement type config"),
		columns(whole, "id")...),
	"sinks": columns(text, "name schema placement type config"),
}

// Rows are the rows of all tables; what is secret in settings is left out.
func (c *Catalog) Rows() map[string][]Row {
	all := map[string][]Row{}
	add := func(table, key string, values ...any) { all[table] = append(all[table], Row{key, values}) }
	for _, w := range c.workers {
		add("workers", w.Host, w.Host, string(w.State), strings.Join(w.Peers, " "), w.Host, w.Slots, c.Used(w.Host),
			w.GRPCPort, w.DataPort, w.Slots)
	}
	for _, q := range c.queries {
		id := fmt.Sprintf("%0*d", idDigits, q.ID)
		add("queries", id, q.Name, string(q.State), string(q.Desired), q.Sink, q.Statement, q.Failure, q.CreatedBy, q.Owner,
			q.ID, q.Since.UnixMicro(), q.CreatedAt.UnixMicro())
		for _, f := range q.Fragments {
			add("query_fragments", id+f.Host, q.Name, f.Host, string(f.State), f.Failure, q.ID, f.Attempts)
		}
	}
	for _, s := range c.logical {
		add("logical_sources", s.Name, s.Name, schemaText(s.Columns))
	}
	for _, p := range c.physical {
		add("physical_sources", fmt.Sprintf("%0*d", idDigits, p.ID), p.Logical, p.Placement, p.Type, config(p.Config), p.ID)
	}
	for _, s := range c.sinks {
		add("sinks", s.Name, s.Name, schemaText(s.Columns), s.Placement, s.Type, config(s.Config))
	}
	return all
}
