// This part takes runs in: it checks a scenario against the plugins, the connection and the
// nodes, says beforehand what a run of it would do, and stores runs that can be started.

package run

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/run/query"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
)

// CreatorOptions are what a desk is made of.
type CreatorOptions struct {
	Store interface {
		// CreateRun inserts run_status (PREPARED, PREPARING) and the parent
		// test_results row, with the plan when known. It seals inline DSNs.
		CreateRun(ctx context.Context, run engine.Run) error
		Transition(ctx context.Context, t store.Transition) ([]engine.Event, error)
	}
	Server intakeServer
}

// intakeServer is the server that runs are taken in for.
type intakeServer interface {
	// deps are for one request: a connection is unsealed once.
	requestDeps() prepare.Deps
	// checkCapacity refuses a scenario, with the DSN of its database, that the nodes can never carry.
	checkCapacity(sc engine.Scenario, dsn secret.Secret) error
	// checkNodesReach refuses one whose database the nodes do not reach.
	checkNodesReach(sc engine.Scenario, dsn secret.Secret) error
	// CheckResults refuses all while results cannot be stored.
	CheckResults() error
	// checkExport refuses one that asks for more than the server can do with its results.
	checkExport(sc engine.Scenario) error
	// Run reads a run as it is stored.
	Run(ctx context.Context, runID string) (engine.Run, error)
}

// Creator takes runs in. Its methods are safe for concurrent use.
type Creator struct{ opts CreatorOptions }

// NewCreator makes a desk.
func NewCreator(opts CreatorOptions) *Creator { return &Creator{opts: opts} }

// Preflight is what a run would do, found out without changing the target.
type Preflight = prepare.Preflight

// Create stores a PREPARED run of a valid scenario. The plugins, the parameters
// and the connection's name are checked; the target is not contacted.
func (d *Creator) Create(ctx context.Context, sc engine.Scenario, by engine.Actor) (engine.Run, error) {
	return d.CreateMember(ctx, sc, by, engine.MatrixMember{})
}

// CreateMember is Create for a run that has a place in a matrix.
func (d *Creator) CreateMember(ctx context.Context, sc engine.Scenario, by engine.Actor,
	place engine.MatrixMember) (engine.Run, error) {
	if err := prepare.OneTarget(sc); err != nil {
		return engine.Run{}, err
	}
	shares, err := scaling.Shares(sc)
	if err != nil {
		return engine.Run{}, err
	}
	if err := d.opts.Server.CheckResults(); err != nil {
		return engine.Run{}, err
	}
	if err := d.opts.Server.checkExport(sc); err != nil {
		return engine.Run{}, err
	}
	deps := d.opts.Server.requestDeps()
	_, dsn, _ := deps.Connections.OpenDSN(ctx, sc.Target.Ref()) // prepare.Check says why it cannot be opened
	if err := d.opts.Server.checkCapacity(sc, dsn); err != nil {
		return engine.Run{}, err
	}
	if err := prepare.Check(ctx, deps, sc); err != nil {
		return engine.Run{}, query.StoreError(err)
	}
	if err := d.opts.Server.checkNodesReach(sc, dsn); err != nil {
		return engine.Run{}, err
	}
	id := uuid.NewString()
	run := engine.Run{RunID: id, ResultID: id, TemplateID: sc.TemplateID, RunName: sc.Name, Scenario: sc,
		Status: engine.StatusPrepared, Phase: engine.PhasePreparing,
		WorkersExpected: len(shares), WorkerTargets: scaling.FirstTargets(sc, shares), CreatedBy: by.Name, CreatedByID: by.ID,
		MatrixMember: place}
	if err := d.opts.Store.CreateRun(ctx, run); err != nil {
		return engine.Run{}, query.StoreError(fmt.Errorf("creating the run: %w", err))
	}
	return d.opts.Server.Run(ctx, id)
}

// Preflight says what a run of the scenario would do, or the runs of its matrix. With trial, what they would write is
// executed and undone.
func (d *Creator) Preflight(ctx context.Context, sc engine.Scenario, trial bool) (Preflight, error) {
	deps := d.opts.Server.requestDeps()
	for _, one := range sc.Expand() {
		if _, err := scaling.Shares(one); err != nil {
			return Preflight{}, err
		}
		if err := d.opts.Server.checkExport(one); err != nil {
			return Preflight{}, err
		}
		_, dsn, unopened := deps.Connections.OpenDSN(ctx, one.Target.Ref())
		if err := d.opts.Server.checkCapacity(one, dsn); err != nil {
			return Preflight{}, err
		}
		if unopened != nil {
			continue // prepare.InspectAll says why
		}
		if err := d.opts.Server.checkNodesReach(one, dsn); err != nil {
			return Preflight{}, err
		}
	}
	f, err := prepare.InspectAll(ctx, deps, sc, trial)
	if err != nil {
		return Preflight{}, query.StoreError(err)
	}
	f.Plan = f.Plan.Shown()
	for i := range f.Targets {
		f.Targets[i].Plan = f.Targets[i].Plan.Shown()
	}
	return *f, nil
}

// CheckConnection connects once and returns what answered.
func (d *Creator) CheckConnection(ctx context.Context, driver string, dsn secret.Secret) (target.ServerInfo,
	error) {
	return prepare.CheckConnection(ctx, d.opts.Server.requestDeps().Drivers, driver, dsn)
}

// Cancel ends a run that has not been started, with the reason, which is all that its log has then.
func (d *Creator) Cancel(ctx context.Context, runID string, stop engine.StopReason, sentence string) error {
	none, now, level := engine.PhaseNone, time.Now(), engine.LogWarning
	if stop == engine.StopUserRequested {
		level = engine.LogInfo
	}
	_, err := d.opts.Store.Transition(ctx, store.Transition{RunID: runID, From: []engine.Status{engine.StatusPrepared},
		To: engine.StatusCancelled, Phase: &none, EndTime: now, StopReason: stop, CancellationReason: sentence,
		Logs: []engine.LogEntry{{ResultID: runID, Level: level, Message: sentence, Timestamp: engine.At(now)}}})
	return err
}
