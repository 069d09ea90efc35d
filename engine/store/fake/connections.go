package fake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plan/template"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
)

// connection is a saved connection; its DSN is as it may be shown.
type connection struct {
	store.Connection
	dsn secret.Secret
}

// SaveConnection implements store.Connections.
func (s *Store) SaveConnection(ctx context.Context, c store.Connection) (store.Connection, error) {
	if err := s.lock(ctx); err != nil {
		return c, err
	}
	defer s.mu.Unlock()
	dsn := c.AddressToSave()
	masked := s.secrets.Masked(c.Driver, dsn)
	row := &connection{Connection: c, dsn: secret.New(dsn)}
	row.FullDSN = secret.Secret{}
	row.DSN, row.Builtin, row.UpdatedAt = s.secrets.Hide(c.Driver, dsn), false, engine.At(now())
	if c.ConnectionID == "" {
		if masked {
			return c, engine.InvalidField("dsn", "the password is hidden", "write the password in place of "+target.Mask)
		}
		row.ConnectionID, row.CreatedAt, row.Version = newID(), row.UpdatedAt, 1
	} else {
		old := s.connections[c.ConnectionID]
		switch {
		case old == nil:
			return c, notFound("connection", c.ConnectionID)
		case old.Builtin:
			return c, store.BuiltinConnectionError(old.Name)
		case c.Version != 0 && c.Version != old.Version:
			return c, store.ConcurrentEditError("connection", old.Name, "", old.UpdatedAt, old.Version)
		case masked && (dsn != old.DSN || c.Driver != old.Driver):
			return c, engine.InvalidField("dsn", "the password is hidden, and this is not the address it was saved for",
				"write the password again in place of "+target.Mask)
		case masked:
			row.dsn = old.dsn
		}
		if old.Name != c.Name {
			if err := s.unused(old.Name, "renamed"); err != nil {
				return c, err
			}
		}
		row.CreatedAt, row.Version = old.CreatedAt, old.Version+1
	}
	if c.Name == "" || c.Driver == "" {
		return c, unnamed("connection")
	}
	if other := s.connectionByName(c.Name); other != nil && other.ConnectionID != row.ConnectionID {
		return c, store.NameTaken("connection", c.Name)
	}
	s.connections[row.ConnectionID] = row
	return row.Connection, nil
}

// connectionByName finds a connection by its name; nil when there is none.
func (s *Store) connectionByName(name string) *connection {
	for _, c := range s.connections {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// EnsureBuiltin implements store.Connections.
func (s *Store) EnsureBuiltin(ctx context.Context, c store.Connection) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	dsn := c.AddressToSave()
	row := &connection{Connection: c, dsn: secret.New(dsn)}
	row.FullDSN = secret.Secret{}
	row.ConnectionID, row.DSN, row.Builtin, row.CreatedAt, row.UpdatedAt = newID(), s.secrets.Hide(c.Driver, dsn), true,
		engine.At(now()), engine.At(now())
	if old := s.connectionByName(c.Name); old != nil {
		if !old.Builtin {
			return nil // somebody had the name first
		}
		row.ConnectionID, row.CreatedAt = old.ConnectionID, old.CreatedAt
	}
	s.connections[row.ConnectionID] = row
	return nil
}

// Connection implements store.Connections; a name wins over an id.
func (s *Store) Connection(ctx context.Context, idOrName string) (store.Connection, error) {
	if err := s.lock(ctx); err != nil {
		return store.Connection{}, err
	}
	defer s.mu.Unlock()
	c := s.connectionByName(idOrName)
	if c == nil {
		c = s.connections[idOrName]
	}
	if c == nil {
		return store.Connection{}, notFound("connection", idOrName)
	}
	return c.Connection, nil
}

// sortedConnections are all connections, builtin ones first.
func (s *Store) sortedConnections() (list []store.Connection) {
	for _, c := range sorted(s.connections, func(a, b *connection) int {
		rank := func(c *connection) int {
			if c.Builtin {
				return 0
			}
			return 1
		}
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.Name, b.Name))
	}) {
		list = append(list, c.Connection)
	}
	return list
}

// ListConnections implements store.Connections; builtin ones come first.
func (s *Store) ListConnections(ctx context.Context) ([]store.Connection, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.sortedConnections(), nil
}

// DeleteConnection implements store.Connections.
func (s *Store) DeleteConnection(ctx context.Context, id string, version int64) error {
	return s.LockSinks(id, func(sinks []string) error { return s.deleteConnection(ctx, id, version, sinks) })
}

func (s *Store) deleteConnection(ctx context.Context, id string, version int64, sinks []string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	c := s.connections[id]
	switch {
	case c == nil:
		return notFound("connection", id)
	case c.Builtin:
		return store.BuiltinConnectionError(c.Name)
	case version != 0 && version != c.Version:
		return store.ConcurrentEditError("connection", c.Name, "", c.UpdatedAt, c.Version)
	}
	if err := s.unused(c.Name, "deleted"); err != nil {
		return err
	}
	if len(sinks) > 0 {
		return store.SinkConnectionError(c.Name, sinks)
	}
	delete(s.connections, id)
	return nil
}

// unused returns store.ErrInUse while a template, or a run that may still
// connect, names the connection.
func (s *Store) unused(name, done string) error {
	templates, runs := 0, 0
	for _, t := range s.templates {
		if sc, err := read[engine.Scenario]("template", t.config); err == nil && sc.Target.Connection.Name == name {
			templates++
		}
	}
	for _, r := range s.runs {
		if sc, err := read[engine.Scenario]("scenario", r.scenario); err == nil && !r.row.Status.Terminal() &&
			sc.Target.Connection.Name == name {
			runs++
		}
	}
	if templates+runs == 0 {
		return nil
	}
	return store.ConnectionInUseError(name, done, templates, runs)
}

// seal replaces the secret of an inline connection by what stands for it. A DSN
// whose password is hidden keeps the one of earlier (the reference that is being
// replaced) or of the template it was copied from. field is the reference's path
// in the document.
func (s *Store) seal(ref engine.ConnectionRef, earlier *engine.ConnectionRef, field string) (engine.ConnectionRef,
	error) {
	if !ref.Inline() || ref.DSN == "" {
		return ref, nil
	}
	if !s.secrets.Masked(ref.Driver, ref.DSN) {
		ref.DSNSealed = ""
		if shown := s.secrets.Hide(ref.Driver, ref.DSN); shown != ref.DSN {
			ref.DSNSealed = "memory:" + newID()
			s.sealed[ref.DSNSealed], ref.DSN = ref.DSN, shown
		}
		return ref, nil
	}
	if ref.DSNSealed != "" {
		// Only a sealed text that says the same except for the password belongs to this DSN.
		dsn, err := s.unseal(ref.DSNSealed)
		if err == nil && s.secrets.Hide(ref.Driver, dsn.Reveal()) != ref.DSN {
			err = template.PasswordNeeded(field)
		}
		return ref, err
	}
	if earlier != nil && earlier.DSNSealed != "" && earlier.DSN == ref.DSN && earlier.Driver == ref.Driver {
		ref.DSNSealed = earlier.DSNSealed
		return ref, nil
	}
	var err error
	ref.DSNSealed, err = s.sealedBefore(ref, field)
	return ref, err
}

// OpenURL implements store.Connections.
func (s *Store) OpenURL(ctx context.Context, r engine.Rule) (secret.Secret, error) {
	if err := s.lock(ctx); err != nil {
		return secret.Secret{}, err
	}
	defer s.mu.Unlock()
	if r.URLSealed == "" {
		return secret.New(r.URL), nil
	}
	return s.unseal(r.URLSealed)
}

// sealURL keeps the address of a rule.
func (s *Store) sealURL(plain string) string {
	sealed := "memory:" + newID()
	s.sealed[sealed] = plain
	return sealed
}

// sealedBefore finds the secret of a redacted DSN in the templates: a document
// that was exported or edited carries stars where its password was.
func (s *Store) sealedBefore(ref engine.ConnectionRef, field string) (string, error) {
	if ref.DSN == target.Mask {
		return "", template.PasswordNeeded(field) // it could be anybody's
	}
	for _, t := range sorted(s.templates,
		func(a, b *templateRow) int { return newest(a.UpdatedAt, b.UpdatedAt, a.TemplateID, b.TemplateID) }) {
		sc, err := read[engine.Scenario]("template", t.config)
		if err != nil {
			return "", err
		}
		if found := template.SameAddress(&sc, ref); found != nil && found.DSNSealed != "" {
			return found.DSNSealed, nil
		}
	}
	return "", template.PasswordNeeded(field)
}

func (s *Store) unseal(sealed string) (secret.Secret, error) {
	if dsn, known := s.sealed[sealed]; known {
		return secret.New(dsn), nil
	}
	return secret.Secret{}, &engine.Error{Code: engine.CodeInvalid, Message: "A saved password cannot be decrypted.",
		Hint: "Save the connection again with its password."}
}

// OpenDSN implements store.Connections.
func (s *Store) OpenDSN(ctx context.Context, ref engine.ConnectionRef) (driver string, dsn secret.Secret, err error) {
	if err := s.lock(ctx); err != nil {
		return "", dsn, err
	}
	defer s.mu.Unlock()
	switch {
	case !ref.Inline():
		c := s.connectionByName(ref.Name)
		if c == nil {
			return "", dsn, s.missing(ref.Name)
		}
		return c.Driver, c.dsn, nil
	case ref.DSNSealed != "":
		dsn, err = s.unseal(ref.DSNSealed)
	case s.secrets.Masked(ref.Driver, ref.DSN):
		var sealed string
		if sealed, err = s.sealedBefore(ref, "target.connection"); err == nil {
			dsn, err = s.unseal(sealed)
		}
	default:
		dsn = secret.New(ref.DSN)
	}
	return ref.Driver, dsn, err
}

// missing lists the connections there are.
func (s *Store) missing(name string) error {
	e := &engine.Error{Code: engine.CodeNotFound, Cause: store.ErrNotFound,
		Message: fmt.Sprintf("There is no connection %q.", name)}
	var names []string
	for _, c := range s.sortedConnections() {
		names = append(names, c.Name)
	}
	if names = slices.Compact(names); len(names) > 0 {
		e.Hint = fmt.Sprintf("Saved connections: %s.", strings.Join(names, ", "))
	}
	return e
}
