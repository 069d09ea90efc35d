package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// physical is the name in the database of a logical table. A workload with one
// table uses target.table_name as it is; with several it is put before each
// name, as it stands: "bench_" gives bench_stock, "tpc." the table stock of the
// schema tpc. Without it the tables have their own names.
func physical(sc engine.Scenario, all []plugin.LogicalTable, t plugin.LogicalTable) string {
	name := strings.TrimSpace(sc.Target.TableName)
	if len(all) > 1 {
		return name + t.Name
	}
	return name
}

// checkTarget refuses a name or a number of rows that contradicts the workload's tables.
func checkTarget(sc engine.Scenario, workload string, all []plugin.LogicalTable) error {
	name := strings.TrimSpace(sc.Target.TableName)
	switch {
	case len(all) == 1 && name == "":
		return engine.InvalidField("target.table_name", "is required",
			fmt.Sprintf("the workload %s needs a table: orders, sales.orders, \"Order Lines\"", workload))
	case len(all) > 1 && name != "" && !strings.HasSuffix(name, "_") && !strings.HasSuffix(name, "."):
		first := all[0].Name
		return engine.InvalidField("target.table_name",
			fmt.Sprintf("is put before the names of the %d tables of the workload %s, and %q does not end in _ or a dot",
				len(all), workload, name),
			fmt.Sprintf("%s_ gives %s_%s, %s. the table %s of the schema %s; leave it out for %s", name, name, first, name,
				first, name, first))
	}
	prep := sc.Target.Prepare
	if prep == nil || prep.Rows == 0 || len(all) == 0 {
		return nil
	}
	largest := all[0]
	for _, t := range all {
		if t.Rows == 0 && !t.Empty {
			return nil
		}
		if t.Rows > largest.Rows {
			largest = t
		}
	}
	if prep.Rows == largest.Rows {
		return nil
	}
	hint := "leave it out"
	if largest.SizedBy != "" {
		hint = "leave it out, and set workload.params." + largest.SizedBy
	}
	return engine.InvalidField("target.prepare.rows",
		fmt.Sprintf("is %d, but the parameters of the workload %s decide how many rows its tables have: %d in %s", prep.Rows,
			workload, largest.Rows, largest.Name), hint)
}

// tableState is what the adapter said of one table.
type tableState struct {
	exists bool
	table  *engine.Table
	pool   *engine.Pool
	values *engine.Pool
	free   *engine.Pool
	// keys is how the table's keys are read.
	keys *plugin.KeyQuery
	// lowered: fewer keys are known than were asked for, because they would not fit.
	lowered bool
	// anyShape: the workload takes the table, and its keys, as they are.
	anyShape bool
	notes    []string
}

// inspect asks what a table is; of one that is going to be dropped the adapter says no keys and samples.
func (p *planner) inspect(ctx context.Context, name string, t *plugin.LogicalTable, dropped bool) (tableState, error) {
	answer, err := p.callAdapter(ctx, plugin.AdapterRequest{Op: plugin.OpInspect, TableName: name, Logical: t,
		Recreate: dropped})
	if err != nil {
		return tableState{}, err
	}
	if !answer.Exists {
		return tableState{notes: answer.Notes}, nil
	}
	if answer.Table == nil {
		return tableState{}, pluginFailed(p.adapter.Info(), "inspecting "+name,
			errors.New("it says that the table exists, and does not describe it"))
	}
	// The workload knows its tables by their logical names.
	answer.Table.Name = t.Name
	answer.Table.Dialect = p.adapter.Info().Manifest.Dialect
	if answer.Pool != nil {
		answer.Pool.Table = t.Name
	}
	if answer.Values != nil {
		answer.Values.Table, answer.Values.Values = t.Name, true
	}
	if answer.Free != nil {
		if answer.Free.Free == nil {
			answer.Free.Free = &engine.FreeRows{}
		}
		answer.Free.Table, answer.Free.Values = t.Name, true
	}
	if err := p.ownership(ctx, answer.Table); err != nil {
		return tableState{}, err
	}
	if err := p.noteUnmarked(ctx, t, answer.Table); err != nil {
		return tableState{}, err
	}
	return tableState{
		exists:   true,
		table:    answer.Table,
		pool:     answer.Pool,
		values:   answer.Values,
		free:     answer.Free,
		keys:     answer.Keys,
		anyShape: t.AnyShape && !t.OwnKeys,
		notes:    answer.Notes,
	}, nil
}

// prepareTables sees to it that every table of the workload is there, and describes them as they are at the end.
func (p *planner) prepareTables(ctx context.Context) (tables []engine.Table, err error) {
	state, err := p.inspectTables(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.checkNoneMissing(state); err != nil {
		return nil, err
	}
	// How all of them are made is known before the first one is.
	job, how := &tableLoader{planner: p}, make([]recipe, len(state))
	for i := range state {
		if !state[i].exists || p.recreates() {
			job.total += rowsOf(p.sc, &p.logical[i])
			if how[i], err = p.recipe(ctx, p.names[i], &p.logical[i], state[i].exists); err != nil {
				return nil, err
			}
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, job.undo(ctx))
		}
	}()
	if err := p.checkWriteAllowedBefore(ctx, state, how); err != nil {
		return nil, err
	}
	for i := range p.logical {
		if !state[i].exists || p.recreates() {
			if err := job.create(ctx, i, how[i]); err != nil {
				return nil, err
			}
		}
	}
	if err := job.swap(ctx); err != nil {
		return nil, err
	}
	for i := range state {
		if state[i].exists && p.recreates() {
			p.ours = append(p.ours, state[i].table.PhysicalName)
		}
	}
	for i := range p.logical {
		name := p.names[i]
		if !state[i].exists || p.recreates() {
			p.report(engine.PrepareProgress{Step: "inspect", Message: "Looking at the table " + name + p.tableLabel(i)})
			if state[i], err = p.inspect(ctx, name, &p.logical[i], false); err != nil {
				return nil, err
			}
			if !state[i].exists {
				return nil, pluginFailed(p.adapter.Info(), "creating "+name,
					errors.New("the table is not there after its DDL was executed"))
			}
		}
		p.notes = append(p.notes, state[i].notes...)
		if !state[i].table.Own && !p.sc.Target.AllowWrites && len(p.unmarked) > 0 && i == len(p.logical)-1 {
			p.notes = append(p.notes, "The tables look like those that Loadstone makes, and have no mark: "+p.adoptHint()+".")
		}
		if err := p.readKeys(ctx, p.names[i]+p.tableLabel(i), &state[i], keyRoom(state, i)); err != nil {
			return nil, err
		}
		tables = append(tables, *state[i].table)
		if err := p.keepSamples(state[i]); err != nil {
			return nil, err
		}
	}
	return tables, nil
}

// inspectTables inspects all tables before the first is made, so that an error in the last
// one leaves the others alone.
func (p *planner) inspectTables(ctx context.Context) ([]tableState, error) {
	state := make([]tableState, len(p.logical))
	for i := range p.logical {
		t := &p.logical[i]
		p.names = append(p.names, physical(p.sc, p.logical, *t))
		p.report(engine.PrepareProgress{Step: "inspect", Message: "Looking at the table " + p.names[i] + p.tableLabel(i)})
		var err error
		if state[i], err = p.inspect(ctx, p.names[i], t, p.recreates()); err != nil {
			return nil, err
		}
		if err := p.decide(p.names[i], t, state[i]); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// tableLabel says which table of several it is.
func (p *planner) tableLabel(i int) string {
	if len(p.logical) == 1 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d)", i+1, len(p.logical))
}

// checkNoneMissing refuses to add missing tables to those that are there: rows of one table
// refer to rows of another, and runs have changed them since.
func (p *planner) checkNoneMissing(state []tableState) error {
	var there, missing []string
	for i, f := range state {
		if f.exists {
			there = append(there, p.names[i])
		} else {
			missing = append(missing, p.names[i])
		}
	}
	if len(there) == 0 || len(missing) == 0 || p.recreates() {
		return nil
	}
	return &engine.Error{Code: engine.CodeTarget,
		Message: fmt.Sprintf("Of the %d tables of the workload %s, %s %s missing in %s, as a load that was interrupted "+
			"leaves them.",
			len(state), p.workload.Info().Name, strings.Join(missing, ", "), isAre(len(missing)), p.where()),
		Fields: []engine.FieldError{{Field: "target.prepare.if_exists",
			Message: "only " + strings.Join(there, ", ") + " " + isAre(len(there)) + " there",
			Hint:    "recreate: drop them and load all tables again"}}}
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func (p *planner) recreates() bool {
	return p.sc.Target.Prepare != nil && p.sc.Target.Prepare.IfExists == engine.IfExistsRecreate
}

// decide refuses what preparation may not repair. It changes nothing.
func (p *planner) decide(name string, t *plugin.LogicalTable, f tableState) error {
	prep := p.sc.Target.Prepare
	switch {
	case !f.exists && prep == nil:
		hint := "correct the name, or add prepare: {rows: 100000} to have it created with sample rows"
		if t.Rows > 0 || t.Empty {
			hint = "correct target.table_name, or add prepare: {if_exists: use} to have the tables created and loaded"
		}
		return &engine.Error{Code: engine.CodeTarget,
			Message: fmt.Sprintf("The table %s does not exist in %s.", name, p.where()),
			Fields:  []engine.FieldError{{Field: "target.table_name", Message: "no such table", Hint: hint}}}
	case !f.exists:
		return nil
	case prep != nil && prep.IfExists == engine.IfExistsFail:
		return &engine.Error{Code: engine.CodeTarget,
			Message: fmt.Sprintf("The table %s exists already in %s, and target.prepare.if_exists is fail.", name, p.where()),
			Fields: []engine.FieldError{{Field: "target.prepare.if_exists", Message: "the table exists",
				Hint: "use: keep it as it is; recreate: drop it and load it again"}}}
	case p.recreates() && !f.table.Own && !p.sc.Target.AllowWrites:
		return p.notAllowed(fmt.Sprintf("The table %s in %s with %s%s was not made by Loadstone, and "+
			"target.prepare.if_exists: recreate would drop it", name, p.where(), about(f.table.RowsExact),
			rowCount(f.table.Rows)))
	case p.recreates():
		return nil
	}
	if err := p.shape(name, t, f.table); err != nil {
		return err
	}
	if err := p.size(name, t, f.table); err != nil {
		return err
	}
	if note := p.otherSize(name, t, f.table); note != "" {
		p.notes, p.remarks = append(p.notes, note), append(p.remarks, note)
	}
	// A set-up that was killed after the rows were in leaves a table without its key.
	if !t.AnyShape && len(t.Key) > 0 && len(f.table.Key) == 0 {
		missing := fmt.Sprintf("The table %s in %s has no primary key; the workload %s finds its rows by (%s).", name,
			p.where(), p.workload.Info().Name, strings.Join(t.Key, ", "))
		if prep == nil {
			p.notes = append(p.notes, missing)
			return nil
		}
		return &engine.Error{Code: engine.CodeTarget, Message: missing,
			Fields: []engine.FieldError{{Field: "target.prepare.if_exists", Message: "the table has no key",
				Hint: "recreate: drop it and load it again; or leave target.prepare out to use it without a key"}}}
	}
	// A process that is killed while it loads leaves the table, empty and unfinished.
	if prep != nil && !t.Varies && rowsOf(p.sc, t) > 0 && f.table.RowsExact && f.table.Rows == 0 {
		return &engine.Error{Code: engine.CodeTarget,
			Message: fmt.Sprintf("The table %s in %s is empty, as a load that was interrupted leaves it, and "+
				"target.prepare.if_exists is use.", name, p.where()),
			Fields: []engine.FieldError{{Field: "target.prepare.if_exists", Message: "the table is empty",
				Hint: "recreate: drop it and load it again; or leave target.prepare out to use it empty"}}}
	}
	return nil
}

func (p *planner) where() string {
	if name := p.sc.Target.Connection.Name; name != "" {
		return fmt.Sprintf("the database %s of the connection %s", p.server.Database, name)
	}
	return fmt.Sprintf("the database %s", p.server.Database)
}

// shape checks an existing table against the logical one.
func (p *planner) shape(name string, t *plugin.LogicalTable, have *engine.Table) error {
	if t.AnyShape {
		return nil
	}
	var wrong []string
	for _, want := range t.Columns {
		at := slices.IndexFunc(have.Columns, func(c engine.Column) bool { return strings.EqualFold(c.Name, want.Name) })
		if at < 0 {
			wrong = append(wrong, fmt.Sprintf("the column %s (%s) is missing", want.Name, want.Type))
			continue
		}
		if c := have.Columns[at]; !compatible(want.Type, c.Type) {
			wrong = append(wrong, fmt.Sprintf("the column %s is %s (%s), and must hold %s", c.Name, c.DBType, c.Type, want.Type))
		}
	}
	if len(t.Key) > 0 && len(have.Key) > 0 && !slices.EqualFunc(t.Key, have.Key, strings.EqualFold) {
		wrong = append(wrong, fmt.Sprintf("its key is (%s), and must be (%s)", strings.Join(have.Key, ", "),
			strings.Join(t.Key, ", ")))
	}
	if len(wrong) == 0 {
		return nil
	}
	return &engine.Error{Code: engine.CodeTarget,
		Message: fmt.Sprintf("The table %s in %s has another shape than the workload %s needs: %s.", name, p.where(),
			p.workload.Info().Name, strings.Join(wrong, "; ")),
		Fields: []engine.FieldError{{Field: "target.table_name", Message: "a table of another shape",
			Hint: "name another table, or set prepare.if_exists: recreate to drop this one and load it again"}}}
}

// size checks the rows of an existing table against those that the parameters ask for.
func (p *planner) size(name string, t *plugin.LogicalTable, have *engine.Table) error {
	if t.Rows == 0 || t.Varies || have.Rows == t.Rows {
		return nil
	}
	// The planner's estimate may be some percent off; a scale is off by more.
	if !have.RowsExact && have.Rows > t.Rows-t.Rows/10 && have.Rows < t.Rows+t.Rows/10 {
		return nil
	}
	wants := fmt.Sprintf("the workload %s wants %d", p.workload.Info().Name, t.Rows)
	field := engine.FieldError{Field: paramsField, Message: "ask for tables of another size",
		Hint: "set them to the size of the tables, or prepare.if_exists: recreate to drop them and load them again"}
	if now := numberParam(p.params, t.SizedBy); now > 0 {
		wants = fmt.Sprintf("%s %d wants %d", t.SizedBy, now, t.Rows)
		field.Field, field.Message = paramsField+"."+t.SizedBy, fmt.Sprintf("is %d, the table has another size", now)
		if unit := t.Rows / now; unit > 0 && have.RowsExact && have.Rows > 0 && have.Rows%unit == 0 {
			field.Message = fmt.Sprintf("is %d, the table has the size of %d", now, have.Rows/unit)
			field.Hint = fmt.Sprintf("set it to %d to use the tables as they are, or prepare.if_exists: recreate to drop "+
				"them and load them again", have.Rows/unit)
		}
	}
	return &engine.Error{Code: engine.CodeTarget,
		Message: fmt.Sprintf("The table %s in %s has %s%s, and %s.", name, p.where(), about(have.RowsExact),
			rowCount(have.Rows), wants),
		Fields: []engine.FieldError{field}}
}

// otherSize says that an existing table has another number of rows than
// target.prepare.rows; "" when it has that many, or nobody asked.
func (p *planner) otherSize(name string, t *plugin.LogicalTable, have *engine.Table) string {
	prep := p.sc.Target.Prepare
	if prep == nil || prep.Rows == 0 || t.Rows > 0 || t.Empty || have.Rows == prep.Rows || !have.RowsExact &&
		have.Rows > prep.Rows-prep.Rows/10 && have.Rows < prep.Rows+prep.Rows/10 {
		return ""
	}
	return fmt.Sprintf("The table %s has %s%s, and not the %d of target.prepare.rows: it was there before, and is used "+
		"as it is.", name, about(have.RowsExact), rowCount(have.Rows), prep.Rows)
}

func rowCount(n int64) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}

// numberParam is the whole number that a parameter has, or 0.
func numberParam(params json.RawMessage, name string) int64 {
	var doc map[string]json.RawMessage
	var n int64
	if name == "" || json.Unmarshal(params, &doc) != nil || json.Unmarshal(doc[name], &n) != nil {
		return 0
	}
	return n
}

// compatible: numerics travel as text, so a text column of the plugin may be
// any type that the database reads from text.
func compatible(want, have engine.ValueType) bool {
	return want == have || (want == engine.TypeF64 && have == engine.TypeText) ||
		(want == engine.TypeI64 && have == engine.TypeF64)
}
