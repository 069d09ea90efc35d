package engine

import "regexp"

var safeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// SafeName reports whether a name is safe as one element of a path or an address: it
// cannot climb, hide, or be taken for something else.
func SafeName(name string) bool { return safeName.MatchString(name) }
