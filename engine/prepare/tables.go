package prepare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// rowsPerCall is how many sample rows the workload is asked for at once.
const rowsPerCall = 1024

// undoLimit bounds dropping a table that could not be filled, whatever became of the run's own context.
const undoLimit = 30 * time.Second

// physical is the name in the database of a logical table. A workload with one
// table uses target.table_name as it is; with several it is their prefix.
func physical(sc engine.Scenario, all []plugin.LogicalTable, t plugin.LogicalTable) string {
	switch name := sc.Target.TableName; {
	case name == "":
		return t.Name
	case len(all) == 1:
		return name
	default:
		return name + "_" + t.Name
	}
}

// found is what the adapter said of one table.
type found struct {
	exists bool
	table  *engine.Table
	pool   *engine.Pool
	notes  []string
}

func (p *planner) inspect(ctx context.Context, name string, t *plugin.LogicalTable) (found, error) {
	answer, err := p.ask(ctx, plugin.AdapterRequest{Op: plugin.OpInspect, TableName: name, Logical: t})
	if err != nil {
		return found{}, err
	}
	if !answer.Exists {
		return found{notes: answer.Notes}, nil
	}
	if answer.Table == nil {
		return found{}, pluginFailed(p.adapter.Info(), "inspecting "+name, errors.New("it says that the table exists, and does not describe it"))
	}
	// The workload knows its tables by their logical names.
	answer.Table.Name = t.Name
	if answer.Pool != nil {
		answer.Pool.Table = t.Name
	}
	return found{exists: true, table: answer.Table, pool: answer.Pool, notes: answer.Notes}, nil
}

// tables sees to it that every table of the workload is there, and describes them as they are at the end.
func (p *planner) tables(ctx context.Context) ([]engine.Table, error) {
	logical := p.workload.Info().Manifest.Tables
	names := make([]string, len(logical))
	state := make([]found, len(logical))
	// All tables are looked at before the first is made, so that an error in the
	// last one leaves the others alone.
	for i := range logical {
		names[i] = physical(p.sc, logical, logical[i])
		p.report(engine.PrepareProgress{Step: "inspect", Message: "Looking at the table " + names[i]})
		var err error
		if state[i], err = p.inspect(ctx, names[i], &logical[i]); err != nil {
			return nil, err
		}
		if err := p.decide(names[i], &logical[i], state[i]); err != nil {
			return nil, err
		}
	}
	tables := make([]engine.Table, 0, len(logical))
	for i := range logical {
		if !state[i].exists || p.recreates() {
			if err := p.create(ctx, names[i], i, &logical[i], state[i].exists); err != nil {
				return nil, err
			}
			p.report(engine.PrepareProgress{Step: "inspect", Message: "Looking at the table " + names[i]})
			var err error
			if state[i], err = p.inspect(ctx, names[i], &logical[i]); err != nil {
				return nil, err
			}
			if !state[i].exists {
				return nil, pluginFailed(p.adapter.Info(), "creating "+names[i], errors.New("the table is not there after its DDL was executed"))
			}
		}
		p.notes = append(p.notes, state[i].notes...)
		tables = append(tables, *state[i].table)
		if state[i].pool != nil {
			p.pools = append(p.pools, *state[i].pool)
		}
	}
	return tables, nil
}

func (p *planner) recreates() bool {
	return p.sc.Target.Prepare != nil && p.sc.Target.Prepare.IfExists == engine.IfExistsRecreate
}

// decide refuses what preparation may not repair. It changes nothing.
func (p *planner) decide(name string, t *plugin.LogicalTable, f found) error {
	prep := p.sc.Target.Prepare
	switch {
	case !f.exists && prep == nil:
		return &engine.Error{Code: engine.CodeTarget, Message: fmt.Sprintf("The table %s does not exist in %s.", name, p.where()),
			Fields: []engine.FieldError{{Field: "target.table_name", Message: "no such table", Hint: "correct the name, or add prepare: {rows: 100000} to have it created with sample rows"}}}
	case !f.exists:
		return nil
	case prep != nil && prep.IfExists == engine.IfExistsFail:
		return &engine.Error{Code: engine.CodeTarget, Message: fmt.Sprintf("The table %s exists already in %s, and target.prepare.if_exists is fail.", name, p.where()),
			Fields: []engine.FieldError{{Field: "target.prepare.if_exists", Message: "the table exists", Hint: "use: keep it as it is; recreate: drop it and load it again"}}}
	case p.recreates():
		return nil
	}
	if err := p.shape(name, t, f.table); err != nil {
		return err
	}
	// A process that is killed while it loads leaves the table, empty and unfinished.
	if prep != nil && rowsOf(p.sc, t) > 0 && f.table.RowsExact && f.table.Rows == 0 {
		return &engine.Error{Code: engine.CodeTarget, Message: fmt.Sprintf("The table %s in %s is empty, as a load that was interrupted leaves it, and target.prepare.if_exists is use.", name, p.where()),
			Fields: []engine.FieldError{{Field: "target.prepare.if_exists", Message: "the table is empty", Hint: "recreate: drop it and load it again; or leave target.prepare out to use it empty"}}}
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
		wrong = append(wrong, fmt.Sprintf("its key is (%s), and must be (%s)", strings.Join(have.Key, ", "), strings.Join(t.Key, ", ")))
	}
	if len(wrong) == 0 {
		return nil
	}
	return &engine.Error{Code: engine.CodeTarget, Message: fmt.Sprintf("The table %s in %s has another shape than the workload %s needs: %s.", name, p.where(), p.workload.Info().Name, strings.Join(wrong, "; ")),
		Fields: []engine.FieldError{{Field: "target.table_name", Message: "a table of another shape", Hint: "name another table, or set prepare.if_exists: recreate to drop this one and load it again"}}}
}

// compatible: numerics travel as text, so a text column of the plugin may be
// any type that the database reads from text.
func compatible(want, have engine.ValueType) bool {
	return want == have || (want == engine.TypeF64 && have == engine.TypeText) || (want == engine.TypeI64 && have == engine.TypeF64)
}

// create makes one table and fills it. A failed or cancelled one is dropped again.
func (p *planner) create(ctx context.Context, name string, index int, t *plugin.LogicalTable, exists bool) (err error) {
	p.report(engine.PrepareProgress{Step: "create", Message: "Creating the table " + name})
	ddl, err := p.ask(ctx, plugin.AdapterRequest{Op: plugin.OpDDL, TableName: name, Logical: t, Recreate: exists})
	if err != nil {
		return err
	}
	if len(ddl.DDL) == 0 {
		return pluginFailed(p.adapter.Info(), "creating "+name, errors.New("it gave no DDL"))
	}
	answer, err := p.ask(ctx, plugin.AdapterRequest{Op: plugin.OpLoad, TableName: name, Logical: t})
	if err != nil {
		return err
	}
	if answer.Load == nil || len(answer.Load.Columns) != len(t.Columns) {
		return pluginFailed(p.adapter.Info(), "loading "+name, errors.New("it did not say where the rows of every column go"))
	}
	created := false
	defer func() {
		if err != nil && created {
			err = errors.Join(err, p.undo(ctx, name, answer.Load.Table))
		}
	}()
	for _, sql := range ddl.DDL {
		if err := p.database.Exec(ctx, sql); err != nil {
			return targetError("creating the table "+name, err)
		}
		// A table that somebody else made meanwhile fails the CREATE, and is then not ours to drop.
		created = created || !drops(sql)
	}
	if err := p.load(ctx, name, index, t, answer.Load); err != nil {
		return err
	}
	for i, sql := range ddl.AfterLoad {
		p.report(engine.PrepareProgress{Step: "index", Message: fmt.Sprintf("Finishing the table %s (%d of %d)", name, i+1, len(ddl.AfterLoad))})
		if err := p.database.Exec(ctx, sql); err != nil {
			return targetError("finishing the table "+name, err)
		}
	}
	p.notes = append(p.notes, append(ddl.Notes, answer.Notes...)...)
	return nil
}

func drops(sql string) bool {
	return strings.HasPrefix(strings.ToUpper(strings.TrimSpace(sql)), "DROP")
}

// undo drops the table that this run created. The error of the load matters more than its own.
func (p *planner) undo(ctx context.Context, name, quoted string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	if err := p.database.Exec(ctx, "DROP TABLE IF EXISTS "+quoted); err != nil {
		return fmt.Errorf("dropping the half-made table %s: %w", name, err)
	}
	return nil
}

// rowsOf is how many sample rows a logical table gets: those of the scenario
// for the first table that leaves it open, its own number else.
func rowsOf(sc engine.Scenario, t *plugin.LogicalTable) int64 {
	if t.Rows > 0 {
		return t.Rows
	}
	return sc.Target.Prepare.Rows
}

func (p *planner) load(ctx context.Context, name string, index int, t *plugin.LogicalTable, into *plugin.LoadTarget) error {
	total := rowsOf(p.sc, t)
	begin := time.Now()
	var last time.Time
	report := func(done int64) {
		now := time.Now()
		if done < total && now.Sub(last) < 200*time.Millisecond {
			return
		}
		last = now
		progress := engine.PrepareProgress{Step: "load", Message: "Loading sample rows into " + name, RowsDone: done, RowsTotal: total}
		if elapsed := now.Sub(begin).Seconds(); elapsed > 0 {
			progress.RowsPerSecond = float64(done) / elapsed
		}
		if progress.RowsPerSecond > 0 {
			remaining := float64(total-done) / progress.RowsPerSecond
			progress.RemainingSecs = &remaining
		}
		p.report(progress)
	}
	report(0)
	var given int64
	var pluginErr error
	next := func() (plugin.Rows, error) {
		if given >= total {
			return nil, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows, err := p.workload.Rows(ctx, p.params, index, given, int(min(rowsPerCall, total-given)))
		if errors.Is(err, plugin.ErrEnded) {
			return nil, nil
		}
		if err == nil && rows.Len() == 0 {
			err = errors.New("it gave no rows")
		}
		if err != nil {
			pluginErr = pluginFailed(p.workload.Info(), "making sample rows", err)
			return nil, pluginErr
		}
		given += int64(rows.Len())
		return rows, nil
	}
	done, err := p.database.Load(ctx, into.Table, into.Columns, next, report)
	switch {
	case pluginErr != nil:
		return pluginErr
	case err != nil:
		if ctx.Err() != nil {
			return fmt.Errorf("loading sample rows into %s: %w", name, ctx.Err())
		}
		return targetError("loading sample rows into "+name, err)
	}
	report(done)
	p.notes = append(p.notes, fmt.Sprintf("Loaded %d sample rows into %s in %.1f s.", done, name, time.Since(begin).Seconds()))
	return nil
}
