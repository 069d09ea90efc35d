package derived_test

import (
	"fmt"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/storage/derived"
)

// TestFewRowsAndMany: rows that are few go into a table from memory, more of them by way of another table; they are the
// same, and nothing is left of a refresh that fails among them, nor of one whose worker was killed.
func TestFewRowsAndMany(t *testing.T) {
	d, owner, reader := open(t)
	const definition = `SELECT i, nullif(i % 3, 0) AS third, repeat('ä', i % 50) AS text, i / 7::numeric AS exact,
		now() AS at, ARRAY[i, NULL, -i] AS list, jsonb_build_object('i', i) AS object, i::float8 / 3 AS number
		FROM pg_catalog.generate_series(1, 2000) AS i`
	epoch := int64(0)
	materialize := func(name, definition string) (refresh.Result, error) {
		epoch++
		return d.Materialize(t.Context(), refresh.Table{Name: name, Kind: refresh.SQL, Definition: definition, Version: epoch,
			Mode: refresh.Full}, claim(name, "", epoch), held)
	}
	for _, bytes := range []int{1 << 20, 1000} {
		d.Settings.RowsInMemory = bytes
		name := fmt.Sprintf("with %d", bytes)
		for range 2 {
			r, err := materialize(name, definition)
			if err != nil || r.Rows != 2000 || r.Bytes < 2000*50 {
				t.Fatalf("%s: %+v, %v", name, r, err)
			}
		}
		if n := count(t, reader, `SELECT count(*) FROM "`+name+`" JOIN (`+definition+`) d USING (i, text, exact, list, object,
			number) WHERE "`+name+`".third IS NOT DISTINCT FROM d.third`); n != 2000 {
			t.Errorf("%s: %d rows of 2000 are what the definition gives", name, n)
		}
		if _, err := materialize(name,
			"SELECT 1 / (1500 - i) AS i FROM pg_catalog.generate_series(1, 2000) AS i"); !engine.HasCode(
			err, engine.CodeInvalid) {
			t.Errorf("%s: an error among the rows: %v", name, err)
		}
		if n := count(t, reader, `SELECT count(DISTINCT i) FROM "`+name+`"`); n != 2000 {
			t.Errorf("%s: %d rows after a refresh that failed", name, n)
		}
	}
	left := "SELECT count(*) FROM pg_tables WHERE tablename LIKE '~%'"
	if n := count(t, owner, left); n != 0 {
		t.Errorf("%d tables of refreshes were left", n)
	}
	// A worker that is killed leaves its table. The next refresh removes it, however few its own rows are.
	d.Settings.RowsInMemory = 1000
	if _, err := owner.Exec(t.Context(), "CREATE TABLE "+derived.StageName("killed", epoch)+" ()"); err != nil {
		t.Fatal(err)
	}
	if _, err := materialize("another", "SELECT 1 AS one"); err != nil {
		t.Fatal(err)
	}
	if n := count(t, owner, left); n != 1 {
		t.Errorf("%d tables are left: that of another was removed", n)
	}
	if _, err := materialize("killed", "SELECT 1 AS one"); err != nil {
		t.Fatal(err)
	}
	if n := count(t, owner, left); n != 0 {
		t.Errorf("%d tables of killed workers are left", n)
	}
}
