// Command ycsb is the workload plugin for the core workloads A to F of the Yahoo!
// Cloud Serving Benchmark, on the table that YCSB's JDBC binding uses: usertable
// with a text key and text fields. Keys and key frequencies are YCSB's own, so a
// table that YCSB or go-ycsb has loaded can be used as it is.
package main

import (
	"strconv"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

func init() { sdk.ServeWorkload(ycsb{}) }

func main() {}

type ycsb struct{}

const (
	keyColumn   = "ycsb_key"
	fieldPrefix = "field"
)

// Manifest describes the plugin.
func (ycsb) Manifest() sdk.Manifest {
	return sdk.Manifest{
		Name: "ycsb", Version: "1.0.0", Title: "YCSB", Author: "Loadstone",
		Description: "The core workloads A to F of the Yahoo! Cloud Serving Benchmark: reads, updates, inserts, short " +
			"scans and read-modify-writes of 1 kB records with YCSB's own keys and key frequencies.",
		Parameters: parameterSchema, Tables: []sdk.LogicalTable{usertable(&options{fieldCount: 10})},
	}
}

// usertable is the table that these options make.
func usertable(o *options) sdk.LogicalTable {
	t := sdk.LogicalTable{Name: "usertable", Key: []string{keyColumn}, AnyShape: true, Varies: true, OwnKeys: true,
		Rows: o.records,
		Columns: []sdk.LogicalColumn{{Name: keyColumn, Type: sdk.Text,
			DBType: map[string]string{"postgres": "varchar(255)", "snowflake": "VARCHAR(255)"}}}}
	// A database can make keys that are numbers, and fields whose lengths are all alike often.
	var letters *sdk.Fill
	if o.insertOrder == ordered && lengthDistributions[o.fieldLengths] != "zipfian" {
		t.Columns[0].Fill = &sdk.Fill{As: sdk.FillNumber, Prefix: keyPrefix, Min: o.padding}
		letters = &sdk.Fill{As: sdk.FillLetters, Min: o.minField, Max: o.fieldLength}
		if lengthDistributions[o.fieldLengths] == "constant" {
			letters.Min = o.fieldLength
		}
	}
	if o.records > 0 {
		t.SizedBy = "record_count"
	}
	for i := range o.fieldCount {
		t.Columns = append(t.Columns,
			sdk.LogicalColumn{Name: fieldPrefix + strconv.FormatInt(i, 10), Type: sdk.Text, Nullable: true, Fill: letters})
	}
	return t
}

// Tables returns the table that is made when there is none.
func (ycsb) Tables(doc *jsondoc.Value) ([]sdk.LogicalTable, error) {
	o, err := readOptions(doc)
	if err != nil {
		return nil, err
	}
	return []sdk.LogicalTable{usertable(&o)}, nil
}

const parameterSchema = `{
"$schema":"https://json-schema.org/draft/2020-12/schema",
"type":"object","additionalProperties":false,
"properties":{
"workload":{"title":"Workload","description":"A: half reads, half updates. B: 95 % reads, 5 % updates. C: reads only. D: 95 % reads of what was inserted last, 5 % inserts. E: 95 % short scans, 5 % inserts. F: half reads, half read-modify-writes. custom: the shares below.",
"enum":["A","B","C","D","E","F","custom"],"default":"A"},
"proportions":{"title":"Shares of the operations","description":"For the workload custom: how often each operation is issued, relative to the others.",
"type":"object","additionalProperties":false,
"properties":{
"read":{"title":"Reads","description":"Reads one record by its key.","type":"number","minimum":0,"maximum":1000000},
"update":{"title":"Updates","description":"Writes one field of a record, or all of them.","type":"number","minimum":0,"maximum":1000000},
"insert":{"title":"Inserts","description":"Adds a record.","type":"number","minimum":0,"maximum":1000000},
"scan":{"title":"Scans","description":"Reads some records in key order.","type":"number","minimum":0,"maximum":1000000},
"read_modify_write":{"title":"Read-modify-writes","description":"Reads a record and then updates it.","type":"number","minimum":0,"maximum":1000000}}},
"request_distribution":{"title":"Choice of records","description":"Which records are read. workload: latest for D, otherwise zipfian. latest: the newest are hot. hotspot: a share of the operations goes to a share of the records.",
"enum":["workload","zipfian","uniform","latest","hotspot","exponential","sequential"],"default":"workload"},
"record_count":{"title":"Records","description":"Records that are or were loaded, from number 0. 0: the rows of target.prepare, or of the table. Set it for tables on which runs insert.",
"type":"integer","minimum":0,"maximum":1000000000000,"default":0},
"operation_count":{"title":"Expected operations","description":"Zipfian with inserts: expected operations, by which YCSB widens the range of keys. 0: new records are not read.",
"type":"integer","minimum":0,"maximum":1000000000000,"default":0},
"field_count":{"title":"Fields","description":"How many fields a new table gets. An existing table has as many as it has.","type":"integer","minimum":1,"maximum":100,"default":10},
"field_length":{"title":"Field length","description":"Bytes of a field, or the most of them.","type":"integer","minimum":1,"maximum":65536,"default":100},
"min_field_length":{"title":"Shortest field","description":"The least bytes of a field, when lengths are not constant.","type":"integer","minimum":1,"maximum":65536,"default":1},
"field_length_distribution":{"title":"Field lengths","description":"constant: always the field length. uniform: all lengths alike. zipfian: short fields are more frequent.",
"enum":["constant","uniform","zipfian"],"default":"constant"},
"read_all_fields":{"title":"Read all fields","description":"Off: a read or a scan fetches one field, chosen at random.","type":"boolean","default":true},
"write_all_fields":{"title":"Write all fields","description":"Off: an update writes one field, chosen at random.","type":"boolean","default":false},
"min_scan_length":{"title":"Shortest scan","description":"The least records of a scan.","type":"integer","minimum":1,"maximum":10000,"default":1},
"max_scan_length":{"title":"Longest scan","description":"The most records of a scan.","type":"integer","minimum":1,"maximum":10000,"default":100},
"scan_length_distribution":{"title":"Scan lengths","description":"uniform: all lengths alike. zipfian: short scans are more frequent.","enum":["uniform","zipfian"],"default":"uniform"},
"read_modify_write":{"title":"Read-modify-write","description":"transaction: read and update in one transaction. statements: two independent operations.",
"enum":["transaction","statements"],"default":"transaction"},
"insert_order":{"title":"Keys","description":"Key: user and the hash of the record's number, or the number itself. Has to match an existing table.",
"enum":["hashed","ordered"],"default":"hashed"},
"zero_padding":{"title":"Zero padding","description":"The least digits of the number in a key; zeros are put before shorter ones.","type":"integer","minimum":1,"maximum":100,"default":1},
"first_new_key":{"title":"First new record","description":"The record number at which inserts begin. 0: numbers that no earlier run on this table has used.","type":"integer","minimum":0,"maximum":1000000000000,"default":0},
"hotspot_data_fraction":{"title":"Hot records","description":"For hotspot: the share of the records that is hot.","type":"number","minimum":0,"maximum":1,"default":0.2},
"hotspot_operation_fraction":{"title":"Hot operations","description":"For hotspot: the share of the operations that goes to hot records.","type":"number","minimum":0,"maximum":1,"default":0.8}
}}`
