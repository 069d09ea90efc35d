// Package auth decides who a caller is: a browser with a session cookie or a
// program with an API token. Secrets are 32 random bytes; only their SHA-256 is
// ever stored. What the store said is remembered for at most CacheFor, and
// forgotten at once when this server revokes a token.
package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// CookieName is the name of the session cookie.
const CookieName = "loadstone_session"

// The kinds of tokens.
const (
	KindAPI     = "api"
	KindSession = "session"
	KindSignIn  = "signin"
)

// The prefixes of secrets, by which a leaked one is recognised.
const (
	PrefixAPI     = "lst_"
	PrefixSession = "lss_"
	PrefixSignIn  = "lsi_"
)

// How long things live.
const (
	SessionFor = 14 * 24 * time.Hour
	SignInFor  = 24 * time.Hour
	// CacheFor bounds how long a token revoked by another server still works here.
	CacheFor = 20 * time.Second
)

const (
	secretBytes = 32
	maxCached   = 10_000
)

// Identity is who makes a request.
type Identity struct {
	User  store.User
	Token store.Token
}

// ErrAnonymous is what an unknown, expired or absent secret gives.
var ErrAnonymous = &engine.Error{Code: engine.CodeUnauthorized, Message: "You are not signed in, or your sign-in has expired.",
	Hint: "In a browser, open the sign-in link that the server printed. A program sends Authorization: Bearer lst_…"}

// NewSecret makes a secret with the prefix and returns it with its hash.
func NewSecret(prefix string) (secret string, hash [32]byte) {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime ends the process instead
	secret = prefix + base64.RawURLEncoding.EncodeToString(b[:])
	return secret, sha256.Sum256([]byte(secret))
}

// wellFormed tells whether the secret can be one of ours, so that garbage never reaches the store.
func wellFormed(prefix, secret string) bool {
	rest, ok := strings.CutPrefix(secret, prefix)
	if !ok || len(rest) != base64.RawURLEncoding.EncodedLen(secretBytes) {
		return false
	}
	_, err := base64.RawURLEncoding.DecodeString(rest)
	return err == nil
}

// Service authenticates callers and hands out secrets. It is safe for concurrent use.
type Service struct {
	users store.Users
	log   zerolog.Logger
	now   func() time.Time

	mu    sync.Mutex
	cache map[[32]byte]cached
	// revoked rises with each revocation, so that an answer of the store from before it is not remembered.
	revoked uint64
}

type cached struct {
	identity Identity
	until    time.Time
}

// New returns a service on the users of a store.
func New(users store.Users, log zerolog.Logger) *Service {
	return &Service{users: users, log: log, now: time.Now, cache: map[[32]byte]cached{}}
}

// Bearer authenticates an API token.
func (s *Service) Bearer(ctx context.Context, secret string) (Identity, error) {
	return s.use(ctx, KindAPI, PrefixAPI, secret)
}

// Session authenticates the value of a session cookie.
func (s *Service) Session(ctx context.Context, secret string) (Identity, error) {
	return s.use(ctx, KindSession, PrefixSession, secret)
}

func (s *Service) use(ctx context.Context, kind, prefix, secret string) (Identity, error) {
	if !wellFormed(prefix, secret) {
		return Identity{}, ErrAnonymous
	}
	hash := sha256.Sum256([]byte(secret))
	now := s.now()
	s.mu.Lock()
	known, ok := s.cache[hash]
	revoked := s.revoked
	s.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.identity, nil
	}
	token, user, err := s.users.UseToken(ctx, kind, hash)
	if errors.Is(err, store.ErrNotFound) {
		s.mu.Lock()
		delete(s.cache, hash)
		s.mu.Unlock()
		return Identity{}, ErrAnonymous
	}
	if err != nil {
		return Identity{}, fmt.Errorf("checking a token: %w", err)
	}
	until := now.Add(CacheFor)
	if e := token.ExpiresAt; !e.IsZero() && e.Before(until) {
		until = e.Time
	}
	id := Identity{User: user, Token: token}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revoked == revoked {
		if len(s.cache) >= maxCached {
			clear(s.cache)
		}
		s.cache[hash] = cached{identity: id, until: until}
	}
	return id, nil
}

// SignIn consumes a one-time token and returns a session's secret with its user.
func (s *Service) SignIn(ctx context.Context, oneTime string) (secret string, id Identity, err error) {
	refused := &engine.Error{Code: engine.CodeUnauthorized, Message: "This sign-in link has been used, has expired, or is not complete.",
		Hint:   "Restart the server, or ask its operator, for a new link.",
		Fields: []engine.FieldError{{Field: "token", Message: "is not valid (any more)"}}}
	if !wellFormed(PrefixSignIn, oneTime) {
		return "", Identity{}, refused
	}
	_, user, err := s.users.UseToken(ctx, KindSignIn, sha256.Sum256([]byte(oneTime)))
	if errors.Is(err, store.ErrNotFound) {
		return "", Identity{}, refused
	}
	if err != nil {
		return "", Identity{}, fmt.Errorf("using a sign-in token: %w", err)
	}
	secret, token, err := s.create(ctx, user.UserID, KindSession, PrefixSession, "browser", s.now().Add(SessionFor))
	if err != nil {
		return "", Identity{}, err
	}
	return secret, Identity{User: user, Token: token}, nil
}

// CreateAPIToken makes an API token. Its secret is returned this once. A zero expiry means none.
func (s *Service) CreateAPIToken(ctx context.Context, userID, name string, expires time.Time) (secret string, t store.Token, err error) {
	return s.create(ctx, userID, KindAPI, PrefixAPI, name, expires)
}

// CreateSignIn makes a one-time sign-in token for the first admin, who is made if there is none.
func (s *Service) CreateSignIn(ctx context.Context) (secret string, err error) {
	admin, err := s.users.EnsureAdmin(ctx, "admin")
	if err != nil {
		return "", fmt.Errorf("making sure that there is an admin: %w", err)
	}
	secret, _, err = s.create(ctx, admin.UserID, KindSignIn, PrefixSignIn, "sign-in link", s.now().Add(SignInFor))
	return secret, err
}

func (s *Service) create(ctx context.Context, userID, kind, prefix, name string, expires time.Time) (string, store.Token, error) {
	secret, hash := NewSecret(prefix)
	t := store.Token{UserID: userID, Kind: kind, Name: name}
	if !expires.IsZero() {
		t.ExpiresAt = engine.At(expires)
	}
	t, err := s.users.CreateToken(ctx, t, hash)
	if err != nil {
		return "", store.Token{}, fmt.Errorf("creating a token: %w", err)
	}
	return secret, t, nil
}

// APITokens lists a user's API tokens.
func (s *Service) APITokens(ctx context.Context, userID string) ([]store.Token, error) {
	return s.users.ListTokens(ctx, userID, KindAPI)
}

// Revoke deletes a token of the user; it stops working here at once.
func (s *Service) Revoke(ctx context.Context, userID, tokenID string) error {
	err := s.users.DeleteToken(ctx, userID, tokenID)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked++
	for hash, c := range s.cache {
		if c.identity.Token.TokenID == tokenID && c.identity.User.UserID == userID {
			delete(s.cache, hash)
		}
	}
	return err
}

type identityKey struct{}

// WithIdentity returns a context that carries who makes the request.
func WithIdentity(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// IdentityOf returns who makes the request. ok is false for an anonymous one.
func IdentityOf(ctx context.Context) (id Identity, ok bool) {
	id, ok = ctx.Value(identityKey{}).(Identity)
	return id, ok
}
