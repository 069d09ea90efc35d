package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// ConnectionList is every saved connection, passwords masked.
type ConnectionList struct {
	Connections []store.Connection `json:"connections"`
}

// ConnectionInput is a connection to save.
type ConnectionInput struct {
	Name        string        `json:"name" maxLength:"100" pattern:"^[^\\x00-\\x1f\\x7f]+$" patternDescription:"one line of text" doc:"Unique; templates refer to it."`
	Driver      string        `json:"driver" enum:"postgres,snowflake"`
	DSN         secret.Secret `json:"dsn" minLength:"1" maxLength:"16000" doc:"postgres://user:password@host:5432/database. In an update, a password of *** keeps the saved one."`
	Description string        `json:"description,omitempty" maxLength:"1000"`
	// Production and Access are left as they are by a change that does not name them.
	Production *bool             `json:"production,omitempty" doc:"Whether each run against it has to be confirmed by typing its name."`
	Access     *auth.AccessInput `json:"access,omitempty"`
}

// ConnectionChange is what a connection becomes.
type ConnectionChange struct {
	ConnectionInput
	Version int64 `json:"version,omitempty" minimum:"1" maximum:"9007199254740991" doc:"The version that was edited; 409 when it has been changed since. Without it, what is not named here stays as somebody else may have made it meanwhile."`
	// KeepEqual lets a client that knows the password, and reads none, send it as often as it likes.
	KeepEqual bool `json:"keep_equal,omitempty" doc:"Save nothing, and keep the version, when the connection is all of this already, its password too."`
}

type connectionCreate struct{ Body ConnectionInput }

type connectionUpdate struct {
	IDInput
	Body ConnectionChange
}

type connectionRemoval struct {
	IDInput
	Version int64 `query:"version" minimum:"1" maximum:"9007199254740991" doc:"The version that was read; 409 if it has changed since. Without it, only a change during the request is a conflict."`
}

type connectionTest struct {
	Body struct {
		Driver       string        `json:"driver" enum:"postgres,snowflake"`
		DSN          secret.Secret `json:"dsn" minLength:"1" maxLength:"16000"`
		ConnectionID string        `json:"connection_id,omitempty" maxLength:"128" doc:"The saved connection whose password stands behind *** in dsn."`
	}
}

// ConnectionTest is what a test connection found.
type ConnectionTest struct {
	OK          bool              `json:"ok"`
	Server      target.ServerInfo `json:"server"`
	RoundTripMs float64           `json:"round_trip_ms"`
}

func (a *API) registerConnections() {
	handle(a, op(http.MethodGet, "/api/connections", "list-connections", tagConnections, "List connections"),
		a.listConnections)
	create := op(http.MethodPost, "/api/connections", "create-connection", tagConnections, "Save a connection",
		http.StatusConflict)
	create.DefaultStatus = http.StatusCreated
	handle(a, create, a.createConnection)
	handle(a, op(http.MethodPost, "/api/connections/test", "test-dsn", tagConnections, "Connect once, without saving",
		http.StatusNotFound, http.StatusTooManyRequests), Throttled(a, a.testDSN))
	handle(a, op(http.MethodGet, "/api/connections/{id}", "get-connection", tagConnections, "Read a connection",
		http.StatusNotFound), a.getConnection)
	handle(a, op(http.MethodPut, "/api/connections/{id}", "update-connection", tagConnections, "Change a connection",
		http.StatusNotFound, http.StatusConflict), a.updateConnection)
	remove := op(http.MethodDelete, "/api/connections/{id}", "delete-connection", tagConnections, "Delete a connection",
		http.StatusNotFound, http.StatusConflict)
	remove.DefaultStatus = http.StatusNoContent
	handle(a, remove, a.deleteConnection)
	handle(a, op(http.MethodPost, "/api/connections/{id}/test", "test-connection", tagConnections,
		"Connect once with a saved connection", http.StatusNotFound, http.StatusTooManyRequests),
		Throttled(a, a.testConnection))
}

func (a *API) hideConnection(c store.Connection) store.Connection {
	c.DSN = a.Secrets.Hide(c.Driver, c.DSN)
	return c
}

func (a *API) listConnections(ctx context.Context, _ *struct{}) (*body[ConnectionList], error) {
	list, err := a.Store.ListConnections(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]store.Connection, len(list))
	for i, c := range list {
		out[i] = a.hideConnection(c)
	}
	return &body[ConnectionList]{ConnectionList{Connections: out}}, nil
}

func (a *API) storedConnection(ctx context.Context, id string) (store.Connection, error) {
	if !wellFormedID(id) {
		return store.Connection{}, httpx.NotFound("connection", id)
	}
	c, err := a.Store.Connection(ctx, id)
	return c, notFoundAs(err, "connection", id)
}

func (a *API) getConnection(ctx context.Context, in *IDInput) (*body[store.Connection], error) {
	c, err := a.storedConnection(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &body[store.Connection]{a.hideConnection(c)}, nil
}

func (a *API) createConnection(ctx context.Context, in *connectionCreate) (*body[store.Connection], error) {
	if err := a.checkNewDSN(in.Body.Driver, in.Body.DSN); err != nil {
		return nil, err
	}
	if strings.TrimSpace(in.Body.Name) == "" {
		return nil, httpx.Field("name", "is empty", "give it one by which templates find it")
	}
	if err := a.authorizeResultsName(ctx, strings.TrimSpace(in.Body.Name)); err != nil {
		return nil, err
	}
	access, err := a.access(ctx, auth.NewAccess(a.identity(ctx).User), in.Body.Access)
	if err != nil {
		return nil, err
	}
	c, err := a.Store.SaveConnection(ctx,
		store.Connection{Name: strings.TrimSpace(in.Body.Name), Driver: in.Body.Driver, FullDSN: in.Body.DSN,
			Description: in.Body.Description, Access: access,
			Production: in.Body.Production != nil && *in.Body.Production})
	if err != nil {
		return nil, err
	}
	a.audit.Record(ctx, a.identity(ctx).User.UserID, "connection.create", c.ConnectionID, c.Name)
	return &body[store.Connection]{a.hideConnection(c)}, nil
}

// checkNewDSN checks a connection string that comes with its secrets.
func (a *API) checkNewDSN(driver string, dsn secret.Secret) error {
	if a.Secrets.Masked(driver, dsn.Reveal()) {
		return engine.InvalidField("dsn", "has "+target.Mask+" in the place of its password", "type the password")
	}
	return dsnField("dsn", a.Secrets.Validate(driver, dsn.Reveal()))
}

// dsnField names the field that a driver's complaint is about.
func dsnField(field string, err error) error {
	if err == nil {
		return nil
	}
	e := engine.AsError(err)
	return &engine.Error{Code: engine.CodeInvalid, Message: e.Message, Hint: e.Hint, Cause: err,
		Fields: []engine.FieldError{{Field: field, Message: e.Message, Hint: e.Hint}}}
}

// clearDSN returns dsn with the password of a saved connection behind its mask.
func (a *API) clearDSN(ctx context.Context, driver string, dsn secret.Secret, saved store.Connection) (
	secret.Secret, error) {
	if !a.Secrets.Masked(driver, dsn.Reveal()) {
		return dsn, dsnField("dsn", a.Secrets.Validate(driver, dsn.Reveal()))
	}
	if driver != saved.Driver {
		return dsn, dsnField("dsn", target.ErrOtherAddress)
	}
	_, stored, err := a.Store.OpenDSN(ctx, engine.ConnectionRef{ID: saved.ConnectionID})
	if err != nil {
		return dsn, err
	}
	joined, err := a.Secrets.RestoreSecrets(driver, dsn.Reveal(), stored.Reveal())
	return secret.New(joined), dsnField("dsn", err)
}

func (a *API) updateConnection(ctx context.Context, in *connectionUpdate) (*body[store.Connection], error) {
	old, err := a.storedConnection(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if old.Builtin {
		return nil, builtin(nil)
	}
	if err := a.mayChange(ctx, "connection", old.Name, old.Access); err != nil {
		return nil, err
	}
	if in.Body.Version != 0 && in.Body.Version != old.Version {
		return nil, store.ConcurrentEditError("connection", old.Name, "", old.UpdatedAt, old.Version)
	}
	access, err := a.access(ctx, old.Access, in.Body.Access)
	if err != nil {
		return nil, err
	}
	production, err := a.production(ctx, old, in.Body.Production)
	if err != nil {
		return nil, err
	}
	dsn, err := a.clearDSN(ctx, in.Body.Driver, in.Body.DSN, old)
	if err != nil {
		return nil, err
	}
	if err := a.authorizeResultsChange(ctx, old, strings.TrimSpace(in.Body.Name), in.Body.Driver, dsn); err != nil {
		return nil, err
	}
	c := store.Connection{ConnectionID: old.ConnectionID, Name: strings.TrimSpace(in.Body.Name), Driver: in.Body.Driver,
		FullDSN: dsn, Description: in.Body.Description, CreatedAt: old.CreatedAt, Access: access, Production: production,
		// What was judged above is what is replaced, and nothing that came between.
		Version: old.Version}
	if in.Body.KeepEqual {
		if same, err := a.sameConnection(ctx, old, c); same || err != nil {
			return &body[store.Connection]{a.hideConnection(old)}, err
		}
	}
	c, err = a.Store.SaveConnection(ctx, c)
	if err != nil {
		return nil, notFoundAs(err, "connection", in.ID)
	}
	a.audit.Record(ctx, a.identity(ctx).User.UserID, "connection.update", c.ConnectionID, c.Name)
	return &body[store.Connection]{a.hideConnection(c)}, nil
}

// sameConnection reports whether a saved connection is what it shall be, its password included.
func (a *API) sameConnection(ctx context.Context, old, c store.Connection) (bool, error) {
	if old.Name != c.Name || old.Driver != c.Driver || old.Description != c.Description ||
		old.Production != c.Production ||
		!reflect.DeepEqual(old.Access, c.Access) {
		return false, nil
	}
	_, saved, err := a.Store.OpenDSN(ctx, engine.ConnectionRef{ID: old.ConnectionID})
	return err == nil && saved.Reveal() == c.FullDSN.Reveal(), err
}

// production is whether a connection is it after a change. Whoever may change it may say so; that it is not any more,
// only an admin.
func (a *API) production(ctx context.Context, old store.Connection, in *bool) (bool, error) {
	if in == nil || *in == old.Production {
		return old.Production, nil
	}
	if !*in && a.identity(ctx).User.Role != store.RoleAdmin {
		return true, &engine.Error{Code: engine.CodeForbidden,
			Message: "Only an admin may say that a connection is not production any more.",
			Hint:    "Leave production as it is, or ask an admin.",
			Fields:  []engine.FieldError{{Field: "production", Message: "is not yours to take away"}}}
	}
	return *in, nil
}

// guardsResults reports whether the connection to which servers take results is meant, and the caller is no admin: the
// results are everybody's, and its owner would have them go elsewhere.
func (a *API) guardsResults(ctx context.Context, meant func(store.ResultsConnection) bool) (bool, error) {
	if a.identity(ctx).User.Role == store.RoleAdmin {
		return false, nil
	}
	r, err := a.Store.ResultsConnection(ctx)
	return err == nil && meant(r), err
}

// authorizeResultsName is an error when servers would take results to a connection of that name.
func (a *API) authorizeResultsName(ctx context.Context, name string) error {
	is, err := a.guardsResults(ctx, func(r store.ResultsConnection) bool { return r.Named(name) })
	if is {
		err = resultsConnectionError(engine.FieldError{Field: "name",
			Message: "is that of the connection to which servers take results", Hint: "choose another name, or ask an admin"})
	}
	return err
}

// authorizeResultsChange is an error when servers would take results elsewhere after a change.
func (a *API) authorizeResultsChange(ctx context.Context, old store.Connection, name, driver string,
	dsn secret.Secret) error {
	is, err := a.guardsResults(ctx, func(r store.ResultsConnection) bool { return r.Is(old.ConnectionID, old.Name) })
	if err != nil {
		return err
	}
	if !is {
		if name == old.Name {
			return nil
		}
		return a.authorizeResultsName(ctx, name)
	}
	var changed []engine.FieldError
	add := func(field string) {
		changed = append(changed, engine.FieldError{Field: field, Message: "is an admin's to change"})
	}
	_, saved, err := a.Store.OpenDSN(ctx, engine.ConnectionRef{ID: old.ConnectionID})
	if err != nil {
		return err
	}
	if dsn.Reveal() != saved.Reveal() {
		add("dsn")
	}
	if driver != old.Driver {
		add("driver")
	}
	if name != old.Name {
		add("name")
	}
	if len(changed) == 0 {
		return nil
	}
	return resultsConnectionError(changed...)
}

func resultsConnectionError(fields ...engine.FieldError) error {
	return &engine.Error{Code: engine.CodeForbidden,
		Message: "Servers take the results of all users to this connection (--results-connection): only an admin says " +
			"where it leads.",
		Hint: "Leave its name, driver and address as they are, or ask an admin.", Fields: fields}
}

func builtin(cause error) error {
	return &engine.Error{Code: engine.CodeConflict,
		Message: "This connection is built in: it belongs to the server and cannot be changed or deleted.",
		Hint:    "Save a connection of your own beside it.", Cause: cause}
}

func (a *API) deleteConnection(ctx context.Context, in *connectionRemoval) (*nothing, error) {
	c, err := a.storedConnection(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if c.Builtin {
		return nil, builtin(nil)
	}
	if err := a.mayChange(ctx, "connection", c.Name, c.Access); err != nil {
		return nil, err
	}
	if in.Version != 0 && in.Version != c.Version {
		return nil, store.ConcurrentEditError("connection", c.Name, "", c.UpdatedAt, c.Version)
	}
	if is, err := a.guardsResults(ctx, func(r store.ResultsConnection) bool { return r.Is(c.ConnectionID, c.Name) }); is {
		return nil, resultsConnectionError()
	} else if err != nil {
		return nil, err
	}
	// What was judged above is what is deleted.
	err = a.Store.DeleteConnection(ctx, c.ConnectionID, c.Version)
	var e *engine.Error
	switch {
	case errors.As(err, &e):
		return nil, err
	case errors.Is(err, store.ErrInUse):
		return nil, &engine.Error{Code: engine.CodeConflict, Message: "A template or a live run uses this connection.",
			Hint: "Change the templates that name it, and wait for the run to end.", Cause: err}
	case errors.Is(err, store.ErrConflict):
		return nil, builtin(err)
	case err != nil:
		return nil, notFoundAs(err, "connection", in.ID)
	}
	a.audit.Record(ctx, a.identity(ctx).User.UserID, "connection.delete", c.ConnectionID, c.Name)
	return &nothing{}, nil
}

func (a *API) testDSN(ctx context.Context, in *connectionTest) (*body[ConnectionTest], error) {
	dsn := in.Body.DSN
	switch {
	case in.Body.ConnectionID != "":
		saved, err := a.storedConnection(ctx, in.Body.ConnectionID)
		if err == nil {
			err = a.MayUseConnection(ctx, saved)
		}
		if err != nil {
			return nil, err
		}
		if dsn, err = a.clearDSN(ctx, in.Body.Driver, dsn, saved); err != nil {
			return nil, err
		}
	default:
		if err := a.checkNewDSN(in.Body.Driver, dsn); err != nil {
			return nil, err
		}
	}
	return a.testDatabase(ctx, in.Body.Driver, dsn)
}

func (a *API) testConnection(ctx context.Context, in *IDInput) (*body[ConnectionTest], error) {
	c, err := a.storedConnection(ctx, in.ID)
	if err == nil {
		err = a.MayUseConnection(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	driver, dsn, err := a.Store.OpenDSN(ctx, engine.ConnectionRef{ID: c.ConnectionID})
	if err != nil {
		return nil, notFoundAs(err, "connection", in.ID)
	}
	return a.testDatabase(ctx, driver, dsn)
}

// ConnectionTestTimeout bounds a request that tests a connection: its hosts are tried one after the other.
const ConnectionTestTimeout = 130 * time.Second

// IsConnectionTest tells whether a request tests a connection.
func IsConnectionTest(method, path string) bool {
	return method == http.MethodPost && strings.HasPrefix(path, "/api/connections/") && strings.HasSuffix(path, "/test")
}

func (a *API) testDatabase(ctx context.Context, driver string, dsn secret.Secret) (*body[ConnectionTest], error) {
	info, err := a.Runs.CheckConnection(ctx, driver, dsn)
	if err != nil {
		return nil, err
	}
	return &body[ConnectionTest]{ConnectionTest{OK: true, Server: info, RoundTripMs: engine.Milliseconds(info.RoundTrip)}},
		nil
}
