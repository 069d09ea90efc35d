package template

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

const head = "name: a\ntarget: {connection: playground, table_name: orders}\n"

// numbered is n lines made of a pattern that takes a number.
func numbered(n int, pattern string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, pattern+"\n", i)
	}
	return b.String()
}

// allocated is how many bytes do takes from the heap, kept or not.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHostileTemplatesCostWhatTheyWeigh reads documents that are small and would be
// large once their aliases are written out, or once each value has its path.
func TestHostileTemplatesCostWhatTheyWeigh(t *testing.T) {
	long := strings.Repeat("k", 20<<10)
	nested := func(name string, levels int, inner string) string {
		return strings.Repeat("{"+name+": ", levels) + inner + strings.Repeat("}", levels)
	}
	many := "[" + strings.Repeat("1,", 15_000) + "1]"
	for name, c := range map[string]struct{ source, blames string }{
		"text by alias": {head + "x: &x " + long + "\nworkload: {plugin: mix, params: {y: [" +
			strings.Repeat("*x,", 5000) + "]}}\n", "workload.params.y[10"},
		"names by alias": {head + "x: &x {" + strings.Repeat("n", 500) + ": 1}\nworkload: {plugin: mix, params: {y: [" +
			strings.Repeat("*x,", 8000) + "]}}\n", "workload.params.y["},
		"aliases of aliases": {head + "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c " +
			"[*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n", "e["},
		"a long name":         {head + "? " + long + "\n: " + many + "\n", "(document)"},
		"a long name in JSON": {`{"name":"a","` + strings.Repeat("k", 900) + `":` + many + `}`, "(document)"},
		"long names, nested":  {head + "workload: " + nested(strings.Repeat("k", 500), 35, many) + "\n", "workload.kkk"},
		"unknown fields":      {head + numbered(19_000, "unknownfield%d: 1"), "unknownfield"},
		"unknown values":      {head + "workload: {plugin: mix}\nthresholds: " + many + "\n", "thresholds"},
		"a long tag":          {head + "x: !" + long + " 1\n", "x"},
		"a long number": {head + "workload: {plugin: mix, duration_seconds: 1" + strings.Repeat("0", 20<<10) + "}\n",
			"workload.duration_seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			cost := allocated(func() { _, err = Parse([]byte(c.source)) })
			e := engine.AsError(err)
			if !engine.HasCode(err, engine.CodeInvalid) || len(e.Fields) == 0 ||
				!strings.HasPrefix(e.Fields[0].Field, c.blames) {
				t.Fatalf("it is refused with %.300v", err)
			}
			if size := len(err.Error()); size > 64<<10 {
				t.Errorf("the error has %d bytes", size)
			}
			// A value takes a few hundred bytes as a node of the tree.
			if most := uint64(16<<20 + 40*len(c.source)); cost > most {
				t.Errorf("%d bytes took %d MB, more than %d", len(c.source), cost>>20, most>>20)
			}
		})
	}
}

// TestAliasesThatFitAreFollowed holds that the limit is one of size, not on aliases.
func TestAliasesThatFitAreFollowed(t *testing.T) {
	s, err := Parse([]byte("name: a\ntarget: &t {connection: playground, table_name: orders}\n" +
		"workload: {plugin: mix, params: {a: &w {INSERT: 1}, b: *w, c: *w}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(s.Workload.Params); strings.Count(text, `{"INSERT":1}`) != 3 {
		t.Errorf("params %s", text)
	}
}

// TestManyFieldsAreSetAtOnce replaces 200 fields of a large document for about the price of one.
func TestManyFieldsAreSetAtOnce(t *testing.T) {
	source := []byte(head + "workload:\n  plugin: mix\n  params:\n" + numbered(1000, "    k%d: v # kept"))
	var all []Assignment
	for i := range 200 {
		all = append(all, Assignment{Path: fmt.Sprintf("workload.params.k%d", i*5), Value: fmt.Sprintf("new%d", i)})
	}
	var one []byte
	cost := allocated(func() { one, _ = SetAll(source, all[:1]) })
	costs := allocated(func() { _, _ = SetAll(source, all) })
	if costs > 3*cost {
		t.Errorf("200 fields take %d KB, one takes %d KB", costs>>10, cost>>10)
	}
	if !strings.Contains(string(one), "k0: new0 # kept") || strings.Contains(string(one), "new1") {
		t.Error("one field was not set")
	}
	all = all[:20]
	many, err := SetAll(source, all)
	if err != nil {
		t.Fatal(err)
	}
	step := source
	for _, a := range all {
		var err error
		if step, err = replaced(step, a.Path, a.Value); err != nil {
			t.Fatal(err)
		}
	}
	if string(step) != string(many) {
		t.Error("all at once is not one after another")
	}
	if _, err := SetAll(source, append(all, Assignment{Path: "name.x", Value: "1"})); !engine.HasCode(err,
		engine.CodeInvalid) {
		t.Errorf("a path below a text: %v", err)
	}
}

// TestErrorsNameTheLineOfTheirField finds lines through lists, aliases, and names with dots.
func TestErrorsNameTheLineOfTheirField(t *testing.T) {
	doc, err := read([]byte("a.b: 1\na:\n  b: 2\n  c:\n    - x\n    - &y\n      z: 3\n  d: *y\n  0: 9\n  ab: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	for field, line := range map[string]int{
		"a.b": 1, "a.b.q": 1, "a.c": 5, "a.c[0]": 5, "a.c[1]": 6, "a.c[1].z": 7, "a.c[1].q": 6, "a.c[7]": 5, "a.d": 8,
		"a.d.z": 7,
		"a[0]":  9, "a.abc": 3, "a.ab": 10, "nowhere": 0, "": 0,
	} {
		if got := doc.lineOf(field); got != line {
			t.Errorf("%q is in line %d, not in %d", field, got, line)
		}
	}
}
