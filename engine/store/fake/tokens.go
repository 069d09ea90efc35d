package fake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

func expired(t *store.Token) bool { return !t.ExpiresAt.IsZero() && !t.ExpiresAt.After(userNow()) }

// CreateToken implements store.Users. It removes the owner's expired tokens.
func (s *Users) CreateToken(ctx context.Context, t store.Token, secretSHA256 [32]byte) (store.Token, error) {
	if err := s.lock(ctx); err != nil {
		return t, err
	}
	defer s.mu.Unlock()
	if s.find(t.UserID) == nil {
		return t, userNotFound("user", t.UserID)
	}
	for hash, o := range s.tokens {
		// One link at a time: a new one makes those before it useless.
		if o.UserID == t.UserID && expired(o) || t.Kind == "signin" && o.Kind == "signin" ||
			t.Kind == "invite" && o.Kind == "invite" && o.UserID == t.UserID {
			delete(s.tokens, hash)
		}
	}
	if s.tokens[secretSHA256] != nil {
		return t, fmt.Errorf("saving token: %w", store.ErrConflict)
	}
	t.TokenID, t.Scope = cmp.Or(t.TokenID, uuid.NewString()), cmp.Or(t.Scope, "write")
	t.CreatedAt, t.LastUsedAt = engine.At(userNow()), engine.Time{}
	row := t
	s.tokens[secretSHA256] = &row
	return t, nil
}

// UseToken implements store.Users.
func (s *Users) UseToken(ctx context.Context, kind string, secretSHA256 [32]byte) (store.Token, store.User, error) {
	if err := s.lock(ctx); err != nil {
		return store.Token{}, store.User{}, err
	}
	defer s.mu.Unlock()
	t := s.tokens[secretSHA256]
	if t == nil || t.Kind != kind || expired(t) || !s.find(t.UserID).DisabledAt.IsZero() {
		return store.Token{}, store.User{}, fmt.Errorf("looking up token: %w", store.ErrNotFound)
	}
	t.LastUsedAt = engine.At(userNow())
	u := s.withLastUse(s.find(t.UserID))
	if kind == "signin" || kind == "invite" {
		delete(s.tokens, secretSHA256)
	}
	return *t, u, nil
}

// ListTokens implements store.Users; newest first, expired ones left out. userID or kind "" means any.
func (s *Users) ListTokens(ctx context.Context, userID, kind string) ([]store.Token, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []store.Token
	newest := func(a, b *store.Token) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt.Time), cmp.Compare(b.TokenID, a.TokenID))
	}
	for _, t := range slices.SortedFunc(maps.Values(s.tokens), newest) {
		if (userID == "" || t.UserID == userID) && (kind == "" || t.Kind == kind) && !expired(t) {
			out = append(out, *t)
		}
	}
	return out, nil
}

// DeleteToken implements store.Users.
func (s *Users) DeleteToken(ctx context.Context, userID, tokenID string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for hash, t := range s.tokens {
		if t.TokenID == tokenID && t.UserID == userID {
			delete(s.tokens, hash)
			return nil
		}
	}
	return userNotFound("token", tokenID)
}
