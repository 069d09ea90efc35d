// Package prepare turns a scenario into a plan: it resolves the plugins, checks
// the parameters, looks at the target, makes and loads the sample tables when
// that was asked for, and freezes the list of statements that a run may execute.
//
// Nothing in the target is changed unless target.prepare asks for it, and a
// table is dropped only for if_exists: recreate, or when this run created it
// and could not fill it. Errors are *engine.Error and name the field.
package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/schema"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/cost"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker/replay"
)

// slotsPerWorker leaves room for replacements: a key slot is never used twice.
const slotsPerWorker = 4

// checkTimeout bounds the first contact with the target.
const checkTimeout = 20 * time.Second

// Connections opens connection references.
type Connections interface {
	// OpenDSN returns the driver and the DSN, unsealed.
	OpenDSN(ctx context.Context, ref engine.ConnectionRef) (driver string, dsn secret.Secret, err error)
}

// openedOnce opens each reference once.
type openedOnce struct {
	from   Connections
	mu     sync.Mutex
	opened map[engine.ConnectionRef]openedConnection
}

type openedConnection struct {
	driver string
	dsn    secret.Secret
}

// OpenOnce returns connections that are unsealed the first time they are asked for. It is for one request: what is
// changed of a connection afterwards it does not see. What failed is tried again.
func OpenOnce(from Connections) Connections {
	return &openedOnce{from: from, opened: map[engine.ConnectionRef]openedConnection{}}
}

// OpenDSN implements Connections.
func (o *openedOnce) OpenDSN(ctx context.Context, ref engine.ConnectionRef) (string, secret.Secret, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c, known := o.opened[ref]; known {
		return c.driver, c.dsn, nil
	}
	driver, dsn, err := o.from.OpenDSN(ctx, ref)
	if err == nil {
		o.opened[ref] = openedConnection{driver, dsn}
	}
	return driver, dsn, err
}

// Deps are what preparation needs of the rest.
type Deps struct {
	Plugins     plugin.Host
	Drivers     map[string]target.Driver
	Connections Connections
	// Recordings are the runs that can be replayed; nil where there are none.
	Recordings Recordings
	// Prices is the price list as it is now; nil reckons no costs.
	Prices func() cost.Prices
}

// Recordings finds recorded runs.
type Recordings interface {
	Recorded(ctx context.Context, runID string) (*engine.Plan, error)
}

// Prepared is a run that is ready to be placed.
type Prepared struct {
	Plan *engine.Plan
	// Params are the workload's parameters with the defaults filled in.
	Params json.RawMessage
	DSN    secret.Secret
	Server target.ServerInfo
	// Notes are sentences for the run's log.
	Notes []string
	// Remarks are those of them that belong beside the run's figures, too.
	Remarks []string
}

// Plan prepares the target and returns the frozen plan. progress is called from
// the same goroutine, a few times a second at most. When ctx ends, what was
// being loaded is undone.
func Plan(ctx context.Context, deps Deps, sc engine.Scenario, progress func(engine.PrepareProgress)) (*Prepared,
	error) {
	r, err := resolve(ctx, deps, sc)
	if err != nil {
		return nil, err
	}
	defer r.close()
	p := &planner{resolved: r, sc: sc, progress: progress}
	p.report(engine.PrepareProgress{Step: "connect", Message: "Connecting to " + r.connectionName(sc)})
	if err := r.connect(ctx, sc); err != nil {
		return nil, err
	}
	if r.server.Pooled {
		p.notes, p.remarks = append(p.notes, r.server.Notes...), append(p.remarks, r.server.Notes...)
	}
	restore, err := p.resumeWarehouse(ctx)
	if err != nil {
		return nil, err
	}
	plan, err := p.plan(ctx)
	if err != nil {
		r.restoreWarehouse(ctx, restore)
		return nil, err
	}
	plan.Restore, plan.HousekeepingWarehouse = restore, p.housekeeping
	plan.LeastCost, plan.Burst = p.leastCost, p.burst
	return &Prepared{Plan: plan, Params: r.params, DSN: r.dsn, Server: r.server, Notes: p.notes, Remarks: p.remarks}, nil
}

// Check does what can be done without the target: plugins, parameters, the
// connection's name and driver.
func Check(ctx context.Context, deps Deps, sc engine.Scenario) error {
	r, err := resolve(ctx, deps, sc)
	if err != nil {
		return err
	}
	r.close()
	return nil
}

// resolved are the parts of a scenario that were looked up by name.
type resolved struct {
	workload plugin.Workload
	adapter  plugin.Adapter
	params   json.RawMessage
	// adapterParams are the adapter's, completed.
	adapterParams json.RawMessage
	// logical are the workload's tables with these parameters.
	logical  []plugin.LogicalTable
	driver   target.Driver
	dsn      secret.Secret
	database target.Database
	server   target.ServerInfo
	session  []string
	classes  map[string]engine.ErrorClass
	// tableNames are those of the run's tables, as the user wrote them.
	tableNames []string
	// adapterNotes say what the adapter did not answer.
	adapterNotes []string
	prices       func() cost.Prices
}

func (r *resolved) close() {
	if r.database != nil {
		_ = r.database.Close()
	}
}

func (r *resolved) connectionName(sc engine.Scenario) string {
	if name := sc.Target.Connection.Name; name != "" {
		return "the connection " + name
	}
	return "the target"
}

func resolve(ctx context.Context, deps Deps, sc engine.Scenario) (*resolved, error) {
	r := &resolved{prices: deps.Prices}
	var err error
	if r.workload, err = deps.Plugins.Workload(ctx, sc.Workload.Plugin); err != nil {
		return nil, pluginError(ctx, deps, err, plugin.KindWorkload, sc.Workload.Plugin, "workload.plugin")
	}
	if r.adapter, err = deps.Plugins.Adapter(ctx, sc.Target.Adapter); err != nil {
		return nil, pluginError(ctx, deps, err, plugin.KindAdapter, sc.Target.Adapter, "target.adapter")
	}
	if m := r.workload.Info().Manifest; m.Feed && sc.Workload.Feed == nil {
		return nil, engine.InvalidField("workload.feed",
			fmt.Sprintf("is required: the workload %s issues the operations of a feed", m.Name),
			"name a recorded run with workload.feed: {run: ID}, or give a file of CSV or JSON lines with --feed FILE")
	}
	if m := r.adapter.Info().Manifest; m.Sends != nil {
		if err := m.Sends.Check(); err != nil {
			return nil, pluginFailed(r.adapter.Info(), "declaring what it sends", err)
		}
	}
	params, err := withRecorded(ctx, deps, sc.Workload)
	if err != nil {
		return nil, err
	}
	if r.params, err = parameters(r.workload.Info().Manifest, params, paramsField); err != nil {
		return nil, err
	}
	if r.adapterParams, err = parameters(r.adapter.Info().Manifest, sc.Target.Params, adapterParamsField); err != nil {
		return nil, err
	}
	if r.logical, err = r.workload.Tables(ctx, r.params); err != nil {
		return nil, pluginFailed(r.workload.Info(), "choosing its tables", err)
	}
	if err := checkTarget(sc, r.workload.Info().Name, r.logical); err != nil {
		return nil, err
	}
	for _, t := range r.logical {
		r.tableNames = append(r.tableNames, physical(sc, r.logical, t))
	}
	if err := r.checkSupport(ctx, sc); err != nil {
		return nil, err
	}
	name, dsn, err := deps.Connections.OpenDSN(ctx, sc.Target.Ref())
	if err != nil {
		if errors.Is(err, store.ErrNotFound) || engine.HasCode(err, engine.CodeNotFound) {
			return nil, &engine.Error{Code: engine.CodeInvalid,
				Message: fmt.Sprintf("There is no saved connection %q.", sc.Target.Connection.Name),
				Fields: []engine.FieldError{{Field: "target.connection", Message: "no connection of that name",
					Hint: "save it on the Connections page, or spell it out as {driver, dsn}"}}, Cause: err}
		}
		return nil, fmt.Errorf("opening the connection: %w", err)
	}
	r.dsn = dsn
	manifest := r.adapter.Info().Manifest
	if manifest.Driver != "" && manifest.Driver != name {
		return nil, engine.InvalidField("target.adapter",
			fmt.Sprintf("%s is for the driver %q, and the connection is for %q", manifest.Name, manifest.Driver, name),
			"choose an adapter for this database, or another connection")
	}
	if r.driver = deps.Drivers[name]; r.driver == nil {
		known := make([]string, 0, len(deps.Drivers))
		for d := range deps.Drivers {
			known = append(known, d)
		}
		slices.Sort(known)
		return nil, engine.InvalidField("target.connection.driver", fmt.Sprintf("there is no driver %q", name),
			"one of "+strings.Join(known, ", "))
	}
	return r, nil
}

func pluginError(ctx context.Context, deps Deps, err error, kind, ref, field string) error {
	if errors.Is(err, plugin.ErrDisabled) || errors.Is(err, plugin.ErrDamaged) {
		e := engine.AsError(err)
		return &engine.Error{Code: e.Code, Message: e.Message, Hint: e.Hint, Cause: err,
			Fields: []engine.FieldError{{Field: field, Message: "this plugin cannot be used now", Hint: e.Hint}}}
	}
	if !errors.Is(err, plugin.ErrNotFound) {
		return fmt.Errorf("opening the %s plugin: %w", kind, err)
	}
	var names []string
	if all, listErr := deps.Plugins.List(ctx); listErr == nil {
		for _, info := range all {
			if info.Kind == kind && !slices.Contains(names, info.Name) {
				names = append(names, info.Name)
			}
		}
	}
	slices.Sort(names)
	hint := "installed: " + strings.Join(names, ", ")
	if len(names) == 0 {
		hint = "none is installed"
	}
	if near := schema.Nearest(ref, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return &engine.Error{Code: engine.CodePlugin, Message: fmt.Sprintf("There is no %s plugin %q.", kind, ref),
		Fields: []engine.FieldError{{Field: field, Message: "no plugin of that name", Hint: hint}}, Cause: err}
}

// connect makes the first contact and asks the adapter what every connection needs.
func (r *resolved) connect(ctx context.Context, sc engine.Scenario) error {
	var err error
	if r.session, r.classes, err = r.connectStatements(ctx, sc.Workload.IsolationLevel); err != nil {
		return err
	}
	r.database, err = r.driver.Open(target.Config{DSN: r.dsn, Session: r.session, ApplicationName: "loadstone prepare",
		Warehouse: sc.Target.Warehouse, Prepared: sc.Target.Prepared})
	if err != nil {
		return targetError("opening the target", err)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if r.server, err = r.database.Check(ctx); err != nil {
		return targetError("connecting to the target", err)
	}
	if limit, want := r.server.MaxConnections, sc.Workload.ConcurrentConnections; limit > 0 && want > limit {
		return engine.InvalidField("workload.concurrent_connections",
			fmt.Sprintf("%d connections are more than the %d that the target allows", want, limit),
			"lower it, or raise the limit of the database")
	}
	return nil
}

func (r *resolved) connectStatements(ctx context.Context, isolation string) ([]string, map[string]engine.ErrorClass,
	error) {
	if isolation == engine.IsolationDefault {
		isolation = ""
	}
	session, err := r.callOptional(ctx, plugin.AdapterRequest{Op: plugin.OpSession, IsolationLevel: isolation})
	if err != nil {
		return nil, nil, err
	}
	if isolation != session.IsolationLevel {
		return nil, nil, &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("The table type %s cannot set the isolation level %s.", r.adapter.Info().Name, isolation),
			Fields: []engine.FieldError{{Field: "workload.isolation_level",
				Message: "cannot be set by the adapter " + r.adapter.Info().Name, Hint: "use default"}}}
	}
	classes, err := r.callOptional(ctx, plugin.AdapterRequest{Op: plugin.OpClassifyError})
	if err != nil {
		return nil, nil, err
	}
	return session.Session, classes.Classes, nil
}

// callOptional asks what an adapter may leave unanswered. Its refusal is kept as a note.
func (r *resolved) callOptional(ctx context.Context, request plugin.AdapterRequest) (plugin.AdapterAnswer, error) {
	answer, err := r.callAdapter(ctx, request)
	if errors.Is(err, plugin.ErrFailed) {
		r.adapterNotes = append(r.adapterNotes, fmt.Sprintf("The adapter does not answer %q: %v", request.Op, err))
		return plugin.AdapterAnswer{}, nil
	}
	return answer, err
}

// targetError keeps a user-facing error and gives every other one a sentence.
func targetError(doing string, err error) error {
	var e *engine.Error
	if errors.As(err, &e) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return &engine.Error{Code: engine.CodeTarget, Message: "The target database refused: " + err.Error(),
		Cause: fmt.Errorf("%s: %w", doing, err)}
}

// planner prepares one run.
type planner struct {
	*resolved
	sc       engine.Scenario
	progress func(engine.PrepareProgress)
	notes    []string
	// remarks are those of notes that belong beside the figures.
	remarks []string
	// names are the physical names of the logical tables, once they were looked at.
	names []string
	// pools are the key samples of the tables, as inspected.
	pools []engine.Pool
	// dropped are existing tables, quoted by the adapter, in whose place new ones come.
	dropped []string
	// unmarked are the statements that mark existing tables which look like the workload's own.
	unmarked []string
	// ours are the tables that this run made, quoted by the adapter.
	ours []string
	// wanted are the statements that the workload asked for, settle is what has the database check constraints; tries
	// says that those that write can be tried and undone.
	wanted []plugin.Statement
	settle string
	tries  bool
	// tryOwn: those that are the workload's own are tried, too.
	tryOwn bool
	// housekeeping is the warehouse that the adapter names for polls and enrichment.
	housekeeping string
	// leastCost and burst are those of the plan.
	leastCost *engine.LeastCost
	burst     string
}

func (p *planner) report(progress engine.PrepareProgress) {
	if p.progress != nil {
		p.progress(progress)
	}
}

func (p *planner) plan(ctx context.Context) (*engine.Plan, error) {
	tables, err := p.prepareTables(ctx)
	if err != nil {
		return nil, err
	}
	plan, err := p.freeze(ctx, tables)
	if err != nil {
		return nil, err
	}
	if err := p.checkWriteAllowed(ctx, plan); err != nil {
		return nil, err
	}
	if f := p.sc.Workload.Feed; f != nil && f.CSV != "" {
		if err := replay.CheckCSV(f.CSV, plan.Statements); err != nil {
			return nil, err
		}
	}
	if err := p.tryStatements(ctx, plan.Statements); err != nil {
		return nil, err
	}
	_, err = p.tryWrites(ctx, plan)
	return plan, err
}

// tryStatements prepares the statements on a connection of its own, so that what the
// database refuses is known before a worker connects.
func (p *planner) tryStatements(ctx context.Context, statements []engine.Statement) error {
	conn, err := p.database.Connect(ctx, statements)
	if err != nil {
		return targetError("preparing the statements", err)
	}
	return conn.Close()
}

// freeze asks for the statements and closes the list.
func (p *planner) freeze(ctx context.Context, tables []engine.Table) (*engine.Plan, error) {
	wanted, err := p.workload.Statements(ctx, p.params, tables)
	if err != nil {
		return nil, pluginFailed(p.workload.Info(), "choosing its statements", err)
	}
	if err := supported(p.adapter.Info(), wanted); err != nil {
		return nil, err
	}
	answer, err := p.callAdapter(ctx, plugin.AdapterRequest{Op: plugin.OpStatements, TableName: p.sc.Target.TableName,
		Tables: tables, Statements: wanted})
	if err != nil {
		return nil, err
	}
	p.notes = append(append(p.notes, p.adapterNotes...), answer.Notes...)
	for _, s := range wanted {
		if s.Note != "" {
			p.notes, p.remarks = append(p.notes, s.Note), append(p.remarks, s.Note)
		}
	}
	p.wanted, p.settle, p.tries = wanted, answer.Settle, answer.Trial || answer.Settle != ""
	answer.Statements = complete(p.adapter.Info(), wanted, tables, answer.Statements)
	if err := validate(p.adapter.Info(), wanted, answer.Statements); err != nil {
		return nil, err
	}
	if err := noTransactions(p.adapter.Info(), wanted, answer.Statements); err != nil {
		return nil, err
	}
	if err := noSessions(p.adapter.Info(), wanted, answer.Statements); err != nil {
		return nil, err
	}
	if err := checkDeclaredSQL(p.adapter.Info(), wanted, answer.Statements, tables); err != nil {
		return nil, err
	}
	return &engine.Plan{
		Driver: p.driver.Name(), Warehouse: p.sc.Target.Warehouse, Workload: p.workload.Info().PluginRef,
		Adapter: p.adapter.Info().PluginRef,
		Session: p.session, Prepared: p.sc.Target.Prepared, Statements: answer.Statements, Tables: tables, Pools: p.pools,
		KeySlots: slotsPerWorker * p.sc.PeakWorkers(p.server.MaxConnections), ErrorClasses: p.classes,
		MissingCapabilities: p.server.Lacks,
	}, nil
}

// pluginFailed makes a user-facing error of what a plugin did.
func pluginFailed(info plugin.Info, doing string, err error) error {
	var e *engine.Error
	if errors.As(err, &e) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	hint := "the plugin's author can tell; its other versions are on the Plugins page"
	if errors.Is(err, plugin.ErrFailed) {
		hint = "the message is the plugin's own; check workload.params"
	}
	return &engine.Error{Code: engine.CodePlugin,
		Message: fmt.Sprintf("The %s plugin %s failed while %s: %s.", info.Kind, info.Name, doing,
			strings.TrimRight(err.Error(), ".")), Hint: hint, Cause: err}
}
