package translate

import (
	"strings"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// CheckIdentifier refuses what Snowflake refuses.
func CheckIdentifier(identifier string) error {
	if utf8.RuneCountInString(identifier) > maxIdentifier {
		return protocol.CompilationError("001003", "42000",
			"Identifier '%s...' is too long: %d characters, and %d are allowed.", strings.ToValidUTF8(identifier[:32], ""),
			utf8.RuneCountInString(identifier), maxIdentifier)
	}
	return nil
}

// maxIdentifier is Snowflake's limit for identifiers, in characters.
const maxIdentifier = 255
