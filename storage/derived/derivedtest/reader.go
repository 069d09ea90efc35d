package derivedtest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// ReaderBreaches are what a reader may do with the relations of a results database and should not, and those of results
// that it cannot read. Relations are listed by lister, which may be the reader itself.
func ReaderBreaches(ctx context.Context, lister, reader *pgx.Conn) (breaches []string, err error) {
	rows, err := lister.Query(ctx, `SELECT n.nspname::text, c.relname::text FROM pg_class c
		JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S')
			AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')`)
	if err != nil {
		return nil, err
	}
	type relation struct{ Schema, Name string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[relation])
	if err != nil {
		return nil, err
	}
	if len(all) < 15 {
		return nil, errors.New("hardly any relation is there")
	}
	if _, err := reader.Exec(ctx, "SET default_transaction_read_only = off"); err != nil {
		return nil, err
	}
	for _, r := range all {
		name := pgx.Identifier{r.Schema, r.Name}.Sanitize()
		_, err := reader.Exec(ctx, "SELECT FROM "+name+" LIMIT 1")
		if result := r.Schema == "rollup" || r.Schema == "tables"; result != (err == nil) {
			breaches = append(breaches, fmt.Sprintf("%s is read: %v", name, err))
		}
		for _, sql := range []string{"DELETE FROM %s", "INSERT INTO %s DEFAULT VALUES", "TRUNCATE %s", "DROP TABLE %s",
			"ALTER TABLE %s RENAME TO other", "CREATE INDEX ON %s ((1))", "GRANT SELECT ON %s TO PUBLIC"} {
			// A GRANT that gives nothing is a warning.
			if _, err := reader.Exec(ctx, fmt.Sprintf(sql, name)); err == nil && !strings.HasPrefix(sql, "GRANT") {
				breaches = append(breaches, fmt.Sprintf(sql, name))
			}
		}
	}
	for _, sql := range []string{"CREATE SCHEMA mine", "CREATE TABLE tables.x (a int)", "SET ROLE keeper",
		"SET ROLE loadstone", "SELECT pg_read_file('PG_VERSION')", "COPY rollup.runs TO PROGRAM 'id'",
		"SELECT * FROM pg_authid"} {
		if _, err := reader.Exec(ctx, sql); err == nil {
			breaches = append(breaches, sql)
		}
	}
	return breaches, nil
}
