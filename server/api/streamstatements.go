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

// executeStatements carries statements out for the caller, who has to have the right of each connection that they write
// to, and to confirm those that are production.
func executeStatements(ctx context.Context, a *API, c Coordinator, in StatementsInput) ([]coordinator.Result, error) {
	user := a.User(ctx)
	by := catalog.Author{Name: user.Name, UserID: user.UserID}
	var production []store.Connection
	for {
		results, err := c.Execute(ctx, in.SQL, by)
		var unjudged *catalog.UncheckedConnectionError
		switch {
		case errors.Is(err, catalog.ErrUnconfirmed):
			return nil, auth.CheckConfirmed(production, in.ConfirmProduction)
		case !errors.As(err, &unjudged):
			return results, err
		}
		j := catalog.ConnectionGrant{Ref: unjudged.Ref}
		saved, err := a.Store.Connection(ctx, unjudged.Ref)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			if err := auth.AuthorizeConnection(user, saved); err != nil {
				return nil, err
			}
			j.Exists, j.ID, j.Name, j.Driver = true, saved.ConnectionID, saved.Name, saved.Driver
			j.Production = saved.Production
			j.Confirmed = !saved.Production || slices.Contains(in.ConfirmProduction, saved.Name)
			if saved.Production {
				production = append(production, saved)
			}
		}
		by.Connections = append(by.Connections, j)
	}
}
