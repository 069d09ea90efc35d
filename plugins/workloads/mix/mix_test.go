package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/abi"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
	"github.com/loadstone-db/loadstone/sdk/sdktest"
)

type object = map[string]any

func denseTable(rows int) object {
	return object{"name": "orders", "physical_name": "orders", "key": []string{"id"}, "rows": rows, "key_min": 1,
		"key_max": rows, "dense": true,
		"columns": []object{{"name": "id", "type": "i64", "db_type": "bigint"},
			{"name": "note", "type": "text", "db_type": "text"}}}
}

func request(params string, slot int, table object, pools ...object) object {
	return object{"seed": 1, "key_slot": slot, "key_slots": 8, "params": json.RawMessage(params),
		"tables": []object{table}, "pools": pools}
}

func opened(t testing.TB, req object) *sdktest.Plugin {
	t.Helper()
	p := sdktest.Workload(mix{})
	if err := p.Open(req); err != nil {
		t.Fatal(err)
	}
	return p
}

// draw returns operations of several batches.
func draw(t testing.TB, p *sdktest.Plugin, batches int) []abi.Op {
	t.Helper()
	var all []abi.Op
	for range batches {
		ops, err := p.Fill(128)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ops...)
	}
	return all
}

func TestManifestIsJSON(t *testing.T) {
	var m struct {
		Kind       string
		Parameters struct {
			Properties map[string]struct{ Title, Description string }
		}
	}
	if err := sdktest.Workload(mix{}).Describe(&m); err != nil {
		t.Fatal(err)
	}
	for name, p := range m.Parameters.Properties {
		if p.Title == "" || p.Description == "" {
			t.Errorf("parameter %s has no title or description", name)
		}
	}
	if m.Kind != "workload" || len(m.Parameters.Properties) != 9 {
		t.Errorf("the manifest is %+v", m)
	}
}

func TestParameters(t *testing.T) {
	for params, says := range map[string]string{
		`{"weights":{"POINT_LOOKUP":0}}`:            "all weights are 0",
		`{"weights":{"LOOKUP":1}}`:                  `"LOOKUP"`,
		`{"weights":{"INSERT":-1}}`:                 "weights.INSERT",
		`{"weights":{"INSERT":"1"}}`:                "weights.INSERT",
		`{"keys":"normal"}`:                         "uniform, zipfian, latest, sequential",
		`{"zipf_theta":9}`:                          "0 to 5",
		`{"scan_length":0}`:                         "1 to 10000",
		`{"scan_length":1.5}`:                       "whole number",
		`{"value_size":{"min":9,"max":3}}`:          "below",
		`{"value_size":{"mean":9}}`:                 "mean",
		`{"think_time_ms":-1}`:                      "think_time_ms",
		`{"zipf_scrambled":1}`:                      "true or false",
		`{"thetta":1}`:                              `"thetta"`,
		`[]`:                                        "object",
		`{"value_size":{"max":1048577}}`:            "1048576",
		`{"weights":{"POINT_LOOKUP":1000000000}}`:   "1000000",
		`{"weights":{"POINT_LOOKUP":1e400}}`:        "weights.POINT_LOOKUP",
		`{"scan_length":99999999999999999999999}`:   "scan_length",
		`{"weights":{"POINT_LOOKUP":0.0000001}}`:    "all weights",
		`{"keys":7}`:                                "keys",
		`{"value_size":{"min":5},"keys":"uniform"}`: "",
		`{"value_size":{"min":200}}`:                "",
		`{"value_size":{"max":5}}`:                  "",
		`null`:                                      "",
	} {
		err := sdktest.Workload(mix{}).Open(request(params, 0, denseTable(10)))
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, expected %q", params, err, says)
		}
	}
}

func TestKeysStayInTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 5000).Draw(t, "rows")
		keys := rapid.SampledFrom(distributions[:]).Draw(t, "keys")
		theta := rapid.Float64Range(0, 3).Draw(t, "theta")
		slot := rapid.IntRange(0, 7).Draw(t, "slot")
		p := sdktest.Workload(mix{})
		params := fmt.Sprintf(`{"keys":%q,"zipf_theta":%v,"weights":{"POINT_LOOKUP":1,"RANGE_SCAN":1}}`, keys, theta)
		if err := p.Open(request(params, slot, denseTable(rows))); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			ops, err := p.Fill(100)
			if err != nil {
				t.Fatal(err)
			}
			for _, op := range ops {
				if id := op.Args[0].I; id < 1 || id > int64(rows) {
					t.Fatalf("key %d of %d rows", id, rows)
				}
			}
		}
	})
}

func TestNewKeysOfAllSlotsDiffer(t *testing.T) {
	for _, column := range []object{
		{"name": "k", "type": "i64", "db_type": "bigint"}, {"name": "k", "type": "text", "db_type": "text"},
		{"name": "k", "type": "text", "db_type": "uuid"},
		{"name": "k", "type": "text", "db_type": "character varying(12)", "max_length": 12},
		{"name": "k", "type": "text", "db_type": "character varying(5)", "max_length": 5},
		{"name": "k", "type": "text", "db_type": "numeric"}, {"name": "k", "type": "timestamp", "db_type": "date"},
		{"name": "k", "type": "timestamp", "db_type": "timestamp"},
		{"name": "k", "type": "bytes", "db_type": "bytea"}, {"name": "k", "type": "f64", "db_type": "real"},
	} {
		table := object{"name": "orders", "key": []string{"k"}, "columns": []object{column}}
		seen := map[string]bool{}
		for slot := range 8 {
			for _, op := range draw(t, opened(t, request(`{"weights":{"INSERT":1}}`, slot, table)), 5) {
				v := op.Args[0]
				id := fmt.Sprint(v.Type, v.I, v.F, string(v.Data))
				if seen[id] {
					t.Fatalf("%v: %s was made twice", column["db_type"], id)
				}
				seen[id] = true
			}
		}
	}
}

func TestLatestFavoursNewRows(t *testing.T) {
	p := opened(t, request(`{"keys":"latest","weights":{"POINT_LOOKUP":50,"INSERT":50}}`, 3, denseTable(1000)))
	own, newest, lookups := 0, 0, 0
	for _, op := range draw(t, p, 40) {
		if op.Statement != 0 {
			if (op.Args[0].I-1001-3)%8 != 0 {
				t.Fatalf("new key %d is not of slot 3", op.Args[0].I)
			}
			continue
		}
		lookups++
		if op.Args[0].I > 1000 {
			own++
		} else if op.Args[0].I > 900 {
			newest++
		}
	}
	if own*2 < lookups {
		t.Errorf("%d of %d lookups are of own rows", own, lookups)
	}
	p = opened(t, request(`{"keys":"latest","weights":{"POINT_LOOKUP":1}}`, 0, denseTable(1000)))
	for _, op := range draw(t, p, 10) {
		if op.Args[0].I > 900 {
			newest++
		}
	}
	if newest < 600 {
		t.Errorf("%d of 1280 lookups are of the newest tenth", newest)
	}
}

func TestThinkTime(t *testing.T) {
	p := opened(t, request(`{"think_time_ms":2.5}`, 0, denseTable(10)))
	// Batches of odd size cut between a pause and its operation.
	pause := true
	for range 20 {
		ops, err := p.Fill(3)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range ops {
			if (op.Statement == abi.StatementDelay) != pause {
				t.Fatal("pauses and operations do not alternate")
			}
			if pause && op.Args[0].I != 2500 {
				t.Fatalf("the pause is %d µs", op.Args[0].I)
			}
			pause = !pause
		}
	}
}

func TestPools(t *testing.T) {
	table := object{"name": "orders", "key": []string{"a", "b"}, "rows": 3,
		"columns": []object{{"name": "a", "type": "text", "db_type": "mood"},
			{"name": "b", "type": "bytes", "db_type": "bytea"},
			{"name": "v", "type": "bool", "db_type": "boolean"}}}
	pool := object{"table": "orders", "columns": []string{"a", "b"},
		"rows": [][]any{{"x", "00ff"}, {"y", ""}, {"z", "01"}}}
	p := opened(t, request(`{"weights":{"POINT_LOOKUP":1}}`, 0, table, pool))
	seen := map[string]bool{}
	for _, op := range draw(t, p, 2) {
		seen[string(op.Args[0].Data)+"/"+string(op.Args[1].Data)] = true
	}
	if want := map[string]bool{"x/\x00\xff": true, "y/": true, "z/\x01": true}; !reflect.DeepEqual(seen, want) {
		t.Errorf("the keys are %v", seen)
	}
	for _, bad := range []object{
		{"table": "orders", "columns": []string{"none"}, "rows": [][]any{{1}}},
		{"table": "orders", "columns": []string{"b"}, "rows": [][]any{{"0"}}},
		{"table": "orders", "columns": []string{"v"}, "rows": [][]any{}},
	} {
		if err := sdktest.Workload(mix{}).Open(request(`{"weights":{"POINT_LOOKUP":1}}`, 0, table, bad)); err == nil {
			t.Errorf("the pool %v was taken", bad)
		}
	}
}

func TestRowsAreAFunctionOfTheirNumber(t *testing.T) {
	p := sdktest.Workload(mix{})
	rapid.Check(t, func(t *rapid.T) {
		first, at := rapid.Int64Range(0, 1<<40).Draw(t, "first"), rapid.IntRange(0, 49).Draw(t, "at")
		whole, err := p.Rows(0, first, 50)
		if err != nil {
			t.Fatal(err)
		}
		one, err := p.Rows(0, first+int64(at), 1)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(whole[at], one[0]) || whole[at].Args[0].I != first+int64(at)+1 {
			t.Fatalf("row %d is %v alone and %v among others", first+int64(at), one[0], whole[at])
		}
	})
	if _, err := p.Rows(1, 0, 1); err == nil || errors.Is(err, sdktest.ErrEnded) {
		t.Errorf("rows of a second table: %v", err)
	}
}

func TestFillAllocatesNothing(t *testing.T) {
	g, err := mix{}.Open(openRequest(t))
	if err != nil {
		t.Fatal(err)
	}
	var b sdk.Batch
	fill := func() {
		b.Reset()
		if err := g.Fill(&b, 128); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		fill()
	}
	if n := testing.AllocsPerRun(100, fill); n > 0.1 {
		t.Errorf("%v allocations for a batch", n)
	}
}

func openRequest(t *testing.T) sdk.OpenRequest {
	t.Helper()
	doc, err := json.Marshal(request(`{"keys":"zipfian"}`, 0, denseTable(1000)))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsondoc.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	return sdk.ReadOpenRequest(v)
}

// TestOnlyARunThatInsertsAsksForKeysOfOthers: nothing else needs them.
func TestOnlyARunThatInsertsAsksForKeysOfOthers(t *testing.T) {
	for params, want := range map[string]bool{`{}`: false, `{"weights":{"POINT_LOOKUP":1}}`: false,
		`{"weights":{"UPDATE":1,"INSERT":0}}`: false, `{"weights":{"INSERT":1}}`: true} {
		doc, err := jsondoc.Parse([]byte(params))
		if err != nil {
			t.Fatal(err)
		}
		if list, err := (mix{}).Tables(doc); err != nil || list[0].Inserts != want {
			t.Errorf("%s: %+v, %v", params, list, err)
		}
	}
}

// TestSharesOfCombinations: the slots have each number once between them, and an only run worker seven of eight of
// them.
func TestSharesOfCombinations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots, all := rapid.IntRange(1, 40).Draw(t, "slots"), rapid.Int64Range(0, 2000).Draw(t, "all")
		have := map[int64]bool{}
		for slot := range slots {
			s, n := newShares(slot, slots), int64(0)
			for before := int64(-1); s.place(n) < all; n++ {
				at := s.place(n)
				if at <= before || have[at] {
					t.Fatalf("slot %d of %d has %d after %d, or another slot has it", slot, slots, at, before)
				}
				before, have[at] = at, true
			}
			if slots <= slotsPerWorker && slot == 0 && n < all-all/ofEach-1 {
				t.Fatalf("the only worker has %d of %d", n, all)
			}
		}
		if slots > 1 && int64(len(have)) != all {
			t.Fatalf("the slots have %d of %d", len(have), all)
		}
	})
}

// TestCombinations: the slots insert each combination that is free once between them, and no other.
func TestCombinations(t *testing.T) {
	const left, right = 13, 11
	table := object{
		"name":          "orders",
		"physical_name": "orders",
		"key":           []string{"a", "b"},
		"rows":          40,
		"columns": []object{
			{"name": "a", "type": "i64", "db_type": "bigint"},
			{"name": "b", "type": "text", "db_type": "text"},
		},
		"constraints": []object{{"kind": "foreign_key", "name": "fa", "columns": []string{"a"}, "references": "as"},
			{"kind": "foreign_key", "name": "fb", "columns": []string{"b"}, "references": "bs"},
			{"kind": "unique", "name": "pk", "columns": []string{"a", "b"}, "left": left*right - left}},
	}
	var rows [][]any
	var taken []string
	free := map[string]bool{}
	for l := range left {
		rows = append(rows, []any{l})
		// Row l is with row l % right of the others.
		digits := []byte("000")
		digits[l%right/4] = "1248"[l%right%4]
		taken = append(taken, string(digits))
		for r := range right {
			free[fmt.Sprint(l, " r", r)] = r != l%right
		}
	}
	for r := range right {
		rows = append(rows, []any{fmt.Sprint("r", r)})
	}
	n, first := 0, 0
	for slot := range 8 {
		if slot == 2 {
			first = n // of the two run workers that begin
		}
		req := request(`{"weights":{"INSERT":1}}`, slot, table)
		req["free"] = []object{{"table": "orders", "columns": []string{"a", "b"}, "rows": rows,
			"free": object{"constraint": []string{"a", "b"}, "columns": 1, "left": left, "taken": taken}}}
		p := opened(t, req)
		for {
			ops, err := p.Fill(7) // what is left when there are no more is given before that is said
			if err != nil {
				if !strings.Contains(err.Error(), "its share of the combinations of (a, b)") {
					t.Fatal(err)
				}
				break
			}
			for _, op := range ops {
				pair := fmt.Sprint(op.Args[0].I, " ", string(op.Args[1].Data))
				if !free[pair] {
					t.Fatalf("%s is not free, or was inserted before", pair)
				}
				free[pair] = false
				n++
			}
		}
	}
	if n != left*right-left || first < (left*right-left)*3/4 {
		t.Errorf("%d combinations were inserted, %d by the first run workers, of %d", n, first, left*right-left)
	}
	table["constraints"].([]object)[2]["left"] = 99
	if err := sdktest.Workload(mix{}).Open(request(`{"weights":{"INSERT":1}}`, 0, table)); err == nil ||
		!strings.Contains(err.Error(), "99 combinations are left") || !strings.Contains(err.Error(), "(a, b)") {
		t.Errorf("too few are left: %v", err)
	}
}
