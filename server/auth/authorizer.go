// This part judges who may load what: which connections and templates a caller may use and change, and whether
// a start against production was confirmed.

package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Store is what the judge reads.
type Store interface {
	store.ConnectionFinder
	Template(ctx context.Context, id string) (store.Template, error)
	ListUsers(ctx context.Context) ([]store.User, error)
	Run(ctx context.Context, runID string) (engine.Run, error)
	SaveStartGrant(ctx context.Context, g store.StartGrant) (store.GrantChange, error)
	ResolveStart(ctx context.Context, g store.GrantChange, begun bool) error
	StartGrant(ctx context.Context, runID, matrixID string) (store.StartGrant, error)
}

// Authorizer knows what callers may do. What cannot be read is not allowed.
type Authorizer struct{ Store Store }

// AuthorizeUse is an error when the user may not run a scenario: its template, or a connection of its target or of one
// of its matrix, is others', or it replays a run that is. It returns its connections that are production. What there is
// not, is for whoever runs it to say.
func (j Authorizer) AuthorizeUse(
	ctx context.Context,
	u store.User,
	s engine.Scenario,
) (production []store.Connection, err error) {
	if s.TemplateID != "" {
		t, err := j.Store.Template(ctx, s.TemplateID)
		if err == nil {
			err = AuthorizeTemplate(u, t)
		}
		if err != nil && !isNotFound(err) {
			return nil, err
		}
	}
	for _, c := range s.Connections() {
		if c.Ref.Inline() {
			continue
		}
		saved, err := j.referenced(ctx, c)
		switch {
		case isNotFound(err):
			continue
		case err != nil:
			return nil, err
		}
		if err := AuthorizeConnection(u, saved); err != nil {
			return nil, err
		}
		if saved.Production && !slices.ContainsFunc(production, sameConnection(saved)) {
			production = append(production, saved)
		}
	}
	return production, j.authorizeReplay(ctx, u, s)
}

// authorizeReplay is an error when the user may not use the run that a scenario replays: its values are made again, as
// they were, from samples of its target's rows. What that run replayed is judged the same way.
func (j Authorizer) authorizeReplay(ctx context.Context, u store.User, s engine.Scenario) error {
	if s.Workload.Feed == nil || s.Workload.Feed.Run == "" {
		return nil
	}
	replayed, err := j.Store.Run(ctx, s.Workload.Feed.Run)
	if isNotFound(err) {
		return nil
	}
	if err == nil {
		_, err = j.AuthorizeRecorded(ctx, u, replayed)
	}
	return err
}

// AuthorizeRecorded is an error when the user may not use a run that was made: replay it, read its values, share or
// delete it. Where its template or a connection of it is gone, and with it who might use it, that is for who made the
// run, and for admins. It returns the connections that are production.
func (j Authorizer) AuthorizeRecorded(
	ctx context.Context,
	u store.User,
	run engine.Run,
) (production []store.Connection, err error) {
	if u.Role != store.RoleAdmin && !madeBy(u, run.CreatedByID) {
		gone, err := j.gone(ctx, run)
		if err != nil {
			return nil, err
		}
		if gone != "" {
			return nil, &engine.Error{Code: engine.CodeForbidden, Message: "The " + gone + " of this run is gone, and with it " +
				"who may use the run.", Hint: "Who made the run can use it, and an admin."}
		}
	}
	return j.AuthorizeUse(ctx, u, run.Scenario)
}

// gone says which of its things, "template" or "connection", a run has lost; empty when all are there. A connection
// that is younger than the run, and has its name only, is another.
func (j Authorizer) gone(ctx context.Context, run engine.Run) (what string, err error) {
	s := run.Scenario
	if s.TemplateID != "" {
		if _, err := j.Store.Template(ctx, s.TemplateID); isNotFound(err) {
			return "template", nil
		} else if err != nil {
			return "", err
		}
	}
	for _, c := range s.Connections() {
		if c.Ref.Inline() {
			continue
		}
		saved, err := j.referenced(ctx, c)
		if isNotFound(err) || err == nil && *c.ID == "" && saved.CreatedAt.After(run.CreatedAt.Time) {
			return "connection", nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// madeBy reports whether a thing is the user's, by the id of who made it: one of that name may be another.
func madeBy(u store.User, id string) bool { return id != "" && u.UserID == id }

// referenced is the connection that a scenario refers to: by its id, which a stored scenario has, or by the name that a
// user has just typed.
func (j Authorizer) referenced(ctx context.Context, c engine.Connection) (store.Connection, error) {
	if *c.ID != "" {
		return j.Store.Connection(ctx, *c.ID)
	}
	return store.FindConnection(ctx, j.Store, c.Ref.Name)
}

// ResolveConnections writes into a scenario which connections the names in it stand for, where it does not say so
// already. What there is not, is for whoever runs it to say.
func (j Authorizer) ResolveConnections(ctx context.Context, s *engine.Scenario) error {
	*s = s.Clone()
	for _, c := range s.Connections() {
		if c.Ref.Inline() || *c.ID != "" {
			continue
		}
		saved, err := store.FindConnection(ctx, j.Store, c.Ref.Name)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		*c.ID, c.Ref.Name = saved.ConnectionID, saved.Name
	}
	return nil
}

// sameConnection tells a connection from others.
func sameConnection(c store.Connection) func(store.Connection) bool {
	return func(o store.Connection) bool { return o.ConnectionID == c.ConnectionID }
}

// AuthorizeOrphan is an error when the user may not use a run whose template is gone, and with it who may use its
// inline connection: that is for who made the run, and for admins.
func (j Authorizer) AuthorizeOrphan(ctx context.Context, u store.User, run engine.Run) error {
	s := run.Scenario
	if s.TemplateID == "" || u.Role == store.RoleAdmin || madeBy(u, run.CreatedByID) {
		return nil
	}
	inline := false
	for _, c := range s.Connections() {
		inline = inline || c.Ref.Inline()
	}
	if !inline {
		return nil
	}
	_, err := j.Store.Template(ctx, s.TemplateID)
	if !isNotFound(err) {
		return err
	}
	return &engine.Error{Code: engine.CodeForbidden,
		Message: "The template of this run is gone, and the run has a connection of its own.",
		Hint:    "Who made the run can start it, and an admin."}
}

// isNotFound tells that a thing is not there; a refusal is none such.
func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }

// AuthorizeConnection is an error when the user may not use a connection.
func AuthorizeConnection(u store.User, c store.Connection) error {
	if c.Access.MayUse(u) {
		return nil
	}
	return store.NotOwnerError("connection", c.Name, c.Access)
}

// AuthorizeTemplate is an error when the user may not use a template.
func AuthorizeTemplate(u store.User, t store.Template) error {
	if t.Access.MayUse(u) {
		return nil
	}
	return store.NotOwnerError("template", t.Name, t.Access)
}

// AuthorizeChange is an error when the user may not change a thing, "connection" or "template".
func AuthorizeChange(u store.User, what, name string, a store.Access) error {
	if a.MayChange(u) {
		return nil
	}
	hint := "An admin can change it."
	if a.Owner != "" {
		hint = "It is " + a.Owner + "'s: ask, or save a copy of your own."
	}
	return &engine.Error{Code: engine.CodeForbidden, Message: fmt.Sprintf("You may not change the %s %q.", what, name),
		Hint: hint}
}

// NewAccess is the access of what a user has just made.
func NewAccess(u store.User) store.Access { return store.Access{OwnerID: u.UserID, Owner: u.Name} }

// AccessInput says who may use a thing from now on.
type AccessInput struct {
	Restricted bool     `json:"restricted" doc:"Whether only its owner, admins and the users named may use it."`
	Users      []string `json:"users,omitempty" maxItems:"200" doc:"Names of further users who may use it, besides its owner and admins."`
	Owner      string   `json:"owner,omitempty" maxLength:"64" doc:"Gives it to another user; left out, it stays whose it is."`
}

// ApplyAccess returns what the access of a thing becomes by what was given; nil leaves it. Who may say so is its owner
// or an admin; of what nobody owns, an admin.
func (j Authorizer) ApplyAccess(
	ctx context.Context,
	u store.User,
	now store.Access,
	in *AccessInput,
) (store.Access, error) {
	if in == nil {
		return now, nil
	}
	if u.Role != store.RoleAdmin && (now.OwnerID == "" || now.OwnerID != u.UserID) {
		return now, &engine.Error{Code: engine.CodeForbidden, Message: "Only its owner and admins say who may use it.",
			Hint:   "Leave access as it is, or ask an admin.",
			Fields: []engine.FieldError{{Field: "access", Message: "is not yours to change"}}}
	}
	users, err := j.Store.ListUsers(ctx)
	if err != nil {
		return now, err
	}
	called := func(field, name string) (store.User, error) {
		for _, o := range users {
			if strings.EqualFold(o.Name, name) {
				return o, nil
			}
		}
		return store.User{}, engine.InvalidField(field, "names no user", "write a user's name as it signs in")
	}
	next := store.Access{OwnerID: now.OwnerID, Owner: now.Owner, Restricted: in.Restricted}
	if in.Owner != "" && !strings.EqualFold(in.Owner, now.Owner) {
		o, err := called("access.owner", in.Owner)
		if err != nil {
			return now, err
		}
		next.OwnerID, next.Owner = o.UserID, o.Name
	}
	for i, name := range in.Users {
		o, err := called(fmt.Sprintf("access.users[%d]", i), name)
		if err != nil {
			return now, err
		}
		next.Users = append(next.Users, store.AccessUser{UserID: o.UserID, Name: o.Name})
	}
	return next, nil
}

// Names are one name or several, as JSON text or a list of it.
type Names []string

// UnmarshalJSON reads either form.
func (n *Names) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*n = Names{one}
		return nil
	}
	var several []string
	if err := json.Unmarshal(text, &several); err != nil {
		return fmt.Errorf("reading names: %w", err)
	}
	*n = several
	return nil
}

// Schema describes both forms.
func (Names) Schema(huma.Registry) *huma.Schema {
	longest, limit := 100, 50
	one := &huma.Schema{Type: huma.TypeString, MaxLength: &longest}
	return &huma.Schema{OneOf: []*huma.Schema{one, {Type: huma.TypeArray, Items: one, MaxItems: &limit}},
		Description: "The names of the production connections that this loads, typed by whoever starts it: one, or a list."}
}

// CheckConfirmed is an error that names the production connections whose names were not typed.
func CheckConfirmed(production []store.Connection, typed Names) error {
	var missing []engine.FieldError
	for _, c := range production {
		if name := c.Name; !slices.Contains(typed, name) {
			missing = append(missing, engine.FieldError{Field: "confirm_production",
				Message: fmt.Sprintf("does not name %q, which is production", name), Hint: "confirm by typing its name: " + name,
				Subject: name})
		}
	}
	if len(missing) == 0 {
		return nil
	}
	message, hint := fmt.Sprintf("The connection %q is production: its load has to be confirmed.", production[0].Name),
		"Send confirm_production with its name; on the command line, --confirm-production NAME."
	if len(missing) > 1 {
		message = "Connections of this are production: their load has to be confirmed."
		hint = "Send confirm_production with the names of all; on the command line, --confirm-production NAME for each."
	}
	return &engine.Error{Code: engine.CodeInvalid, Message: message, Hint: hint, Fields: missing}
}
