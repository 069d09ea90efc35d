package main

import (
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// The tables in the order in which they are made. The last one never changes its
// number of rows, so that a set-up that was killed is recognised.
const (
	itemTable = iota
	warehouseTable
	districtTable
	customerTable
	historyTable
	newOrderTable
	ordersTable
	orderLineTable
	stockTable
	numTables
)

// linesPerOrder is the mean of 5 … 15, which the population meets exactly.
const linesPerOrder = 10

// undelivered is how many of the orders to begin with are new: 900 of 3000.
func (p *params) undelivered() int64 { return p.customers * 3 / 10 }

// rows is how many rows a table begins with.
func (p *params) rows(table int) int64 {
	districts := p.warehouses * districtsPerWarehouse
	switch table {
	case itemTable:
		return p.items
	case warehouseTable:
		return p.warehouses
	case districtTable:
		return districts
	case newOrderTable:
		return districts * p.undelivered()
	case orderLineTable:
		return districts * p.customers * linesPerOrder
	case stockTable:
		return p.warehouses * p.items
	}
	return districts * p.customers
}

func column(name, kind, dbType string) sdk.LogicalColumn {
	c := sdk.LogicalColumn{Name: name, Type: kind,
		DBType: map[string]string{dialect: dbType, snowflakeDialect: strings.ToUpper(dbType)}}
	if kind == sdk.Timestamp {
		c.DBType[snowflakeDialect] = "TIMESTAMP_NTZ(6)"
	}
	return c
}

func integer(name string) sdk.LogicalColumn      { return column(name, sdk.I64, "integer") }
func text(name, dbType string) sdk.LogicalColumn { return column(name, sdk.Text, dbType) }
func numeric(name, digits string) sdk.LogicalColumn {
	return column(name, sdk.Text, "numeric("+digits+")")
}
func date(name string) sdk.LogicalColumn { return column(name, sdk.Timestamp, "timestamp") }

func nullable(c sdk.LogicalColumn) sdk.LogicalColumn {
	c.Nullable = true
	return c
}

// address are the columns that clause 1.3.1 gives warehouses, districts and customers.
func address(prefix string) []sdk.LogicalColumn {
	return []sdk.LogicalColumn{text(prefix+"street_1", "varchar(20)"), text(prefix+"street_2", "varchar(20)"),
		text(prefix+"city", "varchar(20)"),
		text(prefix+"state", "char(2)"), text(prefix+"zip", "char(9)")}
}

func join(parts ...[]sdk.LogicalColumn) []sdk.LogicalColumn {
	var list []sdk.LogicalColumn
	for _, p := range parts {
		list = append(list, p...)
	}
	return list
}

// tables are those of clause 1.3.1. Whole numbers are integers, which hold at
// least the digits that the clause asks for.
func (p *params) tables() []sdk.LogicalTable {
	stock := []sdk.LogicalColumn{integer("s_i_id"), integer("s_w_id"), integer("s_quantity")}
	for _, d := range districtColumns {
		stock = append(stock, text(d, "char(24)"))
	}
	list := []sdk.LogicalTable{
		itemTable: {Name: "item", Key: []string{"i_id"}, SizedBy: "items", Columns: []sdk.LogicalColumn{
			integer("i_id"), integer("i_im_id"), text("i_name", "varchar(24)"), numeric("i_price", "5,2"),
			text("i_data", "varchar(50)")}},
		warehouseTable: {Name: "warehouse", Key: []string{"w_id"}, SizedBy: "warehouses", Columns: join(
			[]sdk.LogicalColumn{integer("w_id"), text("w_name", "varchar(10)")}, address("w_"),
			[]sdk.LogicalColumn{numeric("w_tax", "4,4"), numeric("w_ytd", "12,2")})},
		districtTable: {Name: "district", Key: []string{"d_w_id", "d_id"}, SizedBy: "warehouses", Columns: join(
			[]sdk.LogicalColumn{integer("d_id"), integer("d_w_id"), text("d_name", "varchar(10)")}, address("d_"),
			[]sdk.LogicalColumn{numeric("d_tax", "4,4"), numeric("d_ytd", "12,2"), integer("d_next_o_id")})},
		customerTable: {Name: "customer", Key: []string{"c_w_id", "c_d_id", "c_id"}, SizedBy: "customers_per_district",
			Indexes: []sdk.Index{{Columns: []string{"c_w_id", "c_d_id", "c_last", "c_first"}}}, Columns: join(
				[]sdk.LogicalColumn{integer("c_id"), integer("c_d_id"), integer("c_w_id"), text("c_first", "varchar(16)"),
					text("c_middle", "char(2)"), text("c_last", "varchar(16)")},
				address("c_"),
				[]sdk.LogicalColumn{text("c_phone", "char(16)"), date("c_since"), text("c_credit", "char(2)"),
					numeric("c_credit_lim", "12,2"), numeric("c_discount", "4,4"),
					numeric("c_balance", "12,2"), numeric("c_ytd_payment", "12,2"), integer("c_payment_cnt"),
					integer("c_delivery_cnt"), text("c_data", "varchar(500)")})},
		historyTable: {Name: "history", Varies: true, Columns: []sdk.LogicalColumn{
			integer("h_c_id"), integer("h_c_d_id"), integer("h_c_w_id"), integer("h_d_id"), integer("h_w_id"), date("h_date"),
			numeric("h_amount", "6,2"), text("h_data", "varchar(24)")}},
		newOrderTable: {Name: "new_order", Key: []string{"no_w_id", "no_d_id", "no_o_id"}, Varies: true,
			Columns: []sdk.LogicalColumn{
				integer("no_o_id"), integer("no_d_id"), integer("no_w_id")}},
		ordersTable: {Name: "orders", Key: []string{"o_w_id", "o_d_id", "o_id"}, Varies: true,
			Indexes: []sdk.Index{{Columns: []string{"o_w_id", "o_d_id", "o_c_id", "o_id"}, Unique: true}},
			Columns: []sdk.LogicalColumn{
				integer("o_id"), integer("o_d_id"), integer("o_w_id"), integer("o_c_id"), date("o_entry_d"),
				nullable(integer("o_carrier_id")), integer("o_ol_cnt"), integer("o_all_local")}},
		orderLineTable: {Name: "order_line", Key: []string{"ol_w_id", "ol_d_id", "ol_o_id", "ol_number"}, Varies: true,
			Columns: []sdk.LogicalColumn{
				integer("ol_o_id"), integer("ol_d_id"), integer("ol_w_id"), integer("ol_number"), integer("ol_i_id"),
				integer("ol_supply_w_id"), nullable(date("ol_delivery_d")),
				integer("ol_quantity"), numeric("ol_amount", "6,2"), text("ol_dist_info", "char(24)")}},
		stockTable: {Name: "stock", Key: []string{"s_w_id", "s_i_id"}, SizedBy: "items", Columns: join(stock,
			[]sdk.LogicalColumn{integer("s_ytd"), integer("s_order_cnt"), integer("s_remote_cnt"),
				text("s_data", "varchar(50)")})},
	}
	for i := range list {
		list[i].Rows, list[i].ComputedKeys = p.rows(i), true
	}
	return list
}

var districtColumns = [districtsPerWarehouse]string{"s_dist_01", "s_dist_02", "s_dist_03", "s_dist_04", "s_dist_05",
	"s_dist_06", "s_dist_07", "s_dist_08", "s_dist_09", "s_dist_10"}

// Tables returns the tables of so many warehouses.
func (tpcc) Tables(doc *jsondoc.Value) ([]sdk.LogicalTable, error) {
	p, err := readParams(doc)
	if err != nil {
		return nil, err
	}
	return p.tables(), nil
}
