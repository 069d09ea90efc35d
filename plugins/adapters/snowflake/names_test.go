package snowflake

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
		n, err := parseName(in)
		if err != nil || n.sql() != want {
			t.Errorf("%s: %s, %v", in, n.sql(), err)
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
		n, err := parseName(in)
		var refusal *sdk.RefusalError
		if !errors.As(err, &refusal) || refusal.Field != nameField || !strings.Contains(refusal.Message, says) {
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
		text := quoted(want[0]) + "." + quoted(want[1]) + "." + quoted(want[2])
		n, err := parseName(text)
		if err != nil || n.database.name() != want[0] || n.schema.name() != want[1] || n.table.name() != want[2] ||
			n.sql() != text {
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
		n, err := parseName(in)
		if err != nil {
			return
		}
		parts, rest := 0, n.sql()
		for rest != "" {
			if rest[0] != '"' {
				t.Fatalf("%q became %s", in, n.sql())
			}
			rest = rest[1:]
			for {
				end := strings.IndexByte(rest, '"')
				if end < 0 {
					t.Fatalf("%q became %s", in, n.sql())
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
		again, err := parseName(n.sql())
		if err != nil || again.sql() != n.sql() || parts > 3 {
			t.Fatalf("%q became %s and then %s, %v", in, n.sql(), again.sql(), err)
		}
		for _, text := range []string{literal(n.table.name()), pattern(n.table.name())} {
			if end := literalEnd(text); end != len(text) {
				t.Fatalf("the literal %s ends at %d", text, end)
			}
		}
		if q := n.resolveQuery(); strings.Contains(q.SQL, "'") || strings.Count(q.SQL, "?") != len(q.Args) {
			t.Fatalf("%s with %q", q.SQL, q.Args)
		}
		if s := n.sibling(stageSuffix).table.name(); utf8.RuneCountInString(s) > maxIdentifier ||
			!strings.HasSuffix(s, stageSuffix) {
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
