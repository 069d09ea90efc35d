package replay

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// records are the lines of a text that holds operations. The fields are the time, the statement, and a text for each
// value, \N for NULL.
type records interface {
	// next returns a line, counted from 1, and its fields, which are valid until the next call; io.EOF at the end. Any
	// other error is what is wrong with the line.
	next() (line int, fields []string, err error)
	// shape says what a line looks like.
	shape() string
}

const byteOrderMark = "\ufeff"

// isJSONLines tells the two kinds of text apart: no line of CSV begins with a brace, as it begins with a time.
func isJSONLines(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(text, byteOrderMark), " \t\r\n"), "{")
}

type csvRecords struct{ lines *csv.Reader }

func newCSVRecords(text string) csvRecords {
	r := csv.NewReader(&valueKeeper{text: strings.TrimPrefix(text, byteOrderMark)})
	r.FieldsPerRecord = -1
	r.ReuseRecord = true
	return csvRecords{r}
}

// valueKeeper reads a text of CSV such that values keep their line ends: encoding/csv makes \n of \r\n inside of quotes
// too, and takes one \r away of two.
type valueKeeper struct {
	text   string
	quoted bool
	// owed: a second \r is to follow.
	owed bool
}

// Read implements io.Reader.
func (k *valueKeeper) Read(b []byte) (n int, err error) {
	for ; n < len(b); n++ {
		switch {
		case k.owed:
			b[n], k.owed = '\r', false
			continue
		case k.text == "" && n == 0:
			return 0, io.EOF
		case k.text == "":
			return n, nil
		}
		c := k.text[0]
		k.quoted = k.quoted != (c == '"')
		k.owed = k.quoted && strings.HasPrefix(k.text, "\r\n")
		b[n], k.text = c, k.text[1:]
	}
	return n, nil
}

func (r csvRecords) next() (int, []string, error) {
	fields, err := r.lines.Read()
	var parse *csv.ParseError
	switch {
	case errors.As(err, &parse):
		return parse.StartLine, nil, parse.Err
	case err != nil:
		return 0, nil, err
	}
	line, _ := r.lines.FieldPos(0)
	return line, fields, nil
}

func (csvRecords) shape() string {
	return "lines are: at_ms, statement, values in the order of its binds"
}

// jsonRecords are JSON lines: an object to a line, empty lines between them passed over.
type jsonRecords struct {
	rest   string
	line   int
	fields []string
}

func (r *jsonRecords) next() (int, []string, error) {
	for r.rest != "" {
		var text string
		text, r.rest, _ = strings.Cut(r.rest, "\n")
		r.line++
		if r.line == 1 {
			text = strings.TrimPrefix(text, byteOrderMark)
		}
		if text = strings.TrimSpace(text); text != "" {
			return r.line, r.fields, r.read(text)
		}
	}
	return r.line, nil, io.EOF
}

func (r *jsonRecords) read(text string) error {
	var o struct {
		AtMs      *json.Number      `json:"at_ms"`
		Statement *string           `json:"statement"`
		Values    []json.RawMessage `json:"values"`
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return inWords(err)
	}
	if d.InputOffset() < int64(len(text)) {
		return errors.New("more than one object is in the line")
	}
	switch {
	case o.AtMs == nil:
		return errors.New("at_ms is missing")
	case o.Statement == nil:
		return errors.New("statement is missing")
	}
	r.fields = append(r.fields[:0], o.AtMs.String(), *o.Statement)
	for i, raw := range o.Values {
		v, err := plainValue(raw)
		if err != nil {
			return fmt.Errorf("value %d %w", i+1, err)
		}
		r.fields = append(r.fields, v)
	}
	return nil
}

func (*jsonRecords) shape() string {
	return `lines are: {"at_ms": 0, "statement": "ID", "values": [in the order of its binds]}`
}

// plainValue is a value of JSON as CSV writes it: numbers keep their digits.
func plainValue(raw json.RawMessage) (string, error) {
	raw = bytes.TrimSpace(raw)
	switch raw[0] {
	case 'n':
		return `\N`, nil
	case '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err
	case '{', '[':
		return "", errors.New("is no single value; write a document as text")
	default:
		return string(raw), nil
	}
}

// inWords says what is wrong with a line of JSON without the names of this program's types.
func inWords(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%s cannot be a JSON %s", kind.Field, kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("a JSON %s is no line", kind.Value)
	case strings.HasPrefix(err.Error(), "json: invalid number"):
		return errors.New("at_ms is no number")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON ends in the middle")
	default:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
}
