package protocol

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// TestArrowOfEveryType: the values are those of the JSON form, with types as narrow as they let them be, and NULL is
// kept; each chunk is a stream of its own.
func TestArrowOfEveryType(t *testing.T) {
	t.Parallel()
	columns := []Column{
		{Name: "tiny", Type: "fixed", Precision: 38},
		{Name: "money", Type: "fixed", Precision: 18, Scale: 2},
		{Name: "huge", Type: "fixed", Precision: 38},
		{Name: "r", Type: "real"},
		{Name: "t", Type: "text"},
		{Name: "b", Type: "boolean"},
		{Name: "d", Type: "date"},
		{Name: "clock", Type: "time", Scale: 9},
		{Name: "ntz3", Type: "timestamp_ntz", Scale: 3},
		{Name: "ntz9", Type: "timestamp_ntz", Scale: 9},
		{Name: "tz", Type: "timestamp_tz", Scale: 9},
		{Name: "bin", Type: "binary"},
	}
	r := NewResult(Limits{Inline: 1, Chunk: 1}, columns)
	r.Row([]any{"-127", "-1.50", "99999999999999999999999999999999999999", "1.5", "ä\"\n", "1", "-1", "3723.5",
		"-1.123", "-1.123456789", "1.5 1500", "00FF"})
	nulls := make([]any, len(columns))
	r.Row(nulls)
	data, chunks, _, err := r.FinishArrow()
	if err != nil {
		t.Fatal(err)
	}
	if data["queryResultFormat"] != "arrow" || data["total"] != int64(2) || len(chunks) != 1 || chunks[0].Rows != 1 {
		t.Fatalf("%v, %d chunks", data, len(chunks))
	}
	stream, err := base64.StdEncoding.DecodeString(data["rowsetBase64"].(string))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := ipc.NewReader(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	if !reader.Next() || reader.Record().NumRows() != 1 {
		t.Fatal("there is no row")
	}
	for i, want := range []struct{ kind, value string }{{"int8", "-127"}, {"int16", "-150"},
		{"decimal(38, 0)", "99999999999999999999999999999999999999"}, {"float64", "1.5"}, {"utf8", "ä\"\n"},
		{"bool", "true"}, {"date32", "1969-12-31"}, {"int64", "3723500000000"}, {"int64", "-877"},
		{"struct<epoch: int64, fraction: int32>", "{\"epoch\":-1,\"fraction\":123456789}"},
		{"struct<epoch: int64, fraction: int32, timezone: int32>",
			"{\"epoch\":1,\"fraction\":500000000,\"timezone\":1500}"}, {"binary", "AP8="}} {
		column := reader.Record().Column(i)
		if got := column.ValueStr(0); got != want.value {
			t.Errorf("%s is %s, not %s", columns[i].Name, got, want.value)
		}
		if got := column.DataType().String(); got != want.kind && i != 9 && i != 10 {
			t.Errorf("%s is of type %s, not %s", columns[i].Name, got, want.kind)
		}
	}
	if r := NewResult(Limits{Inline: 1, Chunk: 1}, columns); true {
		if data, _, _, err := r.FinishArrow(); err != nil || data["rowsetBase64"] != "" {
			t.Errorf("without rows: %v, %v", data, err)
		}
	}
	if r := NewResult(Limits{Inline: 9, Chunk: 9}, columns[:1]); true {
		r.Row([]any{"x"})
		if _, _, _, err := r.FinishArrow(); err == nil {
			t.Error("a number that is none")
		}
	}
}
