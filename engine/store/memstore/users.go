package memstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// EnsureAdmin implements store.Users.
func (s *Store) EnsureAdmin(ctx context.Context, name string) (store.User, error) {
	if err := s.begin(ctx); err != nil {
		return store.User{}, err
	}
	defer s.mu.Unlock()
	for _, u := range s.users {
		return u, nil // there is one at most
	}
	if name == "" {
		return store.User{}, unnamed("user")
	}
	u := store.User{UserID: newID(), Name: name, Role: "admin", CreatedAt: engine.At(now())}
	s.users[u.UserID] = u
	return u, nil
}

func expired(t *store.Token) bool { return !t.ExpiresAt.IsZero() && !t.ExpiresAt.After(now()) }

// CreateToken implements store.Users. It removes the owner's expired tokens.
func (s *Store) CreateToken(ctx context.Context, t store.Token, secretSHA256 [32]byte) (store.Token, error) {
	if err := s.begin(ctx); err != nil {
		return t, err
	}
	defer s.mu.Unlock()
	if _, known := s.users[t.UserID]; !known {
		return t, notFound("user", t.UserID)
	}
	for hash, o := range s.tokens {
		// One link at a time: a new one makes those before it useless.
		if o.UserID == t.UserID && expired(o) || t.Kind == "signin" && o.Kind == "signin" {
			delete(s.tokens, hash)
		}
	}
	if s.tokens[secretSHA256] != nil {
		return t, fmt.Errorf("saving token: %w", store.ErrConflict)
	}
	t.TokenID, t.Scope, t.CreatedAt, t.LastUsedAt = firstOf(t.TokenID, newID()), firstOf(t.Scope, "write"),
		engine.At(now()), engine.Time{}
	row := t
	s.tokens[secretSHA256] = &row
	return t, nil
}

// UseToken implements store.Users.
func (s *Store) UseToken(ctx context.Context, kind string, secretSHA256 [32]byte) (store.Token, store.User, error) {
	if err := s.begin(ctx); err != nil {
		return store.Token{}, store.User{}, err
	}
	defer s.mu.Unlock()
	t := s.tokens[secretSHA256]
	if t == nil || t.Kind != kind || expired(t) {
		return store.Token{}, store.User{}, fmt.Errorf("looking up token: %w", store.ErrNotFound)
	}
	t.LastUsedAt = engine.At(now())
	if kind == "signin" {
		delete(s.tokens, secretSHA256)
	}
	return *t, s.users[t.UserID], nil
}

// ListTokens implements store.Users; newest first, expired ones left out. userID or kind "" means any.
func (s *Store) ListTokens(ctx context.Context, userID, kind string) ([]store.Token, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []store.Token
	for _, t := range sorted(s.tokens,
		func(a, b *store.Token) int { return newest(a.CreatedAt, b.CreatedAt, a.TokenID, b.TokenID) }) {
		if (userID == "" || t.UserID == userID) && (kind == "" || t.Kind == kind) && !expired(t) {
			out = append(out, *t)
		}
	}
	return out, nil
}

// DeleteToken implements store.Users.
func (s *Store) DeleteToken(ctx context.Context, userID, tokenID string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for hash, t := range s.tokens {
		if t.TokenID == tokenID && t.UserID == userID {
			delete(s.tokens, hash)
			return nil
		}
	}
	return notFound("token", tokenID)
}

// AppendAudit implements store.Audit.
func (s *Store) AppendAudit(ctx context.Context, e store.AuditEntry) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	e.At, e.Object, e.Detail = orNow(e.At), store.CleanText(e.Object), store.CleanText(e.Detail)
	s.audit = append(s.audit, e)
	return nil
}

// ListAudit implements store.Audit; newest first. limit ≤ 0 means 50.
func (s *Store) ListAudit(ctx context.Context, limit int) ([]store.AuditEntry, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	all := slices.Clone(s.audit)
	slices.Reverse(all)
	return first(limit, all), nil
}
