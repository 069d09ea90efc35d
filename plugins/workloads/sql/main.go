// Command sql is the workload plugin whose statements the user writes in the
// template: weighted SQL texts and transactions with named parameters, each
// parameter with a generator of its values.
package main

import (
	"errors"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

func init() { sdk.ServeWorkload(workload{}) }

func main() {}

type workload struct{}

// Manifest describes the plugin.
func (workload) Manifest() sdk.Manifest {
	return sdk.Manifest{
		Name: "sql", Version: "1.0.0", Title: "Your own SQL", Author: "Loadstone",
		Description: "Statements and transactions that you write, issued by weight. Parameters are written :name and get " +
			"their values from generators.",
		Parameters: parameterSchema,
	}
}

// tableName is the logical name of the one table that statements may speak of.
const tableName = "table"

// Tables returns the template's table when a statement names {table}, or a
// parameter takes its values from it, and none else.
func (workload) Tables(doc *jsondoc.Value) ([]sdk.LogicalTable, error) {
	p, err := readParams(doc)
	if err != nil || !p.usesTable {
		return nil, err
	}
	return []sdk.LogicalTable{{Name: tableName, AnyShape: true}}, nil
}

// Statements returns the statements in the order in which they are written.
func (workload) Statements(doc *jsondoc.Value, tables []sdk.Table) ([]sdk.Statement, error) {
	p, err := readParams(doc)
	if err != nil {
		return nil, err
	}
	if err := p.resolve(tables, nil); err != nil {
		return nil, err
	}
	list := make([]sdk.Statement, 0, len(p.statements))
	for i := range p.statements {
		s := &p.statements[i]
		marked, order := s.text.Marked()
		out := sdk.Statement{
			ID:          s.id,
			Kind:        s.kind,
			Writes:      s.writes,
			Columns:     s.columns,
			Transaction: s.transaction,
			Param:       s.path,
			NoRowsHint: "what its binds look for is not in the table: the generators key and row take what is there; with " +
				"kind: GENERIC_SQL a statement need not find rows",
			SQL: map[string]string{"postgres": s.text.Numbered()},
		}
		if !s.text.Rows && s.text.Prepares == "" { // Postgres alone has those
			out.SQL["snowflake"], out.BindOrder = marked, map[string][]int{"snowflake": order}
		}
		if p.usesTable {
			out.Table = tableName
		}
		for n, b := range s.binds {
			out.Binds = append(out.Binds, sdk.Bind{Name: s.names[n], Type: b.typ})
		}
		list = append(list, out)
	}
	return list, nil
}

// Open starts a stream.
func (workload) Open(req sdk.OpenRequest) (sdk.Generator, error) {
	p, err := readParams(req.Params)
	if err != nil {
		return nil, err
	}
	if req.KeySlot < 0 || req.KeySlot >= req.KeySlots {
		return nil, errors.New("key_slot must be below key_slots")
	}
	pools := req.Pools
	if pools == nil {
		pools = []sdk.Pool{} // nil asks for the types alone
	}
	if err := p.resolve(req.Tables, pools); err != nil {
		return nil, err
	}
	return newStream(p, &req)
}
