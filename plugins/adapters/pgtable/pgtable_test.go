package pgtable

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
	"github.com/loadstone-db/loadstone/sdk/sdktest"
)

type object = map[string]any

func TestQuotedNamesAreReadBack(t *testing.T) {
	part := rapid.StringN(1, 20, maxIdentifier).Filter(func(s string) bool { return !strings.Contains(s, "\x00") })
	rapid.Check(t, func(t *rapid.T) {
		schema, table := part.Draw(t, "schema"), part.Draw(t, "table")
		n, err := parseName(quoted(schema) + "." + quoted(table))
		if err != nil || n.schema != schema || n.table != table || !n.exact {
			t.Fatalf("%+v, %v", n, err)
		}
		if n.sql() != quoted(schema)+"."+quoted(table) {
			t.Fatalf("written as %s", n.sql())
		}
	})
}

func TestSession(t *testing.T) {
	for level, want := range map[string]int{"": 1, "repeatable read": 2, "serializable": 2} {
		var answer struct {
			Session []string `json:"session"`
			Level   string   `json:"isolation_level"`
		}
		if err := sdktest.Adapter(Adapter{}).Call(object{"op": "session", "isolation_level": level}, &answer); err != nil {
			t.Fatal(err)
		}
		if len(answer.Session) != want || answer.Level != level || !strings.HasSuffix(answer.Session[want-1], level) {
			t.Errorf("%q: %+v", level, answer)
		}
	}
	if err := sdktest.Adapter(Adapter{}).Call(object{"op": "session", "isolation_level": "chaos; DROP TABLE x"},
		nil); err == nil {
		t.Error("an unknown level was set")
	}
}

func TestNames(t *testing.T) {
	for in, want := range map[string]tableName{
		"orders":         {table: "orders"},
		" orders ":       {table: "orders"},
		"s.Orders":       {schema: "s", table: "Orders"},
		`"a.b".c`:        {schema: "a.b", table: "c", exact: true},
		`my table; x`:    {table: "my table; x"},
		`"say ""hi"""`:   {table: `say "hi"`, exact: true},
		`public."Mixed"`: {schema: "public", table: "Mixed", exact: true},
	} {
		if got, err := parseName(in); err != nil || got != want {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "  ", ".", "a.", ".a", `"`, `"a`, `"a"b`, `""`, "a.b.c", "a\x00",
		strings.Repeat("é", 32)} {
		if got, err := parseName(in); err == nil {
			t.Errorf("%q was read as %+v", in, got)
		}
	}
}

func FuzzParseName(f *testing.F) {
	f.Add(`"a""b".c`)
	f.Fuzz(func(t *testing.T, in string) {
		n, err := parseName(in)
		if err != nil {
			return
		}
		second, err := parseName(n.sql())
		if err != nil || second.schema != n.schema || second.table != n.table {
			t.Errorf("%q became %s, which reads as %+v, %v", in, n.sql(), second, err)
		}
	})
}

func TestStatements(t *testing.T) {
	table := object{"name": "t", "physical_name": `"s"."T"`, "key": []string{"a", "b"},
		"columns": []object{{"name": "a", "type": "i64"}, {"name": "b", "type": "text"}, {"name": `v"`, "type": "text"}}}
	bind := func(column string) object { return object{"name": column, "type": "text", "column": column} }
	for _, c := range []struct {
		name      string
		statement object
		want      string
	}{
		{"lookup", object{"kind": "POINT_LOOKUP", "table": "t", "binds": []object{bind("a"), bind("b")},
			"columns": []string{`v"`}}, `SELECT "v""" FROM "s"."T" WHERE "a" = $1 AND "b" = $2`},
		{"scan", object{"kind": "RANGE_SCAN", "table": "t", "binds": []object{bind("a"), bind("b")}, "limit": 7},
			`SELECT "a", "b", "v""" FROM "s"."T" WHERE ("a", "b") >= ($1, $2) ORDER BY "a", "b" LIMIT 7`},
		{"scan with a bound limit", object{"kind": "RANGE_SCAN", "table": "t",
			"binds": []object{bind("a"), {"name": "n", "type": "i64"}}, "columns": []string{"a"}},
			`SELECT "a" FROM "s"."T" WHERE "a" >= $1 ORDER BY "a" LIMIT $2`},
		{"insert", object{"kind": "INSERT", "table": "t", "binds": []object{bind("a"), bind(`v"`)}},
			`INSERT INTO "s"."T" ("a", "v""") VALUES ($1, $2)`},
		{"update", object{"kind": "UPDATE", "table": "t", "binds": []object{bind(`v"`), bind("a"), bind("b")}},
			`UPDATE "s"."T" SET "v""" = $1 WHERE "a" = $2 AND "b" = $3`},
		{"delete", object{"kind": "DELETE", "table": "t", "binds": []object{bind("a"), bind("b")}},
			`DELETE FROM "s"."T" WHERE "a" = $1 AND "b" = $2`},
		{"own SQL", object{"kind": "GENERIC_SQL", "table": "t",
			"sql": object{"postgres": "SELECT 1 FROM {table}", "*": "no"}}, `SELECT 1 FROM "s"."T"`},
		{"SQL for every dialect", object{"kind": "GENERIC_SQL", "sql": object{"*": "SELECT 2"}}, `SELECT 2`},
		{"SQL over tables", object{"kind": "GENERIC_SQL", "sql": object{"*": "SELECT 3 FROM {table:t}"}},
			`SELECT 3 FROM "s"."T"`},
		{"SQL over an unknown table", object{"kind": "GENERIC_SQL", "sql": object{"*": "SELECT 3 FROM {table:t}, {table:u}"}},
			""},
		{"delete without a key", object{"kind": "DELETE", "table": "t"}, ""},
		{"update without a key", object{"kind": "UPDATE", "table": "t", "binds": []object{bind(`v"`)}}, ""},
		{"unknown column", object{"kind": "INSERT", "table": "t", "binds": []object{bind("x")}}, ""},
		{"unknown table", object{"kind": "INSERT", "table": "u", "binds": []object{bind("a")}}, ""},
		{"no SQL", object{"kind": "GENERIC_SQL", "table": "t"}, ""},
		{"scan without a limit", object{"kind": "RANGE_SCAN", "table": "t", "binds": []object{bind("a")}}, ""},
	} {
		c.statement["id"] = c.name
		var answer struct {
			Statements []struct{ ID, SQL string }
		}
		err := sdktest.Adapter(Adapter{}).
			Call(object{"op": "statements", "tables": []object{table}, "statements": []object{c.statement}}, &answer)
		switch {
		case c.want == "" && (err == nil || !strings.Contains(err.Error(), c.name)):
			t.Errorf("%s: %v, %v", c.name, answer, err)
		case c.want != "" && (err != nil || len(answer.Statements) != 1 || answer.Statements[0].SQL != c.want):
			t.Errorf("%s: %v, %v", c.name, answer, err)
		}
	}
}

func TestDDLTakesNoSQLInTypes(t *testing.T) {
	for _, dbType := range []string{"int); DROP TABLE x; --", "int -- x", "text DEFAULT 'x'", "int)", "int /* x"} {
		logical := object{"name": "t",
			"columns": []object{{"name": "id", "type": sdk.I64, "db_type": object{"postgres": dbType}}}}
		var answer object
		if err := sdktest.Adapter(Adapter{}).Call(object{"op": "ddl", "table_name": "t", "logical": logical},
			&answer); err == nil {
			t.Errorf("%s was taken: %v", dbType, answer)
		}
	}
}

func TestDDL(t *testing.T) {
	column := func(name string) object { return object{"name": name, "type": sdk.I64} }
	logical := object{"name": "t", "key": []string{"a", "b"}, "columns": []object{column("a"), column("b")},
		"options": object{"postgres": "WITH (fillfactor=100)"},
		"indexes": []object{{"columns": []string{"b"}}, {"columns": []string{"b", "a"}, "unique": true}}}
	request := object{"op": "ddl", "table_name": "s.t", "logical": logical,
		"results": object{"resolve": object{"columns": []string{}, "rows": []any{}}}}
	var answer struct {
		DDL       []string `json:"ddl"`
		AfterLoad []string `json:"after_load"`
	}
	if err := sdktest.Adapter(Adapter{}).Call(request, &answer); err != nil {
		t.Fatal(err)
	}
	if want := []string{
		`CREATE TABLE "s"."t" ("a" bigint NOT NULL, "b" bigint NOT NULL) WITH (fillfactor=100)`,
	}; !slices.Equal(
		answer.DDL,
		want,
	) {
		t.Errorf("%q", answer.DDL)
	}
	if want := []string{`ALTER TABLE "s"."t" ADD PRIMARY KEY ("a", "b")`, `CREATE INDEX ON "s"."t" ("b")`,
		`CREATE UNIQUE INDEX ON "s"."t" ("b", "a")`, `VACUUM (ANALYZE) "s"."t"`}; !slices.Equal(answer.AfterLoad, want) {
		t.Errorf("%q", answer.AfterLoad)
	}
	for name, wrong := range map[string]any{"options": object{"postgres": "; DROP TABLE x"},
		"indexes": []object{{"columns": []string{"z"}}}, "key": []string{"z"}} {
		bad := maps.Clone(logical)
		bad[name] = wrong
		if err := sdktest.Adapter(Adapter{}).Call(object{"op": "ddl", "table_name": "t", "logical": bad},
			&answer); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// A table that is going to be dropped is not asked which keys it has: they are those of the next.
func TestWhatIsDroppedIsNotAskedForItsKeys(t *testing.T) {
	answers := func(rows ...any) object { return object{"columns": []string{}, "rows": rows} }
	for _, dropped := range []bool{false, true} {
		var answer struct {
			Exists  bool
			Queries []struct{ ID string }
			Table   struct {
				Rows int64
				Key  []string
			}
		}
		if err := sdktest.Adapter(Adapter{}).Call(object{"op": "inspect", "table_name": "s.t", "recreate": dropped,
			"results": object{"resolve": answers([]any{"1", "s", "t", "r", "100", "true", "8192"}),
				"columns": answers([]any{"1", "id", "bigint", "bigint", "false", "false", "", "", "b", "N", "false", "-1"}),
				"keys":    answers([]any{"true", "1", "1", "true"}), "constraints": answers(), "count": answers([]any{"100"})}},
			&answer); err != nil {
			t.Fatal(err)
		}
		if asks := len(answer.Queries) == 1 && answer.Queries[0].ID == "range"; asks == dropped || answer.Exists != dropped ||
			dropped && (answer.Table.Rows != 100 || len(answer.Table.Key) != 1) {
			t.Errorf("about to be dropped %v: %+v", dropped, answer)
		}
	}
}

// TestADefaultIsFreshWhereItsFunctionIs: constants and functions that nobody knows give no other value in each row.
func TestADefaultIsFreshWhereItsFunctionIs(t *testing.T) {
	for expression, want := range map[string]bool{"nextval('s.t_id_seq'::regclass)": true, "gen_random_uuid()": true,
		"(gen_random_uuid())::text": true, "public.uuid_generate_v4()": true, "('c-'::text || nextval('x'::regclass))": true,
		"((random() * (1000)::double precision))::integer": true, "clock_timestamp()": true, "uuidv7()": true,
		"'00000000-0000-0000-0000-000000000000'::uuid": false, "'random'::text": false, "'it''s random()'::text": false,
		"current_tenant()": false, "now()": false, "public.my_random()": false, "uuid_nil()": false, "": false} {
		if got := isFresh(expression); got != want {
			t.Errorf("%s: %v", expression, got)
		}
	}
}

// keyed is a table of columns that are NOT NULL, with foreign keys "a b > parent" and one unique constraint.
func keyed(unique string, keys ...string) *table {
	t := &table{}
	t.name = tableName{schema: "s", table: "loadstone_t", exact: true}
	for _, key := range keys {
		names, name, _ := strings.Cut(key, " > ")
		t.parents = append(t.parents, parent{constraint: len(t.constraints), columns: strings.Fields(names),
			keys: strings.ReplaceAll(names, " ", ", "),
			name: tableName{schema: "s", table: name, exact: true}})
		t.constraints = append(t.constraints, sdk.Constraint{Kind: sdk.ForeignKey, Columns: strings.Fields(names)})
	}
	for _, c := range t.constraints {
		for _, name := range c.Columns {
			if !slices.ContainsFunc(t.columns, func(c column) bool { return c.Name == name }) {
				t.columns = append(t.columns, column{Column: sdk.Column{Name: name, Type: sdk.I64}})
			}
		}
	}
	t.constraints = append(t.constraints, sdk.Constraint{Kind: sdk.Unique, Columns: strings.Fields(unique)})
	return t
}

// TestSidesOfACombination: no foreign key takes a part of the columns from one row and the rest from another.
func TestSidesOfACombination(t *testing.T) {
	for _, c := range []struct {
		name, unique string
		keys         []string
		want         string
	}{
		{"two", "a b", []string{"a > as", "b > bs"}, "as bs"},
		{"one", "a", []string{"a > as"}, "as"},
		{"a third that has both", "a b", []string{"a > as", "b > bs", "a b > pairs"}, "pairs"},
		{"a tenant of both", "t a b", []string{"t > ts", "t a > as", "t b > bs"}, "as bs"},
		{"three of a tenant", "t a b c", []string{"t a > as", "t b > bs", "t c > cs"}, ""},
		{"three that have nothing in common", "a b c", []string{"a > as", "b > bs", "c > cs"}, "as bs"},
		{"one that lies half outside", "a b", []string{"a > as", "b > bs", "b x > xs"}, "as"},
		{"one that lies half outside, of a third", "a b c", []string{"a > as", "b > bs", "c x > xs"}, "as bs"},
		{"the same columns of two tables", "a b", []string{"a > as", "a > others", "b > bs"}, "bs"},
		{"the same twice", "a b", []string{"a > as", "a > as", "b > bs"}, "as bs"},
	} {
		table, got := keyed(c.unique, c.keys...), ""
		if f := table.findFree(); f != nil {
			got = f.left.name.table
			if f.right != nil {
				got += " " + f.right.name.table
			}
		}
		if got != c.want {
			t.Errorf("%s: the sides are %q, expected %q", c.name, got, c.want)
		}
		if list := table.parentQueries(false); len(list) > 0 {
			t.Errorf("%s: a run that only reads asks %s", c.name, list[0].SQL)
		}
		if list := table.parentQueries(true); len(list) == 0 {
			t.Errorf("%s: nothing is asked", c.name)
		}
	}
	table := keyed("a b", "a > as", "b > bs", "b x > xs")
	table.columns[2].Nullable = true
	if f := table.findFree(); f == nil || f.left.name.table != "as" || f.right == nil {
		t.Errorf("what may be NULL keeps the others from being combined: %+v", f)
	}
}

// TestExpressionsThatAreAsked: none that calls a function, or names a relation, which the declared queries have not.
func TestExpressionsThatAreAsked(t *testing.T) {
	for text, want := range map[string]bool{
		"(a < b)":                  true,
		"((a)::text <> (b)::text)": true,
		`(("A b")::text < (b)::text COLLATE "C")`:     true,
		"((a > 0) AND (NOT (b = ANY (ARRAY[1, 2]))))": true,
		"(lower(a) <> lower(b))":                      false,
		`("A"(a) <> b)`:                               false,
		"(a IS DISTINCT FROM b)":                      false,
		"((a AT TIME ZONE (b)::text) > c)":            false,
		"(EXTRACT(year FROM a) > (2000)::numeric)":    false,
		"((a AT TIME ZONE ('x'::text)) > c)":          false,
		"((a)::numeric(10,2) > b)":                    false,
		"":                                            false,
	} {
		if callsNothing(text) != want {
			t.Errorf("%s: expected %v", text, want)
		}
		table := keyed("a b", "a > as", "b > bs")
		table.checks = []check{{[]string{"a", "b"}, text}}
		sends := Adapter{}.Manifest().Sends.Query
		if sql := table.freeQuery(table.findFree()); want && !plugin.Allows(sends, sql, dialect, nil) {
			t.Errorf("%s: the query is not among those that are declared: %s", text, sql)
		}
	}
	for _, table := range []*table{keyed("t a b", "t a > as", "t b > bs"), keyed("a", "a > as")} {
		table.checks = []check{{[]string{"a"}, "(a > 0)"}}
		for _, q := range table.parentQueries(true) {
			if !plugin.Allows(Adapter{}.Manifest().Sends.Query, q.SQL, dialect, nil) {
				t.Errorf("it is not among those that are declared: %s", q.SQL)
			}
		}
	}
}

// TestRowsOfAnEmptyTable: the keys of one row belong together.
func TestRowsOfAnEmptyTable(t *testing.T) {
	keys := func(text string) *jsondoc.Value {
		v, err := jsondoc.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	var m madeRows
	if !m.join([]string{"t", "a"}, keys(`[["1","10"],["2","20"],["3","30"],["2","21"]]`)) ||
		!m.join([]string{"b", "t"}, keys(`[["x","2"],["y","3"],["z","2"],["w","9"]]`)) ||
		!m.join([]string{"t"}, keys(`[["1"]]`)) || !m.join([]string{"c"}, keys(`[["p"],["q"]]`)) {
		t.Fatal("they do not go together")
	}
	if m.join([]string{"t", "d"}, keys(`[["7","70"]]`)) {
		t.Error("rows of other tenants go together")
	}
	var rows []string
	for _, row := range m.rows {
		var cells []string
		for _, v := range row {
			cells = append(cells, v.Str())
		}
		rows = append(rows, strings.Join(cells, " "))
	}
	if want := []string{"2 20 z p", "3 30 y q", "2 21 z p"}; !slices.Equal(m.columns, []string{"t", "a", "b", "c"}) ||
		!slices.Equal(rows, want) {
		t.Errorf("%v %q", m.columns, rows)
	}
}
