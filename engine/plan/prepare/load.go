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
	"github.com/loadstone-db/loadstone/engine/target"
)

const (
	// rowsPerCall is how many sample rows the workload is asked for at once.
	rowsPerCall = 1024
	// defaultRows is the size of a sample table of which neither document nor workload says it.
	defaultRows = 100_000
	// undoTimeout bounds dropping tables that could not be filled, whatever became of the run's own context.
	undoTimeout = 30 * time.Second
)

// tableLoader makes the tables of one run. Its progress counts the rows of all of them.
type tableLoader struct {
	*planner
	// total rows of the tables to make, and those of the tables made so far.
	total, before     int64
	begin, reportedAt time.Time
	// swaps put tables that were built beside others in their place.
	swaps []string
	// made are the tables that this run created, as the adapter quotes them.
	made []string
}

// recipe is how one table is made and filled.
type recipe struct {
	ddl  plugin.AdapterAnswer
	load *plugin.LoadTarget
	// notes of both answers.
	notes []string
}

// recipe asks how table i is made. It changes nothing.
func (p *planner) recipe(ctx context.Context, name string, t *plugin.LogicalTable, exists bool) (recipe, error) {
	ddl, err := p.callAdapter(ctx, plugin.AdapterRequest{Op: plugin.OpDDL, TableName: name, Logical: t, Recreate: exists})
	if err != nil {
		return recipe{}, err
	}
	if len(ddl.DDL) == 0 {
		return recipe{}, pluginFailed(p.adapter.Info(), "creating "+name, errors.New("it gave no DDL"))
	}
	request := plugin.AdapterRequest{Op: plugin.OpLoad, TableName: name, Logical: t, Recreate: exists}
	if p.generates(t) {
		request.Rows = rowsOf(p.sc, t)
	}
	answer, err := p.callAdapter(ctx, request)
	if err != nil {
		return recipe{}, err
	}
	if answer.Load == nil || len(answer.Load.Columns) != len(t.Columns) {
		return recipe{}, pluginFailed(p.adapter.Info(), "loading "+name,
			errors.New("it did not say where the rows of every column go"))
	}
	if request.Rows == 0 {
		answer.Load.Generate = nil
	}
	return recipe{ddl: ddl, load: answer.Load, notes: append(ddl.Notes, answer.Notes...)}, nil
}

// create makes table i and fills it. What was made stays until undo.
func (l *tableLoader) create(ctx context.Context, i int, how recipe) error {
	name, t := l.names[i], &l.logical[i]
	l.report(engine.PrepareProgress{Step: "create", Message: "Creating the table " + name + l.tableLabel(i)})
	var err error
	created := false
	for _, sql := range how.ddl.DDL {
		if err := l.database.Exec(ctx, sql); err != nil {
			return targetError("creating the table "+name, err)
		}
		// A table that somebody else made meanwhile fails the CREATE, and is then not ours to drop.
		if !created && creates(sql) {
			created = true
			l.made = append(l.made, how.load.Table)
			l.mark(ctx, how.load.Table)
		}
	}
	switch {
	case len(how.load.Generate) > 0:
		err = l.generate(ctx, i, how.load)
	case rowsOf(l.sc, t) > 0:
		err = l.load(ctx, i, how.load)
	}
	if err != nil {
		return err
	}
	for n, sql := range how.ddl.AfterLoad {
		l.report(engine.PrepareProgress{Step: "index",
			Message: fmt.Sprintf("Finishing the table %s (%d of %d)", name, n+1, len(how.ddl.AfterLoad))})
		if err := l.database.Exec(ctx, sql); err != nil {
			return targetError("finishing the table "+name, err)
		}
		if how.load.Final != "" && creates(sql) {
			// What took an existing table's place in one step is whole, and not undone.
			if !replaces(sql) {
				l.made = append(l.made, how.load.Final)
			}
			l.mark(ctx, how.load.Final)
		}
	}
	l.swaps = append(l.swaps, how.ddl.Swap...)
	l.notes = append(l.notes, how.notes...)
	return nil
}

// swapTimeout bounds waiting for those who use the old tables.
const swapTimeout = 30 * time.Second

// swap puts the tables that were built beside others in their place, all of them
// or none: until it has succeeded the old ones are there with all that they hold.
func (l *tableLoader) swap(ctx context.Context) error {
	if len(l.swaps) == 0 {
		return nil
	}
	l.report(engine.PrepareProgress{Step: "swap", Message: "Putting the new tables in the place of the old ones"})
	ctx, cancel := context.WithTimeout(ctx, swapTimeout)
	defer cancel()
	swap := func(ctx context.Context, statements []string) error {
		return l.database.Exec(ctx, strings.Join(statements, ";\n")) // one text is one transaction
	}
	if s, ok := l.database.(target.Swapper); ok {
		swap = s.Swap
	}
	if err := swap(ctx, l.swaps); err != nil {
		return targetError("putting the new tables in the place of the old ones", err)
	}
	// What was there is gone, so nothing is undone any more.
	l.made = nil
	return nil
}

func creates(sql string) bool {
	return strings.HasPrefix(strings.ToUpper(strings.TrimSpace(sql)), "CREATE")
}

// replaces reports a CREATE that takes the place of a table of the name in one step.
func replaces(sql string) bool {
	return creates(sql) && strings.HasPrefix(strings.Join(strings.Fields(strings.ToUpper(sql)), " "), "CREATE OR REPLACE ")
}

// generates reports whether the database is asked to make the rows of a table
// itself: every column says how, and the document does not ask for a copy.
func (p *planner) generates(t *plugin.LogicalTable) bool {
	m := p.adapter.Info().Manifest
	if slices.Contains(p.server.Lacks, target.LacksGenerator) {
		return false
	}
	if m.Supports == nil || !m.Supports.GeneratesRows || rowsOf(p.sc, t) == 0 || p.sc.Target.Prepare != nil &&
		p.sc.Target.Prepare.Load == engine.LoadCopy {
		return false
	}
	return !slices.ContainsFunc(t.Columns, func(c plugin.LogicalColumn) bool { return c.Fill == nil })
}

// loadMethod says where the rows come from, where that is not a matter of course.
func (p *planner) loadMethod(t *plugin.LogicalTable) string {
	if p.generates(t) {
		return ", made by the database itself"
	}
	return ""
}

// generate has the database make the rows of table i. A statement that is under
// way when ctx ends is cancelled.
func (l *tableLoader) generate(ctx context.Context, i int, into *plugin.LoadTarget) error {
	name, total := l.names[i], rowsOf(l.sc, &l.logical[i])
	begin := time.Now()
	if l.begin.IsZero() {
		l.begin = begin
	}
	var done int64
	for _, g := range into.Generate {
		l.reportProgress(i, done, done == 0)
		if err := l.database.Exec(ctx, g.SQL); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("making sample rows in %s: %w", name, ctx.Err())
			}
			return targetError("making sample rows in "+name, err)
		}
		done += g.Rows
	}
	if done != total {
		return pluginFailed(l.adapter.Info(), "making sample rows in "+name,
			fmt.Errorf("its statements make %d rows of %d", done, total))
	}
	l.reportProgress(i, done, true)
	l.before += done
	l.notes = append(l.notes, fmt.Sprintf("%s made %d sample rows of %s itself in %.1f s.", l.server.Database, done, name,
		time.Since(begin).Seconds()))
	return nil
}

// undo drops the tables that this run created. The error of the load matters more than its own.
func (l *tableLoader) undo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	for _, table := range l.made {
		if err := l.database.Exec(ctx, "DROP TABLE IF EXISTS "+table); err != nil {
			return fmt.Errorf("dropping the half-made table %s: %w", table, err)
		}
	}
	return nil
}

// rowsOf is how many sample rows a logical table gets: its own number, or those
// of the document where the workload leaves it open.
func rowsOf(sc engine.Scenario, t *plugin.LogicalTable) int64 {
	switch {
	case t.Empty:
		return 0
	case t.Rows > 0:
		return t.Rows
	case sc.Target.Prepare == nil || sc.Target.Prepare.Rows == 0:
		return defaultRows
	}
	return sc.Target.Prepare.Rows
}

// reportProgress reports that so many rows of table i are in.
func (l *tableLoader) reportProgress(i int, done int64, last bool) {
	now := time.Now()
	if !last && now.Sub(l.reportedAt) < 200*time.Millisecond {
		return
	}
	l.reportedAt = now
	progress := engine.PrepareProgress{Step: "load", Message: "Loading sample rows into " + l.names[i] + l.tableLabel(i),
		RowsDone: l.before + done, RowsTotal: l.total}
	if elapsed := now.Sub(l.begin).Seconds(); elapsed > 0 {
		progress.RowsPerSecond = float64(progress.RowsDone) / elapsed
	}
	if progress.RowsPerSecond > 0 {
		remaining := float64(l.total-progress.RowsDone) / progress.RowsPerSecond
		progress.RemainingSecs = &remaining
	}
	l.report(progress)
}

func (l *tableLoader) load(ctx context.Context, i int, into *plugin.LoadTarget) error {
	name, t := l.names[i], &l.logical[i]
	total := rowsOf(l.sc, t)
	begin := time.Now()
	if l.begin.IsZero() {
		l.begin = begin
	}
	l.reportProgress(i, 0, true)
	var given int64
	var pluginErr error
	next := func() (plugin.Rows, error) {
		if given >= total {
			return nil, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows, err := l.workload.Rows(ctx, l.params, i, given, int(min(rowsPerCall, total-given)))
		if errors.Is(err, plugin.ErrEnded) && (t.Rows == 0 || given == total) {
			return nil, nil
		}
		if err == nil && rows.Len() == 0 {
			err = errors.New("it gave no rows")
		}
		if err != nil {
			pluginErr = pluginFailed(l.workload.Info(), "making sample rows", err)
			return nil, pluginErr
		}
		given += int64(rows.Len())
		return rows, nil
	}
	done, err := l.database.Load(
		ctx,
		into.Table,
		into.Columns,
		next,
		func(done int64) { l.reportProgress(i, done, done >= total) },
	)
	switch {
	case pluginErr != nil:
		return pluginErr
	case err != nil:
		if ctx.Err() != nil {
			return fmt.Errorf("loading sample rows into %s: %w", name, ctx.Err())
		}
		return targetError("loading sample rows into "+name, err)
	}
	l.reportProgress(i, done, true)
	l.before += done
	l.notes = append(l.notes, fmt.Sprintf("Loaded %d sample rows into %s in %.1f s.", done, name,
		time.Since(begin).Seconds()))
	return nil
}
