package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/abi"
	"github.com/loadstone-db/loadstone/sdk/sdktest"
)

type object = map[string]any

func open(t *testing.T, params object) *sdktest.Plugin {
	t.Helper()
	p := sdktest.Workload(tpcb{})
	if err := p.Open(object{"seed": 7, "key_slots": 4, "params": params,
		"tables": []object{{"name": "pgbench_accounts"}}}); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTransactions checks the statements of each script and the numbers drawn for them.
func TestTransactions(t *testing.T) {
	for script, want := range map[string][]uint16{
		"tpcb-like":     {abi.StatementBegin, 0, 1, 2, 3, 4, abi.StatementCommit},
		"simple-update": {abi.StatementBegin, 0, 1, 2, abi.StatementCommit},
		"select-only":   {0},
	} {
		t.Run(script, func(t *testing.T) {
			p := open(t, object{"script": script, "scale": 3})
			var ops []abi.Op
			for len(ops) < 3000*len(want) {
				more, err := p.Fill(50)
				if err != nil {
					t.Fatal(err)
				}
				ops = append(ops, more...)
			}
			for i, op := range ops {
				if op.Statement != want[i%len(want)] {
					t.Fatalf("operation %d is statement %#x, expected %#x", i, op.Statement, want[i%len(want)])
				}
			}
			if script != "tpcb-like" {
				return
			}
			var low, high [4]int64
			sum := 0.0
			for at := 0; at < len(ops); at += len(want) {
				// tid, bid, aid, delta of the history, which the other statements repeat.
				history := ops[at+5].Args
				for i, v := range history {
					if at == 0 || v.I < low[i] {
						low[i] = v.I
					}
					if at == 0 || v.I > high[i] {
						high[i] = v.I
					}
				}
				tid, bid, aid, delta := history[0].I, history[1].I, history[2].I, history[3].I
				same := ops[at+1].Args[0].I == delta && ops[at+1].Args[1].I == aid && ops[at+2].Args[0].I == aid &&
					ops[at+3].Args[0].I == delta && ops[at+3].Args[1].I == tid && ops[at+4].Args[0].I == delta &&
					ops[at+4].Args[1].I == bid
				if !same {
					t.Fatalf("transaction %d does not agree with its history", at/len(want))
				}
				sum += float64(aid)
			}
			if low[0] != 1 || high[0] != 30 || low[1] != 1 || high[1] != 3 || low[2] < 1 || high[2] > 300_000 ||
				low[3] < -5000 || high[3] > 5000 {
				t.Errorf("the numbers lie between %v and %v", low, high)
			}
			if low[2] > 1500 || high[2] < 298_500 || low[3] > -4970 || high[3] < 4970 {
				t.Errorf("the ends are not reached: %v to %v", low, high)
			}
			// The mean of 3000 uniform draws lies within four of its deviations, 1581 each.
			if mean := sum / float64(len(ops)/len(want)); mean < 150_000-6400 || mean > 150_000+6400 {
				t.Errorf("accounts are %f in the mean", mean)
			}
		})
	}
}

func TestTables(t *testing.T) {
	for scale, kind := range map[int]string{1: "integer", 19_999: "integer", 20_000: "bigint"} {
		var answer struct {
			Tables []struct {
				Name    string
				Rows    int64
				Columns []struct {
					Name   string
					DBType map[string]string `json:"db_type"`
				}
			}
		}
		if err := sdktest.Workload(tpcb{}).Call(object{"op": "tables", "params": object{"scale": scale}},
			&answer); err != nil {
			t.Fatal(err)
		}
		if a := answer.Tables[accountsTable]; a.Rows != int64(scale)*100_000 || a.Columns[0].DBType["postgres"] != kind {
			t.Errorf("scale %d: %+v", scale, a)
		}
	}
}

func TestRowsEnd(t *testing.T) {
	p := open(t, object{"scale": 2})
	for table, rows := range map[int]int64{tellersTable: 20, accountsTable: 200_000, branchesTable: 2} {
		got, err := p.Rows(table, rows-1, 10)
		if err != nil || len(got) != 1 || got[0].Args[0].I != rows {
			t.Errorf("table %d ends with %v, %v", table, got, err)
		}
		if _, err := p.Rows(table, rows, 10); !errors.Is(err, sdktest.ErrEnded) {
			t.Errorf("after the last row of table %d: %v", table, err)
		}
	}
	for _, table := range []int{-1, 4} {
		if _, err := p.Rows(table, 0, 1); err == nil {
			t.Errorf("table %d has rows", table)
		}
	}
}

func TestBadParameters(t *testing.T) {
	for _, c := range []struct {
		params object
		says   string
	}{
		{object{"scale": 0}, "scale must be"}, {object{"scale": 1.5}, "scale must be"},
		{object{"scale": "3"}, "scale must be"}, {object{"scale": 100_001}, "scale must be"},
		{object{"fillfactor": 9}, "fillfactor must be"}, {object{"script": "tpcc"}, "one of"},
		{object{"speed": 1}, `unknown parameter "speed"`},
	} {
		err := sdktest.Workload(tpcb{}).Open(object{"key_slots": 1, "params": c.params, "tables": []object{{"name": "t"}}})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v", c.params, err)
		}
	}
}

// TestFillsAreTheRows: what the tables say about their values makes the rows that Rows writes.
func TestFillsAreTheRows(t *testing.T) {
	plugin := open(t, object{"scale": 2})
	p := params{scale: 2, fillfactor: 100}
	for i, table := range p.tables() {
		if table.Empty {
			continue
		}
		for _, first := range []int64{0, 9, 10, accountsPerScale - 1, accountsPerScale, p.rows(i) - 1} {
			if first >= p.rows(i) {
				continue
			}
			rows, err := plugin.Rows(i, first, 1)
			if err != nil {
				t.Fatal(err)
			}
			for c, column := range table.Columns {
				f, got := column.Fill, rows[0].Args[c]
				var want int64
				switch f.As {
				case sdk.FillNumber:
					want = f.From + first
				case sdk.FillBlock:
					want = f.From + first/f.Step
				case sdk.FillConstant:
					if column.Type == sdk.Text {
						if null := len(f.Values) == 0; null != (got.Type == abi.TypeNull) || !null && string(got.Data) != f.Values[0] {
							t.Errorf("row %d of %s, %s: %+v", first, table.Name, column.Name, got)
						}
						continue
					}
				}
				if got.I != want {
					t.Errorf("row %d of %s, %s: %d, expected %d", first, table.Name, column.Name, got.I, want)
				}
			}
		}
	}
}
