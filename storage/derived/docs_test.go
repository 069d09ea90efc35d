package derived_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// docsArePlanned has a database with all tables plan the queries of the pages that ask the results.
func docsArePlanned(t *testing.T, c *pgx.Conn) {
	t.Helper()
	seen := 0
	for _, page := range []string{"reference/sql-tables.md", "guides/why-slow.md"} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		queries := regexp.MustCompile("(?ms)^```sql\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
		command := regexp.MustCompile(`loadstone sql(?: --format \w+)? "(SELECT [^"]+)"`)
		queries = append(queries, command.FindAllStringSubmatch(string(text), -1)...)
		for _, m := range queries {
			seen++
			rows, err := c.Query(t.Context(), "EXPLAIN "+strings.TrimSpace(m[1]), pgx.QueryExecModeSimpleProtocol)
			if err == nil {
				rows.Close()
				err = rows.Err()
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", page, err, m[1])
			}
		}
	}
	if seen < 6 {
		t.Errorf("%d queries were found", seen)
	}
}
