package snowflake

import (
	"errors"
	"strconv"

	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake/dialect"
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// statements writes the SQL of each statement, in the same order.
func (a Adapter) statements(req *jsondoc.Value, w *jsondoc.Writer) error {
	tables := sdk.ReadTables(req.Get("tables"))
	w.Object().Key("statements").Array()
	for _, s := range sdk.ReadStatements(req.Get("statements")) {
		var t *sdk.Table
		for i := range tables {
			if tables[i].Name == s.Table || s.Table == "" && len(tables) == 1 {
				t = &tables[i]
			}
		}
		text, order, err := dialect.WriteSQL(s, t, tables)
		if err != nil {
			return errors.New("statement " + strconv.Quote(s.ID) + ": " + err.Error())
		}
		w.Object().Key("id").Str(s.ID).Key("kind").Str(s.Kind).Key("table").Str(s.Table).Key("sql").Str(text)
		sdk.WriteBinds(w.Key("binds"), s.Binds)
		if order != nil {
			sdk.WriteBindOrder(w.Key("bind_order"), order)
		}
		if len(s.Columns) > 0 {
			w.Key("columns").Strs(s.Columns)
		}
		w.Key("writes").Bool(s.Writes).EndObject()
	}
	w.EndArray()
	if a.tableType != Interactive {
		w.Key("trial").Bool(true) // interactive tables know no transactions
	}
	w.EndObject()
	return nil
}
