package manifest

import (
	"strings"
	"testing"
)

// TestSchemaBounds: what a validator would work on for years is refused before one sees it.
func TestSchemaBounds(t *testing.T) {
	for name, c := range map[string]struct{ schema, says string }{
		"honest": {`{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/a"},"b":{"$ref":"#/$defs/a"},"c":{"pattern":"^[a-z]{1,64}$"}},
			"$defs":{"a":{"type":"integer","minimum":-1e9,"maximum":9223372036854775807,"default":3}}}`, ""},
		"escaped path":          {`{"properties":{"a":{"$ref":"#/$defs/x~1y%20z"}},"$defs":{"x/y z":{}}}`, ""},
		"in a list":             {`{"allOf":[{"type":"object"},{"$ref":"#/allOf/0"}]}`, ""},
		"itself":                {`{"$ref":"#"}`, "refers to itself"},
		"circle":                {`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"not":{"$ref":"#/$defs/b"}},"b":{"not":{"$ref":"#/$defs/a"}}}}`, "refers to itself"},
		"missing":               {`{"$ref":"#/$defs/x"}`, "not there"},
		"past a list":           {`{"allOf":[{"$ref":"#/allOf/7"}]}`, "not there"},
		"file":                  {`{"$ref":"file:///etc/passwd"}`, "may not refer to"},
		"anchor":                {`{"$anchor":"a","properties":{"x":{"$ref":"#a"}}}`, "may not refer to"},
		"dynamic":               {`{"$dynamicRef":"#a"}`, "$dynamicRef"},
		"exponent":              {`{"multipleOf":1e-400000000}`, "exponent"},
		"exponent of 21 digits": {`{"multipleOf":1e999999999999999999999}`, "exponent"},
		"digits":                {`{"maximum":` + strings.Repeat("9", 100) + `}`, "digits"},
		"deep":                  {strings.Repeat(`{"not":`, 65) + "{}" + strings.Repeat("}", 65), "deep"},
		"doubling": {`{"$ref":"#/$defs/d","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},
			"b":{"allOf":[{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"}]},"c":{"enum":[` + strings.Repeat("0,",
			3000) + `0]},"d":{"$ref":"#/$defs/a"}}}`, "more than 20000 things"},
		"of its time":     {`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/a","properties":{"$id":{"$ref":"#/$defs/a"}},"$defs":{"a":{}}}`, ""},
		"draft 7":         {`{"$schema":"http://json-schema.org/draft-07/schema#"}`, ""},
		"draft 4":         {`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"id":"x","definitions":{"a":{"not":{"$ref":"#/definitions/a"}}}}}}`, "not a version"},
		"unknown version": {`{"$schema":7}`, "not a version"},
		"part of its own": {`{"$defs":{"a":{}},"properties":{"a":{"$id":"x","$ref":"#/$defs/a","$defs":{"a":{"not":{"$ref":"#/$defs/a"}}}}}}`, "$id of its own"},
		"version of a part": {`{"properties":{"a":{"$schema":"http://json-schema.org/draft-04/schema#","id":"x"}}}`,
			"$schema of its own"},
		"pattern":         {`{"pattern":"(abcdefghij){900}"}`, "repeats too much"},
		"property":        {`{"patternProperties":{"(abcdefghij){900}":{}}}`, "repeats too much"},
		"broken pattern":  {`{"pattern":"(["}`, "regular expression"},
		"no JSON":         {`{"a"`, "not JSON"},
		"long":            {`{"title":"` + strings.Repeat("x", maxSchemaBytes) + `"}`, "limit"},
		"pattern as name": {`{"properties":{"pattern":{"type":"string"},"$ref":{"type":"string"}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := boundSchema([]byte(c.schema))
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, expected %q", err, c.says)
			}
		})
	}
}
