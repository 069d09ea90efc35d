package prepare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// Check outcomes.
const (
	CheckOK      = "ok"
	CheckWarning = "warning"
	CheckFailed  = "failed"
)

// checkPrivileges is the name of an adapter's findings about rights.
const checkPrivileges = "privileges"

// CheckResult is one line of a preflight.
type CheckResult struct {
	// Name is what was checked: plugins | connection | capacity | table | statements, and what the
	// adapter looks at: role | schema | privileges | region | edition | warehouse | warehouse_type | headroom | burst;
	// cost is what the run costs at least.
	Name    string `json:"name"`
	Outcome string `json:"outcome"` // ok | warning | failed
	Message string `json:"message"`
	// Fix says what to do; empty when there is nothing to do.
	Fix   string `json:"fix,omitempty"`
	Field string `json:"field,omitempty"`
	// Target is the label of the matrix's target that it is about.
	Target string `json:"target,omitempty"`
}

// Preflight is what a run would do, found out without changing the target.
type Preflight struct {
	// OK is false when a check failed: the run would fail too.
	OK     bool          `json:"ok"`
	Checks []CheckResult `json:"checks"`
	// Plan is null when the checks did not come so far. Of a table that does not
	// exist yet it holds what would be created.
	Plan   *engine.Plan   `json:"plan"`
	Server *PreflightInfo `json:"server"`
	// Creates names the tables that would be created, with their sample rows.
	Creates []PreflightTable `json:"creates"`
	// Writes are the tables that Loadstone did not make, and the run writes to.
	Writes []target.WriteTarget `json:"writes"`
	// Targets are the preflights of a matrix. Checks and Creates are then those of
	// all targets, with their labels; Plan and Server are null.
	Targets []TargetPreflight `json:"targets,omitempty"`
	// Untried: there is something that the run would write, and it was not tried because nobody asked for that.
	Untried bool `json:"untried,omitempty"`
}

// TargetPreflight is the preflight of one target of a matrix.
type TargetPreflight struct {
	Label   string               `json:"label"`
	OK      bool                 `json:"ok"`
	Checks  []CheckResult        `json:"checks"`
	Plan    *engine.Plan         `json:"plan"`
	Server  *PreflightInfo       `json:"server"`
	Creates []PreflightTable     `json:"creates"`
	Writes  []target.WriteTarget `json:"writes"`
}

// PreflightInfo tells what answered.
type PreflightInfo struct {
	Version        string  `json:"version"`
	Database       string  `json:"database"`
	User           string  `json:"user"`
	Local          bool    `json:"local"`
	Simulated      bool    `json:"simulated"`
	Emulated       bool    `json:"emulated"`
	MaxConnections int     `json:"max_connections"`
	RoundTripMs    float64 `json:"round_trip_ms"`
}

// PreflightTable is a table that the run would create.
type PreflightTable struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
	// Drops is true when an existing table would be dropped first.
	Drops bool `json:"drops"`
	// DDL is what would be executed, beside filling it.
	DDL []string `json:"ddl"`
	// Target is the label of the matrix's target that it belongs to.
	Target string `json:"target,omitempty"`
}

// InspectAll is the preflight of a scenario with a target or with a matrix, whose
// targets are looked at one after another. Without trial nothing is executed that a run would write.
func InspectAll(ctx context.Context, deps Deps, sc engine.Scenario, trial bool) (*Preflight, error) {
	if sc.Matrix == nil {
		return Inspect(ctx, deps, sc, trial)
	}
	all := &Preflight{OK: true, Checks: []CheckResult{}, Creates: []PreflightTable{}, Writes: []target.WriteTarget{}}
	for i, one := range sc.Expand() {
		label := sc.Matrix.Targets[i].Label
		f, err := Inspect(ctx, deps, one, trial)
		if err != nil {
			return nil, fmt.Errorf("looking at the target %q: %w", label, err)
		}
		for j := range f.Checks {
			c := &f.Checks[j]
			c.Target, c.Field = label, engine.MatrixField(i, c.Field)
		}
		for j := range f.Creates {
			f.Creates[j].Target = label
		}
		all.OK, all.Untried = all.OK && f.OK, all.Untried || f.Untried
		all.Checks, all.Creates = append(all.Checks, f.Checks...), append(all.Creates, f.Creates...)
		all.Targets = append(all.Targets,
			TargetPreflight{Label: label, OK: f.OK, Checks: f.Checks, Plan: f.Plan, Server: f.Server, Creates: f.Creates,
				Writes: f.Writes})
		all.Writes = append(all.Writes, f.Writes...)
	}
	return all, nil
}

// Describe is Inspect without the trial of what the run would write: it changes nothing, not for a moment.
func Describe(ctx context.Context, deps Deps, sc engine.Scenario) (*Preflight, error) {
	return Inspect(ctx, deps, sc, false)
}

// describeServer adds what the server said of itself, and whether it has room for the connections.
func (f *Preflight) describeServer(r *resolved, connections int) {
	f.Server = &PreflightInfo{Version: r.server.Version, Database: r.server.Database, User: r.server.User,
		Local: r.server.Local, Simulated: r.server.Simulated, Emulated: r.server.Emulated,
		MaxConnections: r.server.MaxConnections, RoundTripMs: engine.Milliseconds(r.server.RoundTrip.Round(time.Microsecond))}
	f.add(CheckResult{Name: "connection", Outcome: CheckOK,
		Message: fmt.Sprintf("%s answers, version %s, as %s.", r.server.Database, r.server.Version, r.server.User)})
	if limit := r.server.MaxConnections; limit > 0 && connections > limit*9/10 {
		f.add(CheckResult{Name: "capacity", Outcome: CheckWarning, Field: "workload.concurrent_connections",
			Message: fmt.Sprintf("%d connections are close to the %d that the target allows.", connections, limit),
			Fix:     "lower them, or raise the limit of the database"})
	}
}

// addFound adds what the adapter found, and reports whether there is more to look at: without rights the tables would
// be said to be missing, or to have no columns.
func (f *Preflight) addFound(checks []plugin.Check) bool {
	for _, c := range checks {
		f.add(CheckResult{Name: c.Name, Outcome: c.Outcome, Message: c.Message, Fix: c.Fix, Field: c.Field})
		f.OK = f.OK && c.Outcome != CheckFailed
	}
	return !slices.ContainsFunc(f.Checks, func(c CheckResult) bool {
		return c.Name == checkPrivileges && c.Outcome == CheckFailed
	})
}

// Inspect is the preflight of a scenario with one target; with tries it executes what the run would write, and rolls
// it back. What is wrong with the scenario or the target is a check, not an error.
func Inspect(ctx context.Context, deps Deps, sc engine.Scenario, tries bool) (*Preflight, error) {
	f, err := inspect(ctx, deps, sc, tries)
	if err == nil && errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err() // what failed because the caller left is no finding
	}
	return f, err
}

func inspect(ctx context.Context, deps Deps, sc engine.Scenario, tries bool) (*Preflight, error) {
	f := &Preflight{OK: true, Checks: []CheckResult{}, Creates: []PreflightTable{}, Writes: []target.WriteTarget{}}
	r, err := resolve(ctx, deps, sc)
	if err != nil {
		return f, f.failed("plugins", err)
	}
	defer r.close()
	w, a := r.workload.Info(), r.adapter.Info()
	f.add(CheckResult{Name: "plugins", Outcome: CheckOK,
		Message: fmt.Sprintf("%s %s drives %s %s; the parameters are valid.", w.Name, w.Version, a.Name, a.Version)})
	if err := r.connect(ctx, sc); err != nil {
		return f, f.failed("connection", err)
	}
	f.describeServer(r, sc.Workload.ConcurrentConnections)
	found, err := r.preflight(ctx, sc)
	if err != nil {
		return f, f.failed("warehouse", err)
	}
	// Looking at the tables may have resumed a warehouse by itself.
	defer r.restoreWarehouse(ctx, found.Restore)
	least := r.least(sc, found)
	if least != nil {
		f.add(CheckResult{Name: "cost", Outcome: CheckOK, Message: least.String()})
	}
	if !f.addFound(found.Checks) {
		return f, nil
	}
	if len(r.logical) == 0 && sc.Target.Prepare != nil {
		f.add(CheckResult{Name: "table", Outcome: CheckWarning, Field: "target.prepare",
			Message: fmt.Sprintf("The workload %s brings no sample tables: nothing is prepared, and what its statements name "+
				"must exist.", w.Name), Fix: "remove target.prepare"})
	}
	p := &planner{resolved: r, sc: sc, tryOwn: found.TryWrites}
	tables, err := p.expected(ctx, f)
	if err != nil {
		return f, f.failed("table", err)
	}
	if !f.OK {
		return f, nil
	}
	if f.Plan, err = p.freeze(ctx, tables); err != nil {
		return f, f.failed("statements", err)
	}
	f.Plan.LeastCost, f.Plan.Burst = least, found.Burst
	if err := p.checkWritten(ctx, f); err != nil {
		return f, f.failed(checkWrites, err)
	}
	frozen := fmt.Sprintf("%d statements are frozen; nothing else can be executed.", len(f.Plan.Statements))
	if len(f.Creates) == 0 {
		if err := p.tryStatements(ctx, f.Plan.Statements); err != nil {
			return f, f.failed("statements", err)
		}
		frozen += " The database accepts them."
	}
	f.add(CheckResult{Name: "statements", Outcome: CheckOK, Message: frozen})
	for _, s := range p.wanted {
		if s.Note != "" {
			f.add(CheckResult{Name: "statements", Outcome: CheckOK, Message: s.Note})
		}
	}
	if !f.OK || len(f.Creates) > 0 {
		return f, nil
	}
	if len(p.triable(f.Plan)) == 0 {
		if len(p.writing(f.Plan)) > 0 && sc.Workload.Feed == nil {
			f.add(CheckResult{
				Name:    checkTrial,
				Outcome: CheckWarning,
				Message: fmt.Sprintf(
					"Nothing that the run would write is tried before its load: the table type %s has no way to undo it.",
					a.Name,
				),
				Fix: "begin with a short run, and see that its operations succeed",
			})
		}
		return f, nil
	}
	if !tries {
		f.Untried = true
		f.add(CheckResult{Name: checkTrial, Outcome: CheckOK,
			Message: "What the run would write was not tried: that is done when it starts."})
		return f, nil
	}
	tried, err := p.tryWrites(ctx, f.Plan)
	if err != nil {
		return f, f.failed(checkTrial, err)
	}
	f.Checks = append(f.Checks, tried...)
	return f, nil
}

// checkTrial is the name of the finding about what the run would write.
const checkTrial = "trial"

func (f *Preflight) add(c CheckResult) { f.Checks = append(f.Checks, c) }

// failed turns a user-facing error into a failed check and gives every other one back.
func (f *Preflight) failed(name string, err error) error {
	var e *engine.Error
	if !errors.As(err, &e) {
		return err
	}
	f.OK = false
	if len(e.Fields) == 0 {
		f.add(CheckResult{Name: name, Outcome: CheckFailed, Message: e.Message, Fix: e.Hint})
		return nil
	}
	for _, field := range e.Fields {
		message := e.Message
		if e.Code == engine.CodeInvalid && field.Field != allowWritesField {
			message = field.Field + ": " + field.Message
		}
		f.add(CheckResult{Name: name, Outcome: CheckFailed, Message: message, Fix: field.Hint, Field: field.Field})
	}
	return nil
}

// expected describes the tables as the run would find or make them.
func (p *planner) expected(ctx context.Context, f *Preflight) ([]engine.Table, error) {
	var tables []engine.Table
	state := make([]tableState, len(p.logical))
	for i := range p.logical {
		t := &p.logical[i]
		name := physical(p.sc, p.logical, *t)
		p.names = append(p.names, name)
		have, err := p.inspect(ctx, name, t, p.recreates())
		if err != nil {
			return nil, err
		}
		state[i] = have
		if err := p.decide(name, t, have); err != nil {
			if err := f.failed("table", err); err != nil {
				return nil, err
			}
			continue
		}
		if have.exists && !p.recreates() {
			check := CheckResult{Name: "table", Outcome: CheckOK,
				Message: fmt.Sprintf("%s is there with %s%d rows.", name, about(have.table.RowsExact), have.table.Rows)}
			if note := p.otherSize(name, t, have.table); note != "" {
				check = CheckResult{Name: "table", Outcome: CheckWarning, Message: note,
					Fix: "set if_exists: recreate to have that many, or leave the rows out", Field: "target.prepare.rows"}
			}
			f.add(check)
			tables = append(tables, *have.table)
			if err := p.keepSamples(have); err != nil {
				return nil, err
			}
			continue
		}
		how, err := p.recipe(ctx, name, t, have.exists)
		if err != nil {
			return nil, err
		}
		made := p.expectedTable(t, how)
		f.Creates = append(f.Creates,
			PreflightTable{Name: name, Rows: made.Rows, Drops: have.exists,
				DDL: slices.Concat(how.ddl.DDL, how.ddl.AfterLoad, how.ddl.Swap)})
		check := CheckResult{Name: "table", Outcome: CheckOK,
			Message: fmt.Sprintf("%s would be created with %d sample rows%s.", name, made.Rows, p.loadMethod(t))}
		if have.exists {
			check.Outcome = CheckWarning
			check.Message = fmt.Sprintf("%s would be dropped and created again with %d sample rows%s.", name, made.Rows,
				p.loadMethod(t))
			for _, note := range how.ddl.Notes {
				check.Message += " " + note
			}
			check.Fix, check.Field = "set if_exists: use to keep it", "target.prepare.if_exists"
		}
		f.add(check)
		tables = append(tables, made)
	}
	if !f.OK {
		return tables, nil
	}
	if err := p.checkNoneMissing(state); err != nil {
		return nil, err
	}
	return tables, nil
}

func about(exact bool) string {
	if exact {
		return ""
	}
	return "about "
}

// expectedTable describes the sample table as it is going to be.
func (p *planner) expectedTable(t *plugin.LogicalTable, how recipe) engine.Table {
	table := declared(p.sc, t)
	table.Dialect = p.adapter.Info().Manifest.Dialect
	table.Name, table.PhysicalName, table.Columns = t.Name, how.load.Table, how.load.Columns
	if how.load.Final != "" {
		table.PhysicalName = how.load.Final
	}
	// The key goes by the names that the columns get.
	table.Key = slices.Clone(t.Key)
	for i, k := range t.Key {
		if at := slices.IndexFunc(t.Columns, func(c plugin.LogicalColumn) bool { return c.Name == k }); at >= 0 {
			table.Key[i] = table.Columns[at].Name
		}
	}
	return table
}

// declared is a sample table as the workload declares it, without its columns.
func declared(sc engine.Scenario, t *plugin.LogicalTable) engine.Table {
	table := engine.Table{Name: t.Name, PhysicalName: t.Name, Key: t.Key, Rows: rowsOf(sc, t), RowsExact: true,
		Own: sc.Target.Prepare != nil}
	if isInteger := func(c plugin.LogicalColumn) bool {
		return c.Name == t.Key[0] &&
			c.Type == engine.TypeI64
	}; table.Rows > 0 && len(t.Key) == 1 && slices.ContainsFunc(t.Columns, isInteger) {
		first, last := int64(1), table.Rows
		table.KeyMin, table.KeyMax, table.Dense = &first, &last, true
	}
	return table
}
