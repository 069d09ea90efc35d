package cost

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/loadstone-db/loadstone/engine"
)

const (
	// maxList bounds a price list, in bytes.
	maxList = 64 << 10
	// maxFields bounds the fields of a list with every alias written out.
	maxFields = 20_000
	// maxErrors is how many wrong fields one error names.
	maxErrors = 20
	// maxFigure bounds every figure of a price list.
	maxFigure = 1e9
)

// hint is what helps with any price list that is wrong.
const hint = "compare it with what loadstone prices prints"

// Parse reads a price list and checks it. Its error is an *engine.Error that names
// every wrong field and its line.
func Parse(text []byte) (Prices, error) {
	var r reader
	if len(text) > maxList {
		return Prices{}, r.refuse("(document)", "is longer than 64 kB", 0).err()
	}
	var doc, second yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return Prices{}, r.refuse("(document)", "is empty", 0).err()
	} else if err != nil {
		return Prices{}, r.syntax(err).err()
	}
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		return Prices{}, r.refuse("(document)", "holds more than one YAML document", second.Line).err()
	}
	var p Prices
	if len(doc.Content) > 0 {
		r.readDocument(doc.Content[0], &p)
	}
	return p, r.err()
}

// reader collects what is wrong with a price list.
type reader struct {
	found  []engine.FieldError
	visits int
}

func (r *reader) refuse(field, message string, line int) *reader {
	if len(r.found) < maxErrors {
		r.found = append(r.found, engine.FieldError{Field: field, Message: message, Line: line})
	}
	return r
}

// err is nil where nothing is wrong.
func (r *reader) err() error {
	if len(r.found) == 0 {
		return nil
	}
	return &engine.Error{Code: engine.CodeInvalid, Message: "The price list cannot be used.", Hint: hint, Fields: r.found}
}

// syntax takes the line out of "yaml: line 3: mapping values are not allowed".
func (r *reader) syntax(err error) *reader {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, what, ok := strings.Cut(rest, ": "); ok {
			if line, e := strconv.Atoi(number); e == nil {
				return r.refuse("(line "+number+")", "is not YAML: "+what, line)
			}
		}
	}
	return r.refuse("(document)", "is not YAML: "+text, 0)
}

// entry is a field of a group: its name, where it stands, and its value.
type entry struct {
	name  string
	line  int
	value *yaml.Node
}

// group lists the fields of n, those that it merges last; each name stands once.
func (r *reader) group(n *yaml.Node, path string) []entry {
	line := n.Line
	if n = resolve(n); n.Kind != yaml.MappingNode {
		r.refuse(named(path), "is not a group of fields", line)
		return nil
	}
	var own, merged []entry
	known := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), n.Content[i+1]
		if r.visits++; r.visits > maxFields {
			// What else is wrong may be as much.
			r.found = []engine.FieldError{
				{Field: named(path), Message: fmt.Sprintf("the list has more than %d fields", maxFields), Line: line}}
			return nil
		}
		switch {
		case key.ShortTag() == "!!merge":
			groups := []*yaml.Node{value}
			if list := resolve(value); list.Kind == yaml.SequenceNode {
				groups = list.Content
			}
			for _, g := range groups {
				if resolve(g) == n {
					r.refuse(named(path), "merges itself", g.Line)
					continue
				}
				merged = append(merged, r.group(g, path)...)
			}
		case key.Kind != yaml.ScalarNode:
			r.refuse(named(path), "has a field name that is not text", key.Line)
		case known[key.Value]:
			r.refuse(join(path, key.Value), "stands twice", key.Line)
		default:
			known[key.Value] = true
			own = append(own, entry{key.Value, key.Line, value})
		}
	}
	for _, e := range merged {
		if !known[e.name] {
			known[e.name] = true
			own = append(own, e)
		}
	}
	return own
}

func resolve(n *yaml.Node) *yaml.Node {
	for hops := 0; n.Kind == yaml.AliasNode && n.Alias != nil && hops < 100; hops++ {
		n = n.Alias
	}
	return n
}

// readDocument reads the whole document.
func (r *reader) readDocument(n *yaml.Node, p *Prices) {
	given := map[string]bool{}
	for _, e := range r.group(n, "") {
		given[e.name] = true
		switch e.name {
		case "as_of":
			p.AsOf = r.text(e, e.name)
		case "source":
			p.Source = r.text(e, e.name)
		case "currency":
			if p.Currency = r.text(e, e.name); p.Currency == "" {
				r.refuse(e.name, "is empty; USD for instance", e.line)
			}
		case "credit_price":
			if p.CreditPrice = r.number(e, e.name); p.CreditPrice == 0 {
				r.refuse(e.name, "must be above 0", e.line)
			}
		case "warehouses":
			r.warehouses(e, p)
		case "hybrid_requests":
			for _, h := range r.group(e.value, e.name) {
				switch h.name {
				case "credits_per_million":
					p.Hybrid.CreditsPerMillion = r.number(h, join(e.name, h.name))
				case "adapters":
					p.Hybrid.Adapters = r.names(h, join(e.name, h.name))
				default:
					r.unknown(h, e.name, "credits_per_million and adapters")
				}
			}
		default:
			r.unknown(e, "", "as_of, source, currency, credit_price, warehouses and hybrid_requests")
		}
	}
	if p.Hybrid.Adapters == nil {
		p.Hybrid.Adapters = Default().Hybrid.Adapters
	}
	for _, name := range []string{"currency", "credit_price", "warehouses"} {
		if !given[name] {
			r.refuse(name, "is missing", 0)
		}
	}
}

// names reads a list of names.
func (r *reader) names(e entry, path string) []string {
	if e.value.Kind != yaml.SequenceNode || len(e.value.Content) == 0 {
		r.refuse(path, "is not a list of names", e.line)
		return nil
	}
	var out []string
	for _, n := range e.value.Content {
		out = append(out, resolve(n).Value)
	}
	return out
}

func (r *reader) unknown(e entry, path, known string) {
	r.refuse(join(path, e.name), "is not a field of a price list; here are possible: "+known, e.line)
}

// sizes of a warehouse, as plain writes them.
var sizes = regexp.MustCompile(`^(XSMALL|SMALL|MEDIUM|LARGE|[1-9]?XLARGE)$`)

func (r *reader) warehouses(list entry, p *Prices) {
	p.Warehouses = map[string]Warehouse{}
	spelled := map[string]string{}
	for _, kind := range r.group(list.value, list.name) {
		at := join(list.name, kind.name)
		r.rejectDuplicate(spelled, kind, at)
		w := Warehouse{CreditsPerHour: map[string]float64{}}
		for _, e := range r.group(kind.value, at) {
			switch e.name {
			case "minimum_seconds":
				w.MinimumSeconds = r.number(e, join(at, e.name))
			case "credits_per_hour":
				known := map[string]string{}
				for _, size := range r.group(e.value, join(at, e.name)) {
					field := join(at, e.name, size.name)
					if !sizes.MatchString(normalizeName(size.name)) {
						r.refuse(field, "is not the size of a warehouse; X-Small, Small, Medium, Large, X-Large, 2X-Large … are",
							size.line)
					}
					r.rejectDuplicate(known, size, field)
					w.CreditsPerHour[size.name] = r.number(size, field)
				}
			default:
				r.unknown(e, at, "minimum_seconds and credits_per_hour")
			}
		}
		if len(w.CreditsPerHour) == 0 {
			r.refuse(join(at, "credits_per_hour"), "is missing", kind.line)
		}
		p.Warehouses[kind.name] = w
	}
	if len(p.Warehouses) == 0 {
		r.refuse(list.name, "is empty", list.line)
	}
}

// rejectDuplicate refuses two spellings of one name: which of them counted would be a matter of chance.
func (r *reader) rejectDuplicate(known map[string]string, e entry, field string) {
	if first, twice := known[normalizeName(e.name)]; twice {
		r.refuse(field, "stands twice: "+first+" is the same", e.line)
	}
	known[normalizeName(e.name)] = e.name
}

func (r *reader) text(e entry, field string) string {
	n := resolve(e.value)
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return ""
	case n.Kind != yaml.ScalarNode:
		r.refuse(field, "is "+shown(n)+", which should be text", e.line)
	}
	return n.Value
}

// number reads a figure of at least 0.
func (r *reader) number(e entry, field string) float64 {
	n := resolve(e.value)
	var f float64
	if tag := n.ShortTag(); n.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" || n.Decode(&f) != nil {
		r.refuse(field, "is "+shown(n)+", which should be a number", e.line)
		return 1 // no number at all is not a wrong one besides
	}
	if !(f >= 0 && f <= maxFigure) { // NaN is neither
		r.refuse(field, fmt.Sprintf("is %s, which should be a number from 0 to %.0f", shown(n), float64(maxFigure)), e.line)
		return 1
	}
	return f
}

// shown is a value for an error.
func shown(n *yaml.Node) string {
	const longest = 40
	switch {
	case n.Kind == yaml.MappingNode:
		return "a group of fields"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!null":
		return "empty"
	case len(n.Value) > longest:
		return strconv.Quote(strings.ToValidUTF8(n.Value[:longest], "") + "…")
	case n.ShortTag() == "!!str":
		return strconv.Quote(n.Value)
	}
	return n.Value
}

// named is a path for an error, where the whole document has one too.
func named(path string) string {
	if path == "" {
		return "(document)"
	}
	return path
}

func join(steps ...string) string {
	if steps[0] == "" {
		steps = steps[1:]
	}
	return strings.Join(steps, ".")
}
