package jsonx

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
)

// What a document may hold that Check passes. The limits keep what it costs near its size: each
// value is looked at a few times, and each name may stand in the path of an error.
const (
	maxDepth  = 64
	maxValues = 50_000
	maxName   = 512 // bytes of one member's name
	maxShown  = 300 // bytes of a path in an error
)

// ErrMalformed is what Check says of a text that is not one JSON value; the message goes on from "the body".
var ErrMalformed = errors.New("is not JSON")

// Check tells whether the text is one JSON value that means the same to
// every reader: UTF-8 without NUL, no key twice, numbers that a float64 can hold.
// The error is ErrMalformed, or an engine.Error that names the field.
func Check(text []byte) error {
	if !utf8.Valid(text) {
		return malformed("is not UTF-8 text")
	}
	w := newWalker(text)
	w.limited = true
	if err := w.value(); err != nil {
		if e := (*engine.Error)(nil); errors.As(err, &e) {
			return e
		}
		return malformed("is not JSON: " + position(text, w.dec.InputOffset(), err))
	}
	if _, err := w.dec.Token(); !errors.Is(err, io.EOF) {
		return malformed("has more after its JSON object")
	}
	return nil
}

type malformed string

func (m malformed) Error() string        { return string(m) }
func (m malformed) Is(target error) bool { return target == ErrMalformed }

// CheckDuplicateKeys refuses a document of which an object has a member twice, by its name and place: readers differ in
// which of them counts, and so may who looks at a document and the program that reads it. Go takes names that differ in
// case for the same; below the members of the document that are in named they are others. What is no JSON is told by
// who reads it.
func CheckDuplicateKeys(doc []byte, named ...string) error {
	w := newWalker(doc)
	w.key = func(name string) string {
		if len(w.steps) > 1 && slices.Contains(named, w.steps[0].name) {
			return name
		}
		return strings.ToLower(name)
	}
	if err := w.value(); !errors.Is(err, errTwice) {
		return nil // the end, or no JSON
	}
	last := len(w.steps) - 1
	return fmt.Errorf("the member %q%s is there twice", display(w.steps[last].name), location(w.steps[:last]))
}

func display(name string) string { return textsafe.Shorten(textsafe.OneLine(name), 80) }

// location is where a document is read, for a person; nothing at its top.
func location(steps []step) string {
	var b strings.Builder
	for _, s := range steps[:min(len(steps), 20)] {
		if s.index >= 0 {
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(display(s.name))
	}
	if b.Len() == 0 {
		return ""
	}
	return " of " + b.String()
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

// errTwice is a member that an object has twice: the last step of the walker.
var errTwice = errors.New("is given twice")

// walker reads a document. It keeps the steps to where it is and joins them for an
// error only: a path for each value would cost the square of the body's size.
type walker struct {
	dec     *json.Decoder
	steps   []step
	values  int
	limited bool // whether the limits hold
	// key is the name by which a member counts as the same, where it is not its name.
	key func(name string) string
}

func newWalker(text []byte) *walker {
	w := &walker{dec: json.NewDecoder(bytes.NewReader(text)), key: func(name string) string { return name }}
	w.dec.UseNumber()
	return w
}

// step is one level of a path: a member's name, or the index of an element.
type step struct {
	name  string
	index int // -1 for a member
}

func (w *walker) refuse(message, hint string) error {
	return engine.InvalidField(cmp.Or(w.path(), "body"), message, hint)
}

func (w *walker) path() string {
	var b strings.Builder
	for _, s := range w.steps {
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

func (w *walker) value() error {
	if w.values++; w.limited && w.values > maxValues {
		w.steps = nil
		return w.refuse(fmt.Sprintf("holds more than %d values", maxValues), "send less at once")
	}
	if w.limited && len(w.steps) > maxDepth {
		return w.refuse("is nested too deeply", "")
	}
	token, err := w.dec.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case string:
		if w.limited && strings.ContainsRune(v, 0) {
			return w.refuse("contains a NUL character", "remove it")
		}
	case json.Number:
		if _, err := v.Float64(); w.limited && err != nil {
			return w.refuse("is a number beyond all bounds", "")
		}
	case json.Delim:
		if v == '{' {
			err = w.object()
		} else {
			err = w.array()
		}
		if err != nil {
			return err
		}
		_, err = w.dec.Token()
		return err
	}
	return nil
}

func (w *walker) array() error {
	at := len(w.steps)
	w.steps = append(w.steps, step{})
	for i := 0; w.dec.More(); i++ {
		w.steps[at].index = i
		if err := w.value(); err != nil {
			return err
		}
	}
	w.steps = w.steps[:at]
	return nil
}

func (w *walker) object() error {
	at := len(w.steps)
	seen := map[string]struct{}{}
	for w.dec.More() {
		token, err := w.dec.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		switch {
		case w.limited && strings.ContainsRune(name, 0):
			return w.refuse("has a name with a NUL character", "remove it")
		case w.limited && len(name) > maxName:
			return w.refuse(fmt.Sprintf("has a name of %d bytes; at most %d are possible", len(name), maxName), "shorten it")
		}
		w.steps = append(w.steps[:at], step{name: name, index: -1})
		key := w.key(name)
		if _, twice := seen[key]; twice && w.limited {
			return w.refuse(errTwice.Error(), "keep one")
		} else if twice {
			return errTwice
		}
		seen[key] = struct{}{}
		if err := w.value(); err != nil {
			return err
		}
	}
	w.steps = w.steps[:at]
	return nil
}
