package template

import (
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	streamrules "github.com/loadstone-db/loadstone/engine/stream/rules"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// checkRules judges the rules. The place of an error in a statement is that within the statement; see place.
func checkRules(rules []engine.Rule) (fields []engine.FieldError) {
	for i, r := range rules {
		path := fmt.Sprintf("rules[%d]", i)
		for _, other := range rules[:i] {
			if sql.SameName(other.Name, r.Name) {
				fields = append(fields, engine.FieldError{Field: path + ".name", Message: "another rule has this name",
					Hint: "names differ by more than case"})
				break
			}
		}
		field, err := streamrules.Check(r)
		if err == nil {
			continue
		}
		f := engine.FieldError{Field: path + "." + field, Message: err.Error()}
		var wrong *sql.Error
		var known *engine.Error
		switch {
		case errors.As(err, &wrong):
			f.Line, f.Column, f.Hint = wrong.Line, wrong.Column, wrong.Hint
			f.Message = string(wrong.Kind) + ": " + wrong.Message
			if wrong.Line > 0 {
				f.Message = fmt.Sprintf("%s: line %d, column %d: %s", wrong.Kind, wrong.Line, wrong.Column, wrong.Message)
			}
			if wrong.Excerpt != "" {
				f.Excerpt = wrong.Excerpt + "\n" + wrong.Caret + "^"
			}
		case errors.As(err, &known) && len(known.Fields) > 0:
			f.Message, f.Hint = known.Fields[0].Message, known.Fields[0].Hint
		}
		fields = append(fields, f)
	}
	return fields
}

// setLine puts a field at its line of the document, and what has a place within a text at that place, where the
// document has the text as it is: as a block of lines, or on one line.
func (d *document) setLine(f *engine.FieldError) {
	line, column := f.Line, f.Column
	f.Line, f.Column = d.lineOf(f.Field), 0
	if line == 0 {
		return
	}
	n := scalarAt(d.yaml, f.Field)
	if n == nil || n.Line > len(d.lines) {
		return
	}
	switch {
	case n.Style&yaml.LiteralStyle != 0:
		at := n.Line + line - 1 // the sign of the block stands on the line before the first one
		if at >= len(d.lines) {
			return
		}
		written, meant := d.lines[at], ""
		if all := strings.Split(n.Value, "\n"); line <= len(all) {
			meant = all[line-1]
		}
		indent, cut := strings.CutSuffix(strings.TrimSuffix(written, "\r"), meant)
		if cut && strings.Trim(indent, " ") == "" {
			f.Line, f.Column = at+1, len(indent)+column
		}
	case n.Style&yaml.FoldedStyle == 0 && line == 1:
		begin := n.Column // of the text, behind the quote where there is one
		if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			begin++
		}
		text, written := []rune(n.Value), []rune(d.lines[n.Line-1])
		before := string(text[:min(column-1, len(text))])
		if begin-1 <= len(written) && strings.HasPrefix(string(written[begin-1:]), before) {
			f.Line, f.Column = n.Line, begin+column-1
		}
	}
}

// scalarAt is the text of a field, nil where the document has none there.
func scalarAt(root *yaml.Node, field string) *yaml.Node {
	n := resolve(root)
	for part := range strings.SplitSeq(strings.NewReplacer("[", ".", "]", "").Replace(field), ".") {
		switch n.Kind {
		case yaml.MappingNode:
			var next *yaml.Node
			for i := 0; i+1 < len(n.Content); i += 2 {
				if resolve(n.Content[i]).Value == part {
					next = n.Content[i+1]
				}
			}
			if next == nil {
				return nil
			}
			n = resolve(next)
		case yaml.SequenceNode:
			i := 0
			if _, err := fmt.Sscanf(part, "%d", &i); err != nil || i < 0 || i >= len(n.Content) {
				return nil
			}
			n = resolve(n.Content[i])
		default:
			return nil
		}
	}
	if n.Kind != yaml.ScalarNode {
		return nil
	}
	return n
}

// maskURL is an address as it may be shown.
func maskURL(url string) string { return connector.Masked("SINK.URL", url) }

// MaskRules leaves of the addresses of rules what may be shown.
func MaskRules(s *engine.Scenario) {
	for i := range s.Rules {
		if r := &s.Rules[i]; r.URL != "" {
			r.URL, r.URLSealed = maskURL(r.URL), ""
		}
	}
}

// MaskRulesIn does the same in the text of a template, which is empty when it cannot be done for certain.
func MaskRulesIn(source string, rules []engine.Rule) string {
	hidden := false
	for _, r := range rules {
		if shown := maskURL(r.URL); source != "" && r.URL != "" && shown != r.URL {
			source, hidden = strings.ReplaceAll(source, r.URL, shown), true
		}
	}
	if !hidden {
		return source
	}
	again, err := Parse([]byte(source))
	if err != nil || len(again.Rules) != len(rules) {
		return ""
	}
	for _, r := range again.Rules {
		if r.URL != "" && r.URL != maskURL(r.URL) {
			return ""
		}
	}
	return source
}

// SealRules seals the addresses of rules. One that is hidden keeps that of the rule of earlier with the same name and
// address, which may be nil. The error is an *engine.Error.
func SealRules(s, earlier *engine.Scenario, seal func(plain string) string) error {
	for i := range s.Rules {
		r := &s.Rules[i]
		shown := maskURL(r.URL)
		switch {
		case r.URL == "" || r.URL == shown && r.URLSealed != "":
		case r.URL != shown:
			r.URL, r.URLSealed = shown, seal(r.URL)
		default:
			if r.URLSealed = earlierSealed(*r, earlier); r.URLSealed == "" {
				return maskedURLError(i)
			}
		}
	}
	return nil
}

// earlierSealed is the address of a rule whose address is hidden.
func earlierSealed(r engine.Rule, earlier *engine.Scenario) string {
	if earlier != nil {
		for _, was := range earlier.Rules {
			if sql.SameName(was.Name, r.Name) && was.URL == r.URL {
				return was.URLSealed
			}
		}
	}
	return ""
}

// UnmaskRules puts the addresses of stored where a document that others write has hidden ones. The error is an
// *engine.Error.
func UnmaskRules(s *engine.Scenario, stored engine.Scenario) error {
	for i := range s.Rules {
		r := &s.Rules[i]
		if r.URLSealed != "" {
			return engine.InvalidField(fmt.Sprintf("rules[%d].url_sealed", i), "cannot be given", "give the url")
		}
		if r.URL == "" || r.URL != maskURL(r.URL) {
			continue
		}
		if r.URLSealed = earlierSealed(*r, &stored); r.URLSealed == "" {
			return maskedURLError(i)
		}
	}
	return nil
}

func maskedURLError(i int) error {
	return engine.InvalidField(fmt.Sprintf("rules[%d].url", i), "the address is hidden, and it is not known which it was",
		"write the whole address")
}
