// This part keeps users, their tokens and their views in memory, a part of the store there.

package fake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Users implements store.Users. Its zero value has none. It is safe for concurrent use.
type Users struct {
	RunViewStore
	// OnUserDeleted is told the name of a user that was deleted; it may be nil.
	OnUserDeleted func(name string)

	mu     sync.Mutex
	users  []*row // in the order in which they were made
	tokens map[[32]byte]*store.Token
}

type row struct {
	store.User
	hash, external string
}

var _ store.Users = (*Users)(nil)

// lock locks, unless the context is over. The caller unlocks.
func (s *Users) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("asking the control store: %w", err)
	}
	s.mu.Lock()
	if s.tokens == nil {
		s.tokens = map[[32]byte]*store.Token{}
	}
	return nil
}

// userNow is exact to a microsecond, as a time that comes back from a database.
func userNow() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func userNotFound(what, name string) error {
	return &engine.Error{Code: engine.CodeNotFound, Cause: store.ErrNotFound,
		Message: fmt.Sprintf("There is no %s %q.", what, name)}
}

func ascii(name string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, name)
}

func (s *Users) find(userID string) *row {
	for _, u := range s.users {
		if u.UserID == userID {
			return u
		}
	}
	return nil
}

// AddRunView implements store.RunViews: it is of a user that there is.
func (s *Users) AddRunView(ctx context.Context, v store.RunView) (store.RunView, error) {
	if err := store.CheckRunView(v); err != nil {
		return v, err
	}
	if err := s.lock(ctx); err != nil {
		return v, err
	}
	defer s.mu.Unlock()
	if s.find(v.OwnerID) == nil {
		return v, userNotFound("user", v.OwnerID)
	}
	return s.RunViewStore.AddRunView(ctx, v)
}

func (s *Users) named(name string) *row {
	for _, u := range s.users {
		if ascii(u.Name) == ascii(name) {
			return u
		}
	}
	return nil
}

// withLastUse is the user with what its tokens tell of it.
func (s *Users) withLastUse(u *row) store.User {
	out := u.User
	out.HasPassword = u.hash != ""
	for _, t := range s.tokens {
		if t.UserID == u.UserID && t.LastUsedAt.After(out.LastSeenAt.Time) {
			out.LastSeenAt = t.LastUsedAt
		}
	}
	return out
}

func (s *Users) add(name string, role store.Role) store.User {
	u := &row{User: store.User{UserID: uuid.NewString(), Name: name, Role: role, CreatedAt: engine.At(userNow())}}
	s.users = append(s.users, u)
	return u.User
}

// EnsureAdmin implements store.Users.
func (s *Users) EnsureAdmin(ctx context.Context, name string) (store.User, error) {
	if err := s.lock(ctx); err != nil {
		return store.User{}, err
	}
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.users, isAdmin); i >= 0 {
		return s.withLastUse(s.users[i]), nil
	}
	if err := store.CheckUser(name, store.RoleAdmin); err != nil {
		return store.User{}, err
	}
	return s.add(name, store.RoleAdmin), nil
}

func isAdmin(u *row) bool { return u.Role == store.RoleAdmin && u.DisabledAt.IsZero() }

// ExternalUser implements store.Users.
func (s *Users) ExternalUser(ctx context.Context, externalID, name string, role store.Role) (store.User, bool, error) {
	if err := store.CheckUser(name, role); err != nil {
		return store.User{}, false, err
	}
	if err := s.lock(ctx); err != nil {
		return store.User{}, false, err
	}
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.users, func(u *row) bool { return u.external == externalID })
	if i < 0 {
		if s.named(name) != nil {
			return store.User{}, false, store.NameTaken("user", name)
		}
		s.add(name, role)
		u := s.users[len(s.users)-1]
		u.external, u.External = externalID, true
		return u.User, false, nil
	}
	u, before := s.users[i], s.users[i].Role
	if u.Role = role; before != role && !slices.ContainsFunc(s.users, isAdmin) {
		u.Role = before
		return store.User{}, false, store.LastAdminError()
	}
	return s.withLastUse(u), before != role, nil
}

// CreateUser implements store.Users.
func (s *Users) CreateUser(ctx context.Context, name string, role store.Role) (store.User, error) {
	if err := store.CheckUser(name, role); err != nil {
		return store.User{}, err
	}
	if err := s.lock(ctx); err != nil {
		return store.User{}, err
	}
	defer s.mu.Unlock()
	if s.named(name) != nil {
		return store.User{}, store.NameTaken("user", name)
	}
	return s.add(name, role), nil
}

// ListUsers implements store.Users.
func (s *Users) ListUsers(ctx context.Context) ([]store.User, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []store.User
	for _, u := range s.users {
		out = append(out, s.withLastUse(u))
	}
	slices.SortFunc(out, func(a, b store.User) int {
		return cmp.Or(cmp.Compare(ascii(a.Name), ascii(b.Name)), cmp.Compare(a.UserID, b.UserID))
	})
	return out, nil
}

// ChangeUser implements store.Users.
func (s *Users) ChangeUser(ctx context.Context, userID string, to store.UserChange) (changed, was store.User,
	err error) {
	if err := to.Check(); err != nil {
		return changed, was, err
	}
	if err := s.lock(ctx); err != nil {
		return changed, was, err
	}
	defer s.mu.Unlock()
	u := s.find(userID)
	if u == nil {
		return changed, was, userNotFound("user", userID)
	}
	before := *u
	was = s.withLastUse(&before)
	if err := to.Expected.Check(was); err != nil {
		return changed, was, err
	}
	if to.Role != nil {
		u.Role = *to.Role
	}
	switch {
	case to.Disabled == nil:
	case !*to.Disabled:
		u.DisabledAt = engine.Time{}
	case u.DisabledAt.IsZero():
		u.DisabledAt = engine.At(userNow())
	}
	if !slices.ContainsFunc(s.users, isAdmin) {
		*u = before
		return changed, was, store.LastAdminError()
	}
	return s.withLastUse(u), was, nil
}

// DeleteUser implements store.Users.
func (s *Users) DeleteUser(ctx context.Context, userID string, was store.ExpectedUser) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	u := s.find(userID)
	if u == nil {
		return userNotFound("user", userID)
	}
	if err := was.Check(u.User); err != nil {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(s.users), func(o *row) bool { return o == u })
	if !slices.ContainsFunc(rest, isAdmin) {
		return store.LastAdminError()
	}
	s.users = rest
	s.deleteTokens(userID, "")
	s.UserDeleted(userID)
	if s.OnUserDeleted != nil {
		s.OnUserDeleted(u.Name)
	}
	return nil
}

// deleteTokens ends a user's tokens of a kind, or all.
func (s *Users) deleteTokens(userID, kind string) {
	for hash, t := range s.tokens {
		if t.UserID == userID && (kind == "" || t.Kind == kind) {
			delete(s.tokens, hash)
		}
	}
}

// UserCredentials implements store.Users.
func (s *Users) UserCredentials(ctx context.Context, name string) (store.User, string, error) {
	if err := s.lock(ctx); err != nil {
		return store.User{}, "", err
	}
	defer s.mu.Unlock()
	u := s.named(name)
	if u == nil || !u.DisabledAt.IsZero() {
		return store.User{}, "", userNotFound("user", name)
	}
	return s.withLastUse(u), u.hash, nil
}

// SetPassword implements store.Users.
func (s *Users) SetPassword(ctx context.Context, userID, hash string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	u := s.find(userID)
	if u == nil {
		return userNotFound("user", userID)
	}
	u.hash = hash
	s.deleteTokens(userID, "session")
	s.deleteTokens(userID, "invite")
	return nil
}
