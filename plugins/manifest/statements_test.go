package manifest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

const oneTable = `"tables":[{"name":"t","columns":["id","text"],"types":["i64","text"],"key":"id"}]`

func TestBindsAreCompleted(t *testing.T) {
	id, note := engine.Bind{Name: "id", Type: "i64", Column: "id"}, engine.Bind{Name: "text", Type: "text", Column: "text"}
	for _, c := range []struct {
		name, statement string
		want            []engine.Bind
	}{
		{"columns alone", `{"kind":"UPDATE","table":"t","columns":["text"],"binds":["text","id"]}`, []engine.Bind{note, id}},
		{"a type alone with SQL", `{"kind":"POINT_LOOKUP","table":"t","binds":["i64"],"sql":{"postgres":"SELECT $1"}}`,
			[]engine.Bind{{Name: "p1", Type: "i64"}}},
		{"types alone of a lookup", `{"kind":"POINT_LOOKUP","binds":["i64"]}`,
			[]engine.Bind{{Name: "p1", Type: "i64", Column: "id"}}},
		{"types alone of a scan", `{"kind":"RANGE_SCAN","binds":["i64","i64"]}`,
			[]engine.Bind{{Name: "p1", Type: "i64", Column: "id"}, {Name: "p2", Type: "i64"}}},
		{"types alone of an update", `{"kind":"UPDATE","columns":["text"],"binds":[{"type":"text"},{"type":"i64"}]}`,
			[]engine.Bind{{Name: "p1", Type: "text", Column: "text"}, {Name: "p2", Type: "i64", Column: "id"}}},
		{"types alone of an insert", `{"kind":"INSERT","binds":["i64",{"type":"TEXT"}]}`,
			[]engine.Bind{{Name: "p1", Type: "i64", Column: "id"}, {Name: "p2", Type: "text", Column: "text"}}},
		{"a column without its type", `{"kind":"POINT_LOOKUP","table":"t","binds":[{"column":"id"}]}`, []engine.Bind{id}},
		{"a name that is a column", `{"kind":"DELETE","table":"t","binds":[{"name":"id","type":"i64"}]}`, []engine.Bind{id}},
	} {
		m, err := Parse([]byte(`{"kind":"workload","name":"x",` + oneTable + `,"statements":[` + c.statement + `]}` +
			"\x00"))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := m.Statements[0].Binds; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestNoControlCharactersInNamesAndSQL(t *testing.T) {
	for _, members := range []string{
		`"tables":[{"name":"t\u001b[2J","columns":["id i64"]}]`,
		`"tables":[{"name":"t","columns":[{"name":"id\u0000","type":"i64"}]}]`,
		`"tables":[{"name":"t","columns":[{"name":"id","type":"i64","db_type":{"postgres":"int\u0007"}}]}]`,
		`"statements":[{"id":"a","sql":{"postgres":"SELECT 1 /* \u0000 */"}}]`,
		`"statements":[{"id":"a","sql":{"postgres\u001b":"SELECT 1"}}]`,
		`"statements":[{"id":"a","sql":"SELECT 1 \u202e"}]`,
		`"statements":[{"id":"a","table":"t\u001b","sql":"SELECT 1"}]`,
		`"statements":[{"id":"a","sql":"SELECT 1","binds":[{"name":"\u001b","type":"i64"}]}]`,
		`"statements":[{"id":"a","sql":"SELECT 1","columns":["\u001b"]}]`,
		`"dialect":"\u001b"`,
	} {
		if _, err := Parse([]byte(`{"kind":"workload","name":"x",` + members + `}`)); err == nil ||
			!strings.Contains(err.Error(), "control characters") {
			t.Errorf("%s: %v", members, err)
		}
	}
	if _, err := Parse([]byte(
		`{"kind":"workload","name":"x","statements":[{"id":"a","sql":"SELECT\n\t1 -- <b>"}]}`)); err != nil {
		t.Errorf("SQL of two lines: %v", err)
	}
}

// TestNamesAndTextsAreBounded: what goes to pages, terminals and files has an end, and the error says what has none. A
// separator that begins a line is none of a name, and none of what is shown.
func TestNamesAndTextsAreBounded(t *testing.T) {
	long, longer := strings.Repeat("n", 10_000), strings.Repeat("n", 100_000)
	bounded := 0
	for members, want := range map[string]string{
		`"tables":[{"name":"` + long + `","columns":["id i64"]}]`:                    "the name of its table ",
		`"tables":[{"name":"t","columns":["id i64","` + long + ` i64"]}]`:            `column 2 of its table "t", `,
		`"statements":[{"id":"a","sql":"SELECT 1","table":"` + long + `"}]`:          `the table of its statement "a", `,
		`"statements":[{"id":"a","sql":"SELECT 1","columns":["` + long + `"]}]`:      `column 1 of its statement "a", `,
		`"statements":[{"id":"a","sql":{"` + long + `":"SELECT 1"}}]`:                "the dialect of ",
		`"statements":[{"id":"a","sql":"` + longer + `"}]`:                           `the SQL of its statement "a" has 100000 `,
		`"statements":[{"id":"a","binds":[{"type":"i64","name":"` + long + `"}]}]`:   `bind 1 of its statement "a", `,
		`"statements":[{"id":"a","binds":[{"type":"i64","column":"` + long + `"}]}]`: `bind 1 of its statement "a", `,
		`"statements":[{"id":"a","kind":"` + long + `"}]`:                            "unknown operation kind ",
		`"kinds":["` + long + `"]`:                                                   "unknown operation kind ",
		`"driver":"` + long + `"`:                                                    "its driver ",
		`"dialect":"` + long + `"`:                                                   "its dialect ",
		`"tables":[{"name":"t","options":"` + long + `"}]`:                           `an option of its table "t" `,
		`"tables":[{"name":"t","columns":[{"name":"c","type":"i64","db_type":"` + long + `"}]}]`: `the type of column "c" ` +
			`of its table "t"`,
		`"tables":[{"name":"t","columns":[{"name":"c","type":"text","fill":{"as":"choice","values":["` + long + `"]}}]}]`: "is " +
			`filled with a text that is longer`,
		`"parameters":{"type":"object","properties":{"a":{"title":"` + long + `"}}}`:  "of 10000 bytes, the limit is 4096",
		`"parameters":{"type":"object","properties":{"` + long + `":{}}}`:             "of 10000 bytes, the limit is 4096",
		`"parameters":{"type":"object","properties":{"a":{"title":"\u202etxt"}}}`:     `their text "txt" contains control`,
		`"parameters":{"type":"object","properties":{"a":{"description":"\u2028b"}}}`: `their text "b" contains control`,
		`"tables":[{"name":"a\u2028b","columns":["id i64"]}]`:                         `"a b" contains control characters`,
		`"statements":[{"id":"a","sql":"SELECT 1","columns":["c\u2029"]}]`:            `"c" contains control characters`,
	} {
		bounded++
		_, err := Parse([]byte(`{"kind":"workload","name":"x",` + members + `}`))
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("%.100s: %.500v, want %s", members, err, want)
		}
	}
	m, err := Parse([]byte(`{"kind":"workload","name":"x","title":"one\u2028two\u2029three\u202e","description":"` + long +
		`","parameters":{"type":"object","description":"two\nlines"}}`))
	if err != nil || m.Title != "one two three" || len(m.Description) > 2010 {
		t.Errorf("%.80q, %d characters, %v", m.Title, len(m.Description), err)
	}
}
