package template

import (
	"gopkg.in/yaml.v3"
)

// field is a name and its value in a group.
type field struct{ key, value *yaml.Node }

// merges reports whether a key is <<, YAML's merge key: its value is a group, or a list
// of groups, whose fields apply where the group around it has none of its own.
func merges(key *yaml.Node) bool { return key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" }

// fieldsOf lists the fields of a group as they apply: its own first, then those
// that it merges, of which the first of a name counts. visit is called for each field that is
// looked at and ends the list with its error; wrong is the value of a merge key that is no group.
func fieldsOf(n *yaml.Node, visit func() error) (fields []field, wrong *yaml.Node, err error) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if err := visit(); err != nil {
			return nil, nil, err
		}
		if key := resolve(n.Content[i]); !merges(key) {
			fields = append(fields, field{key, n.Content[i+1]})
		}
	}
	if len(fields) == len(n.Content)/2 {
		return fields, nil, nil
	}
	known := make(map[string]bool, len(fields))
	for _, f := range fields {
		known[f.key.Value] = true
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !merges(resolve(n.Content[i])) {
			continue
		}
		for _, source := range merged(n.Content[i+1]) {
			group := resolve(source)
			if group.Kind != yaml.MappingNode {
				return nil, source, nil
			}
			more, wrong, err := fieldsOf(group, visit)
			if wrong != nil || err != nil {
				return nil, wrong, err
			}
			for _, f := range more {
				if !known[f.key.Value] {
					known[f.key.Value] = true
					fields = append(fields, f)
				}
			}
		}
	}
	return fields, nil, nil
}

// merged are the groups that the value of a merge key names.
func merged(value *yaml.Node) []*yaml.Node {
	if list := resolve(value); list.Kind == yaml.SequenceNode {
		return list.Content
	}
	return []*yaml.Node{value}
}

// flatten returns the tree with every alias and every merge key written out, so
// that a change of one field changes no other. The tree was read before, which bounds it.
func flatten(n *yaml.Node) *yaml.Node {
	own := *resolve(n)
	own.Anchor = ""
	switch own.Kind {
	case yaml.MappingNode:
		fields, _, _ := fieldsOf(&own, func() error { return nil })
		own.Content = make([]*yaml.Node, 0, 2*len(fields))
		for _, f := range fields {
			own.Content = append(own.Content, flatten(f.key), flatten(f.value))
		}
	case yaml.SequenceNode:
		items := own.Content
		own.Content = make([]*yaml.Node, 0, len(items))
		for _, item := range items {
			own.Content = append(own.Content, flatten(item))
		}
	}
	return &own
}

// shares reports whether the tree has an alias, or a merge key, whose value may be written in place.
func shares(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode || merges(n) {
		return true
	}
	for _, c := range n.Content {
		if shares(c) {
			return true
		}
	}
	return false
}
