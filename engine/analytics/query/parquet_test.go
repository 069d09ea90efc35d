package query_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/loadstone-db/loadstone/engine/analytics/query"
)

// TestParquetKeepsColumns: they are in the order of the answer, and each has the type of Parquet that is the database's.
func TestParquetKeepsColumns(t *testing.T) {
	type column struct {
		name, typ, parquet string
		value              any
		shown              string
	}
	columns := []column{
		{"z", "int8", "INT(64,true)", json.Number("9007199254740993"), "9007199254740993"},
		{"a", "int2", "INT(16,true)", json.Number("-7"), "-7"},
		{"m", "int4", "INT(32,true)", json.Number("2147483647"), "2147483647"},
		{"f4", "float4", "FLOAT", json.Number("1.5"), "1.5"},
		{"f8", "float8", "DOUBLE", "NaN", "NaN"},
		{"n", "numeric", "DECIMAL(38,2)", json.Number("-12345678901234567890.12"), ""},
		{"nan", "numeric", "DOUBLE", "NaN", "NaN"},
		{"at", "timestamptz", "TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)", "2026-11-29 21:40:00.123456+01",
			"1795984800123456"},
		{"local", "timestamp", "TIMESTAMP(isAdjustedToUTC=false,unit=MICROS)", "1970-01-01 00:00:01", "1000000"},
		{"day", "date", "DATE", "1970-01-03", "2"},
		{"id", "uuid", "UUID", "00010203-0405-0607-0809-0a0b0c0d0e0f", ""},
		{"raw", "bytea", "BYTE_ARRAY", `\x616263`, "abc"},
		{"doc", "jsonb", "JSON", json.RawMessage(`{"b":1}`), `{"b":1}`},
		{"ok", "bool", "BOOLEAN", true, "true"},
		{"t", "text", "STRING", "ä", "ä"},
		{"every", "interval", "STRING", "01:00:00", "01:00:00"},
	}
	answer := query.Answer{Rows: [][]any{nil, nil}}
	for _, c := range columns {
		answer.Columns = append(answer.Columns, query.Column{Name: c.name, Type: c.typ})
		answer.Rows[0], answer.Rows[1] = append(answer.Rows[0], c.value), append(answer.Rows[1], nil)
	}
	var out bytes.Buffer
	if err := query.Write(&out, "parquet", answer); err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]parquet.Row, 2)
	if n, err := file.RowGroups()[0].Rows().ReadRows(rows); n != 2 {
		t.Fatal(n, err)
	}
	for i, f := range file.Schema().Fields() {
		c := columns[i]
		if f.Name() != c.name || f.Type().String() != c.parquet || !f.Optional() {
			t.Errorf("column %d is %s of %s, not %s of %s", i, f.Name(), f.Type(), c.name, c.parquet)
		}
		if got := rows[0][i].String(); c.shown != "" && got != c.shown {
			t.Errorf("%s is %s, not %s", c.name, got, c.shown)
		}
		if !rows[1][i].IsNull() {
			t.Errorf("%s is %v, not NULL", c.name, rows[1][i])
		}
	}
	for typ, value := range map[string]string{"timestamptz": "infinity", "timestamp": "0044-03-15 00:00:00 BC",
		"date": "-infinity"} {
		err := query.Write(&out, "parquet", query.Answer{Columns: []query.Column{{Name: "at", Type: typ}},
			Rows: [][]any{{value}}})
		if err == nil || !strings.Contains(err.Error(), value) {
			t.Errorf("%s %s: %v", typ, value, err)
		}
	}
}
