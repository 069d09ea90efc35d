package api

import (
	"context"
	"net/http"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/run/matrix"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// Matrices runs one workload on several targets.
type Matrices interface {
	Create(ctx context.Context, s engine.Scenario, by engine.Actor) (matrix.State, error)
	Start(ctx context.Context, matrixID, by string) (matrix.State, error)
	Stop(ctx context.Context, matrixID, by string) (matrix.State, error)
	Delete(ctx context.Context, matrixID, by string) error
	Get(ctx context.Context, matrixID string) (matrix.State, error)
	List(ctx context.Context, limit int) ([]engine.MatrixRun, error)
	// Halt ends those that this server carries on: they start no further run.
	Halt() (matrixIDs []string)
	Report(ctx context.Context, matrixID string, o compare.Options) (matrix.Report, error)
}

// MatrixList is the newest matrices, without their runs.
type MatrixList struct {
	Matrices []engine.MatrixRun `json:"matrices"`
}

type matrixListInput struct {
	Limit int `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

type matrixReportInput struct {
	IDInput
	TolerancePct float64 `query:"tolerance_pct" minimum:"0" maximum:"1000" default:"5" doc:"The least difference that matters, in percent."`
}

func (a *API) registerMatrices() {
	if a.Matrices == nil {
		return
	}
	const base = "/api/matrices"
	handle(a, op(http.MethodGet, base, "list-matrices", tagMatrices, "List matrices, newest first"), a.listMatrices)
	create := op(http.MethodPost, base, "create-matrix", tagMatrices,
		"Create a run for each target of a template's matrix", http.StatusNotFound, http.StatusConflict)
	create.Description = "Takes the body of POST /api/runs, whose scenario has a matrix. The runs are made at once and " +
		"start one after another."
	create.DefaultStatus = http.StatusCreated
	handle(a, create, a.createMatrix)
	handle(a, op(http.MethodGet, base+"/{id}", "get-matrix", tagMatrices, "Read a matrix with its runs",
		http.StatusNotFound), a.getMatrix)
	handle(a, op(http.MethodPost, base+"/{id}/start", "start-matrix", tagMatrices, "Start a prepared matrix",
		http.StatusNotFound, http.StatusConflict), a.startMatrix)
	handle(a, op(http.MethodPost, base+"/{id}/stop", "stop-matrix", tagMatrices,
		"Drain the run under way and cancel the others", http.StatusNotFound, http.StatusConflict), a.stopMatrix)
	remove := op(http.MethodDelete, base+"/{id}", "delete-matrix", tagMatrices, "Delete a matrix and its runs",
		http.StatusNotFound, http.StatusConflict)
	remove.DefaultStatus = http.StatusNoContent
	handle(a, remove, a.deleteMatrix)
	handle(a, op(http.MethodGet, base+"/{id}/report", "matrix-report", tagMatrices,
		"The figures of every target, compared with the first: matrix.json", http.StatusNotFound, http.StatusTooManyRequests),
		Throttled(a, a.matrixReport))
}

func (a *API) listMatrices(ctx context.Context, in *matrixListInput) (*body[MatrixList], error) {
	list, err := a.Matrices.List(ctx, in.Limit)
	if err != nil {
		return nil, err
	}
	return &body[MatrixList]{MatrixList{orEmpty(list)}}, nil
}

func (a *API) createMatrix(ctx context.Context, in *runCreate) (*body[matrix.State], error) {
	s, err := a.resolve(ctx, in.Body.ScenarioInput)
	var production []store.Connection
	if err == nil {
		production, err = a.mayRun(ctx, s, in.Body.Start, in.Body.ConfirmProduction)
	}
	if err != nil {
		return nil, err
	}
	user := a.identity(ctx).User
	state, err := a.Matrices.Create(ctx, s, engine.Actor{ID: user.UserID, Name: user.Name})
	if err != nil {
		return nil, err
	}
	a.audit.Record(ctx, user.UserID, "matrix.create", state.MatrixID, state.Name)
	if in.Body.Start {
		started, err := startAs(ctx, a, "", state.MatrixID, production, a.Matrices.Start)
		if err != nil {
			return nil, err
		}
		a.audit.Record(ctx, user.UserID, "matrix.start", state.MatrixID, state.Name)
		state = started
	}
	return a.matrixBody(state), nil
}

// matrixBody hides what must not leave the server.
func (a *API) matrixBody(state matrix.State) *body[matrix.State] {
	for i := range state.Runs {
		state.Runs[i].Run = a.hideRun(state.Runs[i].Run)
	}
	return &body[matrix.State]{state}
}

func (a *API) getMatrix(ctx context.Context, in *IDInput) (*body[matrix.State], error) {
	if !wellFormedID(in.ID) {
		return nil, httpx.NotFound("matrix", in.ID)
	}
	state, err := a.Matrices.Get(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return a.matrixBody(state), nil
}

func (a *API) startMatrix(ctx context.Context, in *startInput) (*body[matrix.State], error) {
	production, err := a.mayStartMatrix(ctx, in.ID, in.confirmed())
	if err != nil {
		return nil, err
	}
	return a.changeMatrix(ctx, in.ID, "matrix.start", func(ctx context.Context, id, _ string) (matrix.State, error) {
		return startAs(ctx, a, "", id, production, a.Matrices.Start)
	})
}

func (a *API) stopMatrix(ctx context.Context, in *IDInput) (*body[matrix.State], error) {
	return a.changeMatrix(ctx, in.ID, "matrix.stop", a.Matrices.Stop)
}

func (a *API) changeMatrix(ctx context.Context, id, action string,
	do func(context.Context, string, string) (matrix.State, error)) (*body[matrix.State], error) {
	if !wellFormedID(id) {
		return nil, httpx.NotFound("matrix", id)
	}
	user := a.identity(ctx).User
	state, err := do(ctx, id, user.Name)
	if err != nil {
		return nil, err
	}
	a.audit.Record(ctx, user.UserID, action, id, state.Name)
	return a.matrixBody(state), nil
}

func (a *API) deleteMatrix(ctx context.Context, in *IDInput) (*nothing, error) {
	if !wellFormedID(in.ID) {
		return nil, httpx.NotFound("matrix", in.ID)
	}
	if _, err := a.mayUseMatrix(ctx, in.ID); err != nil {
		return nil, err
	}
	user := a.identity(ctx).User
	if err := a.Matrices.Delete(ctx, in.ID, user.Name); err != nil {
		return nil, err
	}
	a.audit.Record(ctx, user.UserID, "matrix.delete", in.ID, "")
	return &nothing{}, nil
}

func (a *API) matrixReport(ctx context.Context, in *matrixReportInput) (*body[matrix.Report], error) {
	if !wellFormedID(in.ID) {
		return nil, httpx.NotFound("matrix", in.ID)
	}
	o := compare.Defaults()
	o.TolerancePct = in.TolerancePct
	report, err := a.Matrices.Report(ctx, in.ID, o)
	if err != nil {
		return nil, err
	}
	return &body[matrix.Report]{report}, nil
}
