// Package schema checks documents against a JSON Schema and says what is wrong
// in words that name the field and the cure. Templates and the parameters of
// plugins use it, so both speak with one voice.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/loadstone-db/loadstone/engine"
)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	doc      any
}

// noLoader keeps schemas, which may come from strangers, from loading anything.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to %q: only references within it are allowed", url)
}

// schemaURL is what a schema is called while it is compiled.
const schemaURL = "mem:///schema.json"

// read gives a schema to a compiler that loads nothing else.
func read(text []byte) (doc any, c *jsonschema.Compiler, err error) {
	if doc, err = jsonschema.UnmarshalJSON(bytes.NewReader(text)); err != nil {
		return nil, nil, fmt.Errorf("reading the schema: %w", err)
	}
	c = jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, nil, fmt.Errorf("reading the schema: %w", err)
	}
	return doc, c, nil
}

// Compile compiles a JSON Schema (draft 2020-12 unless it names another).
func Compile(text []byte) (*Schema, error) {
	doc, c, err := read(text)
	if err != nil {
		return nil, err
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, fmt.Errorf("compiling the schema: %w", err)
	}
	return &Schema{compiled: compiled, doc: doc}, nil
}

// MaxErrors is how many wrong fields are reported. Nobody reads more at once, and a
// document may have thousands, each of which costs a search for what was meant.
const MaxErrors = 100

// Check validates doc, a tree of map[string]any, []any, string, bool, nil and
// numbers (int64, float64 or json.Number; never NaN). Field names start with
// prefix. It returns one error per wrong field, ordered by field, for at most
// MaxErrors of them; nil when valid.
func (s *Schema) Check(doc any, prefix string) []engine.FieldError {
	err := s.compiled.Validate(doc)
	if err == nil {
		return nil
	}
	var verr *jsonschema.ValidationError
	if !errors.As(err, &verr) {
		return []engine.FieldError{{Field: prefix, Message: err.Error()}}
	}
	var found []engine.FieldError
	s.collect(verr, prefix, &found)
	if len(found) > MaxErrors {
		found = found[:MaxErrors]
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].Field < found[j].Field })
	return unique(found)
}

// telling are the causes of an error that say something: all, and of alternatives the one that came furthest.
func telling(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	switch e.ErrorKind.(type) {
	case *kind.OneOf, *kind.AnyOf:
		return []*jsonschema.ValidationError{slices.MaxFunc(e.Causes, func(a, b *jsonschema.ValidationError) int {
			return depth(a) - depth(b)
		})}
	}
	return e.Causes
}

// valuesHint names the values that a field can have.
func valuesHint(k *kind.Enum) string {
	var names []string
	for _, w := range k.Want {
		if w != nil {
			names = append(names, fmt.Sprint(w))
		}
	}
	hint := "one of " + strings.Join(names, ", ")
	if got, ok := k.Got.(string); ok {
		if near := Nearest(got, names); near != "" {
			hint = fmt.Sprintf("did you mean %q? It is %s", near, hint)
		}
	}
	return hint
}

func (s *Schema) collect(e *jsonschema.ValidationError, prefix string, found *[]engine.FieldError) {
	if len(*found) > MaxErrors {
		return
	}
	if len(e.Causes) > 0 {
		for _, c := range telling(e) {
			s.collect(c, prefix, found)
		}
		return
	}
	at := Join(prefix, e.InstanceLocation...)
	add := func(field, message, hint string) {
		*found = append(*found, engine.FieldError{Field: field, Message: message, Hint: hint})
	}
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		known := s.properties(e.InstanceLocation)
		for _, name := range k.Properties {
			if len(*found) > MaxErrors {
				return
			}
			hint := "remove it; known fields here: " + strings.Join(known, ", ")
			if near := Nearest(name, known); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			add(Join(at, name), "unknown field", hint)
		}
	case *kind.FalseSchema:
		add(at, "unknown field", "remove it")
	case *kind.Required:
		for _, name := range k.Missing {
			add(Join(at, name), "is required", s.describe(append(clone(e.InstanceLocation), name)))
		}
	case *kind.Type:
		add(at, fmt.Sprintf("must be %s, not %s", article(k.Want), article([]string{k.Got})), s.describe(e.InstanceLocation))
	case *kind.Enum:
		add(at, describeValue(k.Got)+" is not a value it can have", valuesHint(k))
	case *kind.Minimum:
		add(at, fmt.Sprintf("must be at least %s, and is %s", num(k.Want), num(k.Got)), s.describe(e.InstanceLocation))
	case *kind.Maximum:
		add(at, fmt.Sprintf("must be at most %s, and is %s", num(k.Want), num(k.Got)), s.describe(e.InstanceLocation))
	case *kind.ExclusiveMinimum:
		add(at, fmt.Sprintf("must be more than %s, and is %s", num(k.Want), num(k.Got)), s.describe(e.InstanceLocation))
	case *kind.ExclusiveMaximum:
		add(at, fmt.Sprintf("must be less than %s, and is %s", num(k.Want), num(k.Got)), s.describe(e.InstanceLocation))
	case *kind.MultipleOf:
		add(at, fmt.Sprintf("%s is not a multiple of %s", num(k.Got), num(k.Want)), s.describe(e.InstanceLocation))
	case *kind.MinLength:
		if k.Got == 0 {
			add(at, "must not be empty", s.describe(e.InstanceLocation))
			return
		}
		add(at, fmt.Sprintf("has %d characters, at least %d are needed", k.Got, k.Want), s.describe(e.InstanceLocation))
	case *kind.MaxLength:
		add(at, fmt.Sprintf("has %d characters, at most %d are allowed", k.Got, k.Want), s.describe(e.InstanceLocation))
	case *kind.MaxItems:
		add(at, fmt.Sprintf("has %d entries, at most %d are allowed", k.Got, k.Want), "")
	case *kind.MinItems:
		add(at, fmt.Sprintf("has %d entries, at least %d are needed", k.Got, k.Want), "")
	case *kind.MinProperties:
		add(at, fmt.Sprintf("has %d entries, at least %d are needed", k.Got, k.Want), s.describe(e.InstanceLocation))
	case *kind.Pattern:
		add(at, fmt.Sprintf("%q does not have the right form", clip(k.Got)), s.describe(e.InstanceLocation))
	default:
		add(at, keywordMessage(k), s.describe(e.InstanceLocation))
	}
}

// keywordMessage says what the rarer keywords ask for.
func keywordMessage(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Const:
		return clip(fmt.Sprintf("must be %v, not %v", k.Want, k.Got))
	case *kind.Not:
		return "is one of the values that it cannot have"
	case *kind.OneOf:
		return "fits more than one of the alternatives"
	case *kind.MaxProperties:
		return fmt.Sprintf("has %d entries, at most %d are allowed", k.Got, k.Want)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d entries too many", k.Count)
	case *kind.UniqueItems:
		return fmt.Sprintf("has the same entry twice, at %d and %d", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "lacks an entry that it must have"
	case *kind.MinContains:
		return fmt.Sprintf("has %d entries of the kind that it needs, at least %d are needed", len(k.Got), k.Want)
	case *kind.MaxContains:
		return fmt.Sprintf("has %d entries of one kind, at most %d are allowed", len(k.Got), k.Want)
	case *kind.Dependency:
		return clip(fmt.Sprintf("with %s, it must have %s too", k.Prop, strings.Join(k.Missing, ", ")))
	case *kind.DependentRequired:
		return clip(fmt.Sprintf("with %s, it must have %s too", k.Prop, strings.Join(k.Missing, ", ")))
	case *kind.PropertyNames:
		return clip(fmt.Sprintf("has the field %s, which may not be called so", k.Property))
	case *kind.Format:
		return clip(fmt.Sprintf("%v is no %s", k.Got, k.Want))
	}
	return "does not meet " + strings.Join(k.KeywordPath(), "/") + " of its schema"
}

func depth(e *jsonschema.ValidationError) int {
	deepest := len(e.InstanceLocation)
	for _, c := range e.Causes {
		deepest = max(deepest, depth(c))
	}
	return deepest
}

// at walks the raw schema document to the subschema of an instance location,
// through properties, additionalProperties and items; nil where it cannot.
func (s *Schema) at(location []string) map[string]any {
	node, _ := s.doc.(map[string]any)
	for _, name := range location {
		if node == nil {
			return nil
		}
		if props, ok := node["properties"].(map[string]any); ok {
			if next, ok := props[name].(map[string]any); ok {
				node = next
				continue
			}
		}
		if next, ok := node["additionalProperties"].(map[string]any); ok {
			node = next
			continue
		}
		next, _ := node["items"].(map[string]any)
		node = next
	}
	return node
}

func (s *Schema) properties(location []string) []string {
	props, _ := s.at(location)["properties"].(map[string]any)
	names := make([]string, 0, len(props))
	for name := range props {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// describe returns the schema's own words about a field.
func (s *Schema) describe(location []string) string {
	text, _ := s.at(location)["description"].(string)
	return text
}

// Complete fills absent fields of doc with the defaults of the schema, in
// place, and descends into objects that are there (or that have a default) and
// into lists of objects.
func (s *Schema) Complete(doc map[string]any) {
	root, _ := s.doc.(map[string]any)
	complete(root, doc)
}

func complete(node, doc map[string]any) {
	props, _ := node["properties"].(map[string]any)
	for name, p := range props {
		sub, ok := p.(map[string]any)
		if !ok {
			continue
		}
		value, there := doc[name]
		if !there {
			if def, ok := sub["default"]; ok {
				value = copyOf(def)
				doc[name] = value
			}
		}
		switch value := value.(type) {
		case map[string]any:
			complete(sub, value)
		case []any:
			items, _ := sub["items"].(map[string]any)
			for _, item := range value {
				if object, ok := item.(map[string]any); ok {
					complete(items, object)
				}
			}
		}
	}
}

func copyOf(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for k, e := range v {
			c[k] = copyOf(e)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = copyOf(e)
		}
		return c
	default:
		return v
	}
}

// Join writes a path as fields are named to users: "workload.params.weights", "thresholds[0]".
func Join(prefix string, names ...string) string {
	var path strings.Builder
	path.WriteString(prefix)
	for _, name := range names {
		switch {
		case path.Len() == 0:
			path.WriteString(name)
		case isIndex(name):
			path.WriteString("[" + name + "]")
		default:
			path.WriteString("." + name)
		}
	}
	return path.String()
}

func isIndex(name string) bool {
	if name == "" {
		return false
	}
	for _, c := range name {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func article(types []string) string {
	names := make([]string, 0, len(types))
	for _, t := range types {
		switch t {
		case "null":
			if len(types) > 1 {
				continue
			}
			names = append(names, "empty")
		case "integer":
			names = append(names, "a whole number")
		case "object":
			names = append(names, "a group of fields")
		case "array":
			names = append(names, "a list")
		case "string":
			names = append(names, "text")
		case "boolean":
			names = append(names, "true or false")
		default:
			names = append(names, "a "+t)
		}
	}
	return strings.Join(names, " or ")
}

func num(r *big.Rat) string {
	if r.IsInt() {
		if text := r.Num().String(); len(text) <= 24 {
			return text
		}
	}
	f, _ := r.Float64()
	return fmt.Sprintf("%.6g", f)
}

func clip(text string) string {
	const most = 80
	runes := []rune(text)
	if len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

func clone(s []string) []string { return append([]string(nil), s...) }

func unique(list []engine.FieldError) []engine.FieldError {
	kept := list[:0]
	for i, e := range list {
		if i == 0 || e.Field != kept[len(kept)-1].Field || e.Message != kept[len(kept)-1].Message {
			kept = append(kept, e)
		}
	}
	return kept
}

// describeValue is what stands in the place of one of several words.
func describeValue(v any) string {
	switch v.(type) {
	case map[string]any:
		return "a group of fields"
	case []any:
		return "a list"
	}
	return strconv.Quote(clip(fmt.Sprint(v)))
}
