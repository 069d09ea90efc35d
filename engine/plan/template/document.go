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
	"github.com/loadstone-db/loadstone/engine/base/schema"
)

// Limits of a template document. They bound what a hostile file can cost: aliases
// make a document larger than its text, and every name may stand in the path of an error.
const (
	maxBytes    = 1 << 20
	maxExpanded = 2 << 20 // bytes of names and values, with every alias written out
	maxNodes    = 20_000
	maxDepth    = 40
	maxName     = 512 // bytes of a field's name
)

// document is a template as a tree, with the YAML that knows the line of each field.
type document struct {
	root map[string]any
	yaml *yaml.Node
	// lines are those of the text, where it is known.
	lines []string
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
			case r < 0x20 || (r >= 0x7f && r < 0xa0) || r == '\u2028' || r == '\u2029' || (r >= 0xfff0 && r <= 0xffff) ||
				r == '\ufeff':
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
	node, err := parse(source)
	if err != nil {
		return nil, err
	}
	d, err := build(node)
	if err == nil {
		d.lines = strings.Split(string(source), "\n")
	}
	return d, err
}

// parse returns the one group of fields that the text holds, before any alias is followed.
func parse(source []byte) (*yaml.Node, error) {
	if len(source) > maxBytes {
		return nil, &engine.Error{Code: engine.CodeTooLarge,
			Message: fmt.Sprintf("The template has %d bytes; at most %d are allowed.", len(source), maxBytes)}
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
		return nil, invalid("(document)", "holds more than one YAML document", "remove what follows the line ---",
			second.Line)
	}
	if len(node.Content) == 0 || resolve(node.Content[0]).Kind != yaml.MappingNode {
		return nil, invalid("(document)", "is not a group of fields", "start with name:, target: and workload:", node.Line)
	}
	return &node, nil
}

// build follows the aliases and returns the tree of values.
func build(node *yaml.Node) (*document, error) {
	var w walker
	value, err := w.value(node.Content[0])
	if err != nil {
		return nil, err
	}
	root, ok := value.(map[string]any)
	if !ok {
		return nil, invalid("(document)", "is not a group of fields", "start with name:, target: and workload:", node.Line)
	}
	return &document{root: root, yaml: node.Content[0]}, nil
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

// walker reads the tree. It keeps the steps to where it is and joins them for an
// error only: a path for each value would cost the square of the document's size.
type walker struct {
	steps  []string
	nodes  int
	bytes  int
	visits int // of fields, those that are merged included
}

func (w *walker) refuse(message, hint string, line int) error {
	field := "(document)"
	if len(w.steps) > 0 {
		field = schema.Join("", w.steps...)
	}
	return invalid(field, message, hint, line)
}

func (w *walker) value(n *yaml.Node) (any, error) {
	line := n.Line
	n = resolve(n)
	w.nodes++
	w.bytes += len(n.Value)
	if w.nodes > maxNodes || len(w.steps) > maxDepth {
		return nil, w.refuse("the document is too large or too deep",
			fmt.Sprintf("at most %d values, %d levels", maxNodes, maxDepth), line)
	}
	if w.bytes > maxExpanded {
		return nil, w.refuse("the document is too large",
			fmt.Sprintf("at most %d bytes with every alias (*name) written out", maxExpanded), line)
	}
	at := len(w.steps)
	switch n.Kind {
	case yaml.MappingNode:
		return w.object(n)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for i, c := range n.Content {
			w.steps = append(w.steps[:at], strconv.Itoa(i))
			v, err := w.value(c)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		w.steps = w.steps[:at]
		return list, nil
	case yaml.ScalarNode:
		return w.scalar(n)
	default:
		return nil, w.refuse("refers to itself", "", line)
	}
}

func (w *walker) object(n *yaml.Node) (any, error) {
	at := len(w.steps)
	object := make(map[string]any, len(n.Content)/2)
	if err := w.mergedOnce(n); err != nil {
		return nil, err
	}
	// A group that merges itself is visited until there are too many.
	fields, wrong, err := fieldsOf(n, func() error {
		if w.visits++; w.visits > 2*maxNodes {
			return w.refuse("the document is too large", fmt.Sprintf("at most %d values", maxNodes), n.Line)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if wrong != nil {
		w.steps = append(w.steps, "<<")
		return nil, w.refuse("merges something that is not a group of fields",
			"write <<: *name, where &name stands before a group of fields, or a list of such", wrong.Line)
	}
	for _, f := range fields {
		key := f.key
		w.steps = w.steps[:at]
		if key.Kind != yaml.ScalarNode {
			return nil, w.refuse("has a field name that is not text", "", key.Line)
		}
		if len(key.Value) > maxName {
			return nil, w.refuse(fmt.Sprintf("has a field name of %d bytes; at most %d are possible", len(key.Value), maxName),
				"shorten it", key.Line)
		}
		w.bytes += len(key.Value)
		w.steps = append(w.steps, key.Value)
		if _, twice := object[key.Value]; twice {
			return nil, w.refuse("stands twice", "remove one of them", key.Line)
		}
		v, err := w.value(f.value)
		if err != nil {
			return nil, err
		}
		object[key.Value] = v
	}
	w.steps = w.steps[:at]
	return object, nil
}

// mergedOnce refuses a group with two merge keys: one of them can list everything.
func (w *walker) mergedOnce(n *yaml.Node) error {
	found := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		if merges(resolve(n.Content[i])) {
			if found {
				w.steps = append(w.steps, "<<")
				return w.refuse("stands twice", "write one, with a list: <<: [*first, *second]", n.Content[i].Line)
			}
			found = true
		}
	}
	return nil
}

// lineOf finds the line of a field by its path, or of the nearest group or list
// around it that the document has; 0 when it has neither.
func (d *document) lineOf(field string) int {
	line, _ := find(d.yaml, field, false)
	return line
}

// find returns the line of what lies deepest on the path below n, and how many
// bytes of the path lead there. below tells that n is not the root, whose line
// says nothing.
func find(n *yaml.Node, path string, below bool) (line, deep int) {
	if below {
		line = n.Line
	}
	n = resolve(n)
	if path == "" || n.Kind != yaml.MappingNode && n.Kind != yaml.SequenceNode {
		return line, 0
	}
	try := func(name string, child *yaml.Node) {
		prefix := name
		if below {
			prefix = schema.Join("-", name)[1:]
		}
		rest, ok := strings.CutPrefix(path, prefix)
		if !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
			return
		}
		if l, d := find(child, rest, true); len(prefix)+d > deep {
			line, deep = l, len(prefix)+d
		}
	}
	if n.Kind == yaml.SequenceNode {
		number, _, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(n.Content) {
			try(number, n.Content[i])
		}
		return line, deep
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		if !merges(key) {
			try(key.Value, n.Content[i+1])
			continue
		}
		for _, group := range merged(n.Content[i+1]) {
			if l, d := find(group, path, below); d > deep {
				line, deep = l, d
			}
		}
	}
	return line, deep
}

func (w *walker) scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return nil, w.refuse("is not true or false", "", n.Line)
		}
		return b, nil
	case "!!int", "!!float":
		return w.number(n)
	case "!!str", "!!timestamp":
		if strings.ContainsRune(n.Value, 0) {
			return nil, w.refuse("contains a NUL character", "remove it", n.Line)
		}
		return n.Value, nil
	default:
		return nil, w.refuse(fmt.Sprintf("has the type %s, which a template cannot hold", clip(n.ShortTag())),
			"write text, a number, true or false", n.Line)
	}
}

// number keeps whole numbers whole: an int64 when it fits, else a float64 that is never NaN.
func (w *walker) number(n *yaml.Node) (any, error) {
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, w.refuse(fmt.Sprintf("%q is not a number", clip(n.Value)), "", n.Line)
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
			return nil, w.refuse(fmt.Sprintf("%s is not a number that can be used", clip(n.Value)), "write a finite number",
				n.Line)
		}
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v), nil
		}
		return v, nil
	default:
		return nil, w.refuse(fmt.Sprintf("%q is not a number", clip(n.Value)), "", n.Line)
	}
}

// clip shortens a text of the document for an error.
func clip(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
