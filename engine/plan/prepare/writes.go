package prepare

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// checkWrites is the name of the finding about tables that Loadstone did not make.
const checkWrites = "writes"

// allowWritesField is where a template allows them.
const allowWritesField = "target.allow_writes"

// allowHint is the cure that a user has.
const allowHint = "allow it with --allow-writes, or target.allow_writes: true; or let the workload only read"

// ownership marks the tables that Loadstone made. A database that keeps no marks
// has the template's word: what it would have made counts as made.
func (p *planner) ownership(ctx context.Context, t *engine.Table) error {
	k, ok := p.database.(target.TableMarker)
	if !ok {
		t.Own = p.sc.Target.Prepare != nil
		return nil
	}
	own, err := k.Owned(ctx, t.PhysicalName)
	if err != nil {
		return targetError("looking at "+t.PhysicalName, err)
	}
	t.Own = own[0] || slices.ContainsFunc(p.ours, func(name string) bool { return sameName(name, t.PhysicalName) })
	return nil
}

// mark notes that this run made a table. Where that cannot be stored, this run knows
// it all the same, and later ones will ask before they write.
func (p *planner) mark(ctx context.Context, table string) {
	k, ok := p.database.(target.TableMarker)
	if !ok {
		return
	}
	p.ours = append(p.ours, table)
	if err := k.Mark(ctx, table); err != nil && ctx.Err() == nil {
		p.notes = append(p.notes, fmt.Sprintf("It is not stored in the database that Loadstone made this table, so later "+
			"runs ask before they write to it: %v", err))
	}
}

// writes are the tables that the statements write to.
func (p *planner) writes(ctx context.Context, plan *engine.Plan) ([]target.WriteTarget, error) {
	if k, ok := p.database.(target.TableMarker); ok {
		list, err := k.Writes(ctx, plan.Statements)
		if err != nil {
			return nil, targetError("looking for what the run writes", err)
		}
		for i := range list {
			for _, t := range plan.Tables {
				if sameName(t.PhysicalName, list[i].Table) && (t.RowsExact || list[i].Rows < 0) {
					list[i].Rows = t.Rows
				}
			}
		}
		return list, nil
	}
	// The statements' own words are all there is.
	var list []target.WriteTarget
	for _, s := range plan.Statements {
		if !s.Writes && !s.Kind.Write() {
			continue
		}
		w := target.WriteTarget{Table: "the tables of the statement " + s.ID, Opaque: true, Own: p.sc.Target.Prepare != nil,
			Rows: -1}
		for _, t := range plan.Tables {
			if t.Name == s.Table || s.Table == "" && len(plan.Tables) == 1 {
				w = target.WriteTarget{Table: t.PhysicalName, Own: t.Own, Rows: t.Rows}
			}
		}
		operation := s.Kind.String()
		if !s.Kind.Write() {
			operation = "writes"
		}
		at := slices.IndexFunc(list, func(o target.WriteTarget) bool { return o.Table == w.Table })
		if at < 0 {
			at = len(list)
			list = append(list, w)
		}
		if !slices.Contains(list[at].Operations, operation) {
			list[at].Operations = append(list[at].Operations, operation)
		}
		list[at].Statements = append(list[at].Statements, s.ID)
	}
	return list, nil
}

// sameName compares an adapter's quoted name with one that is quoted only where it must be.
func sameName(quoted, plain string) bool {
	bare := func(s string) string { return strings.ReplaceAll(s, `"`, "") }
	return bare(quoted) == bare(plain)
}

// foreign are the writes that need leave: to tables that Loadstone did not make.
// System catalogs are refused, whatever the template allows.
func foreign(list []target.WriteTarget) (asked []target.WriteTarget, err error) {
	for _, w := range list {
		if w.System {
			return nil, &engine.Error{Code: engine.CodeInvalid,
				Message: fmt.Sprintf("The run would write to %s, a table of the database's own catalog (%s): that can destroy "+
					"the database, and is never done.", w.Table, strings.Join(w.Statements, ", ")),
				Fields: []engine.FieldError{{Field: "target.table_name", Message: "is a system catalog",
					Hint: "name a table of your own; reading a catalog is allowed"}}}
		}
		if !w.Own {
			asked = append(asked, w)
		}
	}
	return asked, nil
}

// checkWriteAllowed refuses a run that writes to tables of others without leave.
func (p *planner) checkWriteAllowed(ctx context.Context, plan *engine.Plan) error {
	list, err := p.writes(ctx, plan)
	if err != nil {
		return err
	}
	asked, err := foreign(list)
	asked = slices.DeleteFunc(asked, func(w target.WriteTarget) bool {
		return slices.ContainsFunc(slices.Concat(p.dropped, p.ours),
			func(name string) bool { return sameName(name, w.Table) })
	})
	if err != nil || len(asked) == 0 {
		return err
	}
	line := writesLine(asked)
	if !p.sc.Target.AllowWrites {
		return p.notAllowed("The run writes to tables that Loadstone did not make: " + line)
	}
	p.notes = append(p.notes, "Writes were allowed to tables that Loadstone did not make: "+line)
	return nil
}

// checkWriteAllowedBefore is mayWrite before tables are made: a run that is refused afterwards
// would leave them. Statements on what is not there yet are left to mayWrite.
func (p *planner) checkWriteAllowedBefore(ctx context.Context, state []tableState, how []recipe) error {
	var tables []engine.Table
	making := false
	for i := range state {
		if how[i].load == nil {
			tables = append(tables, *state[i].table)
			continue
		}
		making = true
		tables = append(tables, p.expectedTable(&p.logical[i], how[i]))
	}
	if _, keeps := p.database.(target.TableMarker); !making || !keeps {
		return nil
	}
	notes := slices.Clone(p.notes)
	defer func() { p.notes = notes }()
	plan, err := p.freeze(ctx, tables)
	if err != nil {
		return ctx.Err() // what is wrong with it is said of the tables as they are then
	}
	// A table that is dropped first was judged, and what follows is done to the new one.
	for i := range state {
		if state[i].exists && p.recreates() {
			p.dropped = append(p.dropped, state[i].table.PhysicalName)
		}
	}
	return p.checkWriteAllowed(ctx, plan)
}

func (p *planner) notAllowed(message string) error {
	return &engine.Error{Code: engine.CodeInvalid, Message: message,
		Fields: []engine.FieldError{{Field: allowWritesField, Message: "is not set", Hint: p.allowHint()}}}
}

// allowHint is the cure, with that for tables that look like Loadstone's.
func (p *planner) allowHint() string {
	if len(p.unmarked) == 0 {
		return allowHint
	}
	return allowHint + "; " + p.adoptHint()
}

// adoptHint is what a user does about tables that are Loadstone's and have no mark. Nothing
// but the user's word tells them from tables that somebody made in the same shape, so it is not done unasked.
func (p *planner) adoptHint() string {
	return "if an earlier version of Loadstone made what the run writes to, say so once: " + strings.Join(p.unmarked, "; ")
}

// noteUnmarked notes how an existing table is marked that has the columns and the key
// with which the workload's would be made.
func (p *planner) noteUnmarked(ctx context.Context, t *plugin.LogicalTable, have *engine.Table) error {
	k, ok := p.database.(target.TableMarker)
	if !ok || have.Own || len(t.Columns) != len(have.Columns) || !slices.EqualFunc(t.Key, have.Key, strings.EqualFold) {
		return nil
	}
	for i, want := range t.Columns {
		if c := have.Columns[i]; !strings.EqualFold(c.Name, want.Name) || !compatible(want.Type, c.Type) {
			return nil
		}
	}
	text, err := k.MarkSQL(ctx, have.PhysicalName)
	if err != nil {
		return ctx.Err() // a view has the shape and no mark
	}
	if !slices.Contains(p.unmarked, text) {
		p.unmarked = append(p.unmarked, text)
	}
	return nil
}

// checkWritten adds the preflight's line about what is written.
func (p *planner) checkWritten(ctx context.Context, f *Preflight) error {
	list, err := p.writes(ctx, f.Plan)
	if err != nil {
		return err
	}
	f.Writes = []target.WriteTarget{}
	asked, err := foreign(list)
	if err != nil {
		return err
	}
	f.Writes = append(f.Writes, asked...)
	switch {
	case len(asked) > 0 && p.sc.Target.AllowWrites:
		f.add(CheckResult{Name: checkWrites, Outcome: CheckWarning, Field: allowWritesField, Message: writesLine(asked),
			Fix: "it is allowed; take target.allow_writes out to be asked again"})
	case len(asked) > 0:
		f.OK = false
		f.add(CheckResult{Name: checkWrites, Outcome: CheckFailed, Field: allowWritesField, Message: writesLine(asked),
			Fix: p.allowHint()})
	case len(list) > 0:
		names := make([]string, len(list))
		for i, w := range list {
			names[i] = w.Table
		}
		f.add(CheckResult{Name: checkWrites, Outcome: CheckOK, Message: "Only tables that Loadstone made are written to: " +
			strings.Join(names, ", ") + "."})
	}
	return nil
}

// writesLine says in one line what is done to which tables, and what follows from it.
func writesLine(list []target.WriteTarget) string {
	parts := make([]string, 0, len(list))
	for _, w := range list {
		parts = append(parts, writtenWords(w))
	}
	return strings.Join(parts, ". ")
}

func writtenWords(w target.WriteTarget) string {
	if w.Opaque && strings.HasPrefix(w.Table, "pg_catalog.") {
		return fmt.Sprintf("%s %s, which does more than read", joinWords(w.Operations), w.Table)
	}
	if w.Opaque {
		return fmt.Sprintf("%s %s, which may write whatever its author had it write", joinWords(w.Operations), w.Table)
	}
	text := joinWords(w.Operations) + " in " + w.Table
	switch {
	case w.View:
		text += ", a view that writes whatever its triggers do"
	case w.ForeignServer != "":
		text += ", a table of the foreign server " + w.ForeignServer
	}
	if w.Rows >= 0 {
		text += ", " + roughly(w.Rows)
	}
	if w.Partitions > 0 {
		text += "; partitions: " + strconv.Itoa(w.Partitions)
	}
	if w.Children > 0 {
		text += "; tables that inherit from it: " + strconv.Itoa(w.Children)
	}
	if w.Triggers > 0 {
		text += "; triggers: " + strconv.Itoa(w.Triggers)
	}
	if len(w.Cascades) > 0 {
		text += "; cascades to: " + strings.Join(w.Cascades, ", ")
	}
	if w.RowSecurity {
		text += "; row-level security: on"
	}
	return text
}

// joinWords writes a list as a sentence has it: INSERT, UPDATE and DELETE.
func joinWords(words []string) string {
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " and " + words[n]
	}
	return strings.Join(words, "")
}

// roughly writes a number of rows as people say it: 1.2 M rows.
func roughly(rows int64) string {
	switch {
	case rows >= 1_000_000_000:
		return fmt.Sprintf("%.1f G rows", float64(rows)/1e9)
	case rows >= 1_000_000:
		return fmt.Sprintf("%.1f M rows", float64(rows)/1e6)
	case rows >= 10_000:
		return fmt.Sprintf("%.0f k rows", float64(rows)/1e3)
	}
	return rowCount(rows)
}
