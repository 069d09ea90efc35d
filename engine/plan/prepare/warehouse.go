package prepare

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// restoreTimeout bounds setting a warehouse back after a preparation that failed.
const restoreTimeout = 20 * time.Second

// warehouseSQL is all that an adapter may have executed on a warehouse.
var warehouseSQL = regexp.MustCompile(
	`^ALTER WAREHOUSE "(?:[^"]|"")+" (?:RESUME IF SUSPENDED|SUSPEND|(?:ADD|DROP) TABLES \(` +
		`"(?:[^"]|"")+"(?:(?:\.|, )"(?:[^"]|"")+")*\))$`)

// preflight asks the adapter what it thinks of the target besides its tables. The
// operation is optional: an adapter that does not know it has nothing to say, and
// only where there are warehouses to look after is that worth a warning.
func (r *resolved) preflight(ctx context.Context, sc engine.Scenario) (plugin.AdapterAnswer, error) {
	kinds, access, err := r.access(ctx, sc)
	if err != nil {
		return plugin.AdapterAnswer{}, err
	}
	prep := sc.Target.Prepare
	answer, err := r.callAdapter(ctx, plugin.AdapterRequest{Op: plugin.OpPreflight, TableName: sc.Target.TableName,
		Warehouse: sc.Target.Warehouse, Connections: sc.Workload.ConcurrentConnections,
		Kinds: kinds, Access: access, Prepare: prep != nil, Recreate: prep != nil &&
			prep.IfExists == engine.IfExistsRecreate})
	if errors.Is(err, plugin.ErrFailed) {
		if !target.DriverTraits(r.driver).Warehouses {
			return plugin.AdapterAnswer{}, nil
		}
		return plugin.AdapterAnswer{Checks: []plugin.Check{{Name: "warehouse", Outcome: CheckWarning,
			Message: fmt.Sprintf("The adapter %s does not check the warehouse, and a suspended one is not resumed for the "+
				"run (it answered: %s).",
				r.adapter.Info().Name, readable([]string{err.Error()})[0]),
			Fix: "see that the warehouse is there and resumes by itself"}}}, nil
	}
	if err != nil {
		return answer, err
	}
	for _, sql := range append(append([]string{}, answer.Resume...), answer.Restore...) {
		if !warehouseSQL.MatchString(sql) {
			return answer, pluginFailed(r.adapter.Info(), "answering preflight",
				fmt.Errorf("it may resume and suspend a warehouse, and add tables to it, not execute %.80q", sql))
		}
	}
	return answer, nil
}

// resumeWarehouse has the adapter's checks pass and its warehouse resumed. What sets the
// warehouse back is returned also with an error.
func (p *planner) resumeWarehouse(ctx context.Context) (restore []string, err error) {
	answer, err := p.preflight(ctx, p.sc)
	if err != nil {
		return nil, err
	}
	var failures *engine.Error
	for _, c := range answer.Checks {
		switch c.Outcome {
		case CheckFailed:
			failures = join(failures, c)
		case CheckWarning:
			p.notes = append(p.notes, readable([]string{c.Message + " To change it: " + c.Fix + "."})...)
		}
	}
	if failures != nil {
		return nil, failures
	}
	p.housekeeping = answer.HousekeepingWarehouse
	p.leastCost, p.burst, p.tryOwn = p.least(p.sc, answer), answer.Burst, answer.TryWrites
	if p.leastCost != nil {
		p.notes = append(p.notes, p.leastCost.String())
	}
	if p.housekeeping != "" && p.sc.Target.Warehouse != "" && p.sc.Target.HousekeepingWarehouse == "" {
		p.notes = append(p.notes, "Polls and enrichment run on the warehouse "+p.housekeeping+", which they keep up: "+
			"the run's own is interactive")
	}
	if len(answer.Resume) == 0 {
		return nil, nil
	}
	p.report(engine.PrepareProgress{Step: "connect", Message: "Making the warehouse ready"})
	if err := p.database.Exec(ctx, answer.Resume...); err != nil {
		return nil, targetError("making the warehouse ready", err)
	}
	for _, sql := range answer.Resume {
		if strings.HasSuffix(sql, " RESUME IF SUSPENDED") {
			p.notes = append(p.notes, "The warehouse was suspended; it is resumed for the run, and suspended again after it")
		} else {
			p.notes = append(p.notes, "The run's tables are added to the interactive warehouse, and taken away again after it")
		}
	}
	return answer.Restore, nil
}

// least reckons what a run costs at least, nil where nothing is known of a warehouse.
func (r *resolved) least(sc engine.Scenario, answer plugin.AdapterAnswer) *engine.LeastCost {
	if answer.Warehouse == nil || r.prices == nil {
		return nil
	}
	w := *answer.Warehouse
	w.AutoSuspendSeconds = answer.AutoSuspendSeconds
	load := sc.Workload.Warmup() + sc.Workload.Duration()
	if sc.Workload.IsSearch() {
		load = sc.Workload.Warmup() + sc.FindMax.StepDuration() // it has one step at least
	}
	suspends := (&engine.Plan{Restore: answer.Restore}).Suspends()
	return r.prices().Least(w, load.Seconds(), suspends)
}

// join adds a failed check to the error that ends the preparation.
func join(e *engine.Error, c plugin.Check) *engine.Error {
	if e == nil {
		e = &engine.Error{Code: engine.CodeTarget}
	} else {
		e.Message += " "
	}
	e.Message += c.Message
	if c.Field != "" {
		e.Fields = append(e.Fields, engine.FieldError{Field: c.Field, Message: c.Message, Hint: c.Fix})
	} else if c.Fix != "" {
		e.Hint = strings.TrimLeft(e.Hint+"; "+c.Fix, "; ")
	}
	return e
}

// restoreWarehouse undoes ready after a preparation that failed.
func (r *resolved) restoreWarehouse(ctx context.Context, restore []string) {
	if len(restore) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	// The preparation's own error is the one to tell.
	_ = r.database.Exec(ctx, restore...)
}
