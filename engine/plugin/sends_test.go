package plugin_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine/plugin"
)

func TestWhatAPatternAllows(t *testing.T) {
	const reads = "SELECT {reads count extract lists.known *.anywhere}"
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
		{"SELECT {names} FROM {table}", `SELECT a, "b" , c.d FROM orders`, true},
		{"SELECT {names} FROM {table}", "SELECT a, f(b) FROM orders", false},
		{"SELECT {names} FROM {table}", "SELECT FROM orders", false},
		{reads, "SELECT count(*) FROM orders", true},
		{reads, "SELECT COUNT(*), o.a FROM shop.orders AS o (a), lists.known k WHERE o.a IN (SELECT b FROM lists.known)",
			true},
		{reads, "SELECT a::numeric(12, 2), extract(year FROM a), CASE WHEN (a) IS NULL THEN (b) END FROM orders LIMIT (1)",
			true},
		{reads, "SELECT 1 FROM x.anywhere JOIN anywhere ON (true)", true},
		{reads, "SELECT a FROM accounts", false},
		{reads, "SELECT a FROM orders, accounts", false},
		{reads, "SELECT a FROM orders JOIN accounts ON true", false},
		{reads, "SELECT a FROM orders o CROSS JOIN (accounts)", false},
		{reads, "SELECT (SELECT a FROM accounts) FROM orders", false},
		{reads, "SELECT count((SELECT a FROM accounts)) FROM orders", false},
		{reads, "SELECT a FROM orders UNION TABLE accounts", false},
		{reads, "SELECT a FROM orders WHERE EXISTS (SELECT 1 FROM known)", false},
		{reads, "SELECT a FROM ONLY accounts", false},
		{reads, "SELECT a FROM (SELECT a FROM orders) AS s, accounts", false},
		{reads, "SELECT pg_read_file('x')", false},
		{reads, "SELECT pg_catalog.count(*) FROM orders", false},
		{reads, `SELECT "pg_read_file" ('x')`, false},
		{reads, "SELECT pg_read_file /* */ ('x') FROM orders", false},
		{reads, "SELECT a FROM pg_read_file('x') AS t", false},
		{reads, "SELECT a) FROM orders", false},
		{"SELECT {reads} FROM {table} {reads}", "SELECT a FROM orders, accounts", false},
		{"SELECT {reads} FROM {table} {reads}", "SELECT a FROM orders WHERE b = $1", true},
		{"SELECT {reads} FROM {table} {reads}", "SELECT a FROM accounts UNION SELECT b FROM orders", false},
		{"DELETE FROM {table} {reads}", "DELETE FROM orders USING accounts WHERE true", false},
		{"DELETE FROM {table} {reads}", "DELETE FROM orders WHERE (a, b) = ($1, $2)", true},
		{"UPDATE {table} SET {reads}", "UPDATE orders SET a = b FROM accounts", false},
		{"UPDATE {table} SET {reads}", "UPDATE orders SET a = (SELECT b FROM accounts)", false},
		{"UPDATE {table} SET {reads}", "UPDATE orders SET a = $1, b = 'x' WHERE c = $2", true},
		{"INSERT INTO {table} {reads}", "INSERT INTO orders (a, b) VALUES ($1, $2)", true},
		{"INSERT INTO {table} {reads}", "INSERT INTO orders SELECT a FROM accounts", false},
	} {
		if got := plugin.Allows([]string{c.pattern}, c.sql, "postgres", tables); got != c.want {
			t.Errorf("%s allows %s: %v", c.pattern, c.sql, got)
		}
	}
	for pattern, fine := range map[string]bool{"SELECT {*}": true, "({*}": true, "{*}": false, "{name} {*}": false,
		"SELECT {all}": false, "": false, "SELECT '": false} {
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
