package main

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/abi"
	"github.com/loadstone-db/loadstone/sdk/gen"
	"github.com/loadstone-db/loadstone/sdk/sdktest"
)

type object = map[string]any

func open(t *testing.T, params object) *sdktest.Plugin {
	t.Helper()
	p := sdktest.Workload(tpcc{})
	if err := p.Open(object{"seed": 7, "key_slots": 4, "params": params,
		"tables": []object{{"name": "item"}}}); err != nil {
		t.Fatal(err)
	}
	return p
}

// transaction is what lies between BEGIN and its end, with the pause before it.
type transaction struct {
	first      uint16
	ops        []abi.Op
	rolledBack bool
	delay      int64
}

func take(t *testing.T, p *sdktest.Plugin, n int) []transaction {
	t.Helper()
	var list []transaction
	var now transaction
	for len(list) < n {
		ops, err := p.Fill(64)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range ops {
			switch op.Statement {
			case abi.StatementBegin:
				now.ops = nil
			case abi.StatementDelay:
				now.delay = op.Args[0].I
			case abi.StatementCommit, abi.StatementRollback:
				now.first, now.rolledBack = now.ops[0].Statement, op.Statement == abi.StatementRollback
				list = append(list, now)
				now = transaction{}
			default:
				now.ops = append(now.ops, op)
			}
		}
	}
	return list
}

// near checks that a share lies within four standard deviations of what it should be.
func near(t *testing.T, what string, hits, of int, want float64) {
	t.Helper()
	if got := float64(hits) / float64(of); math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/float64(of)) {
		t.Errorf("%s: %.4f of %d, expected %.4f", what, got, of, want)
	}
}

func TestMixAndProfile(t *testing.T) {
	const n = 10_000
	counts := map[uint16]int{}
	var lines, remoteLines, remotePayments, byName, rolledBack, customers int
	for i, x := range take(t, open(t, object{"warehouses": 5}), n) {
		counts[x.first]++
		// The deck is exact over each hundred.
		if i == 99 && (counts[noWarehouse] != 45 || counts[payWarehouse] != 43 || counts[dlOldest] != 4 ||
			counts[slDistrict] != 4) {
			t.Errorf("the first hundred are %v", counts)
		}
		switch x.first {
		case noWarehouse:
			home, order := x.ops[0].Args[0].I, x.ops[noOrder].Args
			count, local := order[4].I, int64(1)
			if count < 5 || count > 15 {
				t.Fatalf("an order of %d lines", count)
			}
			if x.rolledBack {
				rolledBack++
				if last := x.ops[len(x.ops)-1]; last.Statement != noItem || last.Args[0].I != 100_001 ||
					len(x.ops) != 5+3*int(count-1)+1 {
					t.Fatalf("a rolled back order of %d lines ends with %+v", count, last)
				}
				continue
			}
			if len(x.ops) != 5+3*int(count) {
				t.Fatalf("an order of %d lines has %d statements", count, len(x.ops))
			}
			for l := 5; l < len(x.ops); l += 3 {
				item, stock, line := x.ops[l], x.ops[l+1].Args, x.ops[l+2].Args
				if item.Args[0].I < 1 || item.Args[0].I > 100_000 || stock[3].I != item.Args[0].I || line[4].I != item.Args[0].I ||
					line[5].I != stock[2].I || line[6].I != stock[0].I || stock[0].I < 1 || stock[0].I > 10 {
					t.Fatalf("a line does not agree with itself: %v %v %v", item.Args, stock, line)
				}
				if (stock[1].I == 1) != (stock[2].I != home) {
					t.Fatalf("a line from %d for %d is remote: %d", stock[2].I, home, stock[1].I)
				}
				lines++
				if stock[1].I == 1 {
					remoteLines++
					local = 0
				}
			}
			if order[5].I != local {
				t.Fatal("o_all_local is wrong")
			}
		case payWarehouse:
			customer := x.ops[len(x.ops)-2].Args
			if customer[3].I != customer[1].I {
				remotePayments++
			} else if customer[4].I != customer[2].I {
				t.Fatal("a payment at home is of another district")
			}
			customers++
			if len(x.ops) == 5 {
				byName++
			}
		case dlOldest:
			if len(x.ops) != 60 {
				t.Fatalf("a delivery of %d statements", len(x.ops))
			}
		}
	}
	near(t, "rolled back", rolledBack, counts[noWarehouse], 0.01)
	near(t, "remote lines", remoteLines, lines, 0.01)
	near(t, "remote payments", remotePayments, customers, 0.15)
	near(t, "payments by name", byName, customers, 0.6)
	near(t, "orders read by name", counts[osByName], counts[osByName]+counts[osByNumber], 0.6)
}

func TestOneWarehouseIsNeverRemote(t *testing.T) {
	for _, x := range take(t, open(t, object{"warehouses": 1}), 2000) {
		for _, op := range x.ops {
			if op.Statement == noStock && (op.Args[1].I != 0 || op.Args[2].I != 1) || op.Statement == payCustomer &&
				op.Args[3].I != 1 {
				t.Fatalf("%+v", op)
			}
		}
	}
}

func TestTerminalTimes(t *testing.T) {
	sum, n := map[uint16]float64{}, map[uint16]float64{}
	for _, x := range take(t, open(t, object{"terminal_times": true}), 4_000) {
		if x.delay < 2_000_000 || x.delay > 138_000_000 {
			t.Fatalf("a wait of %d µs", x.delay)
		}
		sum[x.first] += float64(x.delay)
		n[x.first]++
	}
	for first, want := range map[uint16]float64{noWarehouse: 30e6, payWarehouse: 15e6} {
		if mean := sum[first] / n[first]; math.Abs(mean-want) > 4*12e6/math.Sqrt(n[first]) {
			t.Errorf("statement %d waits %.0f µs in the mean, expected %.0f", first, mean, want)
		}
	}
}

// TestNURand compares the density with the exact one, counted over all values of both draws.
func TestNURand(t *testing.T) {
	const a, c, n = 255, 173, 1000
	exact := make([]float64, n)
	for x := range a + 1 {
		for y := range n {
			exact[((x|y)+c)%n] += 1.0 / ((a + 1) * n)
		}
	}
	r := gen.NewRand(3, 0)
	const draws = 500_000
	seen := make([]float64, n)
	for range draws {
		seen[nuRand(r, a, c, 0, n-1)]++
	}
	chi := 0.0
	for i := range exact {
		want := exact[i] * draws
		chi += (seen[i] - want) * (seen[i] - want) / want
	}
	// 999 degrees of freedom: the mean is 999, the deviation 45.
	if chi > 999+5*45 {
		t.Errorf("chi² is %.0f", chi)
	}
}

func TestConstants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newConstants(rapid.Int64().Draw(t, "seed"))
		delta := c.lastC - loadC
		if delta < 65 || delta > 119 || delta == 96 || delta == 112 || c.lastC > 255 || c.customerC < 0 ||
			c.customerC > 1023 || c.itemC < 0 || c.itemC > 8191 {
			t.Fatalf("%+v", c)
		}
	})
}

func TestPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 5000).Draw(t, "n")
		key := rapid.Uint64().Draw(t, "key")
		p := newPermutation(n)
		seen := make([]bool, n)
		for i := range n {
			at := p.at(key, i)
			if at < 0 || at >= n || seen[at] {
				t.Fatalf("%d of %d goes to %d", i, n, at)
			}
			seen[at] = true
		}
	})
}

// TestLinesFollowOrders: the lines of the orders of a table are its order lines, in their order.
func TestLinesFollowOrders(t *testing.T) {
	p := open(t, object{"warehouses": 1, "customers_per_district": 50, "items": 100})
	orders, err := p.Rows(ordersTable, 0, 500)
	if err != nil || len(orders) != 500 {
		t.Fatal(len(orders), err)
	}
	at := int64(0)
	for _, o := range orders {
		for number := int64(1); number <= o.Args[6].I; number++ {
			l, err := p.Rows(orderLineTable, at, 1)
			if err != nil {
				t.Fatal(err)
			}
			if a := l[0].Args; a[0].I != o.Args[0].I || a[1].I != o.Args[1].I || a[2].I != o.Args[2].I || a[3].I != number {
				t.Fatalf("line %d is %v, expected number %d of %v", at, a[:4], number, o.Args[:3])
			}
			at++
		}
	}
	if _, err := p.Rows(orderLineTable, at, 1); !errors.Is(err, sdktest.ErrEnded) {
		t.Errorf("after %d lines: %v", at, err)
	}
}

func TestFixed(t *testing.T) {
	for _, c := range []struct {
		n     int64
		scale int
		want  string
	}{{0, 2, "0.00"}, {5, 2, "0.05"}, {100, 2, "1.00"}, {123_456, 2, "1234.56"}, {2000, 4, "0.2000"},
		{30_000_000, 2, "300000.00"}} {
		var b sdk.Batch
		b.Reset()
		b.Row()
		fixed(&b, c.n, c.scale)
		ops, err := abi.Decode(b.Bytes())
		if err != nil || string(ops[0].Args[0].Data) != c.want {
			t.Errorf("%d: %+v, %v", c.n, ops, err)
		}
	}
}

func TestBadParameters(t *testing.T) {
	for _, c := range []struct {
		params object
		says   string
	}{
		{object{"warehouses": 0}, "warehouses must be"}, {object{"warehouses": "4"}, "warehouses must be"},
		{object{"items": 1}, "items must be"}, {object{"customers_per_district": 25}, "multiple of 10"},
		{object{"terminal_times": 1}, "true or false"}, {object{"weights": object{"refund": 1}}, "no transaction"},
		{object{"weights": object{"payment": 0}}, "all weights"}, {object{"speed": 1}, "unknown parameter"},
	} {
		err := sdktest.Workload(tpcc{}).Open(object{"key_slots": 1, "params": c.params, "tables": []object{{"name": "t"}}})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v", c.params, err)
		}
	}
}
