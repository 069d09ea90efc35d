package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
)

// UserList is everybody who may use the server, by name.
type UserList struct {
	Users []store.User `json:"users" nullable:"false"`
}

type newUserInput struct {
	Body struct {
		Name string     `json:"name" minLength:"1" maxLength:"64" doc:"By which the user signs in: letters, digits and . _ @ + -"`
		Role store.Role `json:"role" enum:"admin,operator,viewer" doc:"viewer looks; operator makes templates, connections and tables and runs them; admin decides about users, nodes and plugins too."`
	}
}

type changeUserInput struct {
	IDInput
	Body struct {
		Role        *store.Role `json:"role,omitempty" enum:"admin,operator,viewer"`
		Was         *store.Role `json:"was,omitempty" enum:"admin,operator,viewer" doc:"The role that was seen; 409 when it is another by now. Without it, whatever it is is replaced."`
		Disabled    *bool       `json:"disabled,omitempty" doc:"true locks the user out: sessions and tokens are refused until it is false again."`
		WasDisabled *bool       `json:"was_disabled,omitempty" doc:"Whether the user was seen to be locked out; 409 when it is otherwise by now."`
	}
}

type deleteUserInput struct {
	IDInput
	Was         store.Role `query:"was" enum:"admin,operator,viewer" doc:"The role that was seen; 409 when it is another by now. Without it, whoever it is is deleted."`
	WasDisabled string     `query:"was_disabled" enum:"true,false" doc:"Whether the user was seen to be locked out; 409 when it is otherwise by now."`
}

// expected is what was seen of the user, as far as it is said.
func (in deleteUserInput) expected() (w store.ExpectedUser) {
	if in.Was != "" {
		w.Role = &in.Was
	}
	if in.WasDisabled != "" {
		locked := in.WasDisabled == "true"
		w.Disabled = &locked
	}
	return w
}

// Invitation is a user with the link by which it chooses a password.
type Invitation struct {
	User      store.User  `json:"user"`
	URL       string      `json:"url" doc:"Works once. Whoever has it becomes this user."`
	ExpiresAt engine.Time `json:"expires_at"`
}

// registerUserAdmin registers what admins do about users.
func (h *userHandlers) registerUserAdmin() {
	const base = "/api/users"
	a := h.a
	Handle(a, NewOperation(http.MethodGet, base, "list-users", tagUsers, "List the users", http.StatusForbidden),
		func(ctx context.Context, _ *struct{}) (*userBody[UserList], error) {
			if err := a.Admin(ctx, "see who the users are"); err != nil {
				return nil, err
			}
			list, err := a.Store.ListUsers(ctx)
			list = append([]store.User{}, list...)
			for i := 0; i < len(list) && err == nil && h.factors != nil; i++ {
				if list[i].HasPassword {
					var s auth.State
					s, err = h.factors.Status(ctx, list[i].UserID)
					list[i].SecondFactor = s.Enabled
				}
			}
			return &userBody[UserList]{UserList{list}}, err
		})
	invite := NewOperation(http.MethodPost, base, "create-user", tagUsers, "Invite a user", http.StatusConflict)
	invite.DefaultStatus = http.StatusCreated
	Handle(a, invite, func(ctx context.Context, in *newUserInput) (*userBody[Invitation], error) {
		if err := a.Admin(ctx, "invite a user"); err != nil {
			return nil, err
		}
		u, err := a.Store.CreateUser(ctx, in.Body.Name, in.Body.Role)
		if err != nil {
			return nil, err
		}
		a.Audit(ctx, "user.create", u.Name, string(u.Role))
		return h.invitation(ctx, u)
	})
	second := NewOperation(http.MethodPost, base+"/{id}/invitation", "invite-user", tagUsers,
		"Make a link by which a user chooses a new password; the one before it ends", http.StatusNotFound,
		http.StatusConflict)
	second.DefaultStatus = http.StatusCreated
	Handle(a, second, func(ctx context.Context, in *IDInput) (*userBody[Invitation], error) {
		if err := a.Admin(ctx, "make a link for a user"); err != nil {
			return nil, err
		}
		u, err := h.userResponse(ctx, in.ID)
		switch {
		case err != nil:
			return nil, err
		case u.External:
			return nil, refusePassword(u.Name)
		case !u.DisabledAt.IsZero():
			return nil, &engine.Error{Code: engine.CodeConflict, Message: u.Name + " is locked out, and no link lets it in.",
				Hint: "Let the user in again first."}
		}
		a.Audit(ctx, "user.invite", u.Name, "")
		return h.invitation(ctx, u)
	})
	change := NewOperation(http.MethodPatch, base+"/{id}", "change-user", tagUsers,
		"Give a user another role, lock it out, or let it in again", http.StatusNotFound, http.StatusConflict,
		http.StatusForbidden)
	Handle(a, change, h.changeUser)
	remove := NewOperation(http.MethodDelete, base+"/{id}", "delete-user", tagUsers,
		"Delete a user with its tokens; what the user made stays", http.StatusNotFound, http.StatusConflict,
		http.StatusForbidden)
	remove.DefaultStatus = http.StatusNoContent
	Handle(a, remove, h.deleteUser)
}

func (h *userHandlers) userResponse(ctx context.Context, id string) (store.User, error) {
	list, err := h.a.Store.ListUsers(ctx)
	if err != nil {
		return store.User{}, err
	}
	for _, u := range list {
		if u.UserID == id {
			return u, nil
		}
	}
	return store.User{}, missing(store.ErrNotFound, "user", id)
}

func (h *userHandlers) invitation(ctx context.Context, u store.User) (*userBody[Invitation], error) {
	secret, t, err := h.a.Auth.Invite(ctx, u.UserID)
	if err != nil {
		return nil, err
	}
	return &userBody[Invitation]{Invitation{User: u, ExpiresAt: t.ExpiresAt,
		URL: h.a.URL() + "/join?" + url.Values{"invitation": {secret}, "name": {u.Name}}.Encode()}}, nil
}

func (h *userHandlers) changeUser(ctx context.Context, in *changeUserInput) (*userBody[store.User], error) {
	if err := h.a.Admin(ctx, "change a user"); err != nil {
		return nil, err
	}
	if in.Body.Role == nil && in.Body.Disabled == nil {
		return nil, engine.InvalidField("role", "is not given, nor is disabled", "name what is to be changed")
	}
	u, before, err := h.a.Store.ChangeUser(ctx, in.ID, store.UserChange{Role: in.Body.Role, Disabled: in.Body.Disabled,
		Expected: store.ExpectedUser{Role: in.Body.Was, Disabled: in.Body.WasDisabled}})
	if err != nil {
		return nil, missing(err, "user", in.ID)
	}
	h.a.Auth.InvalidateUser(in.ID)
	if in.Body.Role != nil {
		h.a.Audit(ctx, "user.role", u.Name, string(before.Role)+" → "+string(u.Role))
	}
	switch d := in.Body.Disabled; {
	case d == nil:
	case *d:
		h.a.Audit(ctx, "user.lock", u.Name, "")
	default:
		h.a.Audit(ctx, "user.unlock", u.Name, "")
	}
	return &userBody[store.User]{u}, nil
}

func (h *userHandlers) deleteUser(ctx context.Context, in *deleteUserInput) (*struct{}, error) {
	if err := h.a.Admin(ctx, "delete a user"); err != nil {
		return nil, err
	}
	u, err := h.userResponse(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if err := h.a.Store.DeleteUser(ctx, in.ID, in.expected()); err != nil {
		return nil, missing(err, "user", in.ID)
	}
	h.a.Auth.InvalidateUser(in.ID)
	h.a.Audit(ctx, "user.delete", u.Name, "")
	return &struct{}{}, nil
}
