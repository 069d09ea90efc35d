package template

import (
	"errors"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// The document that fields were replaced in is written anew: its lines are those of no file.
func TestAReplacedFieldIsNamedWithoutALine(t *testing.T) {
	source := []byte("name: n\nworkload: {plugin: mix}\n")
	out, err := replaced(source, "workload.duration", "3")
	if err != nil {
		t.Fatal(err)
	}
	_, parsed := Parse(out)
	var with, without *engine.Error
	if !errors.As(parsed, &with) || !errors.As(WithoutLines(parsed), &without) {
		t.Fatalf("%v", parsed)
	}
	lines := 0
	for i, f := range with.Fields {
		lines += f.Line
		if got := without.Fields[i]; got.Line != 0 || got.Field != f.Field || got.Message != f.Message {
			t.Errorf("%+v became %+v", f, got)
		}
	}
	if lines == 0 {
		t.Error("Parse named no line: the test shows nothing")
	}
	if other := errors.New("other"); !errors.Is(WithoutLines(other), other) || WithoutLines(nil) != nil {
		t.Error("another error is not left as it is")
	}
}
