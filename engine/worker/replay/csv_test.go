package replay

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

var statements = []engine.Statement{
	{ID: "find", Binds: []engine.Bind{{Name: "id", Type: engine.TypeI64}}},
	{ID: "all", Binds: []engine.Bind{{Name: "i", Type: engine.TypeI64}, {Name: "f", Type: engine.TypeF64},
		{Name: "t", Type: engine.TypeText},
		{Name: "b", Type: engine.TypeBytes}, {Name: "y", Type: engine.TypeBool}, {Name: "at", Type: engine.TypeTimestamp}}},
	{ID: "tick"},
}

// drain writes what a feed gives, one word for an operation.
func drain(t interface{ Fatal(...any) }, f plugin.Feed) string {
	var words []string
	var b plugin.Batch
	for {
		err := f.Next(&b)
		if errors.Is(err, plugin.ErrEnded) {
			return strings.Join(words, " ")
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range b.Ops {
			switch op.Statement {
			case plugin.StatementDelay:
				words = append(words, op.Delay.String())
			case plugin.StatementBegin:
				words = append(words, "BEGIN")
			case plugin.StatementCommit:
				words = append(words, "COMMIT")
			case plugin.StatementRollback:
				words = append(words, "ROLLBACK")
			default:
				word := statements[op.Statement].ID
				for _, v := range b.Args[op.FirstArg : op.FirstArg+uint32(op.NArgs)] {
					switch v.Type {
					case "":
						word += ",NULL"
					case engine.TypeText, engine.TypeBytes:
						word += fmt.Sprintf(",%q", b.Bytes(v))
					case engine.TypeF64:
						word += fmt.Sprintf(",%v", v.F)
					default:
						word += fmt.Sprintf(",%d", v.I)
					}
				}
				words = append(words, word)
			}
		}
	}
}

func TestCSV(t *testing.T) {
	const text = "at_ms,statement,id\n0,find,7\n10.5,tick\n10.5,BEGIN\n11,find,8\n12,find,\\N\n13,COMMIT\n3700000," +
		"find,-1\n" +
		"3700001,all,1,2.5,\"a,\"\"b\"\"\nc\",\\x00ff,true,2024-01-01 " +
		"00:00:00\n3700001,all,,,,,,\n3700001,BEGIN\n3700001,tick\n3700001,ROLLBACK\n"
	for _, c := range []struct {
		share, of int
		want      string
	}{
		{0, 1,
			`find,7 10.5ms tick BEGIN find,8 find,NULL COMMIT 1h0m0s 1m39.9895s find,-1 1ms all,1,2.5,"a,\"b\"\nc","\x00\xff",1,1704067200000000 all,NULL,NULL,"",NULL,NULL,NULL BEGIN tick ROLLBACK`},
		{0, 2,
			`find,7 10.5ms BEGIN find,8 find,NULL COMMIT 1h0m0s 1m39.9905s all,1,2.5,"a,\"b\"\nc","\x00\xff",1,1704067200000000 BEGIN tick ROLLBACK`},
		{1, 2, `10.5ms tick 1h0m0s 1m39.9895s find,-1 1ms all,NULL,NULL,"",NULL,NULL,NULL`},
		{6, 7, "1h0m0s 1m40.001s BEGIN tick ROLLBACK"},
		{7, 8, ""},
	} {
		if got := drain(t, NewCSV(text, statements, c.share, c.of)); got != c.want {
			t.Errorf("share %d of %d:\n%s\nexpected\n%s", c.share, c.of, got, c.want)
		}
	}
	if err := CheckCSV(text, statements); err != nil {
		t.Error(err)
	}
}

// TestJSONLines holds the operations of TestCSV's kinds: numbers keep their digits, and null is NULL.
func TestJSONLines(t *testing.T) {
	const text = "\ufeff\n{\"at_ms\":0,\"statement\":\"find\",\"values\":[9007199254740993]}\r\n" +
		`{"at_ms":10.5,"statement":"tick"}` + "\n\n" + `{"at_ms":10.5,"statement":"BEGIN"}` + "\n" +
		`{"statement":"find","at_ms":11,"values":[null]}` + "\n" + `{"at_ms":12,"statement":"COMMIT"}` + "\n" +
		`{"at_ms":12,"statement":"all","values":[1, 2.5, "a,\"b\"\nc", "\\x00ff", true, "2024-01-01 00:00:00"]}` +
		"\n" + `{"at_ms":12,"statement":"all","values":[null,null,null,null,null,null]}`
	const want = `find,9007199254740993 10.5ms tick BEGIN find,NULL COMMIT 1.5ms ` +
		`all,1,2.5,"a,\"b\"\nc","\x00\xff",1,1704067200000000 ` +
		`all,NULL,NULL,NULL,NULL,NULL,NULL`
	if got := drain(t, NewCSV(text, statements, 0, 1)); got != want {
		t.Errorf("%s\nexpected\n%s", got, want)
	}
	if err := CheckCSV(text, statements); err != nil {
		t.Error(err)
	}
}

func TestMalformedLinesAreNamed(t *testing.T) {
	for text, says := range map[string]string{
		"":                         "holds no operation",
		"at_ms,statement\n":        "holds no operation",
		"0,find,1\n1,nope\n":       `line 2: there is no statement "nope"`,
		"0,find\n":                 "line 1: find takes 1 values, and there are 0",
		"0,tick\n\n0,tick,1\n":     "line 3: tick takes 0 values, and there are 1",
		"0,find,x\n":               `line 1: id of find: "x" is not of type i64`,
		"0,all,1,x,,,,\n":          `f of all: "x" is not of type f64`,
		"0,all,1,1,,zz,,\n":        "b of all",
		"0,all,1,1,,,maybe,\n":     "y of all",
		"0,all,1,1,,,,yesterday\n": "at of all",
		"0,all,1,1,\xff,,,\n":      "t of all: is not UTF-8 text",
		"5,tick\n4,tick\n":         "line 2: its time 4 ms is before",
		"soon,tick\n":              `line 1: "soon" is no time`,
		"-1,tick\n":                "is no time",
		"NaN,tick\n":               "is no time",
		"1\n":                      "no statement behind the time",
		"0,COMMIT\n":               "COMMIT without a BEGIN",
		"0,BEGIN\n0,BEGIN\n":       "BEGIN inside the transaction that began in line 1",
		"0,BEGIN\n0,COMMIT\n":      "without statements",
		"0,\"tick\n":               "line 1: extraneous or missing",

		"{\"at_ms\":0,\"statement\":\"tick\"}\n\n{\"at_ms\":1": "line 3: the JSON ends in the middle",
		`{"at_ms":0,"statement":"nope"}`:                       `line 1: there is no statement "nope"`,
		`{"at_ms":0,"statement":"find","value":[1]}`:           `line 1: unknown field "value"`,
		`{"statement":"tick"}`:                                 "line 1: at_ms is missing",
		`{"at_ms":0}`:                                          "line 1: statement is missing",
		`{"at_ms":"0 s","statement":"tick"}`:                   "line 1: at_ms is no number",
		`{"at_ms":0,"statement":7}`:                            "line 1: statement cannot be a JSON number",
		`{"at_ms":0,"statement":"find","values":[[1]]}`:        "line 1: value 1 is no single value",
		`{"at_ms":0,"statement":"find","values":["x"]}`:        `"x" is not of type i64`,
		`{"at_ms":0,"statement":"tick"} {}`:                    "more than one object",
		"{\"at_ms\":0,\"statement\":\"tick\"}\n[1]":            "line 2: a JSON array is no line",
		"0,tick\n0,BEGIN\n0,tick\n":                            "line 2: the transaction that begins here has no end",
		"0,tick\n0,find,\"1\n":                                 "line 2",
		"0,BEGIN\n" + strings.Repeat("0,tick\n", 257):          "more than 256 statements",
	} {
		err := CheckCSV(text, statements)
		if err == nil || !strings.Contains(err.Error(), says) || !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%.60q: %v, expected %q", text, err, says)
		}
	}
}

// TestSharesMakeTheWhole: whatever the number of workers, each operation is dealt
// to one of them, at its time.
func TestSharesMakeTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, of := rapid.IntRange(1, 500).Draw(t, "lines"), rapid.IntRange(1, 5).Draw(t, "workers")
		var text strings.Builder
		at := 0
		for i := range n {
			at += rapid.IntRange(0, 3).Draw(t, "gap")
			if rapid.IntRange(0, 9).Draw(t, "transaction") == 0 {
				fmt.Fprintf(&text, "%d,BEGIN\n%d,find,%d\n%d,COMMIT\n", at, at, i, at)
				continue
			}
			fmt.Fprintf(&text, "%d,find,%d\n", at, i)
		}
		times := func(share, of int) map[int64]time.Duration {
			f, at := NewCSV(text.String(), statements, share, of), time.Duration(0)
			got := map[int64]time.Duration{}
			var b plugin.Batch
			for f.Next(&b) == nil {
				for _, op := range b.Ops {
					at += op.Delay
					if op.Statement == 0 {
						got[b.Args[op.FirstArg].I] = at
					}
				}
			}
			return got
		}
		whole := times(0, 1)
		parts := map[int64]time.Duration{}
		for share := range of {
			for id, at := range times(share, of) {
				if _, twice := parts[id]; twice {
					t.Fatalf("operation %d is dealt twice", id)
				}
				parts[id] = at
			}
		}
		if len(whole) != n || len(parts) != n {
			t.Fatalf("%d and %d of %d operations", len(whole), len(parts), n)
		}
		for id, at := range whole {
			if parts[id] != at {
				t.Fatalf("operation %d is due at %v in the whole and at %v in its share", id, at, parts[id])
			}
		}
	})
}

func FuzzCSV(f *testing.F) {
	f.Add("at_ms,statement\n0,find,7\n1,BEGIN\n1,tick\n1,COMMIT\n2,all,1,2.5,\"a\",\\x00,true,2024-01-01\n")
	f.Add("0,find,\"1\n")
	f.Add("1e300,tick\n")
	f.Fuzz(func(t *testing.T, text string) {
		if CheckCSV(text, statements) != nil {
			return
		}
		for share := range 3 {
			feed := NewCSV(text, statements, share, 3)
			var b plugin.Batch
			for {
				err := feed.Next(&b)
				if errors.Is(err, plugin.ErrEnded) {
					break
				}
				if err != nil {
					t.Fatalf("%q is good as a whole, and share %d of 3 is not: %v", text, share, err)
				}
			}
		}
	})
}

// TestValuesKeepTheirLineEnds: lines may end in either way, and what is quoted is as it is.
func TestValuesKeepTheirLineEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"\r\n", "\n", "\r", "\"", ",", "a", "ü"})
		var want [][]string
		var text strings.Builder
		for range rapid.IntRange(1, 5).Draw(t, "lines") {
			fields := []string{"5"}
			text.WriteString("5")
			for range rapid.IntRange(1, 3).Draw(t, "values") {
				v := strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "value"), "")
				fields = append(fields, v)
				text.WriteString(`,"` + strings.ReplaceAll(v, `"`, `""`) + `"`)
			}
			want = append(want, fields)
			text.WriteString(rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end"))
		}
		r := newCSVRecords(text.String())
		for i, fields := range want {
			_, got, err := r.next()
			if err != nil || !slices.Equal(got, fields) {
				t.Fatalf("line %d of %q: %q, %v", i, text.String(), got, err)
			}
		}
		if _, _, err := r.next(); !errors.Is(err, io.EOF) {
			t.Fatalf("behind the last line: %v", err)
		}
	})
}
