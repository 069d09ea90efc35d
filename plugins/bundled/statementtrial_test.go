package bundled_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/dryrun"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

// trials is a table of accounts and a bench to try statements on.
func trials(t *testing.T) (*bench, *dryrun.Runner) {
	t.Helper()
	b := newBench(t, hosttest.Bundled(t))
	b.exec("CREATE TABLE accounts (id int8 PRIMARY KEY, balance numeric(12,2), owner text)",
		"INSERT INTO accounts SELECT i, i * 1.5, 'owner ' || i FROM generate_series(1, 100) i", "ANALYZE accounts")
	return b, &dryrun.Runner{Deps: prepare.Deps{Plugins: b.host,
		Drivers: map[string]target.Driver{"postgres": postgres.NewDriver()}, Connections: inline{}}}
}

func (b *bench) try(bench *dryrun.Runner, statements, id string) dryrun.StatementTrial {
	b.Helper()
	sc := engine.Scenario{Name: "test",
		Workload: engine.Workload{Plugin: "sql", Params: json.RawMessage(`{"statements": [` + statements + `]}`), Seed: 7,
			ConcurrentConnections: 1},
		Target: engine.Target{Connection: engine.ConnectionRef{Driver: "postgres", DSN: b.dsn}, Adapter: "postgres",
			TableName: "accounts"},
		Scaling: engine.Scaling{WorkerCount: 1}}
	t, err := bench.Try(context.Background(), sc, id)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

func text(v *string) string {
	if v == nil {
		return "NULL"
	}
	return *v
}

// TestAStatementIsTried: what reads is explained and executed, what writes is only explained, and nothing changes.
func TestAStatementIsTried(t *testing.T) {
	t.Parallel()
	b, bench := trials(t)
	read := b.try(bench, `{"id": "one", "weight": 1, "sql": "SELECT id, owner FROM accounts WHERE id = :id", "binds": [
		{"name": "id", "generator": "uniform", "min": 40, "max": 49}]}, {"id": "other", "weight": 99, "sql": "SELECT 1"}`, "one")
	if !read.OK || !read.Executed || read.RowCount != 1 || len(read.Rows) != 1 || len(read.Parameters) != 1 {
		t.Fatalf("%+v", read)
	}
	values := read.Parameters[0].Values
	if len(values) != 5 || text(read.Rows[0][0]) != text(values[0]) || text(read.Rows[0][1]) != "owner "+text(values[0]) {
		t.Errorf("the row is not that of the first value: %v, %v", read.Rows, text(values[0]))
	}
	if plan := strings.Join(read.Explain, "\n"); !strings.Contains(plan, "accounts") ||
		!strings.Contains(plan, text(values[0])) {
		t.Errorf("the plan is not that of the value %s: %s", text(values[0]), plan)
	}
	for _, sql := range []string{"UPDATE accounts SET balance = balance + :n WHERE id = 1",
		"INSERT INTO accounts VALUES (1000 + :n, 5, 'new')", "DELETE FROM accounts WHERE id = :n"} {
		w := b.try(
			bench,
			`{"id": "w", "sql": "`+sql+`", "binds": [{"name": "n", "generator": "uniform", "min": 1, "max": 9}]}`,
			"",
		)
		if !w.OK || w.Executed || w.NotExecuted == "" || len(w.Explain) == 0 || !w.Writes {
			t.Errorf("%s: %+v", sql, w)
		}
	}
	// A function that writes behind a SELECT meets a transaction that cannot.
	b.exec("CREATE FUNCTION spend() RETURNS int LANGUAGE sql AS 'UPDATE accounts SET balance = 0 RETURNING 1'")
	f := b.try(bench, `{"id": "f", "sql": "SELECT spend()"}`, "f")
	if f.Executed || f.Failed == nil || !strings.Contains(f.Failed.Message, "read-only") {
		t.Errorf("a function that writes: %+v", f)
	}
	rs, err := b.db.Query(context.Background(), "SELECT sum(balance)::text, count(*) FROM accounts")
	if err != nil || rs.Rows[0][0] != "7575.00" || rs.Rows[0][1] != int64(100) {
		t.Errorf("the accounts were changed: %v, %v", rs, err)
	}
}

// TestTrialsSayWhatIsWrong: the database's refusal, an unknown generator, a statement that is slow or has many rows.
func TestTrialsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	b, bench := trials(t)
	for _, c := range []struct{ statement, words string }{
		{`{"id": "a", "sql": "SELECT ballance FROM accounts"}`, "ballance"},
		{`{"id": "a", "sql": "SELECT :x", "binds": [{"name": "x", "generator": "uniform", "min": 9, "max": 1}]}`, "x"},
		{`{"id": "a", "sql": "SELECT :x"}`, "no bind"},
		{`{"id": "a", "sql": "SELECT balance FROM nowhere"}`, "nowhere"},
	} {
		got := b.try(bench, c.statement, "")
		if got.OK || len(got.Problems) == 0 || !strings.Contains(got.Problems[0].Message, c.words) || got.Executed {
			t.Errorf("%s: %+v", c.statement, got)
		}
	}
	many := b.try(bench, `{"id": "a", "sql": "SELECT repeat('x', 100000) FROM generate_series(1, 200)"}`, "")
	if many.Failed == nil || !strings.Contains(many.Failed.Message, "8 MB") {
		t.Errorf("a large result: %+v", many.Failed)
	}
	slow := b.try(bench, `{"id": "a", "sql": "SELECT pg_sleep(30)"}`, "")
	if slow.OK && (slow.Failed == nil || slow.ElapsedMs > 7_000) {
		t.Errorf("a slow statement: %+v after %v ms", slow.Failed, slow.ElapsedMs)
	}
}

// TestAFaultIsThatOfAParameter: values that the database refuses are told of the parameter that has them, with its type
// and what to choose; those that it takes are not blamed, whatever stands beside them.
func TestAFaultIsThatOfAParameter(t *testing.T) {
	t.Parallel()
	b, bench := trials(t)
	b.exec("CREATE TYPE mood AS ENUM ('calm', 'it''s odd')",
		"CREATE TABLE things (id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ref uuid, made timestamptz, "+
			"amount numeric(10,2), doc jsonb, active boolean, nums int[], state mood, code varchar(5), small smallint, "+
			"name text)")
	for _, c := range []struct{ column, value, typ, hint string }{
		{"ref", `"8821"`, "uuid", "UUID"},
		{"made", `"soon"`, "timestamp with time zone", "Time"},
		{"amount", `"123456789.5"`, "numeric", "fit"},
		{"doc", `"{"`, "jsonb", "JSON"},
		{"active", `"7"`, "boolean", "true and false"},
		{"nums", `"7"`, "integer[]", "{#,#}"},
		{"state", `"busy"`, "mood", "with calm, it's odd"},
		{"code", `"too long"`, "character varying", "shorter"},
		{"small", `"70000"`, "smallint", "32767"},
	} {
		const fine = `{"name": "fine", "value": "x"}, `
		wrong := `{"name": "wrong", "value": ` + c.value + `}`
		for sql, binds := range map[string]string{
			"INSERT INTO things (name, " + c.column + ") VALUES (:fine, :wrong)": fine + wrong,
			"UPDATE things SET name = :fine, " + c.column + " = :wrong WHERE id = :id": fine + wrong +
				`, {"name": "id", "value": 1}`,
		} {
			got := b.try(bench, `{"id": "a", "sql": "`+sql+`", "binds": [`+binds+`]}`, "")
			if got.Failed == nil || got.Executed || len(got.Faults) != 1 {
				t.Fatalf("%s: %+v", sql, got)
			}
			f := got.Faults[0]
			if f.Parameter != "wrong" || f.Type != c.typ || !strings.Contains(f.Hint, c.hint) || f.Message == "" ||
				text(f.Value) != strings.Trim(c.value, `"`) {
				t.Errorf("%s: %+v of %s", sql, f, text(f.Value))
			}
		}
	}
	two := b.try(bench, `{"id": "a",
		"sql": "SELECT name FROM things WHERE ref = :one AND active = :two AND name = :three", "binds": [
		{"name": "one", "value": "x"}, {"name": "two", "value": "maybe"}, {"name": "three", "value": "z"}]}`, "")
	if len(two.Faults) != 2 || two.Faults[0].Parameter != "one" || two.Faults[1].Parameter != "two" {
		t.Errorf("two at fault: %+v", two.Faults)
	}
	whole := b.try(bench, `{"id": "a", "sql": "SELECT 1/0, :one::text", "binds": [{"name": "one", "value": "x"}]}`, "")
	if whole.Failed == nil || len(whole.Faults) != 0 {
		t.Errorf("nobody's fault: %+v", whole)
	}
}

// TestATransactionIsTried: a value from an earlier statement is read with it.
func TestATransactionIsTried(t *testing.T) {
	t.Parallel()
	b, bench := trials(t)
	const transfer = `{"id": "transfer", "binds": [{"name": "account", "generator": "uniform", "min": 1, "max": 100}],
		"transaction": [{"id": "see", "sql": "SELECT owner FROM accounts WHERE id = :account", "columns": ["owner"]},
		{"id": "again", "sql": "SELECT id FROM accounts WHERE owner = :who", "binds": [{"name": "who", "ref": "see.owner"}]}]}`
	got := b.try(bench, transfer, "again")
	see := b.try(bench, transfer, "see")
	if !got.Executed || got.RowCount != 1 || text(got.Rows[0][0]) != text(see.Parameters[0].Values[0]) {
		t.Errorf("%+v\n%+v", got, see)
	}
}

// TestSamplesOfGenerators: each makes values without a database; what is wrong with one is told of it alone.
func TestSamplesOfGenerators(t *testing.T) {
	t.Parallel()
	_, bench := trials(t)
	var binds []json.RawMessage
	for _, text := range []string{`{"name": "a", "generator": "uniform", "min": 5, "max": 5}`,
		`{"name": "b", "values": ["x"]}`, `{"name": "c", "generator": "text", "pattern": "##"}`,
		`{"name": "d", "generator": "key"}`, `{"name": "e", "generator": "uniform", "min": 9, "max": 1}`,
		`{"name": "f", "generator": "timestamp", "from": "2024-05-05", "to": "2024-05-06"}`, `[]`,
		`{"name": "g", "generator": "constant", "value": 1, "nulls": 100}`} {
		binds = append(binds, json.RawMessage(text))
	}
	list, err := bench.Samples(context.Background(), binds)
	if err != nil {
		t.Fatal(err)
	}
	first := func(i int) string { return text(append(list[i].Values, new(string))[0]) }
	if first(0) != "5" || first(1) != "x" || len(first(2)) != 2 || !list[3].NeedsTable || list[4].Problem == "" ||
		strings.Contains(list[4].Problem, "statements[") || !strings.HasPrefix(first(5), "2024-05-0") ||
		list[6].Problem == "" || first(7) != "NULL" || len(list[0].Values) != 5 {
		t.Errorf("%+v", list)
	}
}

// TestTheTablesOfAConnection lists what its user sees.
func TestTheTablesOfAConnection(t *testing.T) {
	t.Parallel()
	b, bench := trials(t)
	b.exec(
		"CREATE TYPE mood AS ENUM ('calm', 'it''s odd')",
		"CREATE DOMAIN code AS varchar(5)",
		`CREATE TABLE things (id int8 GENERATED ALWAYS AS IDENTITY, n int GENERATED BY DEFAULT AS IDENTITY, state mood, c code,
			"Odd" int[], at timestamptz DEFAULT now(), PRIMARY KEY (id, n))`,
	)
	c, err := bench.Catalog(context.Background(), engine.ConnectionRef{Driver: "postgres", DSN: b.dsn})
	if err != nil || len(c.Relations) != 2 || c.Relations[0].Name != "accounts" {
		t.Fatalf("%+v, %v", c, err)
	}
	want := [][]dryrun.CatalogColumn{
		{{Name: "id", Type: "bigint", Key: true}, {Name: "balance", Type: "numeric(12,2)"}, {Name: "owner", Type: "text"}},
		{{Name: "id", Type: "bigint", Generated: "always"}, {Name: "n", Type: "integer", Generated: "default"},
			{Name: "state", Type: "mood", Values: []string{"calm", "it's odd"}}, {Name: "c", Type: "character varying(5)"},
			{Name: "Odd", Type: "integer[]"}, {Name: "at", Type: "timestamp with time zone", Generated: "default"}}}
	for i, columns := range want {
		if got := c.Relations[i].Columns; !reflect.DeepEqual(got, columns) {
			t.Errorf("%+v, want %+v", got, columns)
		}
	}
}
