package translate

import (
	"strings"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// ParseName reads a name as IDENTIFIER('…') and session settings hold it: parts
// in quotes or not, with dots between.
func ParseName(s string) ([]string, error) {
	tokens, err := lex(s)
	if err != nil {
		return nil, err
	}
	var parts []string
	for i := 0; ; i += 2 {
		if tokens[i].Kind != Word && tokens[i].Kind != Quoted {
			return nil, protocol.SyntaxError("syntax error: invalid identifier '%s'.", s)
		}
		if err := CheckIdentifier(tokens[i].Text); err != nil {
			return nil, err
		}
		parts = append(parts, tokens[i].Text)
		if tokens[i+1].Kind == End {
			return parts, nil
		}
		if tokens[i+1].Text != "." || tokens[i+1].Kind != Symbol {
			return nil, protocol.SyntaxError("syntax error: invalid identifier '%s'.", s)
		}
	}
}

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
