package api

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// startInput is the start of what is prepared.
type startInput struct {
	IDInput
	Body *struct {
		ConfirmProduction auth.Names `json:"confirm_production,omitempty"`
	}
}

func (in *startInput) confirmed() auth.Names {
	if in.Body == nil {
		return nil
	}
	return in.Body.ConfirmProduction
}

func (a *API) authorizer() auth.Authorizer { return auth.Authorizer{Store: a.Store} }

// whileAllowed is a context that ends when the caller has no right to ask any more. done has to be called.
func (a *API) whileAllowed(ctx context.Context) (allowed context.Context, done func()) {
	allowed, cancel := context.WithCancel(ctx)
	stop := a.Auth.OnRequestEnd(ctx, cancel)
	return allowed, func() { stop(); cancel() }
}

// MayUse is an error when the caller may not run a scenario. Every handler asks that reaches a target by a saved
// connection.
func (a *API) MayUse(ctx context.Context, s engine.Scenario) error {
	_, err := a.authorizer().AuthorizeUse(ctx, a.identity(ctx).User, s)
	return err
}

// MayUseConnection is the same for one saved connection.
func (a *API) MayUseConnection(ctx context.Context, c store.Connection) error {
	return auth.AuthorizeConnection(a.identity(ctx).User, c)
}

// mayLoad is an error when the caller may not start a scenario, or has not typed the names of what is production,
// which it returns.
func (a *API) mayLoad(ctx context.Context, s engine.Scenario, typed auth.Names) ([]store.Connection, error) {
	production, err := a.authorizer().AuthorizeUse(ctx, a.identity(ctx).User, s)
	if err == nil {
		err = auth.CheckConfirmed(production, typed)
	}
	return production, err
}

// mayRun is the same for what a request describes: production has to be confirmed where it is started at once.
func (a *API) mayRun(ctx context.Context, s engine.Scenario, start bool, typed auth.Names) (
	[]store.Connection, error) {
	if start {
		return a.mayLoad(ctx, s, typed)
	}
	return nil, a.MayUse(ctx, s)
}

// startAs starts a run or a matrix as the caller, of whose connections these are production.
func startAs[T any](ctx context.Context, a *API, runID, matrixID string, production []store.Connection,
	start func(ctx context.Context, id, by string) (T, error)) (out T, err error) {
	user := a.identity(ctx).User
	err = a.authorizer().RecordStart(ctx, user, runID, matrixID, production, func() (err error) {
		out, err = start(ctx, runID+matrixID, user.Name)
		return err
	})
	return out, err
}

// mayStart is the same for a run that is prepared.
func (a *API) mayStart(ctx context.Context, id string, typed auth.Names) ([]store.Connection, error) {
	run, err := a.storedRun(ctx, id)
	if err != nil || run.Status != engine.StatusPrepared {
		return nil, err // starting it is refused for another reason
	}
	if err := a.authorizer().AuthorizeOrphan(ctx, a.identity(ctx).User, run); err != nil {
		return nil, err
	}
	return a.mayLoad(ctx, run.Scenario, typed)
}

// mayUseRun is an error when the caller may not use what a run used: ask its target, or delete the run.
func (a *API) mayUseRun(ctx context.Context, id string) error {
	run, err := a.storedRun(ctx, id)
	if err != nil {
		return err
	}
	return a.mayUseRecorded(ctx, run)
}

// mayUseRecorded is the same for a run that has been read.
func (a *API) mayUseRecorded(ctx context.Context, run engine.Run) error {
	_, err := a.authorizer().AuthorizeRecorded(ctx, a.identity(ctx).User, run)
	return err
}

func (a *API) storedRun(ctx context.Context, id string) (engine.Run, error) {
	if !wellFormedID(id) {
		return engine.Run{}, httpx.NotFound("run", id)
	}
	run, err := a.Store.Run(ctx, id)
	return run, notFoundAs(err, "run", id)
}

// mayStartMatrix is mayStart for a matrix: its runs have the connections.
func (a *API) mayStartMatrix(ctx context.Context, id string, typed auth.Names) ([]store.Connection, error) {
	production, err := a.mayUseMatrix(ctx, id)
	if err != nil {
		return nil, err
	}
	return production, auth.CheckConfirmed(production, typed)
}

// mayUseMatrix is an error when the caller may not run all of a matrix. It returns its connections that are production.
func (a *API) mayUseMatrix(ctx context.Context, id string) (production []store.Connection, err error) {
	if !wellFormedID(id) {
		return nil, httpx.NotFound("matrix", id)
	}
	state, err := a.Matrices.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, r := range state.Runs {
		found, err := a.authorizer().AuthorizeRecorded(ctx, a.identity(ctx).User, r.Run)
		if err != nil {
			return nil, err
		}
		production = append(production, found...)
	}
	return production, nil
}

// mayChange is an error when the caller may not change a thing.
func (a *API) mayChange(ctx context.Context, what, name string, access store.Access) error {
	return auth.AuthorizeChange(a.identity(ctx).User, what, name, access)
}

// access is whose a thing is and who may use it, after what the caller says of it.
func (a *API) access(ctx context.Context, now store.Access, in *auth.AccessInput) (store.Access, error) {
	return a.authorizer().ApplyAccess(ctx, a.identity(ctx).User, now, in)
}
