// Command mix is the general workload plugin: weighted point lookups, range
// scans, inserts, updates and deletes on one table, which it either brings itself
// (an orders table) or takes as it finds it.
package main

import (
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

func init() { sdk.ServeWorkload(mix{}) }

func main() {}

type mix struct{}

// Manifest describes the plugin.
func (mix) Manifest() sdk.Manifest {
	return sdk.Manifest{
		Name: "mix", Version: "1.0.0", Title: "Mixed reads and writes", Author: "Loadstone",
		Description: "Point lookups, range scans, inserts, updates and deletes by weight, on a table of its own or on any " +
			"table with a key.",
		Parameters: parameterSchema,
		Tables:     []sdk.LogicalTable{ordersTable(20, 100)},
	}
}

// Tables returns the table that is made when there is none.
func (mix) Tables(doc *jsondoc.Value) ([]sdk.LogicalTable, error) {
	p, err := readParams(doc)
	if err != nil {
		return nil, err
	}
	t := ordersTable(p.minSize, p.maxSize)
	// Without weights a table of somebody else is only read, and the orders refer to nothing.
	t.Inserts = p.weighted && p.weights[insert] > 0
	return []sdk.LogicalTable{t}, nil
}

// ordersTable is the table of orders. A database that fills it itself makes values
// that are spread as those of Rows are.
func ordersTable(minSize, maxSize int64) sdk.LogicalTable {
	return sdk.LogicalTable{
		Name: tableName, Key: []string{"id"}, AnyShape: true,
		Columns: []sdk.LogicalColumn{
			{Name: "id", Type: sdk.I64, Fill: &sdk.Fill{As: sdk.FillNumber, From: 1}},
			{Name: "customer_id", Type: sdk.I64, Fill: &sdk.Fill{As: sdk.FillInteger, Min: 1, Max: customers}},
			{Name: "status", Type: sdk.Text, DBType: map[string]string{"postgres": "varchar(16)", "snowflake": "VARCHAR(16)"},
				Fill: &sdk.Fill{As: sdk.FillChoice, Values: statuses[:]}},
			{Name: "amount", Type: sdk.Text, DBType: map[string]string{"postgres": "numeric(12,2)", "snowflake": "NUMBER(12,2)"},
				Fill: &sdk.Fill{As: sdk.FillDecimal, Max: 10_000, Scale: 2}},
			{Name: "created_at", Type: sdk.Timestamp,
				Fill: &sdk.Fill{As: sdk.FillTime, From: epoch2024, Step: orderGap, Max: orderSpan}},
			{Name: "note", Type: sdk.Text, Nullable: true, Fill: &sdk.Fill{As: sdk.FillLetters, Min: minSize, Max: maxSize}},
		},
	}
}

const tableName = "orders"

const parameterSchema = `{
"$schema":"https://json-schema.org/draft/2020-12/schema",
"type":"object","additionalProperties":false,
"properties":{
"weights":{"title":"Weights","description":"Relative frequency of each kind. Default: 70 lookups, 10 scans, 10 inserts and 10 updates on a table that Loadstone made, otherwise 70 lookups and 10 scans.",
"type":"object","additionalProperties":false,"minProperties":1,
"examples":[{"POINT_LOOKUP":70,"RANGE_SCAN":10,"INSERT":10,"UPDATE":10,"DELETE":0}],
"properties":{
"POINT_LOOKUP":{"title":"Point lookups","description":"Reads one row by its key.","type":"number","minimum":0,"maximum":1000000,"default":0},
"RANGE_SCAN":{"title":"Range scans","description":"Reads scan_length rows in key order.","type":"number","minimum":0,"maximum":1000000,"default":0},
"INSERT":{"title":"Inserts","description":"Adds one row with a new key.","type":"number","minimum":0,"maximum":1000000,"default":0},
"UPDATE":{"title":"Updates","description":"Sets a column of one row, found by its key; several where a constraint ties them together.","type":"number","minimum":0,"maximum":1000000,"default":0},
"DELETE":{"title":"Deletes","description":"Deletes one row by its key, each once: first rows of the run, then the coldest. When none are left, deletes have no effect.","type":"number","minimum":0,"maximum":1000000,"default":0}}},
"keys":{"title":"Key distribution","description":"Which rows are touched: all alike, few most often (zipfian), the newest most often (latest), or in order.",
"type":"string","enum":["uniform","zipfian","latest","sequential"],"default":"uniform"},
"zipf_theta":{"title":"Skew","description":"Exponent of zipfian and latest: 0 is uniform, 0.99 is the usual choice, above 1 is extreme.","type":"number","minimum":0,"maximum":5,"default":0.99},
"zipf_scrambled":{"title":"Scatter hot rows","description":"Zipfian only: spread the hot rows over the whole table instead of its first pages.","type":"boolean","default":true},
"scan_length":{"title":"Scan length","description":"Rows that a range scan reads.","type":"integer","minimum":1,"maximum":10000,"default":100},
"value_size":{"title":"Value size","description":"Length of generated text and bytes, where the column allows it.","type":"object","additionalProperties":false,
"default":{"min":20,"max":100},
"properties":{
"min":{"title":"Smallest","type":"integer","minimum":0,"maximum":1048576},
"max":{"title":"Largest","type":"integer","minimum":0,"maximum":1048576}}},
"insert_columns":{"title":"Columns of inserts","description":"Columns of INSERT, instead of those that the database does not fill. Columns with a foreign key or a check get values of an existing row.",
"type":"array","minItems":1,"maxItems":255,"uniqueItems":true,"items":{"type":"string","minLength":1}},
"update_columns":{"title":"Columns of updates","description":"The columns that UPDATE sets, in place of one that no constraint binds.",
"type":"array","minItems":1,"maxItems":255,"uniqueItems":true,"items":{"type":"string","minLength":1}},
"think_time_ms":{"title":"Think time (ms)","description":"Pause before each operation.","type":"number","minimum":0,"maximum":3600000,"default":0}
}}`
