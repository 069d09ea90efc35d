package snowflake

import (
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/sdk/sdktest"
)

// existingSession is a session in BENCH.PUBLIC, and what Snowflake answers about a table of
// 1000 rows with the integer key ID.
func existingSession() map[string]object {
	return map[string]object{
		"where":   rows([]any{"BENCH", "PUBLIC", "WH"}),
		"resolve": rows([]any{"BENCH", "PUBLIC", "ORDERS", "BASE TABLE", 1000}),
		"columns": rows(
			[]any{"ID", "NUMBER", "NO", nil, "NO", nil, 38, 0},
			[]any{"STATUS", "TEXT", "NO", nil, "NO", 16, nil, nil},
			[]any{"AMOUNT", "NUMBER", "NO", nil, "NO", nil, 12, 2},
			[]any{"NOTE", "TEXT", "YES", nil, "NO", 16777216, nil, nil},
			[]any{"AT", "TIMESTAMP_TZ", "YES", "CURRENT_TIMESTAMP()", "NO", nil, nil, nil},
			[]any{"SEQ", "NUMBER", "NO", nil, "YES", nil, 38, 0},
			[]any{"DOC", "VARIANT", "YES", nil, "NO", nil, nil, nil},
			[]any{"PLACE", "GEOGRAPHY", "YES", nil, "NO", nil, nil, nil},
			[]any{"RAW", "BINARY", "YES", nil, "NO", 8388608, nil, nil},
			[]any{"F", "FLOAT", "YES", nil, "NO", nil, nil, nil}),
		"count":   rows([]any{1000}),
		"primary": shown([]string{"created_on", "column_name", "key_sequence"}, []any{"x", "ID", "1"}),
		"unique": shown([]string{"column_name", "key_sequence", "constraint_name"}, []any{"STATUS", 1, "U1"},
			[]any{"NOTE", 2, "U1"}),
		"imported": shown([]string{"fk_column_name"}),
		"show": shown([]string{"name", "kind", "cluster_by", "is_hybrid", "is_interactive"},
			[]any{"ORDERS", "TABLE", "", "N", "N"}),
		"range":    rows([]any{1, "1000"}),
		"distinct": rows([]any{1000}),
		"density":  rows([]any{900}),
		"sample":   rows([]any{"7", nil, "POINT(0 0)"}),
		"first":    rows([]any{"7", nil, "POINT(0 0)"}),
	}
}

func inspected(t *testing.T, of TableType, change func(request object, results map[string]object)) answer {
	t.Helper()
	request, results := object{"op": "inspect", "table_name": "orders",
		"logical": object{"name": "orders", "key": []string{"id"}}}, existingSession()
	if change != nil {
		change(request, results)
	}
	return converse(t, of, request, results)
}

func TestInspect(t *testing.T) {
	a := inspected(t, Standard, nil)
	if !a.Exists || a.Table.PhysicalName != `"BENCH"."PUBLIC"."ORDERS"` || !a.Table.Dense || *a.Table.KeyMin != 1 ||
		*a.Table.KeyMax != 1000 || a.Table.Rows != 1000 || !slices.Equal(a.Table.Key, []string{"ID"}) {
		t.Fatalf("%+v", a.Table)
	}
	var lines []string
	for _, c := range a.Table.Columns {
		line := c.Name + " " + c.Type + " " + c.DBType
		for flag, on := range map[string]bool{" nullable": c.Nullable} {
			if on {
				line += flag
			}
		}
		if c.HasDefault {
			line += " default"
		}
		if c.Unique {
			line += " unique"
		}
		if c.MaxLength > 0 {
			line += " short"
		}
		lines = append(lines, line)
	}
	want := []string{"ID i64 NUMBER(38,0)", "STATUS text VARCHAR(16) unique short", "AMOUNT text NUMBER(12,2)",
		"NOTE text VARCHAR nullable", "AT timestamp TIMESTAMP_TZ nullable default",
		"SEQ i64 NUMBER(38,0) default", "DOC text VARIANT nullable", "PLACE text GEOGRAPHY nullable",
		"RAW bytes BINARY nullable", "F f64 FLOAT nullable"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
	// Of a dense table only what cannot be made up is sampled.
	if a.Pool == nil || !slices.Equal(a.Pool.Columns, []string{"PLACE"}) {
		t.Errorf("%+v", a.Pool)
	}
}

func TestInspectAsks(t *testing.T) {
	var lines []string
	request := object{"op": "inspect", "table_name": `sales."My ""Orders""; DROP TABLE x_%\'"`,
		"logical": object{"name": "orders", "key": []string{"id"}}}
	got, results := object{}, existingSession()
	results["resolve"] = rows([]any{"BENCH", "SALES", `My "Orders"; DROP TABLE x_%\'`, "BASE TABLE", 90_000_000})
	results["count"], results["distinct"] = rows([]any{90_000}), rows([]any{90_000})
	for range 8 {
		request["results"] = got
		var a answer
		if err := sdktest.Adapter(New(Standard)).Call(request, &a); err != nil {
			t.Fatal(err)
		}
		for _, q := range a.Queries {
			got[q.ID] = results[q.ID]
			line := q.SQL
			if len(q.Args) > 0 {
				line += " -- " + strings.Join(q.Args, ", ")
			}
			lines = append(lines, "-- "+q.ID, line)
		}
		if len(a.Queries) == 0 {
			break
		}
	}
	golden(t, "inspect.sql", lines)
}

func TestInspectKeys(t *testing.T) {
	for name, c := range map[string]struct {
		of     TableType
		change func(request object, m map[string]object)
		want   func(a answer) bool
	}{
		"nothing there": {Standard, func(_ object, m map[string]object) { m["resolve"] = rows() },
			func(a answer) bool { return !a.Exists && a.Table == nil }},
		"a gap": {Hybrid, func(_ object, m map[string]object) {
			m["range"], m["show"] = rows([]any{1, 1100}), shown([]string{"name", "is_hybrid"}, []any{"ORDERS", "Y"})
		}, func(a answer) bool { return !a.Table.Dense && *a.Table.DenseMax == 900 }},
		"duplicates of a key that is not enforced": {Standard,
			func(_ object, m map[string]object) { m["distinct"] = rows([]any{999}) },
			func(a answer) bool { return !a.Table.Dense && a.Pool != nil && len(a.Notes) == 1 }},
		"too many rows to count": {Standard,
			func(_ object, m map[string]object) { m["count"] = object{"error": "timeout", "code": "000630"} },
			func(a answer) bool {
				return a.Table.Rows == 1000 && !a.Table.RowsExact && !a.Table.Dense && a.Pool.Columns[0] == "ID"
			}},
		"the workload's key": {Standard,
			func(_ object, m map[string]object) { m["primary"] = shown([]string{"column_name"}) },
			func(a answer) bool { return slices.Equal(a.Table.Key, []string{"ID"}) && len(a.Notes) == 1 }},
		"the template's key": {Standard, func(r object, m map[string]object) {
			m["primary"], r["params"] = shown([]string{"column_name"}), object{"key": []string{"status", "ID"}}
		}, func(a answer) bool {
			return slices.Equal(a.Table.Key, []string{"STATUS", "ID"}) && a.Table.KeyMin == nil
		}},
		"a key that is none": {Standard, func(r object, m map[string]object) {
			m["primary"], r["params"] = shown([]string{"column_name"}), object{"key": []string{"nope"}}
		}, func(a answer) bool { return a.Refused.Field == "target.params.key" }},
		"keys in their order": {Standard, func(_ object, m map[string]object) {
			m["primary"] = shown([]string{"key_sequence", "column_name"}, []any{"2", "ID"}, []any{"1", "STATUS"})
		}, func(a answer) bool {
			return slices.Equal(a.Table.Key, []string{"STATUS", "ID"}) && a.Pool.Columns[0] == "STATUS"
		}},
		"another type of table": {Standard, func(_ object, m map[string]object) {
			m["show"] = shown([]string{"name", "is_hybrid"}, []any{"ORDERS_2", "N"}, []any{"ORDERS", "Y"})
		}, func(a answer) bool {
			return a.Refused.Field == "target.adapter" && strings.Contains(a.Refused.Hint, "snowflake_hybrid")
		}},
		"a standard table for an interactive one": {Interactive, nil,
			func(a answer) bool { return strings.Contains(a.Refused.Message, "an interactive one") }},
		"a release that does not tell": {Interactive,
			func(_ object, m map[string]object) { m["show"] = shown([]string{"name"}, []any{"ORDERS"}) },
			func(a answer) bool { return a.Refused == nil && a.Exists }},
		"a table that is dropped anyway": {Standard, func(r object, m map[string]object) {
			r["recreate"], m["show"] = true, shown([]string{"name", "is_hybrid"}, []any{"ORDERS", "Y"})
		}, func(a answer) bool { return a.Exists && a.Refused == nil }},
		"a view": {Standard, func(_ object, m map[string]object) {
			m["resolve"] = rows([]any{"BENCH", "PUBLIC", "ORDERS", "VIEW", nil})
			for _, id := range []string{"primary", "unique", "imported", "show"} {
				delete(m, id)
			}
		}, func(a answer) bool { return a.Table.Dense && strings.Contains(strings.Join(a.Notes, " "), "is a view") }},
		"no right to read": {Standard, func(_ object, m map[string]object) {
			m["count"] = object{"error": "SQL compilation error: Object 'ORDERS' does not exist or not authorized.",
				"code": "002003"}
		}, func(a answer) bool { return strings.Contains(a.Refused.Hint, "GRANT SELECT") }},
		"a foreign key": {Hybrid, func(_ object, m map[string]object) {
			m["imported"], m["show"] = shown([]string{"fk_column_name"}, []any{"STATUS"}),
				shown([]string{"name", "is_hybrid"}, []any{"ORDERS", "Y"})
		}, func(a answer) bool { return a.Pool.Columns[0] == "STATUS" }},
	} {
		t.Run(name, func(t *testing.T) {
			if a := inspected(t, c.of, c.change); !c.want(a) {
				t.Errorf("%+v %+v %+v %v", a.Refused, a.Table, a.Pool, a.Notes)
			}
		})
	}
}

// TestAPoolFits: however wide the sampled values are, the answer stays within
// what the host reads.
func TestAPoolFits(t *testing.T) {
	a := inspected(t, Standard, func(_ object, m map[string]object) {
		wide, list := strings.Repeat("x", 1000), [][]any{}
		for range 5000 {
			list = append(list, []any{wide})
		}
		m["sample"] = rows(list...)
	})
	if n := len(a.Pool.Rows); n < 500 || n > 1000 {
		t.Errorf("%d rows of 1000 characters", n)
	}
}
