// This part is loadstone user: who may use a server, and what for.

package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// UserCommands are those of loadstone user.
type UserCommands struct {
	List   UserList   `cmd:"" help:"List the users."`
	Invite UserInvite `cmd:"" help:"Create a user, and print the link to choose a password."`
	Link   UserLink   `cmd:"" help:"Print a new link to choose a password."`
	Role   UserRole   `cmd:"" help:"Change a user's role."`
	Lock   UserLock   `cmd:"" help:"Lock a user out; sessions and tokens end at once."`
	Unlock UserUnlock `cmd:"" help:"Unlock a user."`
	Delete UserDelete `cmd:"" help:"Delete a user and their tokens. What they created stays."`
	Tokens UserTokens `cmd:"" help:"List all API tokens, or browser sessions."`
	Revoke UserRevoke `cmd:"" help:"Revoke an API token or end a session."`
}

const userBase = "/api/users"

// listUsers asks for every user.
func listUsers(ctx context.Context, do APICall) ([]store.User, error) {
	var list struct {
		Users []store.User `json:"users"`
	}
	err := do(ctx, http.MethodGet, userBase, nil, &list)
	return list.Users, err
}

// NamedUser is a command about one user.
type NamedUser struct {
	Name string `arg:"" help:"The user's name."`
}

// path is the address of the user; names do not tell A from a.
func (n NamedUser) path(ctx context.Context, do APICall) (string, error) {
	users, err := listUsers(ctx, do)
	if err != nil {
		return "", err
	}
	for _, u := range users {
		if strings.EqualFold(u.Name, n.Name) {
			return userBase + "/" + url.PathEscape(u.UserID), nil
		}
	}
	return "", &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("There is no user %q.", n.Name),
		Hint: "loadstone user list shows who there is."}
}

// UserList is loadstone user list.
type UserList struct{}

// Run writes the users, by name.
func (UserList) Run(e *terminal.Env, do APICall) error {
	users, err := listUsers(e.Ctx, do)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tROLE\tSIGNS IN\tLAST SEEN")
	for _, u := range users {
		how := "by link"
		switch {
		case !u.DisabledAt.IsZero():
			how = "locked out"
		case u.HasPassword:
			how = "with a password"
		}
		seen := "never"
		if !u.LastSeenAt.IsZero() {
			seen = u.LastSeenAt.UTC().Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", terminal.Shown(u.Name), u.Role, how, seen)
	}
	return w.Flush()
}

type invitation struct {
	User      store.User  `json:"user"`
	URL       string      `json:"url"`
	ExpiresAt engine.Time `json:"expires_at"`
}

// print writes the link alone, so that a program can take it.
func (i invitation) print(e *terminal.Env) error {
	if _, err := fmt.Fprintln(e.Stdout, i.URL); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(e.Stderr, "By this link %s chooses a password, once, until %s. Whoever has it becomes this user.\n",
		terminal.Shown(i.User.Name), i.ExpiresAt.UTC().Format("2006-01-02 15:04 UTC"))
	return nil
}

// UserInvite is loadstone user invite.
type UserInvite struct {
	NamedUser
	Role store.Role `enum:"admin,operator,viewer" default:"operator" help:"Role: ${enum}. Viewers read; operators also create templates, connections and tables and run them; admins also manage users, nodes and plugins."`
}

// Run makes the user.
func (c UserInvite) Run(e *terminal.Env, do APICall) error {
	var made invitation
	if err := do(e.Ctx, http.MethodPost, userBase, map[string]any{"name": c.Name, "role": c.Role}, &made); err != nil {
		return err
	}
	return made.print(e)
}

// UserLink is loadstone user link.
type UserLink struct {
	NamedUser
	ResetTOTP bool `name:"reset-totp" help:"Also remove the user's second factor."`
}

// Run makes the link.
func (c UserLink) Run(e *terminal.Env, do APICall) error {
	path, err := c.path(e.Ctx, do)
	if err != nil {
		return err
	}
	if c.ResetTOTP {
		if err := do(e.Ctx, http.MethodDelete, path+"/totp", nil, nil); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(e.Stderr, "%s has no second factor any more.\n", terminal.Shown(c.Name))
	}
	var made invitation
	if err := do(e.Ctx, http.MethodPost, path+"/invitation", map[string]any{}, &made); err != nil {
		return err
	}
	return made.print(e)
}

// change changes a user and says what it is now.
func (n NamedUser) change(e *terminal.Env, do APICall, to map[string]any, message string) error {
	path, err := n.path(e.Ctx, do)
	if err != nil {
		return err
	}
	var u store.User
	if err := do(e.Ctx, http.MethodPatch, path, to, &u); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s %s.\n", terminal.Shown(u.Name), message)
	return err
}

// UserRole is loadstone user role.
type UserRole struct {
	NamedUser
	Role store.Role `arg:"" enum:"admin,operator,viewer" help:"${enum}"`
}

// Run gives the user the role.
func (c UserRole) Run(e *terminal.Env, do APICall) error {
	return c.change(e, do, map[string]any{"role": c.Role}, "has the role "+string(c.Role)+" now")
}

// UserLock is loadstone user lock.
type UserLock struct{ NamedUser }

// Run locks the user out.
func (c UserLock) Run(e *terminal.Env, do APICall) error {
	return c.change(e, do, map[string]any{"disabled": true}, "is locked out")
}

// UserUnlock is loadstone user unlock.
type UserUnlock struct{ NamedUser }

// Run lets the user in again.
func (c UserUnlock) Run(e *terminal.Env, do APICall) error {
	return c.change(e, do, map[string]any{"disabled": false}, "may sign in again")
}

// UserDelete is loadstone user delete.
type UserDelete struct{ NamedUser }

// Run deletes the user.
func (c UserDelete) Run(e *terminal.Env, do APICall) error {
	path, err := c.path(e.Ctx, do)
	if err != nil {
		return err
	}
	if err := do(e.Ctx, http.MethodDelete, path, nil, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s is deleted.\n", terminal.Shown(c.Name))
	return err
}
