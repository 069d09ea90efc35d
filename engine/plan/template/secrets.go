package template

import (
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

// MaskSecrets removes the secrets of a connection from the document that holds
// it. When one remains, because the document spells it another way, nothing of
// the document is kept: an empty source means "write it from the config".
func MaskSecrets(source string, ref engine.ConnectionRef, secrets target.Secrets) string {
	shown, hidden := secrets.Redact(ref.Driver, ref.DSN)
	if source == "" || shown == ref.DSN {
		return source
	}
	if shown == target.Mask {
		return "" // what of it is the secret is not known
	}
	clear := strings.ReplaceAll(source, ref.DSN, shown)
	for _, secret := range hidden {
		// Very short ones would match anywhere.
		if len(secret) >= 4 {
			clear = strings.ReplaceAll(clear, secret, target.Mask)
		}
	}
	found := strings.Contains(source, ref.DSN)
	if again, err := Parse([]byte(clear)); err == nil {
		found = slices.ContainsFunc(again.Connections(), func(c engine.Connection) bool {
			return c.Ref.Driver == ref.Driver && c.Ref.DSN == shown
		})
	}
	if !found {
		return ""
	}
	return clear
}

// SameAddress is the connection of a saved scenario that a reference was read from, nil for none.
func SameAddress(s *engine.Scenario, ref engine.ConnectionRef) *engine.ConnectionRef {
	if s == nil {
		return nil
	}
	for _, c := range s.Connections() {
		if c.Ref.Inline() && c.Ref.DSN == ref.DSN && c.Ref.Driver == ref.Driver {
			return c.Ref
		}
	}
	return nil
}

// PasswordNeeded is the error of a hidden password that belongs to another address; field is the connection's path.
func PasswordNeeded(field string) error {
	return engine.InvalidField(field+".dsn", "the password is hidden, and this is not the address it was saved for",
		"write the password again in place of "+target.Mask)
}
