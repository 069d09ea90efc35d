package manifest_test

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/plugins/manifest"
)

// TestAMemberThatIsThereTwiceIsRefused by its name and place, at any depth, and in another case.
func TestAMemberThatIsThereTwiceIsRefused(t *testing.T) {
	for doc, want := range map[string]string{
		`{"kind":"workload","name":"a","name":"b"}`:                                    `the member "name" is there twice`,
		`{"kind":"workload","name":"a","Name":"b"}`:                                    `the member "Name" is there twice`,
		`{"name":"a","kind":"workload","tables":[{"name":"t"},{"key":"1","key":"2"}]}`: `the member "key" of tables[1] is there twice`,
		`{"kind":"workload","name":"a","parameters":{"properties":{"x":{},"x":{}}}}`:   `the member "x" of parameters.properties`,
	} {
		if _, err := manifest.Parse([]byte(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", doc, err, want)
		}
	}
	m, err := manifest.Parse([]byte(`{"kind":"workload","name":"a","parameters":{"type":"object","properties":` +
		`{"x":{"type":"string"},"X":{"type":"string"},"name":{"type":"string"}}},"statements":[]}`))
	if err != nil || m.Name != "a" {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestWhatIsAnsweredTwiceIsRefused, as in a manifest: tables, statements, and what adapters answer.
func TestWhatIsAnsweredTwiceIsRefused(t *testing.T) {
	_, tables := manifest.Tables([]byte(`{"tables":[{"name":"a","columns":["k int64"],"rows":1,"rows":2}]}`))
	_, _, statements := manifest.Statements(
		[]byte(`{"statements":[{"id":"a","sql":"SELECT 1","sql":"DROP TABLE t"}]}`),
		nil,
	)
	var answer struct{ SQL string }
	adapter := manifest.Unmarshal([]byte(`{"sql":"SELECT 1","SQL":"DROP TABLE t"}`), &answer, manifest.MaxAnswerValues)
	for what, err := range map[string]error{"tables": tables, "statements": statements, "an adapter": adapter} {
		if err == nil || !strings.Contains(err.Error(), "is there twice") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestARefusalShowsWhatItIsAbout: a version, or a name, that has a mark which is not shown was refused without it.
func TestARefusalShowsWhatItIsAbout(t *testing.T) {
	for doc, want := range map[string]string{
		`{"kind":"workload","name":"a","version":"1.0\u202e"}`: `its version "1.0\u202e" is not one`,
		`{"kind":"workload","name":"a\u200b"}`:                 `its name "a\u200b" is not one`,
		`{"kind":"workload","name":"a\u001b[31m"}`:             `its name "a\x1b[31m" is not one`,
	} {
		if _, err := manifest.Parse([]byte(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", doc, err, want)
		}
	}
}
