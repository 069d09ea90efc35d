package auth

import (
	"context"
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
)

// AuthorizeWrites is an error with CodeForbidden when a continuous query that begins now may not write to a connection
// any more: who created it is gone, locked out or a viewer, or may not use the connection, or it is production and that
// was not confirmed then. Any other error says that this is not known.
func (j Authorizer) AuthorizeWrites(ctx context.Context, q catalog.Query, to store.Connection) error {
	users, err := j.Store.ListUsers(ctx)
	if err != nil {
		return err
	}
	u, why := entitledUser(users, q.CreatedByID, creator)
	if why == "" {
		why = revokedConnection(u, q, to)
	}
	if why == "" {
		return nil
	}
	return accessRevoked(why)
}

// creator is the user whose query it is, in the reasons that everybody reads.
const creator = "who created it"

// revokedConnection says why the creator of a query may not have it write to a connection any more.
func revokedConnection(u store.User, q catalog.Query, to store.Connection) (why string) {
	switch {
	case !to.Access.MayUse(u):
		return fmt.Sprintf("the user %s may not use the connection %q any more", creator, to.Name)
	case to.Production && !slices.Contains(q.Confirmed, to.ConnectionID):
		return fmt.Sprintf("the connection %q is production now, and nobody has confirmed that", to.Name)
	}
	return ""
}

// AuthorizeQuery is an error with CodeForbidden when a continuous query that begins now is not its creator's any more.
// Any other error says that this is not known.
func (j Authorizer) AuthorizeQuery(ctx context.Context, q catalog.Query, sink catalog.Sink) error {
	users, err := j.Store.ListUsers(ctx)
	if err != nil {
		return err
	}
	why, err := j.revokedQuery(ctx, users, q, sink)
	if err == nil && why != "" {
		return accessRevoked(why)
	}
	return err
}

// revokedQuery says why a continuous query is not its creator's any more; empty when it is.
func (j Authorizer) revokedQuery(
	ctx context.Context,
	users []store.User,
	q catalog.Query,
	sink catalog.Sink,
) (why string,
	err error) {
	u, why := entitledUser(users, q.CreatedByID, creator)
	if why != "" || sink.Type != connector.Postgres {
		return why, nil
	}
	to, err := j.Store.Connection(ctx, sink.Config.String(catalog.ConnectionID))
	switch {
	case isNotFound(err):
		return "", nil // the sink says that it is gone
	case err != nil:
		return "", err
	}
	return revokedConnection(u, q, to), nil
}
