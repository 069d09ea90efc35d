package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// NewOperation is op for handlers of other packages.
func NewOperation(method, path, id, tag, summary string, errors ...int) huma.Operation {
	return op(method, path, id, tag, summary, errors...)
}

// Handle is handle for handlers of other packages.
func Handle[I, O any](a *API, o huma.Operation, h func(ctx context.Context, in *I) (*O, error)) {
	handle(a, o, h)
}

// Resolve returns the scenario that an input names, checked and complete.
func (a *API) Resolve(ctx context.Context, in ScenarioInput) (engine.Scenario, error) {
	return a.resolve(ctx, in)
}

// MayLoad is an error when the caller may not use what a scenario names, or has not typed the names of what is
// production.
func (a *API) MayLoad(ctx context.Context, s engine.Scenario, typed auth.Names) error {
	_, err := a.mayLoad(ctx, s, typed)
	return err
}

// WellFormedID tells whether text can be an id; what cannot does not exist.
func WellFormedID(id string) bool { return wellFormedID(id) }

// Admin refuses callers who are no admins; what is to be done is named in the refusal.
func (a *API) Admin(ctx context.Context, what string) error { return a.admin(ctx, what) }

// Caller is the name of who asks.
func (a *API) Caller(ctx context.Context) string { return a.identity(ctx).User.Name }

// User is who makes the request.
func (a *API) User(ctx context.Context) store.User { return a.identity(ctx).User }

// Audit writes down in the audit log what the caller did.
func (a *API) Audit(ctx context.Context, action, object, detail string) {
	a.audit.Record(ctx, a.identity(ctx).User.UserID, action, object, detail)
}

// AuditStatement writes down a statement that the caller had executed, and what became of it.
func (a *API) AuditStatement(ctx context.Context, action, statement string, err error) {
	a.audit.RecordStatement(ctx, action, statement, statusOf(err))
}

// AuditStatements writes down the statements of a group, and what became of it.
func (a *API) AuditStatements(ctx context.Context, action, done string, group []auth.Statement, err error) {
	a.audit.RecordStatements(ctx, action, done, group, statusOf(err))
}

func statusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	return httpx.From(err).Status
}

// asking is a context of the caller's queries, id being the caller's own name for one.
func (a *API) asking(ctx context.Context, id string) context.Context {
	return query.WithCaller(ctx, a.Caller(ctx), id)
}

// AuditLog is the audit log, for what is not done by the caller of a request.
func (a *API) AuditLog() *auth.AuditLog { return a.audit }

// Run reads a run that an address names, with everything that belongs to it, and without its secrets.
func (a *API) Run(ctx context.Context, id string) (engine.RunDetail, error) { return a.detail(ctx, id) }

// Raw registers a plain handler of another package and describes it.
func (a *API) Raw(app *fiber.App, o huma.Operation, h fiber.Handler) { a.raw(app, o, h) }

// NotFoundAs turns the store's not-found into one that says what was not found.
func NotFoundAs(err error, thing, id string) error { return notFoundAs(err, thing, id) }
