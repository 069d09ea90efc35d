package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// grow carries statements out within the bounds of a catalog.
func grow(t *testing.T, c *catalog.Catalog, text string) error {
	t.Helper()
	parsed, err := sql.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return c.Bound(func() error {
		for _, p := range parsed {
			if _, err := c.Apply(text, p); err != nil {
				t.Fatal(err)
			}
		}
		return nil
	})
}

// statements are so many.
func statements(n int, one func(i int) string) string {
	var all []string
	for i := range n {
		all = append(all, one(i))
	}
	return strings.Join(all, ";")
}

// TestACatalogHasBounds: what makes it larger than it may be is refused with the number, and a DROP never is.
func TestACatalogHasBounds(t *testing.T) {
	full := catalog.Contents{Workers: make([]catalog.Worker, 999), Logical: make([]catalog.LogicalSource, 4999),
		Physical: make([]catalog.PhysicalSource, 4999), Sinks: make([]catalog.Sink, 4999)}
	for i := range full.Logical {
		full.Logical[i].Name = fmt.Sprintf("l%d", i)
	}
	reading := "CREATE LOGICAL SOURCE a(x INT64); CREATE PHYSICAL SOURCE FOR a TYPE FILE SET('a' AS SOURCE.FILE_PATH, " +
		"'CSV' AS PARSER.TYPE); CREATE SINK s TYPE PRINT;"
	query := func(i int) string { return fmt.Sprintf("CREATE QUERY q%d AS SELECT x FROM a INTO s", i) }
	wide := func(i int) string {
		return fmt.Sprintf(
			"CREATE LOGICAL SOURCE w%d(%s)",
			i,
			strings.ReplaceAll(
				statements(900, func(k int) string { return fmt.Sprintf("%s%d INT64", strings.Repeat("x", 240), k) }),
				";",
				",",
			),
		)
	}
	for name, c := range map[string]struct {
		before      catalog.Contents
		fits, grows string
		drops, says string
	}{
		"workers": {full, "CREATE WORKER a", "CREATE WORKER b", "DROP WORKER a", "1001 workers, at most 1000"},
		"logical sources": {full, "CREATE LOGICAL SOURCE a(x INT64)", "CREATE LOGICAL SOURCE b(x INT64)",
			"DROP LOGICAL SOURCE a", "5001 logical sources"},
		"physical sources": {full, "CREATE PHYSICAL SOURCE FOR l1 TYPE FILE SET('a' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE)",
			"CREATE PHYSICAL SOURCE FOR l2 TYPE FILE SET('a' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE)", "DROP PHYSICAL SOURCE 1",
			"5001 physical sources"},
		"sinks": {full, "CREATE SINK a TYPE PRINT", "CREATE SINK b TYPE PRINT", "DROP SINK a", "5001 sinks"},
		"queries of a user": {catalog.Contents{}, reading + statements(500, query), query(500), "DROP QUERY q0",
			"501 queries of ada"},
		"queries that were not read": {catalog.Contents{Unread: catalog.Usage{Queries: 3999,
			ByUser: map[string]int64{"other": 3999}}}, reading + query(1), query(2), "DROP QUERY q1", "4001 queries"},
		"bytes": {catalog.Contents{Unread: catalog.Usage{Bytes: 16<<20 - 500_000}}, wide(1), wide(2) + ";" + wide(3),
			"DROP LOGICAL SOURCE w1", "bytes of statements, plans and schemas, at most 16777216"},
	} {
		t.Run(name, func(t *testing.T) {
			all := catalog.FromContents(c.before)
			all.SetAuthor(catalog.Author{Name: "ada", UserID: "u1"}, time.Unix(0, 0))
			if err := grow(t, all, c.fits); err != nil {
				t.Fatal(err)
			}
			err := grow(t, all, c.grows)
			var e *sql.Error
			if !errors.As(err, &e) || e.Kind != sql.InsufficientCapacity || !strings.Contains(e.Message, c.says) {
				t.Errorf("it is %v, not %s", err, c.says)
			}
			if err := grow(t, all, c.drops); err != nil {
				t.Errorf("what is there cannot be dropped: %v", err)
			}
		})
	}
}
