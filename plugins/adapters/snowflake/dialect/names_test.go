package dialect

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/sdk"
)

func TestNames(t *testing.T) {
	for in, want := range map[string]string{
		"orders":                             `"ORDERS"`,
		" Orders ":                           `"ORDERS"`,
		"sales.orders":                       `"SALES"."ORDERS"`,
		"bench.sales.orders":                 `"BENCH"."SALES"."ORDERS"`,
		`"orders"`:                           `"orders"`,
		`sales."Order Lines"`:                `"SALES"."Order Lines"`,
		`"a.b".c`:                            `"a.b"."C"`,
		`"say ""hi"""`:                       `"say ""hi"""`,
		`"x; DROP TABLE y; --"`:              `"x; DROP TABLE y; --"`,
		`"' OR '1'='1"`:                      `"' OR '1'='1"`,
		`"naïve 表"`:                          `"naïve 表"`,
		`_a$1`:                               `"_A$1"`,
		strings.Repeat("a", 255):             `"` + strings.Repeat("A", 255) + `"`,
		`"` + strings.Repeat("é", 255) + `"`: `"` + strings.Repeat("é", 255) + `"`,
	} {
		n, err := ParseName(in)
		if err != nil || n.SQL() != want {
			t.Errorf("%s: %s, %v", in, n.SQL(), err)
		}
	}
	for in, says := range map[string]string{
		"":                                    "missing",
		"  ":                                  "missing",
		"a.":                                  "empty part",
		".a":                                  "empty part",
		"a..b":                                "empty part",
		`""`:                                  "empty part",
		`"`:                                   "without a closing one",
		`"a`:                                  "without a closing one",
		`"a"b`:                                "goes on after its closing quote",
		"a.b.c.d":                             "more than three parts",
		"a\x00b":                              "zero byte",
		"\"a\x00b\"":                          "zero byte",
		"\"\xff\"":                            "UTF-8",
		"orders; DROP TABLE x":                "without quotes cannot",
		"or-ders":                             "without quotes cannot",
		"1orders":                             "without quotes cannot",
		"a'b":                                 "without quotes cannot",
		`a"b`:                                 "without quotes cannot",
		strings.Repeat("a", 300):              "300 characters",
		`"` + strings.Repeat(`"`, 600) + `x"`: "301 characters",
	} {
		n, err := ParseName(in)
		var refusal *sdk.RefusalError
		if !errors.As(err, &refusal) || refusal.Field != NameField || !strings.Contains(refusal.Message, says) {
			t.Errorf("%q: %+v, %v", in, n, err)
		}
	}
}

func TestQuotedNamesAreReadBack(t *testing.T) {
	part := rapid.StringN(1, 60, 200).Filter(func(s string) bool {
		return !strings.Contains(s, "\x00") &&
			utf8.ValidString(s)
	})
	rapid.Check(t, func(t *rapid.T) {
		want := []string{part.Draw(t, "database"), part.Draw(t, "schema"), part.Draw(t, "table")}
		text := Quoted(want[0]) + "." + Quoted(want[1]) + "." + Quoted(want[2])
		n, err := ParseName(text)
		if err != nil || n.Database.Name() != want[0] || n.Schema.Name() != want[1] || n.Table.Name() != want[2] ||
			n.SQL() != text {
			t.Fatalf("%+v, %v", n, err)
		}
	})
}

// FuzzParseName: whatever a user writes as a name, what goes into SQL is one
// quoted name of at most three parts, and its literals end where they should.
func FuzzParseName(f *testing.F) {
	for _, s := range []string{"orders", `"a""b".c`, `"x;--"`, "a\x00", `a."b\'"`, `"%_\"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		n, err := ParseName(in)
		if err != nil {
			return
		}
		parts, rest := 0, n.SQL()
		for rest != "" {
			if rest[0] != '"' {
				t.Fatalf("%q became %s", in, n.SQL())
			}
			rest = rest[1:]
			for {
				end := strings.IndexByte(rest, '"')
				if end < 0 {
					t.Fatalf("%q became %s", in, n.SQL())
				}
				rest = rest[end+1:]
				if !strings.HasPrefix(rest, `"`) {
					break
				}
				rest = rest[1:]
			}
			parts++
			rest = strings.TrimPrefix(rest, ".")
		}
		second, err := ParseName(n.SQL())
		if err != nil || second.SQL() != n.SQL() || parts > 3 {
			t.Fatalf("%q became %s and then %s, %v", in, n.SQL(), second.SQL(), err)
		}
		for _, text := range []string{Literal(n.Table.Name()), Pattern(n.Table.Name())} {
			if end := literalEnd(text); end != len(text) {
				t.Fatalf("the literal %s ends at %d", text, end)
			}
		}
		if q := n.ResolveQuery(); strings.Contains(q.SQL, "'") || strings.Count(q.SQL, "?") != len(q.Args) {
			t.Fatalf("%s with %q", q.SQL, q.Args)
		}
		if s := n.Sibling("__LOADSTONE_STAGE").Table.Name(); utf8.RuneCountInString(s) > MaxIdentifier ||
			!strings.HasSuffix(s, "__LOADSTONE_STAGE") {
			t.Fatalf("the stage is %s", s)
		}
	})
}

// literalEnd is where Snowflake ends a string constant that begins a text.
func literalEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] != '\'':
		case i+1 < len(s) && s[i+1] == '\'':
			i++
		default:
			return i + 1
		}
	}
	return -1
}
