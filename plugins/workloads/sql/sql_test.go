package main

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/sdk/abi"
	"github.com/loadstone-db/loadstone/sdk/sdktest"
)

type object = map[string]any

func orders(rows int) object {
	return object{"name": "table", "physical_name": "public.orders", "key": []string{"id"}, "rows": rows, "key_min": 1,
		"key_max": rows, "dense": true,
		"columns": []object{{"name": "id", "type": "i64", "db_type": "bigint"},
			{"name": "status", "type": "text", "db_type": "text"}}}
}

func request(params string, slot int, tables ...object) object {
	if tables == nil {
		tables = []object{}
	}
	return object{"seed": 5, "key_slot": slot, "key_slots": 4, "params": json.RawMessage(params), "tables": tables,
		"pools": []object{
			{"table": "table", "columns": []string{"status"}, "rows": [][]any{{"new"}, {"paid"}, {nil}}}}}
}

func opened(t testing.TB, params string, tables ...object) *sdktest.Plugin {
	t.Helper()
	p := sdktest.Workload(workload{})
	if err := p.Open(request(params, 1, tables...)); err != nil {
		t.Fatal(err)
	}
	return p
}

func draw(t testing.TB, p *sdktest.Plugin, n int) []abi.Op {
	t.Helper()
	var all []abi.Op
	for len(all) < n {
		ops, err := p.Fill(64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ops...)
	}
	return all
}

// one returns values of a bind.
func one(t *testing.T, bind string, n int, tables ...object) []abi.Value {
	t.Helper()
	p := opened(t, `{"statements":[{"id":"a","sql":"SELECT :x","binds":[{"name":"x",`+bind+`}]}]}`, tables...)
	var list []abi.Value
	for _, op := range draw(t, p, n) {
		list = append(list, op.Args[0])
	}
	return list
}

func TestGenerators(t *testing.T) {
	matches := func(form string) func([]abi.Value) bool {
		re := regexp.MustCompile("^" + form + "$")
		return func(list []abi.Value) bool {
			for _, v := range list {
				if v.Type != abi.TypeText || !re.Match(v.Data) {
					return false
				}
			}
			return true
		}
	}
	// whole checks that all numbers of a range come, and no other.
	whole := func(lo, hi int64) func([]abi.Value) bool {
		return func(list []abi.Value) bool {
			seen := map[int64]bool{}
			for _, v := range list {
				if v.Type != abi.TypeI64 || v.I < lo || v.I > hi {
					return false
				}
				seen[v.I] = true
			}
			return len(seen) == int(hi-lo+1)
		}
	}
	decimals := func(lo, hi float64) func([]abi.Value) bool {
		return func(list []abi.Value) bool {
			for _, v := range list {
				f, err := strconv.ParseFloat(string(v.Data), 64)
				if err != nil || f < lo || f > hi {
					return false
				}
			}
			return true
		}
	}
	for bind, good := range map[string]func([]abi.Value) bool{
		`"generator":"sequence"`: func(list []abi.Value) bool {
			return list[0].I == 2 &&
				list[1].I == 6 && list[100].I == 402
		},
		`"generator":"sequence","start":100,"step":10`: func(list []abi.Value) bool {
			return list[0].I == 110 &&
				list[1].I == 150
		},
		`"generator":"sequence","start":-5,"type":"text"`: func(list []abi.Value) bool {
			return string(list[0].Data) == "-4" && string(list[1].Data) == "0"
		},
		`"generator":"uniform","min":-3,"max":7`:  whole(-3, 7),
		`"generator":"uniform","max":0`:           whole(0, 0),
		`"generator":"zipfian","min":10,"max":30`: whole(10, 30),
		`"generator":"key"`:                       whole(1, 50),
		`"generator":"row","column":"id"`:         whole(1, 50),
		`"generator":"new_key"`: func(list []abi.Value) bool {
			return list[0].I == 52 &&
				list[1].I == 56
		},
		`"generator":"uniform","min":0.5,"max":0.75`: func(list []abi.Value) bool {
			return list[0].Type == abi.TypeF64 && list[0].F >= 0.5 && list[0].F < 0.75
		},
		`"generator":"uniform","min":-1,"max":1.5,"decimals":2`:        decimals(-1, 1.5),
		`"generator":"uniform","min":7,"max":7,"decimals":3`:           matches(`7\.000`),
		`"generator":"uniform","min":-0.05,"max":-0.05,"decimals":2`:   matches(`-0\.05`),
		`"generator":"normal","mean":100,"stddev":5,"type":"text"`:     matches(`\d+`),
		`"generator":"normal","mean":0,"stddev":1000,"min":-1,"max":1`: whole(-1, 1),
		`"generator":"uuid"`:             matches(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`),
		`"generator":"text","length":12`: matches(`[a-pA-P]{12}`),
		`"generator":"text","min_length":2,"max_length":4,"alphabet":"xyzß"`: matches(`[xyzß]{2,4}`),
		`"generator":"text","length":3,"alphabet":"01"`:                      matches(`[01]{3}`),
		`"generator":"text","pattern":"AB-###-??*\\#é"`:                      matches(`AB-\d{3}-[a-z]{2}[0-9a-z]#é`),
		`"generator":"text","length":3,"type":"bytes"`: func(list []abi.Value) bool {
			return list[0].Type == abi.TypeBytes && len(list[0].Data) == 3
		},
		`"generator":"timestamp","from":"2024-01-01","to":"2024-01-01T00:00:00.000001Z"`: func(list []abi.Value) bool {
			return list[0].Type == abi.TypeTimestamp && list[0].I>>1<<1 == 1_704_067_200_000_000
		},
		`"value":7`:    whole(7, 7),
		`"value":"x"`:  matches("x"),
		`"value":null`: func(list []abi.Value) bool { return list[0].Type == abi.TypeNull },
		`"value":true`: func(list []abi.Value) bool { return list[0].Type == abi.TypeBool && list[0].I == 1 },
		`"value":"2024-01-01","type":"timestamp"`: func(list []abi.Value) bool {
			return list[0].I == 1_704_067_200_000_000
		},
		`"values":["a","b",null]`:                   func(list []abi.Value) bool { return len(list) > 0 },
		`"values":[1,2.5]`:                          func(list []abi.Value) bool { return list[0].Type == abi.TypeF64 },
		`"generator":"row","column":"status"`:       func(list []abi.Value) bool { return true },
		`"generator":"key","theta":1.2,"nulls":100`: func(list []abi.Value) bool { return list[0].Type == abi.TypeNull },
	} {
		if list := one(t, bind, 3000, orders(50)); !good(list) {
			t.Errorf("%s: %v %q", bind, list[:3], list[0].Data)
		}
	}
}

func TestShares(t *testing.T) {
	count := map[string]float64{}
	for _, v := range one(t, `"values":["a","b","c"],"weights":[6,3,1],"nulls":50`, 40_000) {
		count[string(v.Data)]++
	}
	for value, want := range map[string]float64{"": 20_000, "a": 12_000, "b": 6000, "c": 2000} {
		if math.Abs(count[value]-want) > 600 {
			t.Errorf("%q came %v times of 40 000, expected %v", value, count[value], want)
		}
	}
	mean, spread := 0.0, 0.0
	for _, v := range one(t, `"generator":"normal","mean":50,"stddev":10.5`, 40_000) {
		mean += v.F / 40_000
		spread += (v.F - 50) * (v.F - 50) / 40_000
	}
	if math.Abs(mean-50) > 0.3 || math.Abs(math.Sqrt(spread)-10.5) > 0.3 {
		t.Errorf("normal: mean %.2f, standard deviation %.2f", mean, math.Sqrt(spread))
	}
	p := opened(
		t,
		`{"statements":[{"id":"a","weight":7,"sql":"SELECT 1"},{"id":"b","weight":2.5,"sql":"SELECT 1"},{"id":"c","sql":"SELECT 1","weight":0.5},{"id":"d","sql":"SELECT 1","weight":0}]}`,
	)
	statements := make([]float64, 4)
	for _, op := range draw(t, p, 40_000) {
		statements[op.Statement]++
	}
	for i, want := range []float64{28_000, 10_000, 2000, 0} {
		if math.Abs(statements[i]-want) > 600 {
			t.Errorf("statement %d came %v times of 40 000, expected %v", i, statements[i], want)
		}
	}
}

const transfer = `{"statements":[{"id":"transfer","rollback_percent":25,"binds":[{"name":"account","generator":"uniform","min":1,"max":1000000},{"name":"n","generator":"sequence"}],
"transaction":[
{"id":"see","sql":"SELECT owner, balance FROM accounts WHERE id = :account","columns":["owner","balance"]},
{"id":"note","sql":"INSERT INTO log (n, account, was, by) VALUES (:n, :account, :was, :who)","binds":[{"name":"was","ref":"see.balance","type":"f64"},{"name":"who","ref":"see.owner"}]},
{"id":"take","sql":"UPDATE accounts SET balance = balance - :amount WHERE id = :account","binds":[{"name":"amount","generator":"uniform","max":100}]}]}]}`

func TestTransactions(t *testing.T) {
	p := opened(t, transfer)
	ops := draw(t, p, 5000)
	ends := map[uint16]int{}
	last := int64(-2)
	accounts := map[int64]bool{}
	for len(ops) > 0 {
		see, note, take := ops[1], ops[2], ops[3]
		if ops[0].Statement != abi.StatementBegin || see.Statement != 0 || note.Statement != 1 || take.Statement != 2 {
			t.Fatal("not a transfer")
		}
		ends[ops[4].Statement]++
		account := see.Args[0].I
		accounts[account] = true
		if note.Args[1].I != account || take.Args[1].I != account {
			t.Fatal("the account changes within a transaction")
		}
		if was, who := note.Args[2], note.Args[3]; was.Type != abi.TypeRef || was.I != 1 || who.I != 0 {
			t.Fatalf("refs are %v and %v", was, who)
		}
		if n := note.Args[0].I; n != last+4 {
			t.Fatalf("the sequence has %d after %d", n, last)
		}
		last = note.Args[0].I
		ops = ops[5:]
	}
	if share := float64(ends[abi.StatementRollback]) / 1000; math.Abs(share-0.25) > 0.06 || len(accounts) < 900 {
		t.Errorf("%.2f are rolled back, %d accounts", share, len(accounts))
	}
	var answer struct {
		Statements []struct {
			ID, Kind, Transaction string
			Writes                bool
			SQL                   map[string]string
		}
	}
	if err := p.Call(object{"op": "statements", "params": json.RawMessage(transfer), "tables": []object{}},
		&answer); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(answer.Statements)
	want := "[{see GENERIC_SQL transfer false map[postgres:SELECT owner, balance FROM accounts WHERE id = $1 " +
		"snowflake:SELECT owner, balance FROM accounts WHERE id = ?]} {note INSERT  true map[postgres:INSERT INTO log (n, " +
		"account, was, by) VALUES ($1, $2, $3, $4) snowflake:INSERT INTO log (n, account, was, by) VALUES (?, ?, ?, ?)]} " +
		"{take UPDATE  true map[postgres:UPDATE accounts SET balance = balance - $1 WHERE id = $2 snowflake:UPDATE " +
		"accounts SET balance = balance - ? WHERE id = ?]}]"
	if got != want {
		t.Errorf("%s\nexpected\n%s", got, want)
	}
}

func TestRowsStayTogether(t *testing.T) {
	p := opened(
		t,
		`{"statements":[{"id":"a","sql":"SELECT :s, :s2, :k","binds":[{"name":"s","generator":"row","column":"status"},{"name":"s2","generator":"row","column":"status"},{"name":"k","generator":"key"}]}]}`,
		orders(9),
	)
	seen := map[string]bool{}
	for _, op := range draw(t, p, 500) {
		if string(op.Args[0].Data) != string(op.Args[1].Data) || op.Args[0].Type != op.Args[1].Type {
			t.Fatal("one operation has values of two rows")
		}
		seen[string(op.Args[0].Data)] = true
	}
	if len(seen) != 3 {
		t.Errorf("values %v", seen)
	}
}

func TestTablesOnlyWhenNeeded(t *testing.T) {
	for params, want := range map[string]int{
		`{"statements":[{"id":"a","sql":"SELECT 1"}]}`:                                                        0,
		`{"statements":[{"id":"a","sql":"SELECT * FROM {table}"}]}`:                                           1,
		`{"statements":[{"id":"a","sql":"SELECT :x","binds":[{"name":"x","generator":"key"}]}]}`:              1,
		`{"statements":[{"id":"a","transaction":[{"id":"b","sql":"TABLE {table}"}]}]}`:                        1,
		`{"statements":[{"id":"a","sql":"SELECT :x","binds":[{"name":"x","generator":"row","column":"a"}]}]}`: 1,
	} {
		var answer struct{ Tables []object }
		if err := sdktest.Workload(workload{}).Call(object{"op": "tables", "params": json.RawMessage(params)},
			&answer); err != nil || len(answer.Tables) != want {
			t.Errorf("%s: %v, %v", params, answer.Tables, err)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	statement := func(rest string) string { return `{"statements":[{"id":"s",` + rest + `}]}` }
	bind := func(rest string) string {
		return statement(`"sql":"SELECT :x","binds":[{"name":"x",` + rest + `}]`)
	}
	for params, says := range map[string]string{
		`{}`:                `statements must be a list`,
		`{"statements":[]}`: `statements must be a list`,
		`{"statements":[{"id":"a","sql":"SELECT 1","weight":0}]}`:                  "all weights are 0",
		`{"statements":[{"sql":"SELECT 1"}]}`:                                      "statements[0].id is missing",
		`{"statements":[{"id":"a","sql":"SELECT 1"},{"id":"a","sql":"SELECT 1"}]}`: `there are two statements "a"`,
		statement(`"sql":"DROP TABLE x"`): "statements[0].sql (s): " +
			"line 1, column 1: a statement that begins with DROP",
		statement(`"sql":"SELECT 1; SELECT 2"`): "line 1, column 11: a " +
			"second statement",
		statement(`"sql":"SELECT :x"`):                                 `:x in the SQL of s has no bind`,
		statement(`"sql":"SELECT 1","binds":[{"name":"x","value":1}]`): `:x does not occur in the SQL of s`,
		statement(`"sql":"SELECT 1","binds":{"x":1}`):                  "must be a list of",
		statement(`"sql":"DELETE FROM t","kind":"POINT_LOOKUP"`): "kind is POINT_LOOKUP, and " +
			"s writes",
		statement(`"sql":"SELECT 1","kind":"INSERT"`):            "kind is INSERT, and s only reads",
		statement(`"sql":"SELECT 1","kind":"SCAN"`):              "one of POINT_LOOKUP",
		statement(`"sql":"DELETE FROM t","writes":false`):        "writes is false, and s is DELETE",
		statement(`"sql":"SELECT 1","wait":1`):                   `unknown parameter "statements[0].wait"`,
		bind(`"generator":"magic"`):                              "one of sequence, uniform",
		bind(`"nulls":5`):                                        "(:x) says nothing of its values",
		bind(`"generator":"uniform"`):                            "uniform needs max",
		bind(`"generator":"uniform","min":5,"max":1`):            "max below its min",
		bind(`"generator":"uniform","max":1e19`):                 "too wide",
		bind(`"generator":"normal","mean":1`):                    "needs mean and stddev",
		bind(`"generator":"choice"`):                             "needs values",
		bind(`"values":[1,2],"weights":[1]`):                     "2 values and 1 weights",
		bind(`"values":[1,2],"weights":[0,0]`):                   "only weights of 0",
		bind(`"values":[1,"a"]`):                                 `not of type i64: "a"`,
		bind(`"value":"soon","type":"timestamp"`):                "is no time",
		bind(`"generator":"text"`):                               "needs a length",
		bind(`"generator":"text","min_length":5,"max_length":3`): "min_length above",
		bind(`"generator":"text","pattern":"a\\"`):               "ends with a backslash",
		bind(`"generator":"text","pattern":"a","length":3`):      "says the length",
		bind(`"generator":"text","length":3,"type":"i64"`): "does not make values of " +
			"type i64",
		bind(`"generator":"timestamp","from":"2024-01-01"`):                                                           "needs to",
		bind(`"generator":"timestamp","from":"2024-01-02","to":"2024-01-01"`):                                         "before its from",
		bind(`"generator":"timestamp","from":"yesterday","to":"2024-01-01"`):                                          `is no time: "yesterday"`,
		bind(`"generator":"row"`):                                                                                     "needs the column",
		bind(`"generator":"row","column":"nope"`):                                                                     `"nope", which the table does not have`,
		bind(`"generator":"key","type":"text"`):                                                                       "makes values of type i64",
		bind(`"generator":"uniform","max":5,"ref":"a.b"`):                                                             "keep one",
		bind(`"ref":"a.b"`):                                                                                           "a ref belongs",
		`{"statements":[{"id":"t","transaction":[]}]}`:                                                                "1 to 256 statements",
		`{"statements":[{"id":"t","transaction":[{"id":"a","sql":"SELECT 1","weight":3}]}]}`:                          `unknown parameter "statements[0].transaction[0].weight"`,
		`{"statements":[{"id":"t","binds":[{"name":"x","value":1}],"transaction":[{"id":"a","sql":"SELECT 1"}]}]}`:    "used by no statement",
		`{"statements":[{"id":"t","transaction":[{"id":"a","sql":"SELECT :x","binds":[{"name":"x","ref":"b.c"}]}]}]}`: `no statement "b" before a`,
		`{"statements":[{"id":"t","transaction":[{"id":"b","sql":"SELECT 1","columns":["d"]},{"id":"a","sql":"SELECT :x","binds":[{"name":"x","ref":"b.c"}]}]}]}`: `"c" is none of the columns that b declares (d)`,
		`{"statements":[{"id":"t","sql":"SELECT 1","transaction":[{"id":"a","sql":"SELECT 1"}]}]}`:                                                                `unknown parameter "statements[0].sql"`,
	} {
		err := sdktest.Workload(workload{}).Open(request(params, 0, orders(5)))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, expected %q", params, err, says)
		}
	}
	err := sdktest.Workload(workload{}).Open(request(bind(`"generator":"key"`), 0))
	if err == nil || !strings.Contains(err.Error(), "set target.table_name") {
		t.Errorf("without a table: %v", err)
	}
	if err := sdktest.Workload(workload{}).
		Open(request(bind(`"generator":"row","column":"id"`), 0, orders(0))); err == nil ||
		!strings.Contains(err.Error(), "is empty") {
		t.Errorf("an empty table: %v", err)
	}
}

func FuzzParameters(f *testing.F) {
	f.Add(transfer)
	f.Add(`{"statements":[{"id":"a","sql":"SELECT :x","binds":[{"name":"x","generator":"text","pattern":"a#?*\\"}]}]}`)
	f.Add(
		`{"statements":[{"id":"a","sql":"SELECT :x","binds":[{"name":"x","generator":"zipfian","max":9,"theta":3,"nulls":3}]}]}`,
	)
	f.Add(
		`{"statements":[{"id":"a","sql":"SELECT :x","binds":[{"name":"x","generator":"uniform","min":-1e300,"max":1e300,"type":"f64"}]}]}`,
	)
	f.Fuzz(func(t *testing.T, params string) {
		if !json.Valid([]byte(params)) {
			return
		}
		p := sdktest.Workload(workload{})
		if p.Open(request(params, 0, orders(7))) != nil {
			return
		}
		for range 2 {
			if _, err := p.Fill(20); err != nil {
				t.Fatalf("%s: %v", params, err)
			}
		}
	})
}
