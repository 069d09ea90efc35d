package connector

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// TestSourcesReadWhatSinksWrite: rows of all types, with texts of quotes, line breaks, blanks and any letters, and with
// NULL beside the empty text, come back as they were.
func TestSourcesReadWhatSinksWrite(t *testing.T) {
	dir := t.TempDir()
	folder, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Close() }()
	texts := rapid.OneOf(
		rapid.String(),
		rapid.StringOfN(rapid.SampledFrom([]rune("\"\",\n\r\t aä\u00a0\u2028💥NULL")), 0, 12, -1),
	)
	types := []column.Type{column.TextType, column.Int64Type, column.Float64Type, column.TimestampType,
		{Kind: column.Boolean}, {Kind: column.Decimal, Precision: 12, Scale: 3}, {Kind: column.Float, Bits: 32}}
	rapid.Check(t, func(t *rapid.T) {
		var columns []column.Column
		for i := range rapid.IntRange(1, 4).Draw(t, "columns") {
			columns = append(columns, column.Column{Name: "c" + string(rune('0'+i)),
				Type: rapid.SampledFrom(types).Draw(t, "type")})
		}
		rows := &column.Batch{}
		rows.Reset(columns)
		for range rapid.IntRange(0, 20).Draw(t, "rows") {
			for i := range rows.Cols {
				v := &rows.Cols[i]
				switch {
				case rapid.IntRange(0, 3).Draw(t, "null") == 0:
					v.AppendNull()
				case v.Type.Kind == column.Text:
					v.AppendText([]byte(texts.Draw(t, "text")))
				case v.Type.Kind == column.Float && v.Type.Bits == 32:
					v.AppendFloat(float64(rapid.Float32().Draw(t, "float32")))
				case v.Type.Kind == column.Float:
					v.AppendFloat(rapid.OneOf(rapid.Float64(),
						rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1), math.NaN()})).Draw(t, "float"))
				case v.Type.Kind == column.Boolean:
					v.AppendBool(rapid.Bool().Draw(t, "bool"))
				case v.Type.Kind == column.Timestamp:
					v.AppendInt(rapid.Int64Range(column.MinTime, column.MaxTime).Draw(t, "time"))
				case v.Type.Kind == column.Decimal:
					v.AppendInt(rapid.Int64Range(-999_999_999_999, 999_999_999_999).Draw(t, "decimal"))
				default:
					v.AppendInt(rapid.Int64().Draw(t, "int"))
				}
			}
			rows.N++
		}
		sink, err := OpenSink(File, Config{"SINK.FILE_PATH": "x.csv", "SINK.INPUT_FORMAT": "CSV"}, columns, folder, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(sink.Write(rows), sink.Close()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "x.csv"))
		if err != nil {
			t.Fatal(err)
		}
		config := csv("x.csv")
		config["PARSER.HEADER"] = true
		source := newRows(&slowReader{text: text, chunk: rapid.IntRange(1, 40).Draw(t, "chunk")}, columns, config)
		got := 0
		for b := (&column.Batch{}); ; {
			err := source.Read(b)
			if errors.Is(err, io.EOF) {
				break
			}
			for i := range b.N {
				for c := range b.Cols {
					want, is := shownValue(&rows.Cols[c], got), shownValue(&b.Cols[c], i)
					if want != is {
						t.Fatalf("row %d, column %d is %s, not %s: %q", got, c, is, want, text)
					}
				}
				got++
			}
			if err != nil && !errors.Is(err, errNoData) {
				t.Fatal(err)
			}
		}
		if got != rows.N || source.Malformed() > 0 {
			t.Fatalf("%d of %d rows, %d malformed: %q", got, rows.N, source.Malformed(), text)
		}
	})
}

func shownValue(v *column.Vec, i int) string {
	if v.Null[i] {
		return "NULL"
	}
	return "'" + string(v.AppendValue(nil, i)) + "'"
}

// slowReader gives a text in chunks, and has nothing for the moment between them.
type slowReader struct {
	text  []byte
	chunk int
	empty bool
}

func (r *slowReader) Read(b []byte) (int, error) {
	if r.empty = !r.empty; r.empty && len(r.text) > 0 {
		return 0, errNoData
	}
	if len(r.text) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.text[:min(r.chunk, len(r.text))])
	r.text = r.text[n:]
	return n, nil
}

// TestAStrayQuoteTakesNoOtherRow: the line with it is left out, and those behind it are rows of their own.
func TestAStrayQuoteTakesNoOtherRow(t *testing.T) {
	for text, want := range map[string]string{
		"1,\"a\n2,b\n3,\"c\nd\"\n":                        "2 b|3 c\nd",
		"1,a\n2,\"b\n3,c":                                 "1 a|3 c",
		"1,\"a\n2,\"b\n3,c\"\n":                           "2 b\n3,c",
		"1,5\" pipe\n2,b\n":                               "1 5\" pipe|2 b",
		"1,\"a\"x\n2,b\n":                                 "2 b",
		"1,\"" + strings.Repeat("x\n", 600_000) + "2,b\n": "2 b",
	} {
		s := newRows(bytes.NewReader([]byte(text)), two, csv(""))
		var got []string
		for b := (&column.Batch{}); ; {
			if err := s.Read(b); err != nil {
				break
			}
			for i := range b.N {
				got = append(got, string(b.Cols[0].AppendValue(nil, i))+" "+string(b.Cols[1].Text(i)))
			}
		}
		if strings.Join(got, "|") != want || s.Malformed() == 0 && !strings.Contains(want, "pipe") {
			t.Errorf("%.40q: %q, %d malformed", text, got, s.Malformed())
		}
	}
}
