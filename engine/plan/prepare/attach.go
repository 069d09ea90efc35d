package prepare

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// Attached is the target of a run that was prepared before: its adapter, and
// connections of its own beside those of the load.
type Attached struct{ r *resolved }

// Attach opens the target of a run for what is asked beside its load, on the warehouse that is named for that. purpose
// is what the database shows as the application. Nothing connects yet.
func Attach(ctx context.Context, deps Deps, sc engine.Scenario, plan *engine.Plan, purpose string) (*Attached, error) {
	return attach(ctx, deps, sc, plan, purpose, false)
}

// AttachBeside is Attach for what looks at the target while the load goes on: it gives a host that does not answer up
// as soon as a load that reconnects does, to see the server that has taken over.
func AttachBeside(ctx context.Context, deps Deps, sc engine.Scenario, plan *engine.Plan,
	purpose string) (*Attached, error) {
	return attach(ctx, deps, sc, plan, purpose, true)
}

func attach(ctx context.Context, deps Deps, sc engine.Scenario, plan *engine.Plan, purpose string,
	beside bool) (*Attached, error) {
	r := &resolved{
		session: plan.Session,
		classes: plan.ErrorClasses,
		server:  target.ServerInfo{Lacks: plan.MissingCapabilities},
	}
	var err error
	// The run's own version of the adapter, or, where that was deleted, the one of its name.
	if r.adapter, err = deps.Plugins.Adapter(ctx, plan.Adapter.SHA256); errors.Is(err, plugin.ErrNotFound) {
		r.adapter, err = deps.Plugins.Adapter(ctx, sc.Target.Adapter)
	}
	if err != nil {
		return nil, pluginError(ctx, deps, err, plugin.KindAdapter, sc.Target.Adapter, "target.adapter")
	}
	name, dsn, err := deps.Connections.OpenDSN(ctx, sc.Target.Ref())
	if err != nil {
		return nil, fmt.Errorf("opening the connection: %w", err)
	}
	if r.driver = deps.Drivers[name]; r.driver == nil {
		return nil, engine.InvalidField("target.connection.driver", fmt.Sprintf("there is no driver %q", name), "")
	}
	if r.database, err = r.driver.Open(target.Config{DSN: dsn, Session: r.session, ApplicationName: "loadstone " + purpose,
		Warehouse: plan.Housekeeping(sc.Target), Prepared: plan.Prepared, Reconnects: beside}); err != nil {
		return nil, targetError("opening the target", err)
	}
	return &Attached{r}, nil
}

// CallAdapter holds one conversation with the adapter.
func (a *Attached) CallAdapter(ctx context.Context, req plugin.AdapterRequest) (plugin.AdapterAnswer, error) {
	return a.r.callAdapter(ctx, req)
}

// Adapter names the adapter.
func (a *Attached) Adapter() string { return a.r.adapter.Info().Name }

// Dialect is the adapter's.
func (a *Attached) Dialect() string { return a.r.adapter.Info().Manifest.Dialect }

// Observes reports whether the adapter says how its server is observed.
func (a *Attached) Observes() bool { return a.r.adapter.Info().Manifest.Observes }

// Database is the target.
func (a *Attached) Database() target.Database { return a.r.database }

// Close ends the connections.
func (a *Attached) Close() { a.r.close() }

// Restore is a run that was prepared before, as far as that is needed to have further run
// workers join it: its target is not looked at.
func Restore(ctx context.Context, deps Deps, sc engine.Scenario, plan *engine.Plan) (*Prepared, error) {
	r, err := resolve(ctx, deps, sc)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return &Prepared{Plan: plan, Params: r.params, DSN: r.dsn}, nil
}
