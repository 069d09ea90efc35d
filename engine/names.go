package engine

import "regexp"

// idShape is what ids look like: a UUID in any spelling, or a SHA-256 in hex.
var idShape = regexp.MustCompile(
	`(?i)^\s*(urn:uuid:)?\{?([0-9a-f]{32}|[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})\}?\s*$`,
)

// LooksLikeID reports whether a text has the shape of an id. Such a text is never a name.
func LooksLikeID(text string) bool { return idShape.MatchString(text) }

// CheckName is an error when a new name looks like an id: it could be taken for what has that id.
func CheckName(field, name string) error {
	if !LooksLikeID(name) {
		return nil
	}
	return InvalidField(field, "looks like an id", "choose a name in words, such as shop-staging")
}
