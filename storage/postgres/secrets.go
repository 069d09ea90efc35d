package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plan/template"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// inlineContext binds the sealed DSNs of documents; they are copied from
// templates to runs, so they cannot be bound to one row.
const inlineContext = "inline-dsn"

func connectionContext(id string) string { return "connection:" + id }

// sealRef replaces the secret of an inline connection by its sealed form. A
// DSN whose password is hidden keeps the one of earlier (the reference that is
// being replaced) or of the template it was copied from. field is the reference's
// path in the document.
func (s *Store) sealRef(ctx context.Context, ref engine.ConnectionRef, earlier *engine.ConnectionRef,
	field string) (engine.ConnectionRef, error) {
	if !ref.Inline() || ref.DSN == "" {
		return ref, nil
	}
	if !s.secrets.Masked(ref.Driver, ref.DSN) {
		ref.DSNSealed = ""
		if clear := s.secrets.Hide(ref.Driver, ref.DSN); clear != ref.DSN {
			ref.DSNSealed, ref.DSN = s.keys.Seal([]byte(ref.DSN), inlineContext), clear
		}
		return ref, nil
	}
	if ref.DSNSealed != "" {
		// Only a sealed text that says the same except for the password belongs to this DSN.
		dsn, err := s.unseal(ref.DSNSealed, inlineContext)
		if err != nil {
			return ref, err
		}
		if s.secrets.Hide(ref.Driver, dsn.Reveal()) != ref.DSN {
			return ref, template.PasswordNeeded(field)
		}
		return ref, nil
	}
	if earlier != nil && earlier.DSNSealed != "" && earlier.DSN == ref.DSN && earlier.Driver == ref.Driver {
		ref.DSNSealed = earlier.DSNSealed
		return ref, nil
	}
	sealed, err := s.sealedBefore(ctx, ref, field)
	ref.DSNSealed = sealed
	return ref, err
}

// resolveConnections writes the ids of the connections that a document names into it, where it has none. What there is
// not is left as it is: it is looked up again when a run is made.
func (s *Store) resolveConnections(ctx context.Context, sc *engine.Scenario) error {
	for _, c := range sc.Connections() {
		if c.Ref.Inline() || *c.ID != "" {
			continue
		}
		saved, err := store.FindConnection(ctx, s, c.Ref.Name)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		*c.ID, c.Ref.Name = saved.ConnectionID, saved.Name
	}
	return nil
}

// sealedBefore finds the secret of a redacted DSN in the templates: a
// document that was exported or edited carries stars where its password was.
func (s *Store) sealedBefore(ctx context.Context, ref engine.ConnectionRef, field string) (string, error) {
	if ref.DSN == target.Mask {
		return "", template.PasswordNeeded(field) // it could be anybody's
	}
	var sealed string
	err := s.pool.QueryRow(ctx, `SELECT c ->> 'dsn_sealed' FROM test_templates, LATERAL (
			SELECT config #> '{target,connection}' AS c
			UNION ALL SELECT t -> 'connection' FROM jsonb_array_elements(coalesce(config #> '{matrix,targets}', '[]')) t) refs
		WHERE jsonb_typeof(c) = 'object' AND c ->> 'dsn' = $1 AND c ->> 'dsn_sealed' <> '' AND c ->> 'driver' = $2
		ORDER BY updated_at DESC LIMIT 1`, ref.DSN, ref.Driver).Scan(&sealed)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", template.PasswordNeeded(field)
	}
	return sealed, dberr.Failed("looking for the saved password", err)
}

// urlContext binds the sealed addresses of rules, which are copied from templates to runs.
const urlContext = "rule-url"

func (s *Store) sealURL(plain string) string { return s.keys.Seal([]byte(plain), urlContext) }

// OpenURL implements api.ConnectionStore.
func (s *Store) OpenURL(_ context.Context, r engine.Rule) (secret.Secret, error) {
	if r.URLSealed == "" {
		return secret.New(r.URL), nil
	}
	return s.unseal(r.URLSealed, urlContext)
}

func (s *Store) unseal(sealed, sealedFor string) (secret.Secret, error) {
	plain, err := s.keys.Open(sealed, sealedFor)
	switch {
	case errors.Is(err, keyring.ErrUnknownKey):
		return secret.Secret{}, &engine.Error{Code: engine.CodeInvalid, Cause: err,
			Message: "A saved password was encrypted under a key that this server does not have.",
			Hint: "Give the server the earlier key too (" + keyring.KeyEnv +
				" or the key file), or save the connection again with its password."}
	case err != nil:
		return secret.Secret{}, &engine.Error{Code: engine.CodeInvalid, Cause: err,
			Message: "A saved password cannot be decrypted.", Hint: "Save the connection again with its password."}
	}
	return secret.New(string(plain)), nil
}

// OpenDSN implements api.ConnectionStore.
func (s *Store) OpenDSN(ctx context.Context, ref engine.ConnectionRef) (driver string, dsn secret.Secret, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if !ref.Inline() {
		var id, sealed string
		column, value := "connection_name", ref.Name
		if ref.ID != "" {
			column, value = "connection_id", ref.ID
		}
		err := s.pool.QueryRow(ctx, "SELECT connection_id, driver, dsn_sealed FROM connections WHERE "+column+" = $1", value).
			Scan(&id, &driver, &sealed)
		if err != nil {
			return "", dsn, s.explainMissing(ctx, cmp.Or(ref.Name, ref.ID), err)
		}
		dsn, err = s.unseal(sealed, connectionContext(id))
		return driver, dsn, err
	}
	switch {
	case ref.DSNSealed != "":
		dsn, err = s.unseal(ref.DSNSealed, inlineContext)
	case s.secrets.Masked(ref.Driver, ref.DSN):
		var sealed string
		if sealed, err = s.sealedBefore(ctx, ref, "target.connection"); err == nil {
			dsn, err = s.unseal(sealed, inlineContext)
		}
	default:
		dsn = secret.New(ref.DSN)
	}
	return ref.Driver, dsn, err
}

// explainMissing lists the connections there are.
func (s *Store) explainMissing(ctx context.Context, name string, err error) error {
	wrapped := dberr.Reading("connection", name, err)
	var e *engine.Error
	if !errors.As(wrapped, &e) || e.Code != engine.CodeNotFound {
		return wrapped
	}
	if all, err := s.ListConnections(ctx); err == nil && len(all) > 0 {
		names := make([]string, len(all))
		for i, c := range all {
			names[i] = c.Name
		}
		e.Hint = fmt.Sprintf("Saved connections: %s.", strings.Join(names, ", "))
	}
	return e
}
