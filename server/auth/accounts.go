package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/store"
)

// InviteTTL is how long an invitation waits for its user.
const InviteTTL = 72 * time.Hour

// SignInWithPassword lets a user in by name and password, and by a code where the user has a second factor.
func (s *Service) SignInWithPassword(
	ctx context.Context,
	name string, password secret.Secret, code string,
) (session string, id Identity, err error) {
	u, hash, err := s.users.UserCredentials(ctx, name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", Identity{}, fmt.Errorf("looking up a password: %w", err)
	}
	refused := &engine.Error{Code: engine.CodeUnauthorized,
		Message: "There is no user with this name and password.",
		Hint:    "Names do not tell A from a; passwords do. An admin can give you a link to choose a new password."}
	if !matchesPassword(hash, password) {
		return "", Identity{}, refused
	}
	// Nobody is told that there is a second factor before the password was right.
	if err := s.checkSecondFactor(ctx, u, code); err != nil {
		return "", Identity{}, err
	}
	if session, id, err = s.startSession(ctx, u); err != nil {
		return "", Identity{}, err
	}
	// Another password, or a lock, that came while this one was compared has not ended a session that was not there yet.
	if _, now, err := s.users.UserCredentials(ctx, name); err != nil || now != hash {
		if end := s.Revoke(ctx, u.UserID, id.Token.TokenID); end != nil && !errors.Is(end, store.ErrNotFound) {
			s.log.Error().Err(end).Str("user_id", u.UserID).Msg("could not end the session of a password that was changed")
		}
		return "", Identity{}, refused
	}
	return session, id, nil
}

// checkSecondFactor is nil when a code is right, or none is needed.
func (s *Service) checkSecondFactor(ctx context.Context, u store.User, code string) error {
	if s.Second == nil {
		return nil
	}
	return s.Second(ctx, u, code)
}

// CheckPassword tells whether a user has this password.
func (s *Service) CheckPassword(ctx context.Context, name string, password secret.Secret) (bool, error) {
	_, hash, err := s.users.UserCredentials(ctx, name)
	if err != nil {
		return false, fmt.Errorf("looking up a password: %w", err)
	}
	return matchesPassword(hash, password), nil
}

// StartSession makes a session of a user whom somebody else has proved.
func (s *Service) StartSession(ctx context.Context, u store.User) (secret string, id Identity, err error) {
	return s.startSession(ctx, u)
}

// startSession makes a session.
func (s *Service) startSession(ctx context.Context, u store.User) (secret string, id Identity, err error) {
	secret, token, err := s.create(ctx, store.Token{UserID: u.UserID, Kind: KindSession, Name: "browser"}, PrefixSession,
		s.now().Add(SessionTTL))
	return secret, Identity{User: u, Token: token}, err
}

// Invite makes a token by which a user chooses a password, once; the one before it is good for nothing then.
func (s *Service) Invite(ctx context.Context, userID string) (secret string, t store.Token, err error) {
	return s.create(ctx, store.Token{UserID: userID, Kind: KindInvite, Name: "invitation"}, PrefixInvite,
		s.now().Add(InviteTTL))
}

// Accept consumes an invitation: the user has this password from then on, and is signed in. A password that will not
// do leaves the invitation as it is.
func (s *Service) Accept(
	ctx context.Context,
	invitation string,
	password secret.Secret,
) (session string, id Identity, err error) {
	if err := checkPassword("password", "", password); err != nil {
		return "", Identity{}, err
	}
	refused := &engine.Error{Code: engine.CodeUnauthorized,
		Message: "This invitation has been used, has expired, or is not complete.",
		Hint:    "Ask an admin for a new one.",
		Fields:  []engine.FieldError{{Field: "invitation", Message: "is not valid (any more)"}}}
	if !wellFormed(PrefixInvite, invitation) {
		return "", Identity{}, refused
	}
	secretHash := sha256.Sum256([]byte(invitation))
	t, u, err := s.users.UseToken(ctx, KindInvite, secretHash)
	if errors.Is(err, store.ErrNotFound) {
		return "", Identity{}, refused
	}
	if err != nil {
		return "", Identity{}, fmt.Errorf("using an invitation: %w", err)
	}
	if err = checkPassword("password", u.Name, password); err == nil {
		if err = s.users.SetPassword(ctx, u.UserID, hashPassword(password)); err != nil {
			err = fmt.Errorf("setting a password: %w", err)
		}
	}
	if err != nil {
		// The invitation is good for another try.
		if _, second := s.users.CreateToken(ctx, t, secretHash); second != nil {
			s.log.Warn().Err(second).Str("user_id", u.UserID).Msg("an invitation was used up without a password")
		}
		return "", Identity{}, err
	}
	s.InvalidateUser(u.UserID)
	u.HasPassword = true
	// The link stands for the password, and not for the second factor.
	if err := s.checkSecondFactor(ctx, u, ""); err != nil {
		if engine.HasCode(err, engine.CodeUnauthorized) {
			err = &engine.Error{Code: engine.CodeUnauthorized, Message: "The password is set. You have a second factor, too.",
				Hint: "Sign in with your name, the new password and a code.", Cause: err}
		}
		return "", Identity{}, err
	}
	return s.startSession(ctx, u)
}

// ChangePassword sets a user's own password; current is what it was, "" where there was none. Every session of the
// user ends; the session is a new one.
func (s *Service) ChangePassword(ctx context.Context, u store.User, current, next secret.Secret) (session string,
	err error) {
	if err := checkPassword("new_password", u.Name, next); err != nil {
		return "", err
	}
	_, hash, err := s.users.UserCredentials(ctx, u.Name)
	if err != nil {
		return "", fmt.Errorf("looking up a password: %w", err)
	}
	if hash != "" && !matchesPassword(hash, current) {
		return "", engine.InvalidField("password", "is not your password", "type the one that you signed in with; "+
			"an admin can give you a link to choose a new one")
	}
	if err := s.users.SetPassword(ctx, u.UserID, hashPassword(next)); err != nil {
		return "", fmt.Errorf("setting a password: %w", err)
	}
	s.InvalidateUser(u.UserID)
	session, _, err = s.startSession(ctx, u)
	return session, err
}

// InvalidateUser has the store asked about a user's tokens anew, and ends what is open under them: after a change of
// what the user may.
func (s *Service) InvalidateUser(userID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked++
	for hash, c := range s.cache {
		if c.identity.User.UserID == userID {
			delete(s.cache, hash)
		}
	}
	for w := range s.watches {
		if w.userID == userID {
			delete(s.watches, w)
			close(w.ended)
		}
	}
}
