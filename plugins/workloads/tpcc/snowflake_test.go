package main

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/sdktest"
)

// TestForSnowflake: on tables of Snowflake the same transactions are drawn, and
// what a changed row gives is read after the change. The harness checks that each
// ref names a column that its statement declares.
func TestForSnowflake(t *testing.T) {
	p := sdktest.Workload(tpcc{})
	if err := p.Open(object{"seed": 7, "key_slots": 4, "params": object{"warehouses": 2},
		"tables": []object{{"name": "item", "dialect": "snowflake"}}}); err != nil {
		t.Fatal(err)
	}
	const n = 1000
	plain, marked := take(t, open(t, object{"warehouses": 2}), n), take(t, p, n)
	reads := map[uint16]uint16{noDistrict: noDistrictRead, noStock: noStockRead, payWarehouse: payWarehouseRead,
		payDistrict: payDistrictRead, payCustomer: payCustomerRead, dlOrder: dlOrderRead}
	seen := map[uint16]int{}
	for i, x := range marked {
		var kept []uint16
		for j, op := range x.ops {
			if want := markedStatements[op.Statement]; len(op.Args) != len(want.Binds) {
				t.Fatalf("%s has %d arguments for %d binds", want.ID, len(op.Args), len(want.Binds))
			}
			if int(op.Statement) < numStatements {
				kept = append(kept, op.Statement)
			} else if op.Statement != dlLock && reads[x.ops[j-1].Statement] != op.Statement {
				t.Fatalf("%s follows %s", markedStatements[op.Statement].ID, markedStatements[x.ops[j-1].Statement].ID)
			}
			seen[op.Statement]++
		}
		if len(kept) != len(plain[i].ops) || x.rolledBack != plain[i].rolledBack {
			t.Fatalf("transaction %d has %d statements for %d", i, len(kept), len(plain[i].ops))
		}
		for j, op := range plain[i].ops {
			if kept[j] != op.Statement {
				t.Fatalf("transaction %d: statement %d is %s", i, j, markedStatements[kept[j]].ID)
			}
		}
	}
	for s := uint16(0); s < numMarked; s++ {
		if seen[s] == 0 {
			t.Errorf("%s was never issued", markedStatements[s].ID)
		}
	}
}

// TestMarkedSQL: Snowflake's SQL marks its parameters, each of which is a bind,
// and has nothing that only Postgres knows.
func TestMarkedSQL(t *testing.T) {
	for _, s := range markedStatements {
		sql, order := s.SQL[snowflakeDialect], s.BindOrder[snowflakeDialect]
		if strings.Count(sql, "?") != len(order) || len(s.SQL) != 1 {
			t.Errorf("%s has %d marks for %v", s.ID, strings.Count(sql, "?"), order)
		}
		for _, n := range order {
			if n >= len(s.Binds) {
				t.Errorf("%s: parameter %d of %d", s.ID, n, len(s.Binds))
			}
		}
		for _, word := range []string{"$", "RETURNING", "FOR UPDATE", "ARRAY[", "::numeric", "::text"} {
			if strings.Contains(sql, word) {
				t.Errorf("%s has %s: %s", s.ID, word, sql)
			}
		}
		if s.Kind == sdk.Update && len(s.Columns) > 0 {
			t.Errorf("%s is an UPDATE that returns columns", s.ID)
		}
	}
}
