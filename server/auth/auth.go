// Package auth decides who a caller is: a browser with a session cookie or a
// program with an API token. Secrets are 32 random bytes; only their SHA-256 is
// ever stored. What the store said is remembered for at most CacheTTL, and
// forgotten at once when this server revokes a token.
package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	// KindInvite lets a user choose a password, once.
	KindInvite = "invite"
	// KindOperator is who can read the server's own files.
	KindOperator = "operator"
)

// The prefixes of secrets, by which a leaked one is recognised.
const (
	PrefixAPI     = "lst_"
	PrefixSession = "lss_"
	PrefixSignIn  = "lsi_"
	PrefixInvite  = "lsv_"
	// PrefixOperator is that of the secret which the server leaves for its operator, in a
	// file that nobody else can read; it ends with the process.
	PrefixOperator = "lso_"
)

// How long things live.
const (
	SessionTTL = 14 * 24 * time.Hour
	SignInTTL  = time.Hour
	// TokenTTL is how long an API token lives when nobody says otherwise.
	TokenTTL = 90 * 24 * time.Hour
	// CacheTTL bounds how long a token revoked by another server still works here, though no change of rights was heard
	// of: see Supervisor.
	CacheTTL = 4 * time.Second
	// GracePeriod bounds how long a caller that was known is believed while the store
	// does not answer: who watches a run must be able to stop it.
	GracePeriod = 15 * time.Minute
	// storeTimeout bounds how long the store is asked about a caller that was known.
	storeTimeout = time.Second
	// storeRetryDelay is how long the store is not asked again when it has not answered.
	storeRetryDelay = 2 * time.Second
)

const (
	secretBytes = 32
	maxCached   = 10_000
)

// Identity is who makes a request.
type Identity struct {
	User  store.User
	Token store.Token
	hash  [32]byte
}

// MayGrant reports whether the caller may make tokens, and revoke others' than its own:
// a token that leaks must not outlive its revocation in one that it made.
func (i Identity) MayGrant() bool { return i.Token.Kind != KindAPI || i.Token.Scope == ScopeAdmin }

// ErrAnonymous is what a caller without a secret is told, and a browser whose session is unknown or has expired.
var ErrAnonymous = &engine.Error{Code: engine.CodeUnauthorized,
	Message: "You are not signed in, or your sign-in has expired.",
	Hint: "In a browser, sign in with your name and password, or open the sign-in link that the server printed. " +
		"A program sends Authorization: Bearer lst_…"}

// ErrNoToken is what an Authorization header is told that lets nobody in, whatever is wrong with it: who guesses does
// not learn that a token was one.
var ErrNoToken = &engine.Error{Code: engine.CodeUnauthorized,
	Message: "The API token is not valid.",
	Hint: "It may be incomplete, have expired or been revoked, or be of a user who is locked out. Make another under " +
		"Settings, or with loadstone token NAME beside the server, and send it as Authorization: Bearer lst_…"}

// NewSecret makes a secret with the prefix and returns it with its hash.
func NewSecret(prefix string) (secret string, hash [32]byte) {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime ends the process instead
	secret = prefix + base64.RawURLEncoding.EncodeToString(b[:])
	return secret, sha256.Sum256([]byte(secret))
}

// HashSecret is what is stored of a secret with the prefix; false for what cannot be one.
func HashSecret(prefix, secret string) (hash [32]byte, ok bool) {
	if !wellFormed(prefix, secret) {
		return hash, false
	}
	return sha256.Sum256([]byte(secret)), true
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

// Users are those who sign in, with their tokens.
type Users interface {
	Tokens
	// EnsureAdmin returns the first admin, made if there is none.
	EnsureAdmin(ctx context.Context, name string) (store.User, error)
	// UserCredentials returns a user by its name, in any case, with its password's hash, "" without one. Who is locked
	// out is ErrNotFound.
	UserCredentials(ctx context.Context, name string) (u store.User, hash string, err error)
	// SetPassword sets the hash of a password and ends the user's sessions and invitations.
	SetPassword(ctx context.Context, userID, hash string) error
}

// Tokens know users: those of sessions, of sign-in links and invitations, and of programs.
type Tokens interface {
	// CreateToken saves a token. There is one sign-in link at a time, and one invitation of each user.
	CreateToken(ctx context.Context, t store.Token, secretSHA256 [32]byte) (store.Token, error)
	// UseToken returns the token and its user, and notes the use. An expired or
	// unknown one is ErrNotFound. A signin or invite token is consumed by its use.
	UseToken(ctx context.Context, kind string, secretSHA256 [32]byte) (store.Token, store.User, error)
	// FindToken is UseToken without the use: nothing is noted or consumed.
	FindToken(ctx context.Context, kind string, secretSHA256 [32]byte) (store.Token, store.User, error)
	DeleteToken(ctx context.Context, userID, tokenID string) error
	// ValidTokens returns those of the tokens that let somebody in now, with the role of their user.
	ValidTokens(ctx context.Context, tokenIDs []string) (map[string]store.Role, error)
}

// Service authenticates callers and hands out secrets. It is safe for concurrent use.
type Service struct {
	users Users
	log   zerolog.Logger
	now   func() time.Time
	// Second is asked for a code of a user whose password is right; nil asks nobody. It is set before anybody signs in.
	Second func(ctx context.Context, u store.User, code string) error
	// SessionIdle ends sessions that were not used for so long; 0 keeps them until they expire. It is set before anybody
	// signs in.
	SessionIdle time.Duration

	mu    sync.Mutex
	cache map[[32]byte]cached
	// revoked rises with each revocation, so that an answer of the store from before it is not remembered.
	revoked  uint64
	operator [32]byte // hash of the operator's secret, zero without one
	// watches are those who want to know when a token ends.
	watches map[*watch]struct{}
}

type watch struct {
	tokenID, userID, kind string
	role                  store.Role
	ended                 chan struct{}
}

type cached struct {
	identity Identity
	until    time.Time
	// verified is when the store knew the caller last.
	verified time.Time
	// ended is why the session ended a moment ago, for the requests that a page makes at once.
	ended error
}

// valid reports whether the caller is believed without the store.
func (c cached) valid(now time.Time) bool {
	e := c.identity.Token.ExpiresAt
	return now.Sub(c.verified) < GracePeriod && (e.IsZero() || now.Before(e.Time))
}

// New returns a service on the users of a store.
func New(users Users, log zerolog.Logger) *Service {
	return &Service{users: users, log: log, now: time.Now, cache: map[[32]byte]cached{}, watches: map[*watch]struct{}{}}
}

// Bearer authenticates an API token.
func (s *Service) Bearer(ctx context.Context, secret string) (Identity, error) {
	if strings.HasPrefix(secret, PrefixOperator) {
		return s.authenticateOperator(ctx, secret)
	}
	return s.resolve(ctx, KindAPI, PrefixAPI, secret, ErrNoToken)
}

// Operator makes the operator's secret; the one before is good for nothing then.
func (s *Service) Operator() string {
	secret, hash := NewSecret(PrefixOperator)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.operator = hash
	return secret
}

// authenticateOperator authenticates the operator, who acts as the first admin, or in its own name while nobody knows
// who that is.
func (s *Service) authenticateOperator(ctx context.Context, secret string) (Identity, error) {
	s.mu.Lock()
	want := s.operator
	s.mu.Unlock()
	hash := sha256.Sum256([]byte(secret))
	if want == ([32]byte{}) || subtle.ConstantTimeCompare(hash[:], want[:]) != 1 {
		return Identity{}, ErrNoToken
	}
	// In an emergency the store may not answer. Who reads the server's own files may stop it anyway.
	soon, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	admin, err := s.users.EnsureAdmin(soon, "admin")
	switch {
	case err == nil:
	case ctx.Err() == nil && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)):
		s.log.Warn().Err(err).Msg("the control store does not answer: the operator is believed without it")
		admin = store.User{Name: "operator", Role: store.RoleAdmin}
	default:
		return Identity{}, fmt.Errorf("finding the admin: %w", err)
	}
	return Identity{User: admin, Token: store.Token{UserID: admin.UserID, Kind: KindOperator, Name: "operator"},
		hash: hash}, nil
}

// Session authenticates the value of a session cookie.
func (s *Service) Session(ctx context.Context, secret string) (Identity, error) {
	return s.resolve(ctx, KindSession, PrefixSession, secret, ErrAnonymous)
}

// resolve finds whose a secret is; unknown is what is told of one that is nobody's.
func (s *Service) resolve(ctx context.Context, kind, prefix, secret string, unknown error) (Identity, error) {
	if !wellFormed(prefix, secret) {
		return Identity{}, unknown
	}
	hash := sha256.Sum256([]byte(secret))
	now := s.now()
	s.mu.Lock()
	known, ok := s.cache[hash]
	revoked := s.revoked
	s.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.identity, known.ended
	}
	ok = ok && known.ended == nil
	token, user, err := s.queryStore(ctx, kind, hash, ok && known.valid(now))
	if ok && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)) && known.valid(now) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.revoked != revoked {
			return Identity{}, fmt.Errorf("checking a token: %w", err)
		}
		// Not every request of the outage waits for the store.
		known.until = now.Add(storeRetryDelay)
		s.cache[hash] = known
		s.log.Warn().Err(err).Str("user_id", known.identity.User.UserID).
			Msg("the control store does not answer; a recently authenticated caller is accepted")
		return known.identity, nil
	}
	if errors.Is(err, store.ErrNotFound) {
		s.mu.Lock()
		delete(s.cache, hash)
		s.mu.Unlock()
		return Identity{}, unknown
	}
	if errors.Is(err, errIdle) {
		s.mu.Lock()
		s.cache[hash] = cached{until: now.Add(idleReasonTTL), ended: err}
		s.mu.Unlock()
		return Identity{}, err
	}
	if err != nil {
		return Identity{}, fmt.Errorf("checking a token: %w", err)
	}
	until := now.Add(CacheTTL)
	if e := token.ExpiresAt; !e.IsZero() && e.Before(until) {
		until = e.Time
	}
	id := Identity{User: user, Token: token, hash: hash}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revoked == revoked {
		if len(s.cache) >= maxCached {
			clear(s.cache)
		}
		s.cache[hash] = cached{identity: id, until: until, verified: now}
	}
	return id, nil
}

// queryStore asks the store; not for long where there is another answer.
func (s *Service) queryStore(
	ctx context.Context,
	kind string,
	hash [32]byte,
	known bool,
) (store.Token, store.User, error) {
	if known {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, storeTimeout)
		defer cancel()
	}
	if kind == KindSession {
		return s.useSession(ctx, hash)
	}
	return s.users.UseToken(ctx, kind, hash)
}

// idleReasonTTL is how long the requests of a page that comes back are told why its session has ended.
const idleReasonTTL = 20 * time.Second

// errIdle is the cause of the refusal of a session that was not used for too long.
var errIdle = errors.New("the session was idle")

type unattendedKey struct{}

// Unattended returns a context for a request that nobody has asked for, such as a page that refreshes itself while its
// user is away: it does not count as a use of the session.
func Unattended(ctx context.Context) context.Context {
	return context.WithValue(ctx, unattendedKey{}, true)
}

// useSession notes the use of a session, or ends it where the last one was too long ago.
func (s *Service) useSession(ctx context.Context, hash [32]byte) (store.Token, store.User, error) {
	if s.SessionIdle <= 0 {
		return s.users.UseToken(ctx, KindSession, hash)
	}
	t, u, err := s.users.FindToken(ctx, KindSession, hash)
	if err != nil {
		return t, u, err
	}
	if s.idle(t) {
		if err := s.Revoke(ctx, t.UserID, t.TokenID); err != nil && !errors.Is(err, store.ErrNotFound) {
			s.log.Warn().Err(err).Str("user_id", t.UserID).Msg("an idle session is refused, and could not be deleted")
		}
		return t, u, s.idleError()
	}
	if ctx.Value(unattendedKey{}) != nil {
		return t, u, nil
	}
	return s.users.UseToken(ctx, KindSession, hash)
}

// idle reports whether a session was not used for too long.
func (s *Service) idle(t store.Token) bool {
	last := t.CreatedAt.Time
	if t.LastUsedAt.After(last) {
		last = t.LastUsedAt.Time
	}
	return t.Kind == KindSession && s.SessionIdle > 0 && s.now().Sub(last) > s.SessionIdle
}

func (s *Service) idleError() error {
	return &engine.Error{Code: engine.CodeUnauthorized, Cause: errIdle,
		Message: fmt.Sprintf("Your session has ended, because it was not used for %s.", shortDuration(s.SessionIdle)),
		Hint:    "Sign in again.",
		Fields:  []engine.FieldError{{Field: "session", Message: "was idle"}}}
}

// shortDuration is a duration without units that are zero.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// SignIn consumes a one-time token and returns a session's secret with its user.
func (s *Service) SignIn(ctx context.Context, oneTime string) (secret string, id Identity, err error) {
	refused := &engine.Error{Code: engine.CodeUnauthorized,
		Message: "This sign-in link has been used, has expired, or is not complete.",
		Hint:    "Ask the server's operator for a new link: loadstone signin prints one.",
		Fields:  []engine.FieldError{{Field: "token", Message: "is not valid (any more)"}}}
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
	return s.startSession(ctx, user)
}

// CreateAPIToken makes an API token. Its secret is returned this once. A zero expiry means TokenTTL from now.
func (s *Service) CreateAPIToken(ctx context.Context, userID, name, scope string, expires time.Time) (secret string,
	t store.Token, err error) {
	if expires.IsZero() {
		expires = s.now().Add(TokenTTL)
	}
	return s.create(ctx, store.Token{UserID: userID, Kind: KindAPI, Name: name, Scope: scope}, PrefixAPI, expires)
}

// Watch tells when an identity ends: ended is closed when this server revokes its token, or changes what its user may.
// What another server revokes or changes, and what expires, Still finds out.
func (s *Service) Watch(id Identity) (ended <-chan struct{}, stop func()) {
	w := &watch{tokenID: id.Token.TokenID, userID: id.User.UserID, kind: id.Token.Kind, role: id.User.Role,
		ended: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches[w] = struct{}{}
	return w.ended, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, w)
	}
}

// OnEnd calls end, once, when an identity is good no more: its token expires, or is revoked, or its user may other
// things than before. What this server does ends it at once, what another does with the next Recheck. While the store
// does not answer, only the expiry ends it. It is for answers that go on after the request was judged. stop ends the
// watching, and has to be called.
func (s *Service) OnEnd(id Identity, end func()) (stop func()) {
	ended, forget := s.Watch(id)
	stopped := make(chan struct{})
	var expired <-chan time.Time
	if e := id.Token.ExpiresAt; !e.IsZero() {
		expired = time.After(e.Sub(s.now()))
	}
	go func() {
		select {
		case <-stopped:
			return
		case <-ended:
		case <-expired:
		}
		end()
	}()
	return sync.OnceFunc(func() { close(stopped); forget() })
}

// Recheck implements Work: who is remembered and what is open ends where its token lets nobody in any more, or its user
// has another role. Who is as before is remembered on.
func (s *Service) Recheck(ctx context.Context) error {
	s.mu.Lock()
	s.revoked++ // what was being asked is not remembered
	remembered, open := map[[32]byte]cached{}, map[*watch]bool{}
	tokens := map[string]bool{}
	for hash, c := range s.cache {
		if id := c.identity.Token.TokenID; c.ended == nil && id != "" {
			remembered[hash], tokens[id] = c, true
		}
	}
	for w := range s.watches {
		if w.kind != KindOperator {
			open[w], tokens[w.tokenID] = true, true
		}
	}
	s.mu.Unlock()
	if len(tokens) == 0 {
		return nil
	}
	valid, err := s.users.ValidTokens(ctx, slices.Collect(maps.Keys(tokens)))
	s.mu.Lock()
	defer s.mu.Unlock()
	for hash, c := range remembered {
		if role, is := valid[c.identity.Token.TokenID]; !is || role != c.identity.User.Role {
			if now := s.cache[hash]; now.verified.Equal(c.verified) && now.ended == nil {
				now.until = time.Time{} // the store is asked; while it does not answer, see valid
				s.cache[hash] = now
			}
		}
	}
	if err != nil {
		return fmt.Errorf("checking what is open: %w", err)
	}
	for w := range s.watches {
		if role, is := valid[w.tokenID]; open[w] && (!is || role != w.role) {
			delete(s.watches, w)
			close(w.ended)
		}
	}
	return nil
}

// OnRequestEnd is Ends for who makes a request.
func (s *Service) OnRequestEnd(ctx context.Context, end func()) (stop func()) {
	id, ok := IdentityOf(ctx)
	if !ok {
		return func() {}
	}
	return s.OnEnd(id, end)
}

// StillValid reports whether an identity is as good as when it was found: its token is there, and its user has the role
// of then. A store that cannot be asked does not end it.
func (s *Service) StillValid(ctx context.Context, id Identity) bool {
	if e := id.Token.ExpiresAt; !e.IsZero() && !s.now().Before(e.Time) {
		return false
	}
	if id.Token.Kind == KindOperator {
		return true
	}
	ask := s.users.UseToken
	if id.Token.Kind == KindSession {
		ask = s.users.FindToken // what goes on is no use: a page that was left open keeps no session alive
	}
	t, u, err := ask(ctx, id.Token.Kind, id.hash)
	if err != nil {
		return !errors.Is(err, store.ErrNotFound)
	}
	if s.idle(t) {
		return false
	}
	return u.Role == id.User.Role
}

// CreateSignIn makes a one-time sign-in token for the first admin, who is made if there
// is none. Those made before are good for nothing from then on.
func (s *Service) CreateSignIn(ctx context.Context) (secret string, err error) {
	admin, err := s.users.EnsureAdmin(ctx, "admin")
	if err != nil {
		return "", fmt.Errorf("making sure that there is an admin: %w", err)
	}
	return s.CreateSignInFor(ctx, admin.UserID)
}

// CreateSignInFor makes a one-time sign-in token for a user, in place of any that was made before.
func (s *Service) CreateSignInFor(ctx context.Context, userID string) (secret string, err error) {
	secret, _, err = s.create(ctx, store.Token{UserID: userID, Kind: KindSignIn, Name: "sign-in link"}, PrefixSignIn,
		s.now().Add(SignInTTL))
	return secret, err
}

func (s *Service) create(ctx context.Context, t store.Token, prefix string, expires time.Time) (string, store.Token,
	error) {
	secret, hash := NewSecret(prefix)
	t.ExpiresAt = engine.At(expires)
	t, err := s.users.CreateToken(ctx, t, hash)
	if err != nil {
		return "", store.Token{}, fmt.Errorf("creating a token: %w", err)
	}
	return secret, t, nil
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
	for w := range s.watches {
		if err == nil && w.tokenID == tokenID {
			delete(s.watches, w)
			close(w.ended)
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
