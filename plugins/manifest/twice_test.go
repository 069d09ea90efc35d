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
