package target

import (
	"slices"

	"github.com/loadstone-db/loadstone/engine"
)

// Mask stands in a connection string where a secret was.
const Mask = "***"

// SecretRedactor is an optional ability of a Driver: it tells the secrets of its
// connection strings from the rest. It reads them as Open does, so that what is
// compared and shown is what would be connected to.
type SecretRedactor interface {
	// Redact returns dsn with Mask in the place of each secret, and the secrets, as
	// they are written and as they are meant. Of a text that cannot be read for
	// certain nothing is shown but Mask, and all of it is secret. A Mask where no
	// secret is expected counts among them: somebody meant one.
	Redact(dsn string) (shown string, secrets []string)
	// RestoreSecrets returns shown, which Redact made and somebody may have changed, with
	// the secrets of stored as its own. It is ErrOtherAddress unless both lead to
	// the same servers, as the same user, under the same protection.
	RestoreSecrets(shown, stored string) (string, error)
	// Validate is nil when Open would take the connection string, as far as that can
	// be told without its secrets. The error is user-facing.
	Validate(dsn string) error
}

// ErrOtherAddress is the error of a connection string whose masked secrets were
// saved for another address.
var ErrOtherAddress = &engine.Error{Code: engine.CodeInvalid,
	Message: "The saved password is not sent to another server, user or kind of protection than it was saved with.",
	Hint:    "Type the password again."}

// Secrets are the redactors by the names of their drivers. The zero value
// knows none, and hides everything.
type Secrets struct{ redactors map[string]SecretRedactor }

// NewSecrets returns the abilities of drivers; one without it has its connection strings hidden altogether.
func NewSecrets(drivers map[string]Driver) Secrets {
	s := Secrets{map[string]SecretRedactor{}}
	for name, d := range drivers {
		if redactor, ok := d.(SecretRedactor); ok {
			s.redactors[name] = redactor
		}
	}
	return s
}

// Redact returns the connection string without its secrets, and the secrets.
func (s Secrets) Redact(driver, dsn string) (shown string, secrets []string) {
	if dsn == "" {
		return "", nil
	}
	if k := s.redactors[driver]; k != nil {
		return k.Redact(dsn)
	}
	return Mask, []string{dsn}
}

// Hide is Redact for those who only show it.
func (s Secrets) Hide(driver, dsn string) string {
	shown, _ := s.Redact(driver, dsn)
	return shown
}

// Masked reports whether a secret of dsn is hidden.
func (s Secrets) Masked(driver, dsn string) bool {
	_, secrets := s.Redact(driver, dsn)
	return dsn == Mask || slices.Contains(secrets, Mask)
}

// RestoreSecrets puts the secrets of stored into shown, see SecretRedactor.
func (s Secrets) RestoreSecrets(driver, shown, stored string) (string, error) {
	if k := s.redactors[driver]; k != nil {
		return k.RestoreSecrets(shown, stored)
	}
	if shown == Mask {
		return stored, nil // all of it was hidden, and nothing of it has changed
	}
	return "", ErrOtherAddress
}

// Validate checks a connection string without connecting.
func (s Secrets) Validate(driver, dsn string) error {
	if k := s.redactors[driver]; k != nil {
		return k.Validate(dsn)
	}
	return nil
}
