package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// CheckDefaults checks every default that a schema has, also those that Complete comes to
// only where a document gives what is around them, against the part of the schema that
// it stands in. It returns what is wrong with the first, its field named by the way to it,
// or nil.
func CheckDefaults(text []byte) (*engine.FieldError, error) {
	doc, compiler, err := read(text)
	if err != nil {
		return nil, err
	}
	var wrong *engine.FieldError
	err = walk(doc, nil, nil, func(node map[string]any, pointer, names []string) error {
		def, there := node["default"]
		if !there || wrong != nil {
			return nil
		}
		compiled, err := compiler.Compile(schemaURL + "#" + strings.Join(pointer, ""))
		if err != nil {
			return err
		}
		part := &Schema{compiled: compiled, doc: node}
		def = copyOf(def)
		if object, ok := def.(map[string]any); ok {
			part.Complete(object)
		}
		if found := part.Check(def, Join("", names...)); len(found) > 0 {
			wrong = &found[0]
		}
		return nil
	})
	return wrong, err
}

// Where a schema holds others: by name, in a list, or one.
var (
	byName = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	inList = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	single = []string{"items", "additionalProperties", "additionalItems", "contains", "if", "then", "else", "not",
		"unevaluatedProperties", "unevaluatedItems"}
)

// walk calls visit for a schema and each schema in it, with its JSON pointer and the
// names of the properties that lead to it. It follows no references.
func walk(value any, pointer, names []string, visit func(node map[string]any, pointer, names []string) error) error {
	node, ok := value.(map[string]any)
	if !ok {
		return nil // true and false have no default
	}
	if err := visit(node, pointer, names); err != nil {
		return err
	}
	for _, keyword := range byName {
		parts, _ := node[keyword].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			if err := walk(parts[name], slices.Concat(pointer, []string{"/", keyword, "/", escape(name)}),
				append(slices.Clone(names), name), visit); err != nil {
				return err
			}
		}
	}
	for _, keyword := range inList {
		parts, _ := node[keyword].([]any)
		for i, part := range parts {
			if err := walk(part, slices.Concat(pointer, []string{"/", keyword, "/", strconv.Itoa(i)}), names,
				visit); err != nil {
				return err
			}
		}
	}
	for _, keyword := range single {
		if err := walk(node[keyword], slices.Concat(pointer, []string{"/", keyword}), names, visit); err != nil {
			return err
		}
	}
	return nil
}

// escape writes a name as a part of a JSON pointer in an address.
func escape(name string) string {
	name = strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	var b strings.Builder
	for _, c := range []byte(name) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '~' {
			b.WriteByte(c)
			continue
		}
		b.WriteString("%" + strconv.FormatInt(int64(c)+0x100, 16)[1:])
	}
	return b.String()
}
