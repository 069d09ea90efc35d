package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/snowsim/plan"
)

// maxIdentifier is Snowflake's limit, in characters; maxPostgres is the limit
// of Postgres, in bytes.
const (
	maxIdentifier = 255
	maxPostgres   = 63
)

// name is the qualified name of a Snowflake object, as stored.
type name struct{ database, schema, object string }

func (n name) String() string {
	parts := make([]string, 0, 3)
	for _, part := range []string{n.database, n.schema, n.object} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ".")
}

// postgres returns the table's name in Postgres, quoted.
func (n name) postgres() string {
	return quote(schemaName(n.database, n.schema)) + "." + quote(short(n.object))
}

// schemaName returns the Postgres schema that stands for a Snowflake schema.
func schemaName(database, schema string) string {
	return short(escapeDots.Replace(database) + "." + escapeDots.Replace(schema))
}

// escapeDots keeps "A.B"."C" and "A"."B.C" apart.
var escapeDots = strings.NewReplacer(`\`, `\\`, ".", `\.`)

// short returns the name that an identifier has in Postgres: itself when it
// fits, else its beginning and a hash.
func short(identifier string) string {
	if len(identifier) <= maxPostgres {
		return identifier
	}
	sum := sha256.Sum256([]byte(identifier))
	head := identifier[:maxPostgres-17]
	for !utf8.ValidString(head) {
		head = head[:len(head)-1]
	}
	return head + "~" + hex.EncodeToString(sum[:8])
}

// quote returns an identifier in quotes.
func quote(identifier string) string {
	return `"` + strings.ReplaceAll(identifier, `"`, `""`) + `"`
}

// literal returns a string constant of Postgres (standard_conforming_strings).
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// display returns an identifier as Snowflake prints it in messages: in quotes
// only where an unquoted one could not say it.
func display(identifier string) string {
	for i, r := range identifier {
		if r == '_' || r >= 'A' && r <= 'Z' || i > 0 && (r >= '0' && r <= '9' || r == '$') {
			continue
		}
		return quote(identifier)
	}
	return identifier
}

// checkIdentifier refuses what Snowflake refuses.
func checkIdentifier(identifier string) error {
	if utf8.RuneCountInString(identifier) > maxIdentifier {
		return plan.CompilationError("001003", "42000",
			"Identifier '%s...' is too long: %d characters, and %d are allowed.", strings.ToValidUTF8(identifier[:32], ""),
			utf8.RuneCountInString(identifier), maxIdentifier)
	}
	return nil
}

// parseName reads a name as IDENTIFIER('…') and session settings hold it: parts
// in quotes or not, with dots between.
func parseName(s string) ([]string, error) {
	tokens, err := lex(s)
	if err != nil {
		return nil, err
	}
	var parts []string
	for i := 0; ; i += 2 {
		if tokens[i].kind != word && tokens[i].kind != quoted {
			return nil, plan.SyntaxError("syntax error: invalid identifier '%s'.", s)
		}
		if err := checkIdentifier(tokens[i].text); err != nil {
			return nil, err
		}
		parts = append(parts, tokens[i].text)
		if tokens[i+1].kind == endOfText {
			return parts, nil
		}
		if tokens[i+1].text != "." || tokens[i+1].kind != symbol {
			return nil, plan.SyntaxError("syntax error: invalid identifier '%s'.", s)
		}
	}
}
