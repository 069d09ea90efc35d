package translate

import (
	"encoding/json"
	"time"
)

// schemaMeta is what is kept in a schema's Postgres comment.
type schemaMeta struct {
	Database  string    `json:"database"`
	Schema    string    `json:"schema"`
	CreatedOn time.Time `json:"created_on"`
	Owner     string    `json:"owner"`
	Comment   string    `json:"comment"`
}

// CreateSchema returns the statements that make a schema unless it exists.
func CreateSchema(database, schema string, now time.Time, owner, comment string) []string {
	entry, err := json.Marshal(schemaMeta{database, schema, now.UTC(), owner, comment})
	if err != nil { // strings and a time are always marshalled
		panic(err)
	}
	quotedName := Quote(SchemaName(database, schema))
	return []string{"CREATE SCHEMA IF NOT EXISTS " + quotedName,
		"COMMENT ON SCHEMA " + quotedName + " IS " + Literal(string(entry))}
}
