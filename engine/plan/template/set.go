package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/loadstone-db/loadstone/engine"
)

// Assignment is one field to replace: its path and its value, which is YAML.
type Assignment struct{ Path, Value string }

// SetAll returns the document with fields replaced, one after another: "workload.target_qps", "500".
// Path steps are separated by dots, list entries are named by their index. A
// value is YAML, so numbers, lists and groups can be given; other fields and
// comments stay as they are; aliases are written out, so that no other field changes with it. Whether the result is a
// valid template is for Parse to say. However many fields there are, the document is read and written once.
func SetAll(source []byte, fields []Assignment) ([]byte, error) {
	doc, err := parse(source)
	if err != nil {
		return nil, err
	}
	if _, err := build(doc); err != nil {
		return nil, err
	}
	if shares(doc.Content[0]) {
		doc.Content[0] = flatten(doc.Content[0])
	}
	for _, f := range fields {
		if err := assign(doc.Content[0], f.Path, f.Value); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("writing the template: %w", err)
	}
	return out.Bytes(), nil
}

// ParseSet is Parse of a document with fields replaced, whose lines it does not name.
func ParseSet(source []byte, fields []Assignment) (engine.Scenario, error) {
	if len(fields) == 0 {
		return Parse(source)
	}
	source, err := SetAll(source, fields)
	if err != nil {
		return engine.Scenario{}, err
	}
	s, err := Parse(source)
	return s, WithoutLines(err)
}

// WithoutLines takes the lines out of what Parse says of a document that SetAll wrote: they are those of a text that
// nobody has seen. The path of a field is what its reader gave.
func WithoutLines(err error) error {
	var e *engine.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	other := *e
	other.Fields = slices.Clone(e.Fields)
	for i := range other.Fields {
		other.Fields[i].Line = 0
	}
	return &other
}

// assign replaces the field at path below node.
func assign(node *yaml.Node, path, value string) error {
	var replacement yaml.Node
	if err := yaml.Unmarshal([]byte(value), &replacement); err != nil || len(replacement.Content) == 0 {
		if strings.TrimSpace(value) != "" && err == nil {
			err = fmt.Errorf("no value")
		}
		if err != nil {
			return invalid(path, fmt.Sprintf("%q is not a value", clip(value)),
				"write text, a number, true or false, or YAML in quotes", 0)
		}
		replacement.Content = []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: ""}}
	}
	steps := strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(path), ".")
	node = resolve(node)
	for i, step := range steps {
		if step == "" {
			return invalid(path, "is not the path of a field", "for example workload.concurrent_connections", 0)
		}
		next, err := descend(node, step, steps[:i+1])
		if err != nil {
			return err
		}
		if i == len(steps)-1 {
			comment := next.LineComment
			*next = *replacement.Content[0]
			next.LineComment = comment
			break
		}
		if next.Kind == 0 || next.ShortTag() == "!!null" {
			*next = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		}
		node = resolve(next)
	}
	return nil
}

// descend returns the node of one step, which it adds to a group that lacks it.
func descend(node *yaml.Node, step string, path []string) (*yaml.Node, error) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1], nil
			}
		}
		value := &yaml.Node{}
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: step}, value)
		return value, nil
	case yaml.SequenceNode:
		index, err := strconv.Atoi(step)
		if err != nil || index < 0 || index > len(node.Content) {
			return nil, invalid(strings.Join(path, "."), fmt.Sprintf("the list has the entries 0 to %d", len(node.Content)-1),
				"", node.Line)
		}
		if index == len(node.Content) {
			node.Content = append(node.Content, &yaml.Node{})
		}
		return node.Content[index], nil
	default:
		return nil, invalid(strings.Join(path, "."), "lies below a field that is not a group", "check the path", node.Line)
	}
}

// YAML writes a scenario as a document that Parse reads back. Fields that hold
// their default are kept, so the reader sees everything that applies.
func YAML(s engine.Scenario) ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("writing the template as JSON: %w", err)
	}
	// Decoding JSON as YAML keeps the order of the fields.
	var node yaml.Node
	if err := yaml.Unmarshal(fromJSON(text), &node); err != nil {
		return nil, fmt.Errorf("reading the template's JSON: %w", err)
	}
	unquote(&node)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return nil, fmt.Errorf("writing the template as YAML: %w", err)
	}
	return out.Bytes(), nil
}

// unquote drops JSON's flow style and quotes; the encoder quotes where it must.
func unquote(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		unquote(c)
	}
}
