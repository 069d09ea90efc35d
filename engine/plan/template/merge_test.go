package template

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

func TestYAMLMergeKeysWork(t *testing.T) {
	for name, text := range map[string]string{
		"an alias": "name: x\ntarget: {<<: {connection: playground, adapter: postgres}, table_name: t}\nworkload: " +
			"{plugin: mix}\n",
		"a list": "name: x\ntarget: {<<: [{connection: playground}, {connection: other, adapter: postgres}], " +
			"table_name: t}\nworkload: {plugin: mix}\n",
		"its own wins": "name: x\ntarget: {<<: {connection: other, table_name: t}, connection: playground, adapter: " +
			"postgres}\nworkload: {plugin: mix}\n",
		"merged in turn": "name: x\ntarget: {<<: {<<: {connection: playground}, adapter: postgres}, table_name: " +
			"t}\nworkload: {plugin: mix}\n",
		"around the list": "name: x\nworkload: {plugin: mix}\nmatrix: {targets: [&a {connection: playground, adapter: " +
			"postgres, table_name: t, label: a}, {<<: *a, label: b}]}\n",
	} {
		s, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, c := range s.Connections() {
			if c.Ref.Name != "playground" {
				t.Errorf("%s: the connection is %q", name, c.Ref.Name)
			}
		}
	}
}

func TestAMergeKeyThatMergesNothingIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"name: x\ntarget: {<<: 5, table_name: t}\n":                   "target.<<",
		"name: x\ntarget: {<<: [{a: 1}, 5], table_name: t}\n":         "target.<<",
		"name: x\n<<: null\n":                                         "<<",
		"name: x\ntarget: {<<: {a: 1}, <<: {b: 2}}\n":                 "stands twice",
		"name: x\ntarget: {<<: {nonsense: 1}, table_name: t}\n":       "target.nonsense",
		"name: x\ntarget: &t {<<: *t, table_name: t}\nworkload: {}\n": "",
	} {
		_, err := Parse([]byte(text))
		if !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestMergesAreBounded: each level merges the one before it twice.
func TestMergesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("name: x\na0: &a0 {x: 1}\n")
	for i := range 30 {
		fmt.Fprintf(&b, "a%d: &a%d {<<: [*a%d, *a%d]}\n", i+1, i+1, i, i)
	}
	if _, err := Parse([]byte(b.String())); !engine.HasCode(err, engine.CodeInvalid) ||
		!strings.Contains(err.Error(), "too large") {
		t.Errorf("got %v", err)
	}
}

// TestSetChangesOneFieldOfSharedGroups: --set on what an alias or a merge brought leaves the others alone.
func TestSetChangesOneFieldOfSharedGroups(t *testing.T) {
	text := []byte(`
name: x
workload: {plugin: mix}
matrix:
  targets:
    - &first {connection: playground, adapter: postgres, table_name: t, label: one, prepare: &p {rows: 10}}
    - {<<: *first, label: two}
    - {connection: playground, adapter: postgres, table_name: t, label: three, prepare: *p}
`)
	for i := range 3 {
		out, err := replaced(text, fmt.Sprintf("matrix.targets.%d.prepare.rows", i), "99")
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(out)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for k, target := range s.Matrix.Targets {
			want := int64(10)
			if k == i {
				want = 99
			}
			if got := target.Prepare.Rows; got != want {
				t.Errorf("set %d: target %d has %d rows, want %d\n%s", i, k, got, want, out)
			}
		}
	}
}
