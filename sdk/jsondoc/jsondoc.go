// Package jsondoc reads and writes the JSON documents of the plugin contract.
//
// It exists for size: a Go guest with encoding/json is 1.4 MB larger than one
// with this package, and takes that much longer to compile. Integers keep all
// their 64 bits. Missing members read as zero values, so that a guest can walk
// a document without checking every step.
package jsondoc

import (
	"errors"
	"strconv"
	"unicode/utf8"
)

// Kind is the kind of a value.
type Kind uint8

// The kinds.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// Value is one JSON value. A nil *Value is null. Values are read-only and safe
// to share.
type Value struct {
	kind Kind
	// text is the string, the number as written, or "true".
	text string
	// items of an array; name, value, name, value … of an object.
	items []Value
}

const maxDepth = 64

// Parse reads one document. Duplicate members keep the last.
func Parse(b []byte) (*Value, error) {
	p := parser{s: string(b)}
	p.space()
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.i != len(p.s) {
		return nil, p.fail("unexpected text after the document")
	}
	return &v, nil
}

// Kind returns the kind; nil is Null.
func (v *Value) Kind() Kind {
	if v == nil {
		return Null
	}
	return v.kind
}

// IsNull reports whether the value is null or missing.
func (v *Value) IsNull() bool { return v.Kind() == Null }

// Get returns a member of an object, or nil.
func (v *Value) Get(name string) *Value {
	if v.Kind() != Object {
		return nil
	}
	for i := len(v.items) - 2; i >= 0; i -= 2 {
		if v.items[i].text == name {
			return &v.items[i+1]
		}
	}
	return nil
}

// Has reports whether an object has a member, even when it is null.
func (v *Value) Has(name string) bool { return v.Get(name) != nil }

// Names returns the member names of an object in their order.
func (v *Value) Names() []string {
	if v.Kind() != Object {
		return nil
	}
	names := make([]string, 0, len(v.items)/2)
	for i := 0; i < len(v.items); i += 2 {
		names = append(names, v.items[i].text)
	}
	return names
}

// Len is the number of items of an array or members of an object, else 0.
func (v *Value) Len() int {
	switch v.Kind() {
	case Array:
		return len(v.items)
	case Object:
		return len(v.items) / 2
	}
	return 0
}

// At returns item i of an array, or nil.
func (v *Value) At(i int) *Value {
	if v.Kind() != Array || i < 0 || i >= len(v.items) {
		return nil
	}
	return &v.items[i]
}

// Slice is the part of an array from one item to before another; it is empty of anything else.
func (v *Value) Slice(from, to int) *Value {
	part := &Value{kind: Array}
	if v.Kind() == Array && from >= 0 && from <= to && to <= len(v.items) {
		part.items = v.items[from:to]
	}
	return part
}

// Str returns a string's text, a number as written, "true" or "false"; else "".
func (v *Value) Str() string {
	switch v.Kind() {
	case String, Number, Bool:
		return v.text
	}
	return ""
}

// Bool returns whether the value is true.
func (v *Value) Bool() bool { return v.Kind() == Bool && v.text == "true" }

// Int returns an integer written as a number (2, 2.0, 2e3) or as a string of digits.
func (v *Value) Int() (int64, bool) {
	if k := v.Kind(); k != Number && k != String {
		return 0, false
	}
	if n, err := strconv.ParseInt(v.text, 10, 64); err == nil {
		return n, true
	}
	if v.kind == Number {
		f, err := strconv.ParseFloat(v.text, 64)
		if err == nil && f == float64(int64(f)) && f > -9e18 && f < 9e18 {
			return int64(f), true
		}
	}
	return 0, false
}

// Float returns a number.
func (v *Value) Float() (float64, bool) {
	if k := v.Kind(); k != Number && k != String {
		return 0, false
	}
	f, err := strconv.ParseFloat(v.text, 64)
	return f, err == nil
}

// Strings returns the texts of an array; a single string counts as one.
func (v *Value) Strings() []string {
	if v.Kind() == String {
		return []string{v.text}
	}
	var out []string
	for i := 0; i < v.Len(); i++ {
		out = append(out, v.At(i).Str())
	}
	return out
}

// Append writes the value as JSON.
func (v *Value) Append(b []byte) []byte {
	switch v.Kind() {
	case Bool, Number:
		return append(b, v.text...)
	case String:
		return appendString(b, v.text)
	case Array:
		b = append(b, '[')
		for i := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.items[i].Append(b)
		}
		return append(b, ']')
	case Object:
		b = append(b, '{')
		for i := 0; i < len(v.items); i += 2 {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, v.items[i].text)
			b = append(b, ':')
			b = v.items[i+1].Append(b)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

type parser struct {
	s string
	i int
}

func (p *parser) fail(what string) error {
	return errors.New("JSON: " + what + " at byte " + strconv.Itoa(p.i))
}

func (p *parser) space() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

func (p *parser) value(depth int) (Value, error) {
	if depth > maxDepth {
		return Value{}, p.fail("nested too deeply")
	}
	if p.i >= len(p.s) {
		return Value{}, p.fail("unexpected end")
	}
	switch c := p.s[p.i]; {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		s, err := p.str()
		return Value{kind: String, text: s}, err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	for _, word := range [...]struct {
		text string
		kind Kind
	}{{"true", Bool}, {"false", Bool}, {"null", Null}} {
		if len(p.s)-p.i >= len(word.text) && p.s[p.i:p.i+len(word.text)] == word.text {
			p.i += len(word.text)
			return Value{kind: word.kind, text: word.text}, nil
		}
	}
	return Value{}, p.fail("unexpected character")
}

func (p *parser) object(depth int) (Value, error) {
	v := Value{kind: Object}
	p.i++
	p.space()
	if p.i < len(p.s) && p.s[p.i] == '}' {
		p.i++
		return v, nil
	}
	for {
		p.space()
		if p.i >= len(p.s) || p.s[p.i] != '"' {
			return v, p.fail("expected a member name")
		}
		name, err := p.str()
		if err != nil {
			return v, err
		}
		p.space()
		if p.i >= len(p.s) || p.s[p.i] != ':' {
			return v, p.fail("expected ':'")
		}
		p.i++
		p.space()
		item, err := p.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.items = append(v.items, Value{kind: String, text: name}, item)
		more, err := p.more('}')
		if err != nil || !more {
			return v, err
		}
	}
}

func (p *parser) array(depth int) (Value, error) {
	v := Value{kind: Array}
	p.i++
	p.space()
	if p.i < len(p.s) && p.s[p.i] == ']' {
		p.i++
		return v, nil
	}
	for {
		p.space()
		item, err := p.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
		more, err := p.more(']')
		if err != nil || !more {
			return v, err
		}
	}
}

// more consumes a comma (true) or the closing character (false).
func (p *parser) more(closing byte) (bool, error) {
	p.space()
	if p.i >= len(p.s) {
		return false, p.fail("unexpected end")
	}
	c := p.s[p.i]
	if c != ',' && c != closing {
		return false, p.fail("expected ',' or '" + string(closing) + "'")
	}
	p.i++
	return c == ',', nil
}

func (p *parser) digits() int {
	n := 0
	for p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '9' {
		p.i++
		n++
	}
	return n
}

func (p *parser) number() (Value, error) {
	start := p.i
	if p.s[p.i] == '-' {
		p.i++
	}
	first := p.i
	n := p.digits()
	if n == 0 || n > 1 && p.s[first] == '0' {
		return Value{}, p.fail("bad number")
	}
	if p.i < len(p.s) && p.s[p.i] == '.' {
		p.i++
		if p.digits() == 0 {
			return Value{}, p.fail("bad number")
		}
	}
	if p.i < len(p.s) && (p.s[p.i] == 'e' || p.s[p.i] == 'E') {
		p.i++
		if p.i < len(p.s) && (p.s[p.i] == '+' || p.s[p.i] == '-') {
			p.i++
		}
		if p.digits() == 0 {
			return Value{}, p.fail("bad number")
		}
	}
	return Value{kind: Number, text: p.s[start:p.i]}, nil
}

func (p *parser) str() (string, error) {
	p.i++
	start := p.i
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c == '"':
			s := p.s[start:p.i]
			p.i++
			if !utf8.ValidString(s) {
				return "", p.fail("a string is not UTF-8")
			}
			return s, nil
		case c == '\\':
			return p.escaped(start)
		case c < 0x20:
			return "", p.fail("a control character in a string")
		}
		p.i++
	}
	return "", p.fail("an unfinished string")
}

// escaped reads the rest of a string whose first escape is at p.i.
func (p *parser) escaped(start int) (string, error) {
	b := []byte(p.s[start:p.i])
	for p.i < len(p.s) {
		c := p.s[p.i]
		p.i++
		switch {
		case c == '"':
			if !utf8.Valid(b) {
				return "", p.fail("a string is not UTF-8")
			}
			return string(b), nil
		case c < 0x20:
			return "", p.fail("a control character in a string")
		case c != '\\':
			b = append(b, c)
			continue
		}
		if p.i >= len(p.s) {
			break
		}
		c = p.s[p.i]
		p.i++
		switch c {
		case '"', '\\', '/':
			b = append(b, c)
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			r, ok := p.hex4()
			if !ok {
				return "", p.fail("bad \\u escape")
			}
			if r >= 0xD800 && r < 0xDC00 && p.i+1 < len(p.s) && p.s[p.i] == '\\' && p.s[p.i+1] == 'u' {
				save := p.i
				p.i += 2
				if low, ok := p.hex4(); ok && low >= 0xDC00 && low < 0xE000 {
					r = (r-0xD800)<<10 | (low - 0xDC00) + 0x10000
				} else {
					p.i = save
				}
			}
			b = utf8.AppendRune(b, r)
		default:
			return "", p.fail("bad escape")
		}
	}
	return "", p.fail("an unfinished string")
}

func (p *parser) hex4() (rune, bool) {
	if len(p.s)-p.i < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(p.s[p.i:p.i+4], 16, 16)
	if err != nil {
		return 0, false
	}
	p.i += 4
	return rune(n), true
}
