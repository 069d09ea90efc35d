// Package sql embeds the schema of the control store: rerunnable DDL, one file
// for each noun, applied in the order of their names.
package sql

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Version is the version of the schema. It rises with each change that an
// older binary could not live with, or that needs to be applied.
const Version = 19

// The older schemas that are upgraded: versions 15 to 18, and the last one of version 14. The files have no statements
// that would change the tables of still older ones, because none of them was ever released.
const (
	upgradableVersion = 15
	lastVersion14     = "bf778fb83ea9ffea"
)

// tooOld is what is said of the others. Its verbs are the version and the hash of the database.
const tooOld = "The database's schema (version %[1]s, %[2]s) is too old to be upgraded: export it with the Loadstone " +
	"that made it (`loadstone backup --executions --with-key --out FILE`), and import FILE into an empty database or " +
	"data directory with this one (`loadstone restore FILE`)."

// TooOld returns what to say of a database with this version and hash when applying the files does not upgrade it, and
// "" when it does. A database that is newer than Version is not too old.
func TooOld(version int, hash string) string {
	if version >= upgradableVersion || version == 14 && hash == lastVersion14 {
		return ""
	}
	return fmt.Sprintf(tooOld, strconv.Itoa(version), hash)
}

// refuseTooOld is TooOld in SQL, for the printed script.
var refuseTooOld = fmt.Sprintf(`DO $$
DECLARE
    have  record;
BEGIN
    IF to_regclass('schema_version') IS NOT NULL THEN
        SELECT version, hash INTO have FROM schema_version;
        IF have.version < %d AND (have.version <> 14 OR have.hash <> '%s') THEN
            RAISE EXCEPTION '%s', have.version, have.hash;
        END IF;
    END IF;
END $$;
`, upgradableVersion, lastVersion14, strings.ReplaceAll(fmt.Sprintf(tooOld, "%", "%"), "'", "''"))

//go:embed schema/postgres/*.sql
var files embed.FS

// File is one file of the schema.
type File struct {
	Name string // "090_runs.sql"
	Text string
}

// Schema returns the files in the order in which they are applied.
func Schema() []File { return filesOf(files, "schema/postgres/") }

func filesOf(embedded embed.FS, folder string) []File {
	names, err := fs.Glob(embedded, folder+"*.sql")
	if err != nil {
		panic("sql: the pattern of the schema files is wrong: " + err.Error())
	}
	schema := make([]File, 0, len(names))
	for _, name := range names {
		text, err := embedded.ReadFile(name)
		if err != nil {
			panic("sql: an embedded file cannot be read: " + err.Error())
		}
		schema = append(schema, File{Name: strings.TrimPrefix(name, folder), Text: string(text)})
	}
	return schema
}

// Print returns the whole schema as one script, for those who apply it with
// their own tools.
func Print() string {
	var b strings.Builder
	b.WriteString("BEGIN;\n\n" + refuseTooOld)
	for _, f := range Schema() {
		fmt.Fprintf(&b, "\n-- %s\n\n%s", f.Name, f.Text)
	}
	fmt.Fprintf(&b, "\n%s;\nCOMMIT;\n", Record())
	return b.String()
}

// Record returns the statement that notes which schema was applied.
func Record() string {
	return fmt.Sprintf(`INSERT INTO schema_version (version, hash) VALUES (%d, '%s')
    ON CONFLICT (singleton) DO UPDATE SET version = excluded.version, hash = excluded.hash, applied_at = now()`,
		Version, Hash())
}

// Hash identifies the exact text of the schema.
func Hash() string {
	h := sha256.New()
	for _, f := range Schema() {
		fmt.Fprintf(h, "%s\n%s\n", f.Name, f.Text)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

//go:embed schema/results/*.sql
var resultFiles embed.FS

// Results returns the files of the results database's schema, in the order in which they are applied.
func Results() []File { return filesOf(resultFiles, "schema/results/") }

// SnowflakeVersion is the version of the tables and views of an account to which runs are taken. It rises with each
// change of schema/snowflake, whose comments name it.
const SnowflakeVersion = 3

//go:embed schema/snowflake/*.sql
var snowflakeFiles embed.FS

// Snowflake returns the files of a Snowflake account's schema, in the order in which they are applied. Each has one
// statement.
func Snowflake() []File { return filesOf(snowflakeFiles, "schema/snowflake/") }
