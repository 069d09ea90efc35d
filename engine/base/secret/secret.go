// Package secret has the type of passwords, keys and tokens on their way through the program.
package secret

import (
	"fmt"
	"io"
	"log/slog"
	"unique"
)

// Mask is what is shown in place of a secret.
const Mask = "***"

// Secret is a text that only Reveal gives away: formatted, logged or written as JSON it is Mask. In JSON and text that
// is read it is a plain string. The zero Secret is the empty text, and shows as such. Secrets are equal (==) when their
// texts are. The text stands behind a pointer, so that a secret in an unexported field, whose methods package fmt
// cannot call, does not show either.
type Secret struct{ text unique.Handle[string] }

// New returns text as a secret.
func New(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{unique.Make(text)}
}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.IsZero() {
		return ""
	}
	return s.text.Value()
}

// IsZero reports whether the text is empty.
func (s Secret) IsZero() bool { return s == Secret{} }

// String returns Mask.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return Mask
}

// Format writes Mask, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue is Mask in package slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText writes Mask; encoding/json and zerolog use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the text.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = New(string(text))
	return nil
}
