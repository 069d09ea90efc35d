package prepare

import (
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// complete fills in what an adapter left out of its statements: it may answer
// with ids and SQL alone, in any order, and leave out those for which the
// workload brought SQL of its dialect. What a statement is (its kind, its table,
// whether it writes) is the workload's to say. An answer that is not about the
// wanted statements is returned as it is, for validate to refuse.
func complete(adapter plugin.Info, wanted []plugin.Statement, tables []engine.Table,
	answered []engine.Statement) []engine.Statement {
	byID := make(map[string]engine.Statement, len(answered))
	for _, s := range answered {
		byID[s.ID] = s
	}
	if len(byID) != len(answered) {
		return answered
	}
	list := make([]engine.Statement, 0, len(wanted))
	for _, w := range wanted {
		s, ok := byID[w.ID]
		if !ok {
			text, order := ownSQL(adapter, w, tables)
			if text == "" {
				return answered
			}
			s = engine.Statement{ID: w.ID, SQL: text, BindOrder: order}
		}
		delete(byID, w.ID)
		// A kind that was left out reads as the first one.
		if s.Kind == engine.KindPointLookup {
			s.Kind = w.Kind
		}
		if s.Table == "" {
			s.Table = w.Table
		}
		if s.Binds == nil {
			s.Binds = w.Binds
		}
		if s.Columns == nil {
			s.Columns = w.Columns
		}
		s.Writes = s.Writes || w.Writes
		s.Transaction, s.NoRowsHint = w.Transaction, w.NoRowsHint
		list = append(list, s)
	}
	if len(byID) > 0 {
		return answered
	}
	return list
}

// ownSQL is the text that the workload brought for the adapter's dialect, if any,
// and which binds its parameters take.
func ownSQL(adapter plugin.Info, w plugin.Statement, tables []engine.Table) (text string, order []int) {
	for _, d := range [...]string{adapter.Manifest.Dialect, "*", "ansi", "sql"} {
		if text == "" {
			text, order = w.SQL[d], w.BindOrder[d]
		}
	}
	for _, t := range tables {
		if t.Name == w.Table || w.Table == "" && len(tables) == 1 {
			text = strings.ReplaceAll(text, "{table}", t.PhysicalName)
		}
		text = strings.ReplaceAll(text, "{table:"+t.Name+"}", t.PhysicalName)
	}
	return text, order
}
