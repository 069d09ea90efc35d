package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// maxPostgresName is the limit of Postgres for identifiers, in bytes.
const maxPostgresName = 63

// objectName is the qualified name of a Snowflake object, as stored.
type objectName struct{ database, schema, object string }

func (n objectName) String() string {
	parts := make([]string, 0, 3)
	for _, part := range []string{n.database, n.schema, n.object} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ".")
}

// postgres returns the table's name in Postgres, quoted.
func (n objectName) postgres() string {
	return quote(schemaName(n.database, n.schema)) + "." + quote(shortName(n.object))
}

// schemaName returns the Postgres schema that stands for a Snowflake schema.
func schemaName(database, schema string) string {
	return shortName(escapeDots.Replace(database) + "." + escapeDots.Replace(schema))
}

// escapeDots keeps "A.B"."C" and "A"."B.C" apart.
var escapeDots = strings.NewReplacer(`\`, `\\`, ".", `\.`)

// shortName returns the name that an identifier has in Postgres: itself when it
// fits, else its beginning and a hash.
func shortName(identifier string) string {
	if len(identifier) <= maxPostgresName {
		return identifier
	}
	sum := sha256.Sum256([]byte(identifier))
	head := identifier[:maxPostgresName-17]
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

// displayName returns an identifier as Snowflake prints it in messages: in quotes
// only where an unquoted one could not say it.
func displayName(identifier string) string {
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
		return protocol.CompilationError("001003", "42000",
			"Identifier '%s...' is too long: %d characters, and %d are allowed.", strings.ToValidUTF8(identifier[:32], ""),
			utf8.RuneCountInString(identifier), maxIdentifier)
	}
	return nil
}

// maxIdentifier is Snowflake's limit for identifiers, in characters.
const maxIdentifier = 255
