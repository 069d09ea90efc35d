package catalog_test

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// TestSourcesOfEarlierVersionsAreAsTheyWere: what a version before has kept of a source lacks settings that there are
// by now; statements that made it change nothing, and those that say such a setting do.
func TestSourcesOfEarlierVersionsAreAsTheyWere(t *testing.T) {
	t.Parallel()
	const schema = "CREATE LOGICAL SOURCE a(x INT64); "
	source := func(settings string) string {
		return "CREATE PHYSICAL SOURCE FOR a TYPE TCP SET('h' AS SOURCE.SOCKET_HOST, 1 AS SOURCE.SOCKET_PORT, " +
			"'CSV' AS PARSER.TYPE" + settings + ");"
	}
	const rest = "CREATE SINK s TYPE PRINT; CREATE QUERY q AS SELECT x FROM a INTO s"
	replace := func(settings string) string { return "CREATE OR REPLACE" + source(settings)[len("CREATE"):] }
	const drop = "DROP QUERY q; DROP SINK s; DROP PHYSICAL SOURCE 1; DROP LOGICAL SOURCE a; "
	apply := func(contents catalog.Contents, text string) (catalog.Contents, error) {
		t.Helper()
		parsed, err := sql.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c := catalog.FromContents(contents)
		c.SetAuthor(catalog.Author{Name: "ada", KeepEqual: true}, time.Unix(int64(len(contents.Queries))*1000, 0).UTC())
		c.SetDefaultHost(catalog.Server, 9)
		for _, p := range parsed {
			if _, err := c.Apply(text, p); err != nil {
				return contents, err
			}
		}
		return c.Contents(), nil
	}
	before, err := apply(catalog.Contents{}, schema+source("")+rest)
	if err != nil {
		t.Fatal(err)
	}
	before.Physical[0].Config = maps.Clone(before.Physical[0].Config)
	delete(before.Physical[0].Config, "SOURCE.RECONNECT") // as version 17 has kept it
	for _, text := range []string{schema + source("") + rest, replace(""), replace(", FALSE AS SOURCE.RECONNECT"),
		drop + schema + source("") + rest} {
		if is, err := apply(before, text); err != nil || !reflect.DeepEqual(is, before) {
			t.Errorf("%s makes %+v, %v", text, is, err)
		}
	}
	is, err := apply(before, replace(", TRUE AS SOURCE.RECONNECT"))
	if err != nil || !is.Physical[0].Config.Bool("SOURCE.RECONNECT") || is.Queries[0].Revision == 0 {
		t.Errorf("%+v, %v", is, err)
	}
	if _, err := apply(before, source(", TRUE AS SOURCE.RECONNECT")); err == nil {
		t.Error("a source that reads otherwise is taken for the same")
	}
	// What is kept by now is compared as it is.
	if _, err := apply(is, source("")); err != nil {
		t.Error(err)
	}
	if _, err := apply(is, source(", FALSE AS SOURCE.RECONNECT")); err == nil {
		t.Error("a source that ends is taken for one that does not")
	}
}
