package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// RefusedError is the answer of a workload that asks the user to change the template.
type RefusedError struct{ plugin.Refusal }

func (r *RefusedError) Error() string { return r.Message }

// Statements reads the statements that a workload answered for tables that an adapter
// found. given is false where it answered none: those of its manifest are meant.
func Statements(doc []byte, found []engine.Table) (list []plugin.Statement, given bool, err error) {
	if len(bytes.TrimSpace(doc)) == 0 {
		return nil, false, nil
	}
	var answer struct {
		Statements []looseStatement `json:"statements"`
		Refused    *plugin.Refusal  `json:"refused"`
	}
	if err := Unmarshal(doc, &answer, maxManifestValues); err != nil {
		return nil, false, &MalformedError{err}
	}
	if f := answer.Refused; f != nil {
		return nil, false, &RefusedError{
			plugin.Refusal{Field: Clean([]byte(f.Field), 200), Message: Clean([]byte(f.Message), 1000),
				Hint: Clean([]byte(f.Hint), 1000)},
		}
	}
	if answer.Statements == nil {
		return nil, false, nil
	}
	list, err = checkStatements(answer.Statements, declaredForm(found))
	return list, true, err
}

// maxColumns bounds the result columns of a statement, which are no arguments: a table of a database may have as many.
const maxColumns = 2000

// checkStatements reads a list that a workload declares. tables are the tables that it speaks of.
func checkStatements(in []looseStatement, tables []plugin.LogicalTable) ([]plugin.Statement, error) {
	if len(in) > abi.MaxStatements {
		return nil, fmt.Errorf("it declares %d statements, the limit is %d", len(in), abi.MaxStatements)
	}
	var list []plugin.Statement
	seen := map[string]bool{}
	for i := range in {
		out := plugin.Statement{ID: Clean([]byte(in[i].ID), 200)}
		if out.ID == "" {
			out.ID = fmt.Sprintf("statement_%d", i)
		}
		if seen[out.ID] {
			return nil, fmt.Errorf("it declares the statement %q twice", out.ID)
		}
		seen[out.ID] = true
		if err := checkStatement(&in[i], &out, tables); err != nil {
			return nil, err
		}
		list = append(list, out)
	}
	return list, nil
}

// checkStatement reads a statement into out, which has its id.
func checkStatement(s *looseStatement, out *plugin.Statement, tables []plugin.LogicalTable) error {
	*out = plugin.Statement{ID: out.ID, Table: s.Table, Limit: s.Limit, SQL: s.SQL, Kind: engine.KindGenericSQL,
		Transaction: Clean([]byte(s.Transaction), 200), Param: Clean([]byte(s.Param), 200), Note: Clean([]byte(s.Note), 500),
		Hint: Clean([]byte(s.Hint), 500), NoRowsHint: Clean([]byte(s.NoRowsHint), 500), BindOrder: s.BindOrder}
	if s.Kind != "" {
		kind, err := engine.ParseKind(strings.ToUpper(Clean([]byte(s.Kind), 50)))
		if err != nil {
			return fmt.Errorf("its statement %q: %w", out.ID, err)
		}
		out.Kind = kind
	}
	out.Writes = out.Kind.Write() || s.Writes != nil && *s.Writes
	if s.Limit < 0 || len(s.Binds) > abi.MaxArgs {
		return fmt.Errorf("its statement %q has a negative limit or over %d binds", out.ID, abi.MaxArgs)
	}
	if err := checkName(fmt.Sprintf("the table of its statement %q,", out.ID), s.Table); err != nil {
		return err
	}
	if err := checkTexts(fmt.Sprintf("the SQL of its statement %q", out.ID), s.SQL, maxSQL); err != nil {
		return err
	}
	for dialect, order := range s.BindOrder {
		if len(dialect) > maxName || !plain(dialect) || slices.ContainsFunc(order, func(n int) bool {
			return n < 0 || n >= len(s.Binds)
		}) {
			return fmt.Errorf("its statement %q orders binds that it does not have", out.ID)
		}
	}
	table := tableOf(tables, s.Table)
	if err := checkBinds(s, out, table); err != nil {
		return err
	}
	if len(s.Columns) > maxColumns {
		return fmt.Errorf("its statement %q has %d columns, the limit is %d", out.ID, len(s.Columns), maxColumns)
	}
	for n, c := range s.Columns {
		name := cmp.Or(c.bare, c.Name)
		if err := checkName(fmt.Sprintf("column %d of its statement %q,", n+1, out.ID), name); err != nil {
			return err
		}
		out.Columns = append(out.Columns, name)
	}
	if len(out.SQL) == 0 && table != nil {
		placeBinds(out, table)
	}
	return nil
}

func checkBinds(s *looseStatement, out *plugin.Statement, table *plugin.LogicalTable) error {
	for n, b := range s.Binds {
		bind := resolveBind(b, table, n)
		for _, name := range []string{bind.Name, bind.Column} {
			if err := checkName(fmt.Sprintf("bind %d of its statement %q,", n+1, out.ID), name); err != nil {
				return err
			}
		}
		if _, ok := abi.ParseType(string(bind.Type)); !ok {
			return fmt.Errorf("bind %q of its statement %q has the unknown type %q, which is no column of its table either",
				Clean([]byte(bind.Name), 80), out.ID, Clean([]byte(bind.Type), 80))
		}
		out.Binds = append(out.Binds, bind)
	}
	return nil
}

// tableOf finds a statement's table; a workload with one table need not name it.
func tableOf(tables []plugin.LogicalTable, name string) *plugin.LogicalTable {
	for i := range tables {
		if tables[i].Name == name || name == "" && len(tables) == 1 {
			return &tables[i]
		}
	}
	return nil
}

func columnOf(t *plugin.LogicalTable, name string) *plugin.LogicalColumn {
	if t == nil || name == "" {
		return nil
	}
	if i := slices.IndexFunc(t.Columns, func(c plugin.LogicalColumn) bool { return c.Name == name }); i >= 0 {
		return &t.Columns[i]
	}
	return nil
}

// resolveBind completes bind n: a text alone is a column of the statement's table
// if there is one of that name, and else a type; a bind that has the name of a
// column is for that column; the type of a column need not be repeated.
func resolveBind(in looseBind, table *plugin.LogicalTable, n int) engine.Bind {
	bind := in.Bind
	if in.bare != "" {
		if c := columnOf(table, in.bare); c != nil {
			bind.Column = c.Name
		} else {
			bind.Type = engine.ValueType(in.bare)
		}
	}
	if bind.Column == "" && columnOf(table, bind.Name) != nil {
		bind.Column = bind.Name
	}
	if c := columnOf(table, bind.Column); c != nil && bind.Type == "" {
		bind.Type = c.Type
	}
	bind.Type = engine.ValueType(strings.ToLower(string(bind.Type)))
	if bind.Name == "" {
		bind.Name = bind.Column
	}
	if bind.Name == "" {
		bind.Name = fmt.Sprintf("p%d", n+1)
	}
	return bind
}

// placeBinds gives binds that are types alone the columns that they can only be
// for, where the adapter will write the SQL and has to know.
func placeBinds(s *plugin.Statement, t *plugin.LogicalTable) {
	for _, b := range s.Binds {
		if b.Column != "" {
			return
		}
	}
	var positions []string
	switch s.Kind {
	case engine.KindPointLookup, engine.KindDelete, engine.KindRangeScan:
		positions = t.Key
	case engine.KindUpdate:
		positions = append(slices.Clone(s.Columns), t.Key...)
	case engine.KindInsert:
		if positions = s.Columns; len(positions) == 0 {
			for _, c := range t.Columns {
				positions = append(positions, c.Name)
			}
		}
	default:
		return
	}
	want := len(positions)
	if s.Kind == engine.KindRangeScan && s.Limit == 0 {
		want++ // the number of rows
	}
	if len(s.Binds) != want {
		return
	}
	for i, p := range positions {
		s.Binds[i].Column = p
	}
}

// declaredForm are tables as the adapter found them, in the form of declared ones.
func declaredForm(tables []engine.Table) []plugin.LogicalTable {
	list := make([]plugin.LogicalTable, len(tables))
	for i, t := range tables {
		list[i] = plugin.LogicalTable{Name: t.Name, Key: t.Key}
		for _, c := range t.Columns {
			list[i].Columns = append(list[i].Columns, plugin.LogicalColumn{Name: c.Name, Type: c.Type, Nullable: c.Nullable})
		}
	}
	return list
}
