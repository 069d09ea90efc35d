package wiring

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/derived"
)

// ApplyResults brings a results database up to date, and its reader to the rights that it should have. Statements that
// the present role may not execute are written to out.
func (f ResultsFlags) ApplyResults(ctx context.Context, admin string, out io.Writer) error {
	owner, reader, err := f.urls()
	if err != nil {
		return err
	}
	if owner == "" {
		return engine.InvalidField("--results-database-url", "is required with --results",
			"the results database as its owner; and --results-reader-url the same as its reader")
	}
	missing, err := derived.ApplyRole(ctx, owner, reader, admin)
	if err != nil {
		return err
	}
	db, err := derived.Open(ctx, owner, reader)
	var tolerated []string
	if err == nil {
		defer db.Close()
		tolerated, err = db.CheckReader(ctx)
	}
	var text strings.Builder
	if len(missing) > 0 {
		text.WriteString(
			"These statements need another role; have an administrator execute them in the results database, or " +
				"give --results-admin-url:\n\n",
		)
		for _, m := range missing {
			fmt.Fprintf(&text, "-- %s\n%s;\n", m.Why, m.SQL)
		}
		text.WriteString("\n")
	}
	if err == nil {
		text.WriteString(
			"The schema of the results database is current, and its reader may do nothing that queries must not.\n",
		)
	}
	if len(tolerated) > 0 {
		fmt.Fprintf(&text, "The reader still %s. Queries that do it are refused; somebody who connects as it may.\n",
			strings.Join(tolerated, ", and "))
	}
	if _, failed := io.WriteString(out, text.String()); failed != nil {
		return failed
	}
	return err
}
