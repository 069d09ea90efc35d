package auth

import (
	"context"
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine/store"
)

// AuthorizeWrites is an error with CodeForbidden when a continuous query that begins now may not write to a connection
// any more: who created it is gone, locked out or a viewer, or may not use the connection, or it is production and that
// was not confirmed then. Any other error says that this is not known.
func (j Authorizer) AuthorizeWrites(
	ctx context.Context,
	userID, name string,
	confirmed []string,
	to store.Connection,
) error {
	users, err := j.Store.ListUsers(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(users, func(u store.User) bool { return u.UserID == userID })
	switch {
	case i < 0:
		return accessRevoked(name + ", who created it, is no user any more")
	case !users[i].DisabledAt.IsZero():
		return accessRevoked(name + ", who created it, is locked out")
	case !to.Access.MayUse(users[i]):
		return accessRevoked(fmt.Sprintf("%s, who created it, may not use the connection %q any more", name, to.Name))
	case to.Production && !slices.Contains(confirmed, to.ConnectionID):
		return accessRevoked(fmt.Sprintf("the connection %q is production now, and nobody has confirmed that", to.Name))
	}
	return nil
}
