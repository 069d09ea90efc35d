package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/schema"
)

// Limits of a template document. They bound what a hostile file can cost.
const (
	maxBytes = 1 << 20
	maxNodes = 20_000
	maxDepth = 40
)

// document is a template as a tree, with the line of each field.
type document struct {
	root  map[string]any
	lines map[string]int
}

func invalid(field, message, hint string, line int) *engine.Error {
	return &engine.Error{Code: engine.CodeInvalid, Message: "The template cannot be used.",
		Fields: []engine.FieldError{{Field: field, Message: message, Hint: hint, Line: line}}}
}

// fromJSON rewrites the strings of a JSON document so that they mean the same in
// YAML, which knows neither surrogate pairs nor every character that JSON takes
// as it is. Lines stay where they are; anything else than JSON is returned as it came.
func fromJSON(source []byte) []byte {
	if !json.Valid(source) {
		return source
	}
	out := make([]byte, 0, len(source))
	for at := 0; at < len(source); {
		if source[at] != '"' {
			out = append(out, source[at])
			at++
			continue
		}
		end := at + 1
		for source[end] != '"' {
			if source[end] == '\\' {
				end++
			}
			end++
		}
		end++
		var text string
		if err := json.Unmarshal(source[at:end], &text); err != nil {
			return source // a valid document has none
		}
		out = append(out, '"')
		for _, r := range text {
			switch {
			case r == '"' || r == '\\':
				out = append(out, '\\', byte(r))
			case r < 0x20 || (r >= 0x7f && r < 0xa0) || r == '\u2028' || r == '\u2029' || (r >= 0xfff0 && r <= 0xffff) || r == '\ufeff':
				out = fmt.Appendf(out, `\u%04x`, r)
			default:
				out = utf8.AppendRune(out, r)
			}
		}
		out = append(out, '"')
		at = end
	}
	return out
}

// read parses YAML; JSON is YAML too, after fromJSON.
func read(source []byte) (*document, error) {
	if len(source) > maxBytes {
		return nil, &engine.Error{Code: engine.CodeTooLarge, Message: fmt.Sprintf("The template has %d bytes; at most %d are allowed.", len(source), maxBytes)}
	}
	source = fromJSON(source)
	dec := yaml.NewDecoder(bytes.NewReader(source))
	var node yaml.Node
	if err := dec.Decode(&node); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, invalid("(document)", "is empty", "start with name:, target: and workload:", 0)
		}
		return nil, syntaxError(err)
	}
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, invalid("(document)", "holds more than one YAML document", "remove what follows the line ---", second.Line)
	}
	if len(node.Content) == 0 || resolve(node.Content[0]).Kind != yaml.MappingNode {
		return nil, invalid("(document)", "is not a group of fields", "start with name:, target: and workload:", node.Line)
	}
	d := &document{lines: map[string]int{}}
	w := walker{lines: d.lines}
	value, err := w.value(node.Content[0], "", 0)
	if err != nil {
		return nil, err
	}
	root, ok := value.(map[string]any)
	if !ok {
		return nil, invalid("(document)", "is not a group of fields", "start with name:, target: and workload:", node.Line)
	}
	d.root = root
	return d, nil
}

// syntaxError turns "yaml: line 3: mapping values are not allowed" into words.
func syntaxError(err error) *engine.Error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, tail, ok := strings.Cut(rest, ": "); ok {
			if n, e := strconv.Atoi(number); e == nil {
				line, text = n, tail
			}
		}
	}
	field := "(document)"
	if line > 0 {
		field = fmt.Sprintf("(line %d)", line)
	}
	e := invalid(field, "is not YAML: "+text, "check the indentation, quotes and colons there", line)
	e.Cause = err
	return e
}

func resolve(n *yaml.Node) *yaml.Node {
	for hops := 0; n.Kind == yaml.AliasNode && n.Alias != nil && hops < maxDepth; hops++ {
		n = n.Alias
	}
	return n
}

type walker struct {
	lines map[string]int
	nodes int
}

func (w *walker) value(n *yaml.Node, path string, depth int) (any, error) {
	line := n.Line
	n = resolve(n)
	w.nodes++
	if w.nodes > maxNodes || depth > maxDepth {
		return nil, invalid(path, "the document is too large or too deep", fmt.Sprintf("at most %d values, %d levels", maxNodes, maxDepth), line)
	}
	if path != "" {
		w.lines[path] = line
	}
	switch n.Kind {
	case yaml.MappingNode:
		object := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := resolve(n.Content[i])
			if key.Kind != yaml.ScalarNode {
				return nil, invalid(path, "has a field name that is not text", "", key.Line)
			}
			at := schema.Join(path, key.Value)
			if _, twice := object[key.Value]; twice {
				return nil, invalid(at, "stands twice", "remove one of them", key.Line)
			}
			v, err := w.value(n.Content[i+1], at, depth+1)
			if err != nil {
				return nil, err
			}
			object[key.Value] = v
		}
		return object, nil
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for i, c := range n.Content {
			v, err := w.value(c, schema.Join(path, strconv.Itoa(i)), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.ScalarNode:
		return scalar(n, path)
	default:
		return nil, invalid(path, "refers to itself", "", line)
	}
}

func scalar(n *yaml.Node, path string) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return nil, invalid(path, "is not true or false", "", n.Line)
		}
		return b, nil
	case "!!int", "!!float":
		return number(n, path)
	case "!!str", "!!timestamp":
		if strings.ContainsRune(n.Value, 0) {
			return nil, invalid(path, "contains a NUL character", "remove it", n.Line)
		}
		return n.Value, nil
	default:
		return nil, invalid(path, fmt.Sprintf("has the type %s, which a template cannot hold", n.ShortTag()), "write text, a number, true or false", n.Line)
	}
}

// number keeps whole numbers whole: an int64 when it fits, else a float64 that is never NaN.
func number(n *yaml.Node, path string) (any, error) {
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, invalid(path, fmt.Sprintf("%q is not a number", n.Value), "", n.Line)
	}
	switch v := v.(type) {
	case int:
		return int64(v), nil
	case int64:
		return v, nil
	case uint64:
		return json.Number(strconv.FormatUint(v, 10)), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, invalid(path, fmt.Sprintf("%s is not a number that can be used", n.Value), "write a finite number", n.Line)
		}
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v), nil
		}
		return v, nil
	default:
		return nil, invalid(path, fmt.Sprintf("%q is not a number", n.Value), "", n.Line)
	}
}
