package translate

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
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

// DropSchemas drops a schema, or all of a database.
func (a *Account) DropSchemas(ctx context.Context, conn *pgx.Conn, n Name) error {
	rows, err := conn.Query(ctx, "SELECT pg_schema FROM snowsim.schemas WHERE database = $1 AND ($2 = '' OR schema = $2)",
		n.Database, n.Schema)
	if err != nil {
		return Error(err)
	}
	schemas, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return Error(err)
	}
	for _, s := range schemas {
		if err := ExecAll(ctx, conn, "DROP SCHEMA "+Quote(s)+" CASCADE"); err != nil {
			return err
		}
	}
	a.Tables.Forget(n)
	return nil
}
