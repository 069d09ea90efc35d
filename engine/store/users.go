package store

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine"
)

// Role is what a user may do.
type Role string

// The roles, each of which may what those after it may.
const (
	// RoleAdmin decides about users, nodes and plugins too.
	RoleAdmin Role = "admin"
	// RoleOperator makes templates, connections and tables, and starts and stops runs.
	RoleOperator Role = "operator"
	// RoleViewer looks at everything and changes nothing but what is its own: password, tokens, sessions.
	RoleViewer Role = "viewer"
)

// User is who signs in.
type User struct {
	UserID    string      `json:"user_id"`
	Name      string      `json:"name"`
	Role      Role        `json:"role" enum:"admin,operator,viewer"`
	CreatedAt engine.Time `json:"created_at"`
	// DisabledAt is when the user was locked out; zero while it may sign in.
	DisabledAt engine.Time `json:"disabled_at" doc:"When the user was locked out; null while it may sign in."`
	// HasPassword is false for who was invited and has not come yet, and for who signs in by link alone.
	HasPassword bool `json:"has_password"`
	// External tells that a provider signs the user in, and says again each time what it may.
	External bool `json:"external"`
	// SecondFactor is known where users are listed for admins.
	SecondFactor bool `json:"second_factor,omitempty" doc:"In the list of users: whether a code is asked for, too."`
	// LastSeenAt is exact to a minute.
	LastSeenAt engine.Time `json:"last_seen_at"`
}

// Token is an API token or a session; only the SHA-256 of its secret is stored.
type Token struct {
	TokenID    string      `json:"token_id"`
	UserID     string      `json:"user_id"`
	Kind       string      `json:"kind"` // api | session | signin | invite
	Name       string      `json:"name"`
	Scope      string      `json:"scope" enum:"read,run,metrics,write,admin"` // of an API token; write is the default
	ExpiresAt  engine.Time `json:"expires_at"`
	LastUsedAt engine.Time `json:"last_used_at"`
	CreatedAt  engine.Time `json:"created_at"`
}

// UserChange is what is changed about a user; what is nil stays.
type UserChange struct {
	Role     *Role
	Disabled *bool
	Expected ExpectedUser
}

// ExpectedUser is what somebody saw of a user before changing or deleting it: role, and whether it was locked out. What
// is nil was not looked at.
type ExpectedUser struct {
	Role     *Role
	Disabled *bool
}

// Check refuses a role that is none.
func (c UserChange) Check() error {
	if c.Role == nil {
		return nil
	}
	return CheckUser("somebody", *c.Role)
}

// Check refuses to touch a user that is another by now.
func (w ExpectedUser) Check(u User) error {
	locked := !u.DisabledAt.IsZero()
	switch {
	case w.Role != nil && *w.Role != u.Role:
		return concurrentChangeError(
			fmt.Sprintf("The role of %s was changed by somebody else, after you had opened it: it is %s now.",
				u.Name, u.Role),
			"is no longer the role of the user",
		)
	case w.Disabled == nil || *w.Disabled == locked:
		return nil
	case locked:
		return concurrentChangeError(
			u.Name+" was locked out by somebody else, after you had opened it.",
			"may no longer sign in",
		)
	}
	return concurrentChangeError(
		u.Name+" was let in again by somebody else, after you had opened it.",
		"is no longer locked out",
	)
}

// maxUserName bounds a user's name, in characters.
const maxUserName = 64

// CheckUser refuses what no user can be. Names hold what can be typed and told apart: they stand in links, in the
// audit log and on the page.
func CheckUser(name string, role Role) error {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._@+-", r)
	}
	switch n := utf8.RuneCountInString(name); {
	case n == 0 || n > maxUserName || strings.ContainsFunc(name, odd):
		return engine.InvalidField("name", "cannot be used",
			fmt.Sprintf("choose 1 to %d letters, digits and . _ @ + -, without spaces", maxUserName))
	case role != RoleAdmin && role != RoleOperator && role != RoleViewer:
		return engine.InvalidField("role", "is none", "choose admin, operator or viewer")
	}
	return nil
}

// LastAdminError is the ErrConflict about the last admin.
func LastAdminError() error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict,
		Message: "This is the last admin who can sign in.", Hint: "Make another user an admin first."}
}
