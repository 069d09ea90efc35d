package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/loadstone-db/loadstone/cli"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
)

var answer = query.Answer{Columns: []query.Column{{Name: "a name", Type: "text"}, {Name: "n", Type: "int8"},
	{Name: "x", Type: "float8"}, {Name: "ok", Type: "bool"}, {Name: "doc", Type: "jsonb"}},
	Rows: [][]any{{"two\nlines, \"quoted\" \x1b[31m", json.Number("9007199254740993"), json.Number("1.5"), true,
		map[string]any{"b": json.Number("1")}}, {nil, nil, "NaN", nil, nil}}, ElapsedMs: 3}

func TestFormats(t *testing.T) {
	for format, want := range map[string][]string{
		"table": {"a name", "9007199254740993", `two lines, "quoted"`, "(2 rows, 3 ms)"},
		"csv":   {"a name,n,x,ok,doc\n", "9007199254740993,1.5,true,\"{\"\"b\"\":1}\"\n,,NaN,,\n"},
		"json":  {`"n":9007199254740993,"x":1.5,"ok":true,"doc":{"b":1}}` + "\n", `{"a name":null,"n":null,"x":"NaN"`},
	} {
		var out bytes.Buffer
		if err := cli.WriteAnswer(&out, format, answer); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		for _, part := range want {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s: %q has no %q", format, out.String(), part)
			}
		}
		if format == "table" && strings.Contains(out.String(), "\x1b") {
			t.Error("a table lets control characters through to the terminal")
		}
	}
}

func TestParquet(t *testing.T) {
	var out bytes.Buffer
	if err := cli.WriteAnswer(&out, "parquet", answer); err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil || file.NumRows() != 2 {
		t.Fatal(err)
	}
	rows := make([]parquet.Row, 2)
	if n, err := file.RowGroups()[0].Rows().ReadRows(rows); n != 2 {
		t.Fatal(n, err)
	}
	n, _ := file.Schema().Lookup("n")
	x, _ := file.Schema().Lookup("x")
	if got := rows[0][n.ColumnIndex].Int64(); got != 9007199254740993 {
		t.Errorf("n is %d", got)
	}
	if !rows[1][n.ColumnIndex].IsNull() || rows[0][x.ColumnIndex].Double() != 1.5 {
		t.Errorf("%v", rows)
	}
	twice := query.Answer{Columns: []query.Column{{Name: "a"}, {Name: "a"}}}
	if err := cli.WriteAnswer(&out, "parquet", twice); err == nil {
		t.Error("two columns of one name are written")
	}
}

func TestStatementsEndWithASemicolon(t *testing.T) {
	var requested []string
	shell := &cli.SQLShell{Format: "csv", Out: &bytes.Buffer{}, Err: &bytes.Buffer{},
		Ask: func(_ context.Context, sql string) (query.Answer, error) {
			requested = append(requested, strings.TrimSpace(sql))
			if sql == "bad;\n" {
				return query.Answer{}, errors.New("no such table")
			}
			return query.Answer{}, nil
		}}
	text := "SELECT ';\n' AS a -- ;\n;\n\\d\nSELECT 2"
	if err := shell.Read(t.Context(), strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if len(requested) != 3 || requested[0] != "SELECT ';\n' AS a -- ;\n;" || requested[2] != "SELECT 2" {
		t.Errorf("asked %q", requested)
	}
	if err := shell.Read(t.Context(), strings.NewReader("bad;\nSELECT 3;\n")); err == nil || len(requested) != 4 {
		t.Errorf("a script goes on after an error: %q, %v", requested, err)
	}
}

func decodeInto(text string, out any) error { return json.Unmarshal([]byte(text), out) }

// TestCSVHoldsNoFormulas: names and texts come from users, and a spreadsheet opens the file.
func TestCSVHoldsNoFormulas(t *testing.T) {
	answer := query.Answer{Columns: []query.Column{{Name: "=a", Type: "text"}, {Name: "n", Type: "numeric"}},
		Rows: [][]any{{"@SUM(1+1)", json.Number("-1e-7")}, {"plain", nil}}}
	var out strings.Builder
	if err := cli.WriteAnswer(&out, "csv", answer); err != nil || out.String() != "'=a,n\n'@SUM(1+1),-1e-7\nplain,\n" {
		t.Errorf("%v %q", err, out.String())
	}
	out.Reset()
	if err := cli.WriteAnswer(&out, "json", answer); err != nil || !strings.Contains(out.String(), `"=a":"@SUM(1+1)"`) {
		t.Errorf("%v %q", err, out.String())
	}
}
