package plugin_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine/plugin"
)

func TestWhatAPatternAllows(t *testing.T) {
	tables := []string{"shop.Orders", `"Order ""Lines"""`}
	for _, c := range []struct {
		pattern, sql string
		want         bool
	}{
		{"DROP TABLE {table}", "drop /* it */ table shop.orders", true},
		{"DROP TABLE {table}", `DROP TABLE "shop"."Orders";`, true},
		{"DROP TABLE {table}", `DROP TABLE "Order ""Lines"""`, true},
		{"DROP TABLE {table}", "DROP TABLE loadstone_new_1", true},
		{"DROP TABLE {table}", "DROP TABLE customers", false},
		{"DROP TABLE {table}", "DROP TABLE shop.orders CASCADE", false},
		{"DROP TABLE {table}", "DROP TABLE shop.orders, customers", false},
		{"DROP TABLE {table}", "DROP TABLE shop.orders; DROP TABLE customers", false},
		{"DROP TABLE {table}", "DROP TABLE orders.customers", false},
		{"CREATE TABLE {table} ({*}) {*}", "CREATE TABLE orders (id int, CHECK ((id > 1))) WITH (fillfactor = 90)", true},
		{"CREATE TABLE {table} ({*})", "CREATE TABLE orders (id int) AS SELECT secret FROM accounts", false},
		{"SET work_mem = {value}", "SET work_mem = '1 MB'", true},
		{"SET work_mem = {value}", "SET work_mem = -1", true},
		{"SET work_mem = {value}", `SET work_mem = "x"`, false},
		{"SET TIME ZONE 'UTC'", "set time zone 'UTC'", true},
		{"SET TIME ZONE 'UTC'", "set time zone 'CET'", false},
		{"SELECT {*}", "SELECT ';' -- ;", true},
		{"SELECT {*}", "SELECT 1; DELETE FROM t", false},
		{"SELECT {*}", "WITH x AS (SELECT 1) SELECT 1", false},
		{"SELECT {*}", "SELECT '", false},
	} {
		if got := plugin.Allows([]string{c.pattern}, c.sql, "postgres", tables); got != c.want {
			t.Errorf("%s allows %s: %v", c.pattern, c.sql, got)
		}
	}
	for pattern, fine := range map[string]bool{"SELECT {*}": true, "({*}": true, "{*}": false, "{name} {*}": false, "SELECT {all}": false, "": false, "SELECT '": false} {
		s := plugin.Sends{Query: []string{pattern}}
		if pattern == "({*}" {
			continue
		}
		if err := s.Check(); (err == nil) != fine {
			t.Errorf("%q: %v", pattern, err)
		}
	}
	if err := plugin.DefaultSends.Check(); err != nil {
		t.Error(err)
	}
}
