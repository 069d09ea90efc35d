package jsonx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/engine/base/textsafe"
)

// level is an object or a list that a document is in.
type level struct {
	names map[string]bool // of an object; nil of a list
	name  string          // the member that is read
	value bool            // its name was read, and its value comes
	n     int             // how many elements of a list were begun
}

// CheckDuplicateKeys refuses a document of which an object has a member twice, by its name and place: readers differ in
// which of them counts, and so may who looks at a document and the program that reads it. Go takes names that differ in
// case for the same; below the members of the document that are in named they are others. What is no JSON is told by
// who reads it.
func CheckDuplicateKeys(doc []byte, named ...string) error {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var open []*level
	for {
		token, err := dec.Token()
		if err != nil {
			return nil //nolint:nilerr // the end, or no JSON
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			open = open[:len(open)-1]
			continue
		}
		if len(open) > 0 {
			top := open[len(open)-1]
			switch {
			case top.names == nil:
				top.n++
			case top.value:
				top.value = false
			default:
				name, _ := token.(string)
				key := name
				if len(open) == 1 || !slices.Contains(named, open[0].name) {
					key = strings.ToLower(name)
				}
				if top.names[key] {
					return fmt.Errorf("the member %q%s is there twice", display(name), location(open[:len(open)-1]))
				}
				top.names[key], top.name, top.value = true, name, true
				continue
			}
		}
		switch token {
		case json.Delim('{'):
			open = append(open, &level{names: map[string]bool{}})
		case json.Delim('['):
			open = append(open, &level{})
		}
	}
}

func display(name string) string { return textsafe.Shorten(textsafe.OneLine(name), 80) }

// location is where a document is read, for a person; nothing at its top.
func location(open []*level) string {
	var b strings.Builder
	for _, l := range open[:min(len(open), 20)] {
		if l.names == nil {
			b.WriteString("[" + strconv.Itoa(l.n-1) + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(display(l.name))
	}
	if b.Len() == 0 {
		return ""
	}
	return " of " + b.String()
}
