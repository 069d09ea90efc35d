package main

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/abi"
	"github.com/loadstone-db/loadstone/sdk/sdktest"
)

type object = map[string]any

// The reference values of this file come from a re-implementation in Java of the
// algorithm that YCSB publishes, with java.lang.Math.

func TestHash(t *testing.T) {
	for n, want := range map[uint64]uint64{0: 6284781860667377211, 1: 8517097267634966620, 2: 1820151046732198393,
		99:   6405349725575133178,
		1000: 5952875239596136740, 999_999: 2744965632448235251, 10_000_000_000: 1201321332300452516,
		math.MaxUint64: 8289690350564177859} {
		if got := fnv(n); got != want {
			t.Errorf("the hash of %d is %d, YCSB's is %d", n, got, want)
		}
	}
}

func TestZipfianIsYCSBs(t *testing.T) {
	z := newZipf(scrambledItems+1, scrambledZeta)
	for u, want := range map[float64]int64{0: 0, 0.01: 0, 0.037: 0, 0.038: 1, 0.05: 1, 0.0567: 1, 0.06: 2, 0.07: 2, 0.1: 6,
		0.15: 23, 0.2: 83, 0.25: 296,
		0.3: 1038, 0.4: 12175, 0.5: 134552, 0.6: 1405413, 0.7: 13910962, 0.8: 130797456, 0.9: 1170869537, 0.99: 8086205587,
		0.999999: 9999787803} {
		if got := z.rank(u); got < want-1 || got > want+1 || want < 1e6 && got != want {
			t.Errorf("%v is rank %d, YCSB's is %d", u, got, want)
		}
	}
	// The generator of latest grows from 999 items to 1100.
	z = newZipf(999, zeta(999))
	z.grow(1100)
	for u, want := range map[float64]int64{0: 0, 0.1: 0, 0.2: 2, 0.5: 24, 0.9: 520, 0.999: 1091} {
		if got := z.rank(u); got != want {
			t.Errorf("latest: %v is rank %d, YCSB's is %d", u, got, want)
		}
	}
}

func TestZeta(t *testing.T) {
	for n, want := range map[int64]float64{1: 1, 2: 1.5034777750283594, 999: 7.727881697979491, 1000: 7.728953217284729,
		1001:   7.730023676840303,
		10_000: 10.224361459595578, 1_000_000: 15.391849746037371, 10_000_000_000: scrambledZeta} {
		if got := zeta(n); math.Abs(got-want) > 1e-7 {
			t.Errorf("zeta(%d) is %v, not %v", n, got, want)
		}
	}
}

func TestKeyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 100_000),
			rapid.SampledFrom([]uint64{0, 9, 10, 99_999_999, 100_000_000, 1<<63 - 1, math.MaxUint64})).Draw(t, "n")
		padding := rapid.IntRange(1, 30).Draw(t, "padding")
		var b sdk.Batch
		b.Reset()
		b.Row()
		putKey(&b, n, ordered, padding)
		ops, err := abi.Decode(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(ops[0].Args[0].Data), fmt.Sprintf("user%0*d", padding, n); got != want {
			t.Fatalf("%s, expected %s", got, want)
		}
	})
}

func table(rows int, change ...func(object)) object {
	columns := []object{{"name": "ycsb_key", "type": "text", "db_type": "character varying(255)", "max_length": 255}}
	for i := range 10 {
		columns = append(columns, object{"name": fmt.Sprint("field", i), "type": "text", "db_type": "text", "nullable": true})
	}
	t := object{"name": "usertable", "physical_name": "public.usertable", "key": []string{"ycsb_key"}, "rows": rows,
		"columns": columns}
	for _, c := range change {
		c(t)
	}
	return t
}

func request(params string, slot int, table object, pools ...object) object {
	return object{"seed": 3, "key_slot": slot, "key_slots": 8, "params": json.RawMessage(params),
		"tables": []object{table}, "pools": pools}
}

func opened(t testing.TB, req object) (*sdktest.Plugin, []string) {
	t.Helper()
	p := sdktest.Workload(ycsb{})
	if err := p.Open(req); err != nil {
		t.Fatal(err)
	}
	var answer struct{ Statements []struct{ ID string } }
	if err := p.Call(object{"op": "statements", "params": req["params"], "tables": req["tables"]}, &answer); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range answer.Statements {
		ids = append(ids, s.ID)
	}
	return p, ids
}

func draw(t testing.TB, p *sdktest.Plugin, n int) []abi.Op {
	t.Helper()
	var all []abi.Op
	for len(all) < n {
		ops, err := p.Fill(128)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ops...)
	}
	return all
}

// name is a statement's id without its field.
func name(id string) string {
	if at := strings.Index(id, "_field"); at > 0 {
		return id[:at]
	}
	return id
}

func TestProportions(t *testing.T) {
	for params, want := range map[string]map[string]float64{
		`{}`:               {"read": 0.5, "update": 0.5},
		`{"workload":"A"}`: {"read": 0.5, "update": 0.5},
		`{"workload":"B"}`: {"read": 0.95, "update": 0.05},
		`{"workload":"C"}`: {"read": 1},
		`{"workload":"D"}`: {"read": 0.95, "insert": 0.05},
		`{"workload":"E"}`: {"scan": 0.95, "insert": 0.05},
		`{"workload":"F"}`: {"read": 0.5, "modify": 0.5},
		`{"workload":"F","read_modify_write":"statements"}`:                                                                             {"read": 0.5, "modify": 0.5},
		`{"workload":"custom","proportions":{"read":6,"scan":2,"insert":1,"update":1},"read_all_fields":false,"write_all_fields":true}`: {"read": 0.6, "scan": 0.2, "insert": 0.1, "update": 0.1},
	} {
		p, ids := opened(t, request(params, 0, table(1000)))
		counts, total := map[string]float64{}, 0.0
		var modified string
		for _, op := range draw(t, p, 50_000) {
			if op.Statement >= abi.FirstControl {
				continue
			}
			switch id := name(ids[op.Statement]); id {
			case "modify_read":
				counts["modify"]++
				total++
				modified = string(op.Args[0].Data)
			case "modify_update":
				if key := string(op.Args[len(op.Args)-1].Data); key != modified {
					t.Fatalf("%s: read %s and updated %s", params, modified, key)
				}
			default:
				counts[id]++
				total++
			}
		}
		for id := range counts {
			counts[id] /= total
			if math.Abs(counts[id]-want[id]) > 0.01 {
				t.Errorf("%s: %.3f of the operations are %s, expected %.2f", params, counts[id], id, want[id])
			}
		}
		if len(counts) != len(want) {
			t.Errorf("%s: %v, expected %v", params, counts, want)
		}
	}
}

func TestScansAndFields(t *testing.T) {
	p, ids := opened(t, request(`{"workload":"custom","proportions":{"scan":1,"update":1}}`, 0, table(1000)))
	scans, updated := map[int64]int{}, map[string]int{}
	for _, op := range draw(t, p, 100_000) {
		if ids[op.Statement] == "scan" {
			scans[op.Args[1].I]++
			continue
		}
		updated[ids[op.Statement]]++
		if len(op.Args[0].Data) != 100 {
			t.Fatalf("a field of %d bytes", len(op.Args[0].Data))
		}
	}
	for n := int64(1); n <= 100; n++ {
		if scans[n] < 350 || scans[n] > 650 {
			t.Errorf("%d scans of length %d, expected about 500", scans[n], n)
		}
	}
	if len(scans) != 100 || len(updated) != 10 {
		t.Errorf("%d lengths and %d fields", len(scans), len(updated))
	}
}

// places gives back the record numbers of keys.
func places(n int) map[string]int {
	m := make(map[string]int, n)
	for i := range n {
		m[fmt.Sprintf("user%d", fnv(uint64(i)))] = i
	}
	return m
}

func TestDistributions(t *testing.T) {
	const records = 1000
	number := places(records)
	for distribution, check := range map[string]func(count []float64) string{
		"uniform": func(c []float64) string {
			for i := range c {
				if c[i] < 0.0005 || c[i] > 0.0016 {
					return fmt.Sprintf("record %d has %.5f", i, c[i])
				}
			}
			return ""
		},
		"hotspot": func(c []float64) string {
			if got := sum(c[:200]); math.Abs(got-0.8) > 0.01 {
				return fmt.Sprintf("the hot fifth has %.3f", got)
			}
			return ""
		},
		"exponential": func(c []float64) string {
			// 1-e^-x of what fits the table: 95 % up to 857 records back, of 97 % in all.
			if got, want := sum(c[143:]), 0.95/(1-math.Pow(0.05, 1/0.8571428571)); math.Abs(got-want) > 0.01 || c[999] < c[500] {
				return fmt.Sprintf("the last 6/7 have %.3f, expected %.3f", got, want)
			}
			return ""
		},
		"sequential": func(c []float64) string {
			if c[0] != c[999] {
				return "unequal"
			}
			return ""
		},
		"latest": func(c []float64) string {
			// The newest of 999 has 1/zeta, the one before half^theta of that.
			if z := zeta(999); math.Abs(c[999]*z-1) > 0.03 || math.Abs(c[998]*z*math.Pow(2, theta)-1) > 0.04 {
				return fmt.Sprintf("the newest has %.4f, the one before %.4f", c[999], c[998])
			}
			return ""
		},
	} {
		p, _ := opened(t, request(fmt.Sprintf(`{"workload":"C","request_distribution":%q}`, distribution), 0, table(records)))
		const n = 128_000
		count := make([]float64, records)
		for _, op := range draw(t, p, n) {
			i, ok := number[string(op.Args[0].Data)]
			if !ok {
				t.Fatalf("%s: the key %s is none of the table's", distribution, op.Args[0].Data)
			}
			count[i] += 1.0 / n
		}
		if wrong := check(count); wrong != "" {
			t.Errorf("%s: %s", distribution, wrong)
		}
	}
}

func sum(list []float64) (s float64) {
	for _, x := range list {
		s += x
	}
	return s
}

func TestNewRecords(t *testing.T) {
	seen := map[string]bool{}
	for slot := range 8 {
		p, ids := opened(t, request(`{"workload":"D"}`, slot, table(1000)))
		own := map[string]bool{}
		read := 0
		for _, op := range draw(t, p, 20_000) {
			key := string(op.Args[0].Data)
			switch {
			case ids[op.Statement] == "insert":
				if seen[key] {
					t.Fatalf("%s is inserted twice", key)
				}
				seen[key], own[key] = true, true
			case own[key]:
				read++
			}
		}
		if read < 5000 {
			t.Errorf("slot %d: %d of 19 000 reads are of what it inserted", slot, read)
		}
	}
	// Zipfian reads reach new records only when they were expected.
	for params, reached := range map[string]bool{`"operation_count":0`: false, `"operation_count":20000`: true} {
		p, ids := opened(t, request(`{"workload":"custom","proportions":{"read":9,"insert":1},`+params+`}`, 0, table(1000)))
		own, read := map[string]bool{}, 0
		for _, op := range draw(t, p, 20_000) {
			key := string(op.Args[0].Data)
			if ids[op.Statement] == "insert" {
				own[key] = true
			} else if own[key] {
				read++
			}
		}
		if reached != (read > 1000) {
			t.Errorf("%s: %d reads of new records", params, read)
		}
	}
	p, _ := opened(t, request(`{"workload":"custom","proportions":{"insert":1},"first_new_key":1000}`, 3, table(1000)))
	ops := draw(t, p, 2)
	for i, op := range ops[:2] {
		if want := fmt.Sprintf("user%d", fnv(uint64(1003+8*i))); string(op.Args[0].Data) != want {
			t.Errorf("new record %d is %s, expected %s", i, op.Args[0].Data, want)
		}
	}
}

func TestRows(t *testing.T) {
	p := sdktest.Workload(ycsb{})
	if err := p.Open(object{"params": object{"field_count": 3, "field_length": 10, "field_length_distribution": "uniform",
		"min_field_length": 4}, "tables": []object{}}); err != nil {
		t.Fatal(err)
	}
	all, err := p.Rows(0, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	one, err := p.Rows(0, 42, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(all[42].Args, one[0].Args) {
		t.Error("record 42 depends on where the call began")
	}
	if key := string(all[0].Args[0].Data); key != "user6284781860667377211" {
		t.Errorf("the first key is %s, YCSB's is user6284781860667377211", key)
	}
	lengths := map[int]bool{}
	for _, row := range all {
		for _, f := range row.Args[1:] {
			lengths[len(f.Data)] = true
		}
	}
	if len(all[0].Args) != 4 || len(lengths) != 7 || !lengths[4] || !lengths[10] {
		t.Errorf("%d columns, lengths %v", len(all[0].Args), lengths)
	}
}

func TestWhatIsRefused(t *testing.T) {
	key := func(value string) object {
		var rows [][]string
		for range 10 {
			rows = append(rows, []string{value})
		}
		return object{"table": "usertable", "columns": []string{"ycsb_key"}, "rows": rows}
	}
	column := func(c object) func(object) {
		return func(t object) { t["columns"] = append(t["columns"].([]object), c) }
	}
	for _, c := range []struct {
		params, says string
		table        object
		pools        []object
	}{
		{params: `{"workload":"G"}`, says: "one of A, B, C, D, E, F, custom"},
		{params: `{"workload":"A","proportions":{"read":1}}`, says: "are for the workload custom"},
		{params: `{"workload":"custom"}`, says: "needs proportions"},
		{params: `{"workload":"custom","proportions":{"delete":1}}`, says: "proportions.delete"},
		{params: `{"min_scan_length":50,"max_scan_length":10}`, says: "min_scan_length is above"},
		{params: `{"min_field_length":50,"field_length":10}`, says: "min_field_length is above"},
		{params: `{"recordcount":5}`, says: `unknown parameter "recordcount"`},
		{params: `{"record_count":2000}`, says: "has 1000 rows"},
		{params: `{}`, table: table(0), says: "is empty"},
		{params: `{"workload":"custom","proportions":{"insert":1}}`, table: table(0)},
		{params: `{}`, table: table(10, func(t object) { t["key"] = []string{} }), says: "no primary key"},
		{params: `{}`, table: table(10, func(t object) { t["columns"] = t["columns"].([]object)[:1] }),
			says: "no text columns field0"},
		{params: `{"workload":"E"}`, table: table(10, column(object{"name": "owner", "type": "i64"})),
			says: "its column owner must have a value"},
		{params: `{"workload":"E"}`, table: table(10, column(object{"name": "owner", "type": "i64", "nullable": true}))},
		{params: `{}`, table: table(10, column(object{"name": "FIELD10", "type": "text", "max_length": 50})),
			says: "set field_length"},
		{params: `{}`, pools: []object{key("user6284781860667377211")}},
		{params: `{}`, pools: []object{key("user42")}, says: "such as user42"},
		{params: `{}`, pools: []object{key("alice")}, says: "such as alice"},
		{params: `{"insert_order":"ordered"}`, pools: []object{key("user6284781860667377211")},
			says: "such as user6284781860667377211"},
		{params: `{"insert_order":"ordered"}`, pools: []object{key("user42")}},
		{params: `{"insert_order":"ordered"}`, pools: []object{key("user000042")}, says: "zero_padding"},
		{params: `{"insert_order":"ordered","zero_padding":6}`, pools: []object{key("user000042")}},
		{params: `{"insert_order":"ordered","zero_padding":6}`, pools: []object{key("user42")}, says: "zero_padding"},
	} {
		if c.table == nil {
			c.table = table(1000)
		}
		err := sdktest.Workload(ycsb{}).Open(request(c.params, 0, c.table, c.pools...))
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, expected %q", c.params, err, c.says)
		}
	}
}

func TestManifestIsJSON(t *testing.T) {
	var m struct {
		Parameters struct {
			Properties map[string]struct {
				Title, Description string
				Properties         map[string]struct{ Title, Description string }
			}
		}
	}
	if err := sdktest.Workload(ycsb{}).Describe(&m); err != nil {
		t.Fatal(err)
	}
	if len(m.Parameters.Properties) != 20 {
		t.Errorf("%d parameters", len(m.Parameters.Properties))
	}
	for name, p := range m.Parameters.Properties {
		if p.Title == "" || p.Description == "" {
			t.Errorf("the parameter %s has no title or no description", name)
		}
		for inner, p := range p.Properties {
			if p.Title == "" || p.Description == "" {
				t.Errorf("the parameter %s.%s has no title or no description", name, inner)
			}
		}
	}
}

// TestEveryParameterWorks draws from any combination that the schema takes.
func TestEveryParameterWorks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 2000).Draw(t, "rows")
		params := object{
			"workload":             rapid.SampledFrom(workloads[:6]).Draw(t, "workload"),
			"request_distribution": rapid.SampledFrom(distributions).Draw(t, "distribution"),
			"operation_count":      rapid.Int64Range(0, 1e12).Draw(t, "operations"),
			"read_all_fields":      rapid.Bool().Draw(t, "read all"), "write_all_fields": rapid.Bool().Draw(t, "write all"),
			"hotspot_data_fraction":      rapid.Float64Range(0, 1).Draw(t, "hot"),
			"hotspot_operation_fraction": rapid.Float64Range(0, 1).Draw(t, "hot operations"),
			"scan_length_distribution":   rapid.SampledFrom(scanDistributions).Draw(t, "scans"), "insert_order": "ordered",
			"read_modify_write": rapid.SampledFrom(modifies).Draw(t, "modify"),
		}
		doc, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		p := sdktest.Workload(ycsb{})
		if err := p.Open(request(string(doc), rapid.IntRange(0, 7).Draw(t, "slot"), table(rows))); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := p.Fill(100); err != nil {
				t.Fatal(err)
			}
		}
	})
}
