package api

import (
	"context"
	"errors"
	"slices"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/server/auth"
)

// statementRights implements coordinator.Rights for the caller, who has to have the right of each connection that
// statements write to, and to confirm those that are production.
type statementRights struct {
	connections ConnectionStore
	user        store.User
	confirmed   auth.Names
	// production are those that were asked for.
	production []store.Connection
}

// Grant implements coordinator.Rights.
func (r *statementRights) Grant(ctx context.Context, connection string) catalog.ConnectionGrant {
	g := catalog.ConnectionGrant{Ref: connection}
	saved, err := store.FindConnection(ctx, r.connections, connection)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return g
	case err == nil:
		err = auth.AuthorizeConnection(r.user, saved)
	}
	if err != nil {
		g.Err = err
		return g
	}
	if saved.Production {
		r.production = append(r.production, saved)
	}
	g.Exists, g.ID, g.Name, g.Driver, g.Production = true, saved.ConnectionID, saved.Name, saved.Driver, saved.Production
	g.Confirmed = !saved.Production || slices.Contains(r.confirmed, saved.Name)
	return g
}

// executeStatements carries statements out for the caller.
func executeStatements(ctx context.Context, a *API, c Coordinator, in StatementsInput) ([]catalog.Result, error) {
	user := a.User(ctx)
	rights := &statementRights{connections: a.Store, user: user, confirmed: in.ConfirmProduction}
	results, err := c.Execute(ctx, in.SQL, catalog.Author{Name: user.Name, UserID: user.UserID,
		KeepEqual: in.KeepEqual}, rights)
	if errors.Is(err, catalog.ErrUnconfirmed) {
		err = auth.CheckConfirmed(rights.production, in.ConfirmProduction)
	}
	return results, err
}

// auditedStatements are the statements of a group as the audit log has them.
func auditedStatements(text string, results []catalog.Result) []auth.Statement {
	parsed := coordinator.Statements(text)
	list := make([]auth.Statement, len(parsed))
	for i, p := range parsed {
		list[i] = auth.Statement{Text: p.Text, Changes: p.Changes}
		if len(results) == len(parsed) {
			list[i].Done = results[i].Done
		}
	}
	return list
}
