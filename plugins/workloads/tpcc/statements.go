package main

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// The statements, by number. All transactions have theirs, whatever their weight.
const (
	noWarehouse = iota
	noDistrict
	noCustomer
	noOrder
	noNewOrder
	noItem
	noStock
	noLine
	payWarehouse
	payDistrict
	payByName
	payCustomer
	payHistory
	osByNumber
	osByName
	osOrder
	osLines
	dlOldest
	dlNewOrder
	dlOrder
	dlLines
	dlAmount
	dlCustomer
	slDistrict
	slCount
	numStatements
)

// Snowflake's UPDATE returns no rows, so that what it changed is read after it, in
// the same transaction, which sees its own changes. Locks are those of the UPDATE.
const (
	noDistrictRead = numStatements + iota
	noStockRead
	payWarehouseRead
	payDistrictRead
	payCustomerRead
	dlLock
	dlOrderRead
	numMarked
)

// binds reads "name type, name type".
func binds(list string) []sdk.Bind {
	var out []sdk.Bind
	for _, item := range strings.Split(list, ", ") {
		name, kind, _ := strings.Cut(item, " ")
		out = append(out, sdk.Bind{Name: name, Type: kind})
	}
	return out
}

func statement(id, kind, table, bindList, sql string, columns ...string) sdk.Statement {
	return sdk.Statement{ID: id, Kind: kind, Table: table, Binds: binds(bindList), Columns: columns,
		Writes: kind != sdk.PointLookup && kind != sdk.RangeScan &&
			kind != sdk.GenericSQL, SQL: map[string]string{dialect: sql}, NoRowsHint: cure}
}

func begins(transaction int, s sdk.Statement) sdk.Statement {
	s.Transaction = transactionNames[transaction]
	return s
}

// middleOf finds the customer in the middle of those of one name, in the order
// of their first names: place n/2, rounded up (clauses 2.5.2.2 and 2.6.2.2).
const middleOf = ` FROM (SELECT c.*, row_number() OVER (ORDER BY c_first) AS place, count(*) OVER () AS namesakes FROM {table} AS c
 WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3) AS c WHERE place = (namesakes + 1) / 2`

var statements = [numStatements]sdk.Statement{
	// New-Order, clause 2.4.2.2.
	noWarehouse: begins(newOrder, statement("new_order_warehouse", sdk.PointLookup, "warehouse", "w_id i64",
		"SELECT w_tax FROM {table} WHERE w_id = $1", "w_tax")),
	noDistrict: statement("new_order_district", sdk.Update, "district", "w_id i64, d_id i64",
		"UPDATE {table} SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id - 1, d_tax",
		"o_id", "d_tax"),
	noCustomer: statement("new_order_customer", sdk.PointLookup, "customer", "w_id i64, d_id i64, c_id i64",
		"SELECT c_discount, c_last, c_credit FROM {table} WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3", "c_discount",
		"c_last", "c_credit"),
	noOrder: statement("new_order_order", sdk.Insert, "orders",
		"o_id i64, d_id i64, w_id i64, c_id i64, ol_cnt i64, all_local i64",
		"INSERT INTO {table} (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) VALUES ($1, "+
			"$2, $3, $4, CURRENT_TIMESTAMP, NULL, $5, $6)"),
	noNewOrder: statement("new_order_new_order", sdk.Insert, "new_order", "o_id i64, d_id i64, w_id i64",
		"INSERT INTO {table} (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)"),
	noItem: statement("new_order_item", sdk.PointLookup, "item", "i_id i64",
		"SELECT i_price, i_name, i_data FROM {table} WHERE i_id = $1", "i_price", "i_name", "i_data"),
	noStock: statement(
		"new_order_stock",
		sdk.Update,
		"stock",
		"quantity i64, remote i64, supply_w_id i64, i_id i64, d_id i64",
		`UPDATE {table} SET s_quantity = CASE WHEN s_quantity >= $1::integer + 10 THEN s_quantity - $1 ELSE s_quantity - $1 + 91 END,
 s_ytd = s_ytd + $1, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $2
WHERE s_w_id = $3 AND s_i_id = $4
RETURNING s_quantity, (ARRAY[`+strings.Join(
			districtColumns[:],
			", ",
		)+`])[$5::integer], s_data`,
		"s_quantity",
		"s_dist",
		"s_data",
	),
	noLine: statement(
		"new_order_line",
		sdk.Insert,
		"order_line",
		"o_id i64, d_id i64, w_id i64, number i64, i_id i64, supply_w_id i64, quantity i64, price text, dist_info text",
		`INSERT INTO {table} (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount, ol_dist_info)
VALUES ($1, $2, $3, $4, $5, $6, NULL, $7::integer, $7 * $8::numeric, $9)`,
	),

	// Payment, clause 2.5.2.2.
	payWarehouse: begins(payment, statement("payment_warehouse", sdk.Update, "warehouse", "amount text, w_id i64",
		"UPDATE {table} SET w_ytd = w_ytd + $1 WHERE w_id = $2 RETURNING w_name, w_street_1, w_street_2, w_city, w_state, "+
			"w_zip", "w_name", "w_street_1", "w_street_2", "w_city", "w_state", "w_zip")),
	payDistrict: statement("payment_district", sdk.Update, "district", "amount text, w_id i64, d_id i64",
		"UPDATE {table} SET d_ytd = d_ytd + $1 WHERE d_w_id = $2 AND d_id = $3 RETURNING d_name, d_street_1, d_street_2, "+
			"d_city, d_state, d_zip", "d_name", "d_street_1", "d_street_2", "d_city", "d_state", "d_zip"),
	payByName: statement("payment_customer_by_name", sdk.GenericSQL, "customer", "c_w_id i64, c_d_id i64, c_last text",
		"SELECT c_id"+middleOf, "c_id"),
	payCustomer: statement(
		"payment_customer",
		sdk.Update,
		"customer",
		"amount text, w_id i64, d_id i64, c_w_id i64, c_d_id i64, c_id i64",
		`UPDATE {table} SET c_balance = c_balance - $1::numeric, c_ytd_payment = c_ytd_payment + $1, c_payment_cnt = c_payment_cnt + 1,
 c_data = CASE c_credit WHEN 'BC' THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, $3::integer, $2::integer, $1) || '|' || c_data, 500) ELSE c_data END
WHERE c_w_id = $4 AND c_d_id = $5 AND c_id = $6
RETURNING c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance, CASE c_credit WHEN 'BC' THEN left(c_data, 200) END`,
		"c_id",
		"c_first",
		"c_middle",
		"c_last",
		"c_street_1",
		"c_street_2",
		"c_city",
		"c_state",
		"c_zip",
		"c_phone",
		"c_since",
		"c_credit",
		"c_credit_lim",
		"c_discount",
		"c_balance",
		"c_data",
	),
	payHistory: statement("payment_history", sdk.Insert, "history",
		"c_id i64, c_d_id i64, c_w_id i64, d_id i64, w_id i64, amount text, w_name text, d_name text",
		"INSERT INTO {table} (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES ($1, $2, $3, "+
			"$4, $5, CURRENT_TIMESTAMP, $6, $7::text || '    ' || $8::text)"),

	// Order-Status, clause 2.6.2.2.
	osByNumber: begins(orderStatus,
		statement("order_status_customer", sdk.PointLookup, "customer", "w_id i64, d_id i64, c_id i64",
			"SELECT c_id, c_balance, c_first, c_middle, c_last FROM {table} WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
			"c_id", "c_balance", "c_first", "c_middle", "c_last")),
	osByName: begins(orderStatus,
		statement("order_status_customer_by_name", sdk.GenericSQL, "customer", "w_id i64, d_id i64, c_last text",
			"SELECT c_id, c_balance, c_first, c_middle, c_last"+middleOf, "c_id", "c_balance", "c_first", "c_middle", "c_last")),
	osOrder: statement("order_status_order", sdk.PointLookup, "orders", "w_id i64, d_id i64, c_id i64",
		"SELECT o_id, o_entry_d, o_carrier_id FROM {table} WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY "+
			"o_id DESC LIMIT 1", "o_id", "o_entry_d", "o_carrier_id"),
	osLines: statement("order_status_lines", sdk.RangeScan, "order_line", "w_id i64, d_id i64, o_id i64",
		"SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM {table} WHERE ol_w_id = $1 AND "+
			"ol_d_id = $2 AND ol_o_id = $3", "ol_i_id", "ol_supply_w_id", "ol_quantity", "ol_amount", "ol_delivery_d"),

	// Delivery, clause 2.7.4.2. FOR UPDATE makes a second delivery of the same
	// district wait for the first and go on to the order after it.
	dlOldest: begins(delivery, statement("delivery_oldest", sdk.PointLookup, "new_order", "w_id i64, d_id i64",
		"SELECT no_o_id FROM {table} WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1 FOR UPDATE", "no_o_id")),
	dlNewOrder: statement("delivery_new_order", sdk.Delete, "new_order", "w_id i64, d_id i64, o_id i64",
		"DELETE FROM {table} WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3"),
	dlOrder: statement("delivery_order", sdk.Update, "orders", "carrier i64, w_id i64, d_id i64, o_id i64",
		"UPDATE {table} SET o_carrier_id = $1 WHERE o_w_id = $2 AND o_d_id = $3 AND o_id = $4 RETURNING o_c_id", "o_c_id"),
	dlLines: statement("delivery_lines", sdk.Update, "order_line", "w_id i64, d_id i64, o_id i64",
		"UPDATE {table} SET ol_delivery_d = CURRENT_TIMESTAMP WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3"),
	dlAmount: statement("delivery_amount", sdk.GenericSQL, "order_line", "w_id i64, d_id i64, o_id i64",
		"SELECT sum(ol_amount) FROM {table} WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3", "amount"),
	dlCustomer: statement("delivery_customer", sdk.Update, "customer", "amount text, w_id i64, d_id i64, c_id i64",
		"UPDATE {table} SET c_balance = c_balance + $1, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = $2 AND c_d_id "+
			"= $3 AND c_id = $4"),

	// Stock-Level, clause 2.8.2.2.
	slDistrict: begins(stockLevel, statement("stock_level_district", sdk.PointLookup, "district", "w_id i64, d_id i64",
		"SELECT d_next_o_id FROM {table} WHERE d_w_id = $1 AND d_id = $2", "d_next_o_id")),
	slCount: statement("stock_level_count", sdk.GenericSQL, "order_line",
		"w_id i64, d_id i64, next_o_id i64, threshold i64",
		`SELECT count(DISTINCT s_i_id) FROM {table:order_line}, {table:stock}
WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < $3::integer AND ol_o_id >= $3 - 20 AND s_w_id = $1 AND s_i_id = ol_i_id AND s_quantity < $4`, "low_stock"),
}

// customerData is what Payment writes about a customer with bad credit.
const customerData = "c_data = CASE c_credit WHEN 'BC' THEN LEFT(CONCAT_WS(' ', c_id, c_d_id, c_w_id, $3, $2, $1) " +
	"|| '|' || c_data, 500) ELSE c_data END"

// snowflakeSQL is the SQL of statements that Snowflake wants otherwise. VALUES takes
// few expressions there, so rows with computed values are inserted by SELECT.
var snowflakeSQL = map[int]string{
	noDistrict: "UPDATE {table} SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2",
	noStock: `UPDATE {table} SET s_quantity = CASE WHEN s_quantity >= $1 + 10 THEN s_quantity - $1 ELSE s_quantity - $1 + 91 END,
 s_ytd = s_ytd + $1, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $2
WHERE s_w_id = $3 AND s_i_id = $4`,
	noLine: `INSERT INTO {table} (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount, ol_dist_info)
SELECT $1, $2, $3, $4, $5, $6, NULL, $7, $7 * $8::NUMBER(12,2), $9`,
	payWarehouse: "UPDATE {table} SET w_ytd = w_ytd + $1::NUMBER(12,2) WHERE w_id = $2",
	payDistrict:  "UPDATE {table} SET d_ytd = d_ytd + $1::NUMBER(12,2) WHERE d_w_id = $2 AND d_id = $3",
	payCustomer: `UPDATE {table} SET c_balance = c_balance - $1::NUMBER(12,2), c_ytd_payment = c_ytd_payment + $1::NUMBER(12,2), c_payment_cnt = c_payment_cnt + 1,
 ` + customerData + `
WHERE c_w_id = $4 AND c_d_id = $5 AND c_id = $6`,
	payHistory: "INSERT INTO {table} (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) SELECT $1, " +
		"$2, $3, $4, $5, CURRENT_TIMESTAMP, $6, $7 || '    ' || $8",
	dlOldest: "SELECT no_o_id FROM {table} WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1",
	dlOrder:  "UPDATE {table} SET o_carrier_id = $1 WHERE o_w_id = $2 AND o_d_id = $3 AND o_id = $4",
	dlCustomer: "UPDATE {table} SET c_balance = c_balance + $1::NUMBER(12,2), c_delivery_cnt = c_delivery_cnt + 1 " +
		"WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
	slCount: `SELECT count(DISTINCT s_i_id) FROM {table:order_line}, {table:stock}
WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < $3 AND ol_o_id >= $3 - 20 AND s_w_id = $1 AND s_i_id = ol_i_id AND s_quantity < $4`,
}

// markedStatements are those for Snowflake: the same in their order, and the reads after them.
var markedStatements = func() []sdk.Statement {
	list := make([]sdk.Statement, numMarked)
	for i, s := range statements {
		if sql := snowflakeSQL[i]; sql != "" {
			s.SQL = map[string]string{dialect: sql}
		}
		if s.Writes {
			s.Columns = nil
		}
		list[i] = s
	}
	list[noDistrictRead] = statement("new_order_district_read", sdk.PointLookup, "district", "w_id i64, d_id i64",
		"SELECT d_next_o_id - 1, d_tax FROM {table} WHERE d_w_id = $1 AND d_id = $2", "o_id", "d_tax")
	list[noStockRead] = statement("new_order_stock_read", sdk.PointLookup, "stock", "supply_w_id i64, i_id i64, d_id i64",
		"SELECT s_quantity, CASE $3 "+whenDistrict()+"END, s_data FROM {table} WHERE s_w_id = $1 AND s_i_id = $2",
		"s_quantity", "s_dist", "s_data")
	list[payWarehouseRead] = statement("payment_warehouse_read", sdk.PointLookup, "warehouse", "w_id i64",
		"SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM {table} WHERE w_id = $1",
		statements[payWarehouse].Columns...)
	list[payDistrictRead] = statement("payment_district_read", sdk.PointLookup, "district", "w_id i64, d_id i64",
		"SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM {table} WHERE d_w_id = $1 AND d_id = $2",
		statements[payDistrict].Columns...)
	list[payCustomerRead] = statement(
		"payment_customer_read",
		sdk.PointLookup,
		"customer",
		"c_w_id i64, c_d_id i64, c_id i64",
		`SELECT c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance, CASE c_credit WHEN 'BC' THEN LEFT(c_data, 200) END
FROM {table} WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3`,
		statements[payCustomer].Columns...)
	// Standard tables have no SELECT … FOR UPDATE. Writing the district's row makes a
	// second delivery of the same district wait for the first on every type of table.
	list[dlLock] = begins(delivery, statement("delivery_lock", sdk.Update, "district", "w_id i64, d_id i64",
		"UPDATE {table} SET d_next_o_id = d_next_o_id WHERE d_w_id = $1 AND d_id = $2"))
	list[dlOrderRead] = statement("delivery_order_read", sdk.PointLookup, "orders", "w_id i64, d_id i64, o_id i64",
		"SELECT o_c_id FROM {table} WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3", "o_c_id")
	for i := range list {
		text, order := sqltext.Positional(list[i].SQL[dialect])
		list[i].SQL, list[i].BindOrder = map[string]string{snowflakeDialect: text}, map[string][]int{snowflakeDialect: order}
	}
	return list
}()

// whenDistrict are the branches that choose the district's column of stock.
func whenDistrict() string {
	var b strings.Builder
	for i, c := range districtColumns {
		b.WriteString("WHEN " + strconv.Itoa(i+1) + " THEN " + c + " ")
	}
	return b.String()
}

// forSnowflake tells by the tables which statements a stream issues.
func forSnowflake(tables []sdk.Table) bool {
	return len(tables) > 0 && tables[0].Dialect == snowflakeDialect
}

// Statements returns those of the five transactions.
func (tpcc) Statements(doc *jsondoc.Value, tables []sdk.Table) ([]sdk.Statement, error) {
	if _, err := readParams(doc); err != nil {
		return nil, err
	}
	if forSnowflake(tables) {
		return markedStatements, nil
	}
	return statements[:], nil
}

// cure is what helps against statements that find no row.
const cure = "the tables are not as they were loaded, or all orders are delivered: workload.params.warehouses has to be " +
	"theirs, and target.prepare.if_exists: recreate loads them anew"
