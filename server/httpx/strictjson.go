// This part reads the body of a request before anybody else does: it holds one JSON object
// that means the same to every reader, and costs about as much as it weighs.

package httpx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What a body may hold. The limits keep what one request costs near its size: each
// value is looked at a few times, and each name may stand in the path of an error.
const (
	maxDepth  = 64
	maxValues = 50_000
	maxName   = 512 // bytes of one member's name
	maxShown  = 300 // bytes of a path in an error
)

// Check tells whether the text is one JSON object that means the same to
// every reader: UTF-8 without NUL, no key twice, numbers that a float64 can hold.
// It returns nil, a 400 for what is not JSON, or a 422 that names the field.
func Check(text []byte) *Problem {
	if !utf8.Valid(text) {
		return malformed("The body is not UTF-8 text.")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	check := checker{dec: dec}
	if err := check.value(); err != nil {
		var p *Problem
		if errors.As(err, &p) {
			return p
		}
		return malformed(fmt.Sprintf("The body is not JSON: %s.", position(text, dec.InputOffset(), err)))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return malformed("The body has more after its JSON object.")
	}
	return nil
}

func malformed(detail string) *Problem {
	return New(http.StatusBadRequest, CodeMalformed, detail, "Send one JSON object.")
}

func position(text []byte, offset int64, err error) string {
	var syntax *json.SyntaxError
	what := "it ends too early"
	if errors.As(err, &syntax) && !strings.Contains(syntax.Error(), "unexpected end") {
		what = syntax.Error()
		if syntax.Offset > 0 && syntax.Offset <= int64(len(text)) {
			offset = syntax.Offset
		}
	}
	before := text[:min(int(offset), len(text))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	return what + " in line " + strconv.Itoa(line) + ", column " +
		strconv.Itoa(len(before)-bytes.LastIndexByte(before, '\n'))
}

// checker reads a document. It keeps the steps to where it is and joins them for an
// error only: a path for each value would cost the square of the body's size.
type checker struct {
	dec    *json.Decoder
	steps  []step
	values int
}

// step is one level of a path: a member's name, or the index of an element.
type step struct {
	name  string
	index int // -1 for a member
}

func (c *checker) refuse(message, hint string) error {
	return Field(orBody(c.path()), message, hint)
}

func (c *checker) path() string {
	var b strings.Builder
	for _, s := range c.steps {
		switch {
		case s.index >= 0:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case b.Len() > 0:
			b.WriteString("." + s.name)
		default:
			b.WriteString(s.name)
		}
		if b.Len() > maxShown {
			return strings.ToValidUTF8(b.String()[:maxShown], "") + "…"
		}
	}
	return b.String()
}

func (c *checker) value() error {
	if c.values++; c.values > maxValues {
		c.steps = nil
		return c.refuse(fmt.Sprintf("holds more than %d values", maxValues), "send less at once")
	}
	if len(c.steps) > maxDepth {
		return c.refuse("is nested too deeply", "")
	}
	token, err := c.dec.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			return c.refuse("contains a NUL character", "remove it")
		}
	case json.Number:
		if _, err := v.Float64(); err != nil {
			return c.refuse("is a number beyond all bounds", "")
		}
	case json.Delim:
		if v == '{' {
			err = c.object()
		} else {
			err = c.array()
		}
		if err != nil {
			return err
		}
		_, err = c.dec.Token()
		return err
	}
	return nil
}

func (c *checker) array() error {
	at := len(c.steps)
	c.steps = append(c.steps, step{})
	for i := 0; c.dec.More(); i++ {
		c.steps[at].index = i
		if err := c.value(); err != nil {
			return err
		}
	}
	c.steps = c.steps[:at]
	return nil
}

func (c *checker) object() error {
	at := len(c.steps)
	seen := map[string]struct{}{}
	for c.dec.More() {
		token, err := c.dec.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		switch {
		case strings.ContainsRune(key, 0):
			return c.refuse("has a name with a NUL character", "remove it")
		case len(key) > maxName:
			return c.refuse(fmt.Sprintf("has a name of %d bytes; at most %d are possible", len(key), maxName), "shorten it")
		}
		c.steps = append(c.steps[:at], step{name: key, index: -1})
		if _, twice := seen[key]; twice {
			return c.refuse("is given twice", "keep one")
		}
		seen[key] = struct{}{}
		if err := c.value(); err != nil {
			return err
		}
	}
	c.steps = c.steps[:at]
	return nil
}

func orBody(path string) string {
	if path == "" {
		return "body"
	}
	return path
}
