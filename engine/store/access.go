package store

import (
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
)

// Access says whose a connection or a template is, and who may use it. The zero value belongs to nobody and may be
// used by everybody who may run anything. Users are known by their ids: a name may be another's one day.
type Access struct {
	// OwnerID is who made it, "" for what is older than owners, or the server's own.
	OwnerID string `json:"owner_id,omitempty"`
	Owner   string `json:"owner,omitempty" doc:"The owner's name."`
	// Restricted says that only its owner, admins and Users may use it.
	Restricted bool         `json:"restricted" doc:"Whether only its owner, admins and the users named may use it."`
	Users      []AccessUser `json:"users,omitempty"`
}

// AccessUser is who may use what is restricted.
type AccessUser struct {
	UserID string `json:"user_id"`
	Name   string `json:"name"`
}

// MayUse reports whether a user may run something by it, as far as its role lets it run anything.
func (a Access) MayUse(u User) bool {
	return u.Role == RoleAdmin || u.Role == RoleOperator && (!a.Restricted || a.OwnerID != "" && a.OwnerID == u.UserID ||
		slices.ContainsFunc(a.Users, func(o AccessUser) bool { return o.UserID == u.UserID }))
}

// MayChange reports whether a user may change and delete it: its owner, admins, and where nobody owns it, operators.
func (a Access) MayChange(u User) bool {
	return u.Role == RoleAdmin || u.Role == RoleOperator && (a.OwnerID == u.UserID || a.OwnerID == "" && !a.Restricted)
}

// NotOwnerError is the refusal of who may not use a connection or a template.
func NotOwnerError(what, name string, a Access) error {
	whose := "an admin"
	if a.Owner != "" {
		whose = "its owner " + a.Owner + " or an admin"
	}
	return &engine.Error{Code: engine.CodeForbidden, Message: fmt.Sprintf("You may not use the %s %q.", what, name),
		Hint: "Ask " + whose + " to name you under \"Who may use it\"."}
}
