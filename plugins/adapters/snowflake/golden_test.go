package snowflake

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/sdk/sdktest"
)

var update = flag.Bool("update", false, "write the golden files")

type object = map[string]any

// golden compares lines with testdata/name.
func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	got := strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s is another now (go test -update writes it): %v\n%s", path, err, got)
	}
}

// answer is what the adapters answer, as far as the tests look at it.
type answer struct {
	Queries []struct {
		ID, SQL string
		Args    []string
	}
	Exists bool
	Table  *struct {
		Columns []struct {
			Name, Type                  string
			DBType                      string `json:"db_type"`
			MaxLength                   int    `json:"max_length"`
			Nullable, Generated, Unique bool
			HasDefault                  bool `json:"has_default"`
		}
		Key          []string
		Rows         int64
		KeyMin       *int64 `json:"key_min"`
		KeyMax       *int64 `json:"key_max"`
		DenseMax     *int64 `json:"dense_max"`
		Dense        bool
		RowsExact    bool   `json:"rows_exact"`
		PhysicalName string `json:"physical_name"`
	}
	Pool *struct {
		Columns []string
		Rows    [][]any
	}
	DDL       []string `json:"ddl"`
	AfterLoad []string `json:"after_load"`
	Swap      []string
	Load      *struct {
		Table, Final string
		Columns      []struct{ Name string }
		Generate     []struct {
			SQL  string
			Rows int64
		}
	}
	Statements []struct {
		ID, SQL string
		Order   []int `json:"bind_order"`
	}
	Session   []string
	Level     string `json:"isolation_level"`
	Classes   map[string]string
	Notes     []string
	Refused   *struct{ Field, Message, Hint string }
	Checks    []struct{ Name, Outcome, Message string }
	Warehouse *struct{ Name string }
	Enrich    *struct{ Skip string }
}

// converse holds a conversation: results answers a query by its id, from a function of the query's SQL.
func converse(t *testing.T, of TableType, request object, results map[string]object) answer {
	t.Helper()
	got := object{}
	for range 8 {
		request["results"] = got
		var a answer
		if err := sdktest.Adapter(New(of)).Call(request, &a); err != nil {
			t.Fatalf("%s: %v", request["op"], err)
		}
		if len(a.Queries) == 0 {
			return a
		}
		for _, q := range a.Queries {
			r, ok := results[q.ID]
			if !ok {
				t.Fatalf("nobody knows %s: %s %q", q.ID, q.SQL, q.Args)
			}
			got[q.ID] = r
		}
	}
	t.Fatal("the conversation does not end")
	return answer{}
}

func rows(list ...[]any) object { return object{"columns": []string{}, "rows": list} }

func shown(columns []string, list ...[]any) object { return object{"columns": columns, "rows": list} }

// emptySession is a session in BENCH.PUBLIC without the table.
func emptySession(warehouse, kind string) map[string]object {
	return map[string]object{"where": rows([]any{"BENCH", "PUBLIC", warehouse}), "resolve": rows(),
		"warehouse": shown([]string{"name", "state", "type"}, []any{warehouse, "STARTED", kind})}
}

// logical is a table with every kind of column and of filling.
func logical() object {
	fill := func(as string, more ...any) object {
		f := object{"as": as}
		for i := 0; i < len(more); i += 2 {
			f[more[i].(string)] = more[i+1]
		}
		return f
	}
	column := func(name, kind string, f object) object { return object{"name": name, "type": kind, "fill": f} }
	varchar := column("status", "text", fill("choice", "values", []string{"new", "it's \\ paid"}))
	varchar["db_type"] = object{"snowflake": "VARCHAR(16)", "postgres": "varchar(16)"}
	amount := column("amount", "text", fill("decimal", "max", 10000, "scale", 2))
	amount["db_type"] = object{"snowflake": "NUMBER(12,2)"}
	note := column("note", "text", fill("letters", "min", 20, "max", 100))
	note["nullable"] = true
	return object{"name": "orders", "key": []string{"id"}, "columns": []object{
		column("id", "i64", fill("number", "from", 1)),
		column("customer_id", "i64", fill("integer", "min", 1, "max", 100000)), varchar, amount,
		column("created_at", "timestamp", fill("time", "from", 1704067200000000, "step", 7000000, "max", 60480000000000)),
		note,
		column("branch", "i64", fill("block", "from", 1, "step", 100000)),
		column("balance", "i64", fill("constant", "values", []string{"0"})),
		column("code", "text", fill("number", "prefix", "user", "min", 8)), column("Odd Name", "text", fill("constant")),
	}, "indexes": []object{{"columns": []string{"customer_id"}, "include": []string{"status"}},
		{"columns": []string{"code"}, "unique": true}}}
}

func TestDDL(t *testing.T) {
	var lines []string
	for _, c := range []struct {
		name            string
		of              TableType
		params          object
		recreate        bool
		warehouse, kind string
		key             bool
	}{
		{name: "standard", of: Standard, key: true},
		{name: "standard, dropped first, transient, clustered, searched", of: Standard, key: true, recreate: true,
			params: object{"transient": true, "cluster_by": []string{"customer_id", "Odd Name"}, "search_optimization": true}},
		{name: "standard without a key", of: Standard},
		{name: "hybrid", of: Hybrid, key: true,
			params: object{"indexes": []object{{"columns": []string{"customer_id", "status"},
				"include": []string{"amount", "note"}}, {"columns": []string{"customer_id"}}}}},
		{name: "hybrid without a key", of: Hybrid},
		{name: "interactive on a standard warehouse", of: Interactive, key: true, kind: "STANDARD"},
		{name: "interactive on an interactive warehouse", of: Interactive, key: true, kind: "INTERACTIVE", recreate: true,
			params: object{"load_warehouse": "load_wh", "cluster_by": []string{"customer_id"}}},
		{name: "interactive without a key", of: Interactive, kind: "STANDARD"},
	} {
		table := logical()
		if !c.key {
			table["key"] = []string{}
		}
		results := emptySession("WH", c.kind)
		if c.recreate {
			maps.Copy(results, standing())
		}
		request := object{"op": "ddl", "table_name": "sales.orders", "logical": table, "recreate": c.recreate}
		if c.params != nil {
			request["params"] = c.params
		}
		a := converse(t, c.of, request, results)
		lines = append(lines, "-- "+c.name)
		lines = append(append(lines, a.DDL...), "-- rows")
		lines = append(lines, a.AfterLoad...)
		if len(a.Swap) > 0 {
			lines = append(append(lines, "-- swap"), a.Swap...)
		}
		lines = append(lines, a.Notes...)
	}
	golden(t, "ddl.sql", lines)
}

// there is the table ORDERS with what would go with it.
func standing() map[string]object {
	return map[string]object{"resolve": rows([]any{"BENCH", "SALES", "ORDERS", "BASE TABLE", 7}),
		"dropped": shown([]string{"name", "rows", "cluster_by", "search_optimization"}, []any{"orders", 1, "", "OFF"},
			[]any{"ORDERS", 12345, "LINEAR(ID)", "ON"}),
		"dependents": shown([]string{"pk_table_name", "fk_table_name"}, []any{"OTHERS", "LINES"}, []any{"ORDERS", "ORDERS"}),
		"indexes":    shown([]string{"name"}, []any{"IX_A"}, []any{"IX_B"}),
		"table_grants": shown([]string{"privilege", "granted_to", "grantee_name"}, []any{"OWNERSHIP", "ROLE", "ENG"},
			[]any{"SELECT", "ROLE", "READERS"},
			[]any{"INSERT", "ROLE", "READERS"}, []any{"SELECT", "ROLE", "\"Odd\""})}
}

// TestRecreateBuildsBesideAndSwaps, and refuses what cannot be put back.
func TestRecreateBuildsBesideAndSwaps(t *testing.T) {
	ask := func(of TableType, change func(object, map[string]object)) answer {
		results := emptySession("WH", "STANDARD")
		maps.Copy(results, standing())
		request := object{"op": "ddl", "table_name": "sales.orders", "logical": logical(), "recreate": true}
		change(request, results)
		return converse(t, of, request, results)
	}
	for _, of := range []TableType{Standard, Hybrid} {
		a := ask(of, func(object, map[string]object) {})
		want := []string{`ALTER TABLE "BENCH"."SALES"."ORDERS" SWAP WITH "BENCH"."SALES"."ORDERS__LOADSTONE_NEW"`,
			`DROP TABLE "BENCH"."SALES"."ORDERS__LOADSTONE_NEW"`}
		if !slices.Equal(a.Swap, want) {
			t.Errorf("%v: the swap is %q", of, a.Swap)
		}
		for _, sql := range append(a.DDL, a.AfterLoad...) {
			if strings.Contains(sql, `"ORDERS"`) {
				t.Errorf("%v: the old table is touched before the swap: %s", of, sql)
			}
		}
		for _, gone := range []string{"12345 rows", "clustering by LINEAR(ID)", "its search optimization",
			"grants to READERS, Odd"} {
			if notes := strings.Join(a.Notes, " "); !strings.Contains(notes, gone) {
				t.Errorf("%v: %q is not named: %s", of, gone, notes)
			}
		}
		l := converse(t, of, object{"op": "load", "table_name": "sales.orders", "logical": logical(), "recreate": true},
			mapsJoined(emptySession("WH", "STANDARD"), standing()))
		if l.Load == nil || l.Load.Table != `"BENCH"."SALES"."ORDERS__LOADSTONE_NEW"` {
			t.Errorf("%v: the rows go to %+v", of, l.Load)
		}
	}
	if a := ask(Standard, func(_ object, m map[string]object) {
		m["dependents"] = shown([]string{"pk_table_name", "fk_table_name"}, []any{"ORDERS", "LINES"})
	}); a.Refused == nil || !strings.Contains(a.Refused.Message, "LINES") {
		t.Errorf("a table that others refer to: %+v", a)
	}
	if a := ask(Standard, func(r object, m map[string]object) {
		r["lacks"] = []string{"swap", "grants"}
		delete(m, "table_grants")
	}); len(a.Swap) != 2 || a.Swap[0] != `DROP TABLE "BENCH"."SALES"."ORDERS"` ||
		!strings.HasSuffix(a.Swap[1], `RENAME TO "BENCH"."SALES"."ORDERS"`) {
		t.Errorf("without SWAP: %q", a.Swap)
	}
	// An interactive warehouse gets the new table, once it is there.
	a := ask(Standard, func(r object, m map[string]object) {
		r["params"] = object{"load_warehouse": "load_wh"}
		m["warehouse"] = shown([]string{"name", "state", "type"}, []any{"WH", "STARTED", "INTERACTIVE"})
	})
	if len(a.Swap) != 4 || a.Swap[2] != `ALTER WAREHOUSE "WH" ADD TABLES ("BENCH"."SALES"."ORDERS")` ||
		len(a.AfterLoad) != 0 {
		t.Errorf("on an interactive warehouse: %q, then %q", a.AfterLoad, a.Swap)
	}
}

func mapsJoined(list ...map[string]object) map[string]object {
	all := map[string]object{}
	for _, m := range list {
		maps.Copy(all, m)
	}
	return all
}

// TestAServerThatLacksAbilitiesIsAskedForNothingElse: an emulator answers errors to all of it.
func TestAServerThatLacksAbilitiesIsAskedForNothingElse(t *testing.T) {
	lacks := []string{"warehouses", "grants", "history", "generator", "swap"}
	results := map[string]object{"session": rows([]any{"ROLE", "BENCH", "PUBLIC"}),
		"objects:0": shown([]string{"name", "kind"})}
	a := converse(t, Standard, object{"op": "preflight", "lacks": lacks, "prepare": true, "connections": 4,
		"access": []object{{"table": "orders", "table_name": "orders", "rights": []string{"SELECT", "INSERT"}}}}, results)
	var named []string
	for _, c := range a.Checks {
		if c.Outcome == "failed" {
			t.Errorf("%+v", c)
		}
		if strings.HasPrefix(c.Message, "Not checked") {
			named = append(named, c.Name)
		}
	}
	if !slices.Equal(named, []string{"warehouse", "privileges", "enrichment"}) {
		t.Errorf("not checked: %v", named)
	}
	if a = converse(t, Standard, object{"op": "poll", "lacks": lacks}, nil); a.Warehouse != nil {
		t.Errorf("a warehouse: %+v", a.Warehouse)
	}
	if a = converse(t, Standard, object{"op": "enrich", "lacks": lacks, "now_ms": 0}, nil); a.Enrich == nil ||
		!strings.Contains(a.Enrich.Skip, "emulator") {
		t.Errorf("enrichment: %+v", a.Enrich)
	}
}

func TestDDLRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		of     TableType
		change func(request object, results map[string]object)
		field  string
	}{
		"a clustering key of no column": {Standard,
			func(r object, _ map[string]object) { r["params"] = object{"cluster_by": []string{"nope"}} },
			"target.params.cluster_by"},
		"an index of no column": {Hybrid, func(r object, _ map[string]object) {
			r["params"] = object{"indexes": []object{{"columns": []string{"id"}, "include": []string{"nope"}}}}
		}, "target.params.indexes[0].include"},
		"an interactive warehouse alone": {Interactive, func(_ object, m map[string]object) {
			m["warehouse"] = shown([]string{"name", "type"}, []any{"WH", "INTERACTIVE"})
		}, "target.params.load_warehouse"},
		"a view": {Standard, func(r object, m map[string]object) {
			r["recreate"] = true
			m["resolve"] = rows([]any{"BENCH", "PUBLIC", "ORDERS", "VIEW", nil})
		}, "target.table_name"},
		"no schema": {Standard, func(_ object, m map[string]object) { m["where"] = rows([]any{"BENCH", nil, "WH"}) },
			"target.table_name"},
		"no database": {Standard, func(_ object, m map[string]object) {
			m["where"], m["resolve"] = rows([]any{nil, nil, "WH"}), object{"error": "no current database", "code": "090105"}
		}, "target.table_name"},
	} {
		request, results := object{"op": "ddl", "table_name": "orders", "logical": logical()}, emptySession("WH", "STANDARD")
		c.change(request, results)
		if a := converse(t, c.of, request, results); a.Refused == nil || a.Refused.Field != c.field || a.Refused.Hint == "" {
			t.Errorf("%s: %+v, %v", name, a.Refused, a.DDL)
		}
	}
	for _, dbType := range []string{"NUMBER); DROP TABLE x; --", "NUMBER -- x", "VARCHAR DEFAULT 'x'", "NUMBER)",
		"NUMBER /* x", "NUMBER // x"} {
		table := object{"name": "t",
			"columns": []object{{"name": "id", "type": "i64", "db_type": object{"snowflake": dbType}}}}
		if err := sdktest.Adapter(New(Standard)).Call(object{"op": "ddl", "table_name": "t", "logical": table},
			nil); err == nil {
			t.Errorf("%s was taken", dbType)
		}
	}
}

func TestLoad(t *testing.T) {
	var lines []string
	for _, of := range []TableType{Standard, Interactive} {
		a := converse(t, of, object{"op": "load", "table_name": "orders", "logical": logical(), "rows": 2_500_000},
			emptySession("WH", "STANDARD"))
		lines = append(lines, "-- "+of.String()+": "+a.Load.Table+" "+a.Load.Final)
		var total int64
		for _, g := range a.Load.Generate {
			lines = append(lines, g.SQL)
			total += g.Rows
		}
		if total != 2_500_000 {
			t.Errorf("%s: %d rows", of, total)
		}
	}
	golden(t, "generate.sql", lines)
	// However many rows: every one once, and a bounded list of statements.
	for _, n := range []int64{1, 999_999, 1_000_001, 123_456_789, 5_000_000_000} {
		a := converse(t, Hybrid, object{"op": "load", "table_name": "orders", "logical": logical(), "rows": n},
			emptySession("WH", "STANDARD"))
		var total int64
		for _, g := range a.Load.Generate {
			total += g.Rows
		}
		if total != n || len(a.Load.Generate) > maxChunks {
			t.Errorf("%d rows of %d in %d statements", total, n, len(a.Load.Generate))
		}
	}
	copied := logical()
	delete(copied["columns"].([]object)[3], "fill")
	if a := converse(
		t,
		Standard,
		object{"op": "load", "table_name": "orders", "logical": copied, "rows": 10},
		emptySession(
			"WH",
			"STANDARD",
		),
	); a.Load.Generate != nil || len(a.Load.Columns) != 10 || a.Load.Columns[0].Name != "ID" ||
		a.Load.Columns[9].Name != "Odd Name" {
		t.Errorf("%+v", a.Load)
	}
	for _, f := range []object{{"as": "magic"}, {"as": "integer", "min": 2, "max": 1}, {"as": "decimal"}, {"as": "choice"},
		{"as": "letters", "min": 3, "max": 2}, {"as": "block"}, {"as": "constant", "values": []string{"x; DROP"}}} {
		table := object{"name": "t", "columns": []object{{"name": "id", "type": "i64", "fill": f}}}
		request := object{
			"op":         "load",
			"table_name": "t",
			"logical":    table,
			"rows":       1,
			"results":    emptySession("WH", "STANDARD"),
		}
		if err := sdktest.Adapter(New(Standard)).Call(request, nil); err == nil {
			t.Errorf("%v was taken", f)
		}
	}
}

func TestStatements(t *testing.T) {
	table := object{"name": "t", "physical_name": `"S"."T"`, "key": []string{"A", "B", "C"},
		"columns": []object{{"name": "A", "type": "i64"}, {"name": "B", "type": "text"}, {"name": "C", "type": "text"},
			{"name": `v"`, "type": "text"}, {"name": "DOC", "type": "text", "db_type": "VARIANT"}}}
	bind := func(column string) object { return object{"name": column, "type": "text", "column": column} }
	rowsBind := object{"name": "rows", "type": "i64"}
	var lines []string
	for _, c := range []object{
		{"id": "lookup", "kind": "POINT_LOOKUP", "table": "t", "binds": []object{bind("a"), bind("b")},
			"columns": []string{`v"`, "doc"}},
		{"id": "lookup of all columns", "kind": "POINT_LOOKUP", "table": "t", "binds": []object{bind("A")}},
		{"id": "scan", "kind": "RANGE_SCAN", "table": "t", "binds": []object{bind("A")}, "limit": 7,
			"columns": []string{"A"}},
		{"id": "scan with a bound limit", "kind": "RANGE_SCAN", "table": "t", "binds": []object{bind("A"), rowsBind},
			"columns": []string{"A"}},
		{"id": "scan of two columns", "kind": "RANGE_SCAN", "table": "t", "binds": []object{bind("A"), bind("B"), rowsBind},
			"columns": []string{"A"}},
		{"id": "scan of three columns", "kind": "RANGE_SCAN", "table": "t",
			"binds": []object{bind("A"), bind("B"), bind("C")}, "limit": 5, "columns": []string{"A"}},
		{"id": "insert", "kind": "INSERT", "table": "t", "binds": []object{bind("A"), bind(`v"`)}},
		{"id": "insert of JSON", "kind": "INSERT", "table": "t", "binds": []object{bind("A"), bind("DOC")}},
		{"id": "update", "kind": "UPDATE", "table": "t", "binds": []object{bind(`v"`), bind("DOC"), bind("A"), bind("B")}},
		{"id": "delete", "kind": "DELETE", "table": "t", "binds": []object{bind("A"), bind("B")}},
		{"id": "own SQL", "kind": "GENERIC_SQL", "table": "t", "binds": []object{bind("A"), bind("B")},
			"sql":        object{"snowflake": "SELECT ?, ?, ? FROM {table}", "postgres": "no"},
			"bind_order": object{"snowflake": []int{1, 0, 1}, "postgres": []int{0}}},
		{"id": "SQL over tables", "kind": "GENERIC_SQL", "sql": object{"*": "SELECT 3 FROM {table:t}"}},
		{"id": "SQL over an unknown table", "kind": "GENERIC_SQL", "sql": object{"*": "SELECT 3 FROM {table:u}"}},
		{"id": "delete without a key", "kind": "DELETE", "table": "t"},
		{"id": "update without a key", "kind": "UPDATE", "table": "t", "binds": []object{bind(`v"`)}},
		{"id": "update of nothing", "kind": "UPDATE", "table": "t", "binds": []object{bind("A")}},
		{"id": "insert of nothing", "kind": "INSERT", "table": "t"},
		{"id": "unknown column", "kind": "INSERT", "table": "t", "binds": []object{bind("x")}},
		{"id": "unknown table", "kind": "INSERT", "table": "u", "binds": []object{bind("A")}},
		{"id": "no SQL", "kind": "GENERIC_SQL", "table": "t", "sql": object{"postgres": "no"}},
		{"id": "scan without a limit", "kind": "RANGE_SCAN", "table": "t", "binds": []object{bind("A")}},
	} {
		var a answer
		err := sdktest.Adapter(New(Hybrid)).
			Call(object{"op": "statements", "tables": []object{table}, "statements": []object{c}}, &a)
		if err != nil {
			lines = append(lines, "refused: "+err.Error())
			continue
		}
		order := ""
		if a.Statements[0].Order != nil {
			text, _ := json.Marshal(a.Statements[0].Order)
			order = " -- " + string(text)
		}
		lines = append(lines, "-- "+a.Statements[0].ID, a.Statements[0].SQL+order)
	}
	golden(t, "statements.sql", lines)
}

func TestSession(t *testing.T) {
	for level, ok := range map[string]bool{"": true, "read committed": true, "serializable": false,
		"x; DROP TABLE y": false} {
		var a answer
		err := sdktest.Adapter(New(Standard)).Call(object{"op": "session", "isolation_level": level}, &a)
		if (err == nil) != ok || ok && (a.Session == nil || a.Level != level) {
			t.Errorf("%q: %+v, %v", level, a, err)
		}
	}
}
