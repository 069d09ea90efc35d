package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The bounds of a plugin's parameters. A schema is a program: one of a kilobyte
// can make a validator work for years, or keep a number of gigabytes, and the
// server validates templates with it in its own process. Honest forms stay far
// below.
const (
	maxSchemaBytes   = 256 << 10
	maxSchemaDepth   = 64
	maxSchemaWeight  = 20_000 // subschemas and values, each as often as it is referred to
	maxPatternWeight = 5_000  // instructions of one regular expression
	maxNumberLength  = 40
	maxExponent      = 400
	maxSchemaText    = 4 << 10 // bytes of one name, title, description or value
)

// checkSchema refuses parameters that are not a JSON Schema of an object, or one
// that takes long. References to other documents find nothing: there is no loader.
func checkSchema(schema json.RawMessage) error {
	if len(schema) == 0 {
		return nil
	}
	if err := boundSchema(schema); err != nil {
		return fmt.Errorf("its parameters are not a JSON Schema that can be used: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return fmt.Errorf("its parameters are not JSON: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource("plugin:parameters", doc); err != nil {
		return fmt.Errorf("its parameters are not a JSON Schema: %s", Clean([]byte(err.Error()), 300))
	}
	if _, err := compiler.Compile("plugin:parameters"); err != nil {
		return fmt.Errorf("its parameters are not a valid JSON Schema: %s", Clean([]byte(err.Error()), 300))
	}
	return nil
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not refer to %s", Clean([]byte(url), 100))
}

// boundSchema bounds the work that a validator has with a schema.
func boundSchema(schema []byte) error {
	if len(schema) > maxSchemaBytes {
		return fmt.Errorf("they have %d bytes, the limit is %d", len(schema), maxSchemaBytes)
	}
	if err := boundTokens(schema); err != nil {
		return err
	}
	var doc any
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return errors.New("they are not JSON")
	}
	if root, ok := doc.(map[string]any); ok {
		if err := boundRoot(root); err != nil {
			return err
		}
	}
	s := schemaWeigher{doc: doc, weights: map[string]int{}}
	_, err := s.weigh(doc)
	return err
}

// versions of JSON Schema in which a part of a schema begins a document of its own
// with $id and nothing else; draft 4 called it id, which data may hold too.
var versions = [...]string{"draft/2020-12", "draft/2019-09", "draft-07", "draft-06"}

// boundRoot looks at what only the root may say, and takes it away.
func boundRoot(root map[string]any) error {
	if version, given := root["$schema"]; given {
		text, _ := version.(string)
		if !slices.ContainsFunc(versions[:],
			func(v string) bool { return strings.Contains(text, "json-schema.org/"+v+"/schema") }) {
			return fmt.Errorf("their $schema %q is not a version that is known; use "+
				"https://json-schema.org/draft/2020-12/schema", Clean([]byte(fmt.Sprint(version)), 100))
		}
	}
	delete(root, "$schema")
	delete(root, "$id")
	return nil
}

// boundTokens looks at depth and numbers without building anything.
func boundTokens(schema []byte) error {
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	for depth := 0; ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errors.New("they are not JSON")
		}
		switch t := token.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				depth++
			} else {
				depth--
			}
			if depth > maxSchemaDepth {
				return fmt.Errorf("they are nested more than %d deep", maxSchemaDepth)
			}
		case string:
			// Names of parameters, titles and descriptions are the form on the page.
			if len(t) > maxSchemaText {
				return fmt.Errorf("they hold the text %q of %d bytes, the limit is %d", Clean([]byte(t), 40), len(t), maxSchemaText)
			}
			if !plainLines(t) {
				return fmt.Errorf("their text %q contains control characters", Clean([]byte(t), 80))
			}
		case json.Number:
			if err := boundNumber(string(t)); err != nil {
				return err
			}
		}
	}
}

func boundNumber(n string) error {
	if len(n) > maxNumberLength {
		return fmt.Errorf("they hold a number of %d digits, the limit is %d", len(n), maxNumberLength)
	}
	if _, power, ok := strings.Cut(strings.ToLower(n), "e"); ok {
		if e, err := strconv.Atoi(power); err != nil || e > maxExponent || e < -maxExponent {
			return fmt.Errorf("they hold the number %s, whose exponent is too large", n)
		}
	}
	return nil
}

// schemaWeigher weighs a schema with everything that it refers to.
type schemaWeigher struct {
	doc any
	// weights are the weights of what references point to; 0 while they are weighed.
	weights map[string]int
}

func (s *schemaWeigher) weigh(node any) (int, error) {
	weight := 1
	add := func(child any) error {
		w, err := s.weigh(child)
		if weight += w; err == nil && weight > maxSchemaWeight {
			err = fmt.Errorf("with what they refer to they describe more than %d things", maxSchemaWeight)
		}
		return err
	}
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			if err := add(child); err != nil {
				return 0, err
			}
		}
	case map[string]any:
		for key, child := range node {
			if err := s.keyword(key, child, &weight); err != nil {
				return 0, err
			}
			if err := add(child); err != nil {
				return 0, err
			}
		}
	}
	return weight, nil
}

// keyword looks at the members that cost more than they show.
func (s *schemaWeigher) keyword(key string, value any, weight *int) error {
	text, isText := value.(string)
	switch key {
	case "$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor":
		return fmt.Errorf("they use %s, which plugins may not", key)
	case "$id", "$schema":
		// References below it would begin there, and be weighed as something else.
		if isText {
			return fmt.Errorf("a part of them has a %s of its own, which only the whole may have", key)
		}
	case "$ref":
		if !isText {
			return nil
		}
		w, err := s.weighReference(text)
		*weight += w
		return err
	case "pattern":
		if isText {
			return boundPattern(text)
		}
	case "patternProperties":
		properties, _ := value.(map[string]any)
		for pattern := range properties {
			if err := boundPattern(pattern); err != nil {
				return err
			}
		}
	}
	return nil
}

// weighReference weighs what a reference points to.
func (s *schemaWeigher) weighReference(ref string) (int, error) {
	shown := Clean([]byte(ref), 100)
	if ref != "#" && !strings.HasPrefix(ref, "#/") {
		return 0, fmt.Errorf("a schema may not refer to %q, only to its own parts (#/$defs/…)", shown)
	}
	if w, seen := s.weights[ref]; seen {
		if w == 0 {
			return 0, fmt.Errorf("their part %q refers to itself", shown)
		}
		return w, nil
	}
	s.weights[ref] = 0
	node, err := s.find(strings.TrimPrefix(ref, "#"))
	if err != nil {
		return 0, fmt.Errorf("they refer to %q, which is not there", shown)
	}
	w, err := s.weigh(node)
	s.weights[ref] = w
	return w, err
}

var errNotFound = errors.New("not there")

// find follows a JSON pointer.
func (s *schemaWeigher) find(pointer string) (any, error) {
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return nil, errNotFound
	}
	node := s.doc
	for pointer != "" {
		var part string
		part, pointer, _ = strings.Cut(pointer[1:], "/")
		if pointer != "" {
			pointer = "/" + pointer
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch n := node.(type) {
		case map[string]any:
			child, ok := n[part]
			if !ok {
				return nil, errNotFound
			}
			node = child
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(n) {
				return nil, errNotFound
			}
			node = n[i]
		default:
			return nil, errNotFound
		}
	}
	return node, nil
}

// boundPattern refuses a regular expression whose counts multiply: matching is
// linear in Go, compiling is not.
func boundPattern(pattern string) error {
	shown := Clean([]byte(pattern), 60)
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return fmt.Errorf("their pattern %q is not a regular expression that Go knows", shown)
	}
	if patternWeight(re) > maxPatternWeight {
		return fmt.Errorf("their pattern %q repeats too much", shown)
	}
	return nil
}

func patternWeight(re *syntax.Regexp) int {
	weight := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		weight += patternWeight(sub)
	}
	if re.Op == syntax.OpRepeat {
		weight *= max(1, re.Min, re.Max)
	}
	return min(weight, maxPatternWeight+1)
}
