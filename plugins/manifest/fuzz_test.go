package manifest

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
)

// FuzzSchema: what the bounds let through is weighed and compiled without a panic.
func FuzzSchema(f *testing.F) {
	f.Add(
		[]byte(`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"integer","maximum":1e9}}}`),
	)
	f.Add(
		[]byte(
			`{"$ref":"#","pattern":"^a{3}$","patternProperties":{"x":{"multipleOf":1e-400}},"allOf":[{"$ref":"#/allOf/0"}]}`,
		),
	)
	f.Add([]byte(`{"properties":{"a":{"$ref":"#/%24defs/x~1y"}},"$dynamicRef":"#a"}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		if err := checkSchema(schema); err != nil && err.Error() == "" {
			t.Error("it is refused without a reason")
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(plugintest.ManifestOf("x")))
	f.Add([]byte(`{"kind":"adapter","name":"a","driver":"postgres","kinds":["INSERT"],"parameters":{"type":"object"}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		m, err := Parse(doc)
		if err == nil && (!nameForm.MatchString(m.Name) || m.Version == "") {
			t.Errorf("accepted %+v", m)
		}
	})
}
