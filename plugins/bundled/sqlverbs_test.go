package bundled_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

// execute executes operations on one connection, and returns the rows of each statement, execution by execution.
func (b *bench) execute(plan *engine.Plan, params string, operations int) map[string][]int {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w, err := b.host.Workload(ctx, plan.Workload.SHA256)
	if err != nil {
		b.Fatal(err)
	}
	s, err := w.Open(ctx, plugin.OpenRequest{Seed: 7, KeySlots: 4, Params: json.RawMessage(params), Tables: plan.Tables,
		Pools: plan.Pools}, plan.Statements)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	conn, err := b.db.Connect(ctx, plan.Statements)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	rows := map[string][]int{}
	var batch plugin.Batch
	for done := 0; done < operations; {
		if err := s.Fill(&batch, 16); err != nil {
			b.Fatal(err)
		}
		for _, op := range batch.Ops {
			var res target.Result
			if err := conn.Exec(ctx, &batch, op, &res); err != nil {
				b.Fatalf("statement %d: %v", op.Statement, err)
			}
			if op.Statement < plugin.StatementBegin {
				id := plan.Statements[op.Statement].ID
				rows[id] = append(rows[id], int(res.Rows))
				done++
			}
		}
	}
	return rows
}

// TestSQLInsideTransactions: savepoints, settings, locks, cursors and COPY are executions, and do what they say.
func TestSQLInsideTransactions(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec(`CREATE TABLE log (id bigint PRIMARY KEY, who uuid, n int NOT NULL)`,
		`INSERT INTO log SELECT g, gen_random_uuid(), g FROM generate_series(1, 50) g`)
	const params = `{"statements":[{"id":"all","transaction":[
{"id":"setting","sql":"SET LOCAL work_mem = '8MB'"},
{"id":"lock","sql":"LOCK TABLE {table} IN ROW EXCLUSIVE MODE"},
{"id":"point","sql":"SAVEPOINT a"},
{"id":"gone","sql":"UPDATE {table} SET n = -1 WHERE id = :id","binds":[{"name":"id","generator":"key"}]},
{"id":"back","sql":"ROLLBACK TO SAVEPOINT a"},
{"id":"release","sql":"RELEASE SAVEPOINT a"},
{"id":"cursor","sql":"DECLARE c CURSOR FOR SELECT * FROM {table} WHERE id > :low ORDER BY id","binds":[{"name":"low","value":10}]},
{"id":"move","sql":"MOVE 2 FROM c"},
{"id":"fetch","sql":"FETCH 5 FROM c"},
{"id":"close","sql":"CLOSE c"},
{"id":"copied","sql":"COPY (SELECT * FROM {table} LIMIT 7) TO STDOUT"},
{"id":"filled","rows":4,"sql":"COPY {table} (id, who, n) FROM STDIN","binds":[
{"name":"n","value":2},{"name":"id","generator":"sequence","start":100000},{"name":"who","generator":"uuid"}]},
{"id":"named","columns":["id","who"],"sql":"PREPARE pick (bigint) AS SELECT * FROM {table} WHERE id = $1; EXECUTE pick(:id)",
"binds":[{"name":"id","generator":"key"}]},
{"id":"again","sql":"EXECUTE pick(:id)","writes":false,"binds":[{"name":"id","ref":"named.id"}]},
{"id":"noted","sql":"PREPARE note (uuid, text) AS UPDATE {table} SET n = n WHERE who = $1 AND $2 = 'it''s'; EXECUTE note(:who, :why)",
"binds":[{"name":"who","ref":"named.who"},{"name":"why","value":"it's"}]}]},
{"id":"many","rows":3,"sql":"INSERT INTO {table} (id, who, n) VALUES (:id, :who, 1) ON CONFLICT (id) DO UPDATE SET n = :n","binds":[
{"name":"id","generator":"new_key"},{"name":"who","generator":"uuid"},{"name":"n","value":5}]},
{"id":"merged","rows":5,"sql":"MERGE INTO {table} t USING (VALUES (:id::bigint, :n::int)) AS s (id, n) ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)","binds":[
{"name":"id","generator":"sequence","start":200000},{"name":"n","value":3}]}]}`
	plan, err := b.planOf("sql", "log", params, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := b.execute(plan, params, 170)
	for id, want := range map[string]int{"setting": 0, "lock": 0, "point": 0, "gone": 1, "back": 0, "release": 0, "cursor": 0,
		"move": 2, "fetch": 5, "close": 0, "copied": 7, "many": 3, "filled": 4, "named": 1, "again": 1, "noted": 1,
		"merged": 5} {
		if len(rows[id]) == 0 {
			t.Errorf("%s was not executed", id)
		}
		for _, n := range rows[id] {
			if n != want {
				t.Errorf("%s: %v rows, and not %d each", id, rows[id], want)
				break
			}
		}
	}
	if n := b.value(`SELECT count(*) FROM log WHERE n = -1`).(int64); n != 0 {
		t.Errorf("%d rows have what was rolled back", n)
	}
	said := fmt.Sprint(
		b.rows(`SELECT count(*), count(DISTINCT who), count(*) FILTER (WHERE n = 1) FROM log WHERE id > 50 AND n = 1`),
	)
	if n := 3 * len(rows["many"]); said != fmt.Sprintf("[[%d %d %d]]", n, n, n) {
		t.Errorf("%d rows were inserted, and the table has %s", n, said)
	}
	for n, want := range map[int]int{2: 4 * len(rows["filled"]), 3: 5 * len(rows["merged"])} {
		if got := b.value(fmt.Sprintf(`SELECT count(DISTINCT id) FROM log WHERE n = %d AND id > 50`, n)); got != int64(want) {
			t.Errorf("%v rows with n = %d, and not %d", got, n, want)
		}
	}
	kinds := map[string]engine.Kind{"gone": engine.KindUpdate, "many": engine.KindInsert, "filled": engine.KindInsert,
		"noted": engine.KindUpdate}
	for _, s := range plan.Statements {
		want, other := kinds[s.ID]
		if !other {
			want = engine.KindGenericSQL
		}
		if s.Kind != want {
			t.Errorf("%s is of kind %s", s.ID, s.Kind)
		}
	}
}

func TestSQLThatBelongsIntoATransaction(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec(`CREATE TABLE log (id bigint PRIMARY KEY, n int)`, `INSERT INTO log VALUES (1, 1)`)
	for sql, want := range map[string]string{
		`SAVEPOINT a`: "inside of a transaction alone", `FETCH 1 FROM c`: "inside of a transaction alone",
		`SET LOCAL work_mem = '8MB'`: "inside of a transaction alone", `SET work_mem = '8MB'`: "SET LOCAL ends with its transaction",
		`COPY {table} FROM STDIN`: "has to name its columns", `COPY {table} TO PROGRAM 'cat'`: "FROM STDIN alone",
		`COPY {table} (id, n) FROM STDIN`: "has no bind of that name", `COPY {table} (id) FROM STDIN (FORMAT csv)`: "text format",
		`COPY {table} (id) FROM '/tmp/x'`: "FROM STDIN alone", `COPY {table} (id) FROM STDIN WHERE n > :n`: "no parameters",
		`PREPARE a AS SELECT :x; EXECUTE a`: "belongs to the EXECUTE", `PREPARE a AS SELECT 1; EXECUTE b`: "a second statement",
		`PREPARE a AS DROP TABLE log; EXECUTE a`: "cannot be issued", `PREPARE a AS CALL p(); EXECUTE a`: "and not CALL",
		`PREPARE a AS SELECT 1`: "cannot be issued", `PREPARE a AS SELECT 1; EXECUTE a; SELECT 1`: "a second statement",
		`COPY {table} TO '/tmp/x'`: "FROM STDIN alone", `ROLLBACK`: "list the statements under transaction",
		`DECLARE c CURSOR WITH HOLD FOR SELECT 1`: "outlives its transaction",
	} {
		params := fmt.Sprintf(`{"statements":[{"id":"one","sql":%q}]}`, sql)
		if _, err := b.planOf("sql", "log", params, nil); err == nil || !strings.Contains(engine.AsError(err).Message, want) {
			t.Errorf("%s: %v", sql, err)
		}
	}
	for rows, want := range map[string]string{
		`"rows":3,"sql":"UPDATE {table} SET n = 1"`:                                                                                  "is for an INSERT with one row",
		`"rows":3,"sql":"INSERT INTO {table} VALUES (7, 1), (8, 1)"`:                                                                 "is for an INSERT with one row",
		`"rows":3,"sql":"INSERT INTO {table} DEFAULT VALUES ON CONFLICT (id) DO NOTHING"`:                                            "is for an INSERT with one row",
		`"rows":200,"sql":"COPY {table} (id, n) FROM STDIN","binds":[{"name":"id","generator":"new_key"},{"name":"n","value":1}]`:    "more than 255 parameters",
		`"rows":3,"sql":"INSERT INTO {table} SELECT 1, 2"`:                                                                           "is for an INSERT with one row",
		`"rows":200,"sql":"INSERT INTO {table} VALUES (:a, :b)","binds":[{"name":"a","generator":"new_key"},{"name":"b","value":1}]`: "more than 255 parameters",
	} {
		params := `{"statements":[{"id":"one",` + rows + `}]}`
		if _, err := b.planOf("sql", "log", params, nil); err == nil || !strings.Contains(engine.AsError(err).Message, want) {
			t.Errorf("%s: %v", rows, err)
		}
	}
}
