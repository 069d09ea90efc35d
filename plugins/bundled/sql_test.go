package bundled_test

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

// TestSQLOnPostgres executes the user's statements, with casts and quotes that
// look like parameters, against a real server.
func TestSQLOnPostgres(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec(`CREATE TABLE shop (id bigint PRIMARY KEY, price numeric(8,2), sold timestamptz, note text, tags jsonb)`,
		`INSERT INTO shop SELECT i, i, now(), 'n', '{"a": 1}' FROM generate_series(1, 500) i`)
	const params = `{"statements":[
{"id":"find","weight":4,"kind":"POINT_LOOKUP","sql":"SELECT price::text, ':no', $$ :no $$ /* :no */ FROM {table} WHERE id = :id -- :no","binds":[{"name":"id","generator":"key","theta":0.99}]},
{"id":"json","sql":"SELECT count(*) FROM shop WHERE tags ? :key::text AND id BETWEEN :lo AND :lo + 10","binds":[{"name":"key","value":"a"},{"name":"lo","generator":"uniform","min":1,"max":400}]},
{"id":"add","sql":"INSERT INTO {table} (id, price, sold, note) VALUES (:id, :price, :sold, :note)","binds":[{"name":"id","generator":"new_key"},
 {"name":"price","generator":"uniform","min":0,"max":999.99,"decimals":2},{"name":"sold","generator":"timestamp","from":"2024-01-01","to":"2024-12-31"},{"name":"note","generator":"text","pattern":"N-####","nulls":20}]},
{"id":"raise","sql":"WITH picked AS (SELECT id FROM shop WHERE id = :id) UPDATE shop SET price = price + 1 FROM picked WHERE shop.id = picked.id","binds":[{"name":"id","generator":"row","column":"id"}]}]}`
	plan, err := b.planOf("sql", "shop", params, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := b.run(plan, params, 700)
	if look := seen[engine.KindPointLookup]; look == nil || look.hits != look.operations || look.operations < 200 {
		t.Errorf("lookups: %+v", look)
	}
	for _, kind := range []engine.Kind{engine.KindInsert, engine.KindUpdate} {
		if o := seen[kind]; o == nil || o.rows != o.operations {
			t.Errorf("%v: %+v", kind, o)
		}
	}
	if plan, err = b.planOf("sql", "", `{"statements":[{"id":"one","sql":"SELECT 1"}]}`, nil); err != nil ||
		len(plan.Tables) != 0 {
		t.Fatalf("a template without a table: %v", err)
	}
	b.run(plan, `{"statements":[{"id":"one","sql":"SELECT 1"}]}`, 10)
}

func TestSQLErrorsPointAtTheSpot(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	for params, says := range map[string]string{
		`{"statements":[{"id":"first","sql":"SELECT 1"},{"id":"second","sql":"SELECT 2,\n  nope FROM pg_class"}]}`:                     "Statement second cannot be prepared: column \"nope\" does not exist.",
		`{"statements":[{"id":"typo","sql":"SELEC 1"}]}`:                                                                               "begins with SELEC",
		`{"statements":[{"id":"two","sql":"SELECT 1; SELECT 2"}]}`:                                                                     "line 1, column 11: a second statement",
		`{"statements":[{"id":"table","sql":"SELECT * FROM {table}"}]}`:                                                                "target.table_name",
		`{"statements":[{"id":"bad id","sql":"SELECT 1"}]}`:                                                                            "workload.params.statements[0].id",
		`{"statements":[{"id":"x","sql":"SELECT :a + :b","binds":[{"name":"a","value":1},{"name":"b","value":1,"genrator":"uuid"}]}]}`: "genrator",
	} {
		_, err := b.planOf("sql", "", params, nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, expected %q", params, err, says)
		}
	}
	_, err := b.planOf("sql", "", `{"statements":[{"id":"second","sql":"SELECT 2,\n  nope FROM pg_class"}]}`, nil)
	if e := engine.AsError(err); !strings.Contains(e.Hint, "Line 2 of its SQL:\n      nope FROM pg_class\n      ^") {
		t.Errorf("the hint is\n%s", e.Hint)
	}
}

func BenchmarkSQL(b *testing.B) {
	s, _ := openWorkload(b, "sql",
		`{"statements":[{"id":"a","weight":3,"sql":"SELECT :x","binds":[{"name":"x","generator":"zipfian","max":1000000}]},
{"id":"b","sql":"UPDATE t SET a = :a WHERE id = :id","binds":[{"name":"a","generator":"text","length":20},{"name":"id","generator":"uniform","max":1000000}]}]}`)
	fill(b, s)
}
