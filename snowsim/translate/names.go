package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// MaxPostgres is the limit of Postgres for identifiers, in bytes.
const MaxPostgres = 63

// Name is the qualified name of a Snowflake object, as stored.
type Name struct{ Database, Schema, Object string }

func (n Name) String() string {
	parts := make([]string, 0, 3)
	for _, part := range []string{n.Database, n.Schema, n.Object} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ".")
}

// Postgres returns the table's name in Postgres, quoted.
func (n Name) Postgres() string {
	return Quote(SchemaName(n.Database, n.Schema)) + "." + Quote(Short(n.Object))
}

// SchemaName returns the Postgres schema that stands for a Snowflake schema.
func SchemaName(database, schema string) string {
	return Short(escapeDots.Replace(database) + "." + escapeDots.Replace(schema))
}

// escapeDots keeps "A.B"."C" and "A"."B.C" apart.
var escapeDots = strings.NewReplacer(`\`, `\\`, ".", `\.`)

// Short returns the name that an identifier has in Postgres: itself when it
// fits, else its beginning and a hash.
func Short(identifier string) string {
	if len(identifier) <= MaxPostgres {
		return identifier
	}
	sum := sha256.Sum256([]byte(identifier))
	head := identifier[:MaxPostgres-17]
	for !utf8.ValidString(head) {
		head = head[:len(head)-1]
	}
	return head + "~" + hex.EncodeToString(sum[:8])
}

// Quote returns an identifier in quotes.
func Quote(identifier string) string {
	return `"` + strings.ReplaceAll(identifier, `"`, `""`) + `"`
}

// Literal returns a string constant of Postgres (standard_conforming_strings).
func Literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Display returns an identifier as Snowflake prints it in messages: in quotes
// only where an unquoted one could not say it.
func Display(identifier string) string {
	for i, r := range identifier {
		if r == '_' || r >= 'A' && r <= 'Z' || i > 0 && (r >= '0' && r <= '9' || r == '$') {
			continue
		}
		return Quote(identifier)
	}
	return identifier
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
