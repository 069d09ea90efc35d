package derived_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/derived"
)

func TestDefinition(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1": "SELECT 1", "SELECT 1;\n": "SELECT 1", "\n SELECT ';' ;; -- the end": "\n SELECT ';'",
		"(SELECT 1)": "(SELECT 1)", "SELECT ')' AS \")\" -- )": "SELECT ')' AS \")\" -- )",
		"WITH x AS (SELECT 1) TABLE x": "WITH x AS (SELECT 1) TABLE x",
	} {
		if got, err := derived.NormalizeDefinition(text); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " ; ", "-- only words", "SELECT 1; SELECT 2", "DROP TABLE x", "EXPLAIN SELECT 1",
		"SHOW all", "SELECT 'open", "COPY x TO PROGRAM 'id'", "SELECT 1 AS a) AS x, (SELECT 2 AS b",
		"SELECT (1) AS a) AS x CROSS JOIN LATERAL (SELECT ')' AS b"} {
		if got, err := derived.NormalizeDefinition(text); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// TestWhatCannotBeRefreshedIsNotSaved: a definition is refused when it is saved, with a sentence that names what is
// wrong, and not first when it is refreshed. Nothing of it is executed.
func TestWhatCannotBeRefreshedIsNotSaved(t *testing.T) {
	d, _, _ := open(t)
	for definition, want := range map[string]string{
		"SELECT pg_sleep(1)":                                                           "pg_sleep",
		"SELECT * FROM pg_read_file('/etc/passwd')":                                    "pg_read_file",
		"SELECT set_config('role', 'results', true)":                                   "set_config",
		"SELECT 1 AS one WHERE (SELECT nextval('staging.run_versions')) > 0":           "nextval",
		"SELECT lo_creat(-1)":                                                          "lo_creat",
		"SELECT lo_export(1, '/tmp/x')":                                                "lo_export",
		"SELECT count(*) FILTER (WHERE pg_try_advisory_lock(1)) AS n FROM rollup.runs": "pg_try_advisory_lock",
		"SELECT dblink('dbname=x', 'SELECT 1')":                                        "dblink",
		"SELECT 1 AS a, 2 AS a":                                                        `two columns named "a"`,
		"SELECT run_id, ctid FROM rollup.runs":                                         `"ctid"`,
		"SELECT * FROM staging.fences":                                                 "permission denied",
		"SELECT $1::int":                                                               "has parameters",
		"SELECT table_to_xml('rollup.runs', true, true, '') AS x":                      "table_to_xml, which reads tables",
		"SELECT 1 AS one WHERE schema_to_xml('tables', true, true, '') IS NULL":        "schema_to_xml, which reads tables",
		"SELECT database_to_xml(true, true, '') AS x":                                  "database_to_xml, which reads tables",
		"SELECT r AS a FROM rollup.runs r":                                             "whole rows (runs)",
		"SELECT array_agg(r) AS a FROM rollup.runs r":                                  "whole rows (runs[])",
	} {
		_, err := d.Inspect(t.Context(), definition, "runs")
		if !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(engine.ErrorText(err), want) {
			t.Errorf("%s: %v", definition, err)
		}
	}
	for definition, want := range map[string]string{
		"SELECT random() AS r, clock_timestamp() AS at, gen_random_uuid() AS id":         "",
		"SELECT to_jsonb(r) AS a, ARRAY[1] AS b, 'x'::name AS c FROM rollup.runs r":      "runs",
		"SELECT ' :funcid 2626 ' AS text, 1 AS \" :funcid 2626 \" FROM rollup.runs":      "runs",
		"SELECT rollup.histogram_count(latency) AS n FROM rollup.run_seconds -- n":       "runs",
		"SELECT pg_catalog.count(*) OVER (), row_number() OVER () AS r FROM rollup.runs": "runs",
	} {
		sources, err := d.Inspect(t.Context(), definition, "runs")
		if err != nil || strings.Join(sources, " ") != want {
			t.Errorf("%s: %v, %v", definition, sources, err)
		}
	}
}

// TestFunctionsWithSideEffectsAreSeenWithoutTheirPrivileges: where the administrator of the results database has taken
// nothing away from readers, the definition is still refused.
func TestFunctionsWithSideEffectsAreSeenWithoutTheirPrivileges(t *testing.T) {
	d, _, _ := open(t)
	for _, definition := range []string{"SELECT pg_sleep(1)::text", "SELECT 1 AS one ORDER BY pg_sleep(1)::text",
		"SELECT i FROM pg_catalog.generate_series(1, 3) AS i WHERE pg_catalog.pg_sleep(i) IS NULL"} {
		// Sources does not plan as the reader, and so meets no privilege.
		_, err := d.Sources(t.Context(), definition, "runs")
		if !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), "pg_sleep, which does more than read") {
			t.Errorf("%s: %v", definition, err)
		}
	}
}

func TestAnErrorHasItsPlace(t *testing.T) {
	d, _, _ := open(t)
	for _, c := range []struct {
		sql          string
		line, column int
	}{
		{"SELECT 1 AS one,\n  nöthing, -- ä\n 2 AS two\nFROM rollup.runs", 2, 3},
		{"SELECT 'äöü' AS a, nothing FROM rollup.runs", 1, 20},
		{"SELECT *\nFROM nowhere", 2, 6},
		{"SELECT 1 +\n\n", 1, 11},
		{"SELECT 1 FORM rollup.runs", 1, 15},
	} {
		_, defined := d.Inspect(t.Context(), c.sql, "runs")
		_, requested := d.Query(t.Context(), c.sql, 10)
		for field, err := range map[string]error{"definition": defined, "sql": requested} {
			var e *engine.Error
			if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Field != field || e.Fields[0].Line != c.line ||
				e.Fields[0].Column != c.column || e.Fields[0].Message == "" {
				t.Errorf("%s: %q: %+v, want %d:%d", field, c.sql, err, c.line, c.column)
			}
		}
	}
}

func TestPreview(t *testing.T) {
	d, _, _ := open(t)
	p, err := d.Preview(t.Context(), "SELECT i AS n, 'x' AS text FROM pg_catalog.generate_series(1, 1000) AS i", "runs")
	if err != nil || len(p.Rows) != 50 || !p.Truncated || len(p.Columns) != 2 || p.Columns[0].Name != "n" ||
		!strings.Contains(p.Plan, "Function Scan") || p.Note != "" || len(p.Sources) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = d.Preview(t.Context(), "SELECT run_id FROM rollup.runs", "runs")
	if err != nil || len(p.Rows) != 0 || p.Truncated || len(p.Columns) != 1 || strings.Join(p.Sources, " ") != "runs" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := d.Preview(t.Context(), "SELECT 1 / (i - 1) AS n FROM pg_catalog.generate_series(1, 3) AS i",
		"runs"); !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), "division by zero") {
		t.Errorf("an error of a row: %v", err)
	}
	d.Settings.Preview.Statement = 100 * time.Millisecond
	p, err = d.Preview(t.Context(), `SELECT count(*) AS n FROM pg_catalog.generate_series(1, 100000) a,
		pg_catalog.generate_series(1, 100000) b`, "runs")
	if err != nil || !strings.Contains(p.Note, "longer than") || len(p.Rows) != 0 || len(p.Columns) != 1 || p.Truncated {
		t.Errorf("rows that never come: %+v, %v", p, err)
	}
	// Its column is of the type that it is of with rows.
	if some, err := d.Query(t.Context(), "SELECT count(*) AS n", 1); err != nil || some.Columns[0] != p.Columns[0] {
		t.Errorf("%+v is %+v with rows, %v", p.Columns, some.Columns, err)
	}
}

func TestCatalog(t *testing.T) {
	d, _, _ := open(t)
	list, err := d.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, r := range list {
		if r.Schema != "rollup" && r.Schema != "tables" {
			t.Errorf("%s.%s is nobody's to read", r.Schema, r.Name)
		}
		found = found || r.Schema == "rollup" && r.Name == "runs" && r.Columns[0].Name == "run_id" &&
			r.Columns[0].Type == "text"
	}
	if !found {
		t.Errorf("%+v", list)
	}
}
