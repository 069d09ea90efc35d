package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// UnknownMembers names what a manifest says that nobody reads: a misspelt member
// would be without effect and without a word. Members that begin with "x-" are the
// author's own. A document that is no JSON has none.
func UnknownMembers(doc []byte) []string {
	var value any
	if json.Unmarshal(doc, &value) != nil {
		return nil
	}
	var found []string
	collectUnknown(&found, "", value, reflect.TypeFor[looseManifest]())
	slices.Sort(found)
	return found
}

// longForms are the types that read themselves, in their long form.
var longForms = map[reflect.Type]reflect.Type{
	reflect.TypeFor[looseBind](): reflect.TypeFor[engine.Bind](),
}

func collectUnknown(found *[]string, at string, value any, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if other, ok := longForms[t]; ok {
		t = other
	}
	switch v := value.(type) {
	case []any:
		if t.Kind() == reflect.Slice {
			for i, element := range v {
				collectUnknown(found, fmt.Sprintf("%s[%d]", at, i), element, t.Elem())
			}
		}
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return
		}
		for name, member := range v {
			field, known := memberOf(t, name)
			if !known && at == "" {
				field, known = memberOf(reflect.TypeFor[plugin.Manifest](), name)
			}
			switch {
			case strings.HasPrefix(name, "x-"):
			case !known:
				*found = append(*found, Clean([]byte(strings.TrimPrefix(at+"."+name, ".")), 100))
			default:
				collectUnknown(found, at+"."+name, member, field)
			}
		}
	}
}

// memberOf finds the field that JSON calls by a name, as encoding/json does.
func memberOf(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "-" || !f.IsExported() {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		if strings.EqualFold(tag, name) {
			return f.Type, true
		}
	}
	return nil, false
}
