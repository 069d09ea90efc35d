package bundled_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/prepare"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/tryout"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

// trials is a table of accounts and a bench to try statements on.
func trials(t *testing.T) (*bench, *tryout.Bench) {
	t.Helper()
	b := newBench(t, hosttest.Bundled(t))
	b.exec("CREATE TABLE accounts (id int8 PRIMARY KEY, balance numeric(12,2), owner text)",
		"INSERT INTO accounts SELECT i, i * 1.5, 'owner ' || i FROM generate_series(1, 100) i", "ANALYZE accounts")
	return b, &tryout.Bench{Deps: prepare.Deps{Plugins: b.host,
		Drivers: map[string]target.Driver{"postgres": postgres.NewDriver()}, Connections: inline{}}}
}

func (b *bench) try(bench *tryout.Bench, statements, id string) tryout.StatementTrial {
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
		w := b.try(bench, `{"id": "w", "sql": "`+sql+`", "binds": [{"name": "n", "generator": "uniform", "min": 1, "max": 9}]}`,
			"")
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

// TestATransactionIsTried: a value from an earlier statement is read with it.
func TestATransactionIsTried(t *testing.T) {
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
	b, bench := trials(t)
	c, err := bench.Catalog(context.Background(), engine.ConnectionRef{Driver: "postgres", DSN: b.dsn})
	if err != nil || len(c.Relations) != 1 || c.Relations[0].Name != "accounts" || len(c.Relations[0].Columns) != 3 ||
		c.Relations[0].Columns[0] != (tryout.CatalogColumn{Name: "id", Type: "bigint"}) {
		t.Errorf("%+v, %v", c, err)
	}
}
