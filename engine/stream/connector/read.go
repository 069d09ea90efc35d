package connector

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// maxLine is how long a row may be as text, in bytes.
const maxLine = 1 << 20

// fullBatch is how many bytes of rows a batch takes until it is passed on, though it has fewer rows than it may:
// several batches of each source are under way.
const fullBatch = 1 << 20

// lines divides what is read. A line that is too long is left out, without being kept, and told of as soon as it is. A
// delimiter inside of a quoted field of CSV ends no line.
type lines struct {
	r         io.Reader
	delimiter byte
	// field divides the fields of CSV; 0: there are no quotes.
	field byte
	// torn: who writes comes again after the end, which may have torn a line. What has no delimiter is none.
	torn       bool
	buffer     []byte
	begin, end int
	long       bool // inside of a line that is too long, and was told of
	failed     error
	// second is where the line behind the first delimiter begins of what next has returned, when it had several; else -1.
	second int
}

var errSkipped = errors.New("a line is too long, or ends within")

// next returns a line, or errSkipped for one that is left out, or what the reader returned. A line is valid until the
// next call.
func (l *lines) next() ([]byte, error) {
	if l.buffer == nil {
		l.buffer = make([]byte, 64<<10)
	}
	l.second = -1
	// first is how long the line is up to the first delimiter that is quoted, -1 without one.
	searched, first, quotes := l.begin, -1, quotes{field: l.field}
	for {
		if n := bytes.IndexByte(l.buffer[searched:l.end], l.delimiter); n >= 0 {
			until := searched + n
			open := !l.long && quotes.feed(l.buffer[searched:until])
			searched = until + 1
			if open {
				if first < 0 {
					first = until - l.begin
				}
				continue
			}
			line := l.buffer[l.begin:until]
			if first >= 0 {
				l.second = l.begin + first + 1
			}
			l.begin = searched
			if l.long {
				l.long = false
				continue
			}
			return line, nil
		}
		if l.long {
			l.begin = l.end
		} else {
			quotes.feed(l.buffer[searched:l.end])
		}
		searched = l.end
		if first >= 0 && (l.failed != nil || l.end-l.begin >= maxLine) { // its quotes have no end
			line := l.buffer[l.begin : l.begin+first]
			l.begin += first + 1
			return line, nil //nolint:nilerr // the error is that of a later call
		}
		if l.failed != nil {
			return l.rest()
		}
		if l.begin > 0 {
			copy(l.buffer, l.buffer[l.begin:l.end])
			l.begin, l.end, searched = 0, l.end-l.begin, searched-l.begin
		}
		if l.end == len(l.buffer) {
			if len(l.buffer) >= maxLine {
				if l.begin, l.end, searched = 0, 0, 0; !l.long {
					l.long = true
					return nil, errSkipped
				}
			} else {
				l.buffer = append(l.buffer, make([]byte, len(l.buffer))...)
			}
		}
		n, err := l.r.Read(l.buffer[l.end:])
		l.end += n
		if err != nil && !errors.Is(err, errNoData) {
			l.failed = err
		} else if err != nil && n == 0 {
			return nil, err
		}
	}
}

// quotes follows the fields of a line of CSV: a field that begins with a quote ends with one.
type quotes struct {
	field byte
	state quoteState
}

// quoteState is where in a field a line is.
type quoteState int

const (
	fieldBegins quoteState = iota
	unquoted
	inQuotes
	quoteSeen // in a quoted field: it ends it, or begins a doubled one
)

// feed takes the next part of a line, and reports whether a quoted field is open behind it.
func (q *quotes) feed(part []byte) (open bool) {
	switch {
	case q.field == 0 || len(part) == 0:
	case bytes.IndexByte(part, '"') < 0 && q.state == inQuotes:
	case bytes.IndexByte(part, '"') < 0:
		if q.state = unquoted; part[len(part)-1] == q.field {
			q.state = fieldBegins
		}
	default:
		for _, c := range part {
			q.next(c)
		}
	}
	return q.state == inQuotes
}

func (q *quotes) next(c byte) {
	switch {
	case q.state == inQuotes:
		if c == '"' {
			q.state = quoteSeen
		}
	case c == '"' && q.state != unquoted: // it begins a field, or is the second of two
		q.state = inQuotes
	case c == q.field:
		q.state = fieldBegins
	default:
		q.state = unquoted
	}
}

// rest is what stands behind the last delimiter, if anything.
func (l *lines) rest() ([]byte, error) {
	line := l.buffer[l.begin:l.end]
	l.begin = l.end
	if l.long {
		return nil, l.failed
	}
	switch {
	case len(line) == 0:
		return nil, l.failed
	case errors.Is(l.failed, io.EOF) && !l.torn:
		return line, nil
	}
	return nil, errSkipped // a connection was torn within it, or may have been
}

// errNoData is returned by readers that have nothing for the moment.
var errNoData = errors.New("nothing came")

// rows reads rows of a schema from lines.
type rows struct {
	lines
	columns   []column.Column
	json      bool
	divider   byte // of the fields of CSV
	skip      bool // the next line is a header
	batch     int
	width     int // bytes of a row's values that are of one size
	malformed atomic.Int64
	scratch   []byte
	// foldedNames are the names of the members of an object by what they are without case.
	foldedNames map[string]string
	// batchTimeout is how long a row waits for others to fill its batch, 0 for as long as it takes.
	batchTimeout time.Duration
}

func newRows(r io.Reader, columns []column.Column, c Config) *rows {
	width := 0
	for _, col := range columns {
		width += col.Type.Width()
	}
	s := &rows{width: width, lines: lines{r: r, delimiter: c.String("PARSER.TUPLE_DELIMITER")[0]},
		columns: columns, json: strings.EqualFold(c.String("PARSER.TYPE"), "JSON"),
		divider: c.String("PARSER.FIELD_DELIMITER")[0], skip: c.Bool("PARSER.HEADER"),
		batch: int(c.Int("SOURCE.BATCH_ROWS")), foldedNames: map[string]string{}}
	if !s.json {
		s.field = s.divider
	}
	return s
}

// Read fills a batch, or returns what there is once its first row has waited for long. It returns an error, io.EOF at
// the end, only when there are no rows.
func (s *rows) Read(b *column.Batch) error {
	b.Reset(s.columns)
	var first time.Time
	for size := 0; b.N < s.batch && size < fullBatch; {
		if s.batchTimeout > 0 && b.N > 0 && time.Since(first) >= s.batchTimeout {
			return nil
		}
		line, err := s.next()
		switch {
		case errors.Is(err, errSkipped):
			s.malformed.Add(1)
			continue
		case err != nil && b.N > 0:
			return nil
		case err != nil:
			return err
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if s.skip {
			s.skip = false
			continue
		}
		if len(bytes.TrimSpace(line)) == 0 && !s.isEmptyRow(line) {
			continue
		}
		var ok bool
		if s.json {
			ok = s.object(b, line)
		} else {
			ok = s.record(b, line)
		}
		if !ok {
			s.leaveOut(b)
			continue
		}
		size += len(line) + s.width
		if b.N++; b.N == 1 && s.batchTimeout > 0 {
			first = time.Now()
		}
	}
	return nil
}

// leaveOut counts a row that does not fit, and takes back what was read of it.
func (s *rows) leaveOut(b *column.Batch) {
	s.malformed.Add(1)
	if s.second >= 0 {
		s.begin = s.second // what stands behind a stray quote are rows of their own
	}
	for i := range b.Cols {
		b.Cols[i].Truncate(b.N)
	}
}

// isEmptyRow reports whether an empty line is a row: that of CSV whose only column is NULL.
func (s *rows) isEmptyRow(line []byte) bool {
	return len(line) == 0 && !s.json && len(s.columns) == 1 && !s.columns[0].NotNull
}

// Malformed is how many rows were left out, since they did not fit the schema.
func (s *rows) Malformed() int64 { return s.malformed.Load() }

// value appends a value as text; what is nothing is NULL.
func (s *rows) value(b *column.Batch, i int, v []byte, null bool) bool {
	if null {
		b.Cols[i].AppendNull()
		return !s.columns[i].NotNull
	}
	return b.Cols[i].AppendParsed(v) == nil
}

// record reads a line of CSV. A field without quotes that is empty is NULL.
func (s *rows) record(b *column.Batch, line []byte) bool {
	for i := range s.columns {
		field, rest, quoted, ok := s.cut(line)
		if !ok || (rest == nil) != (i == len(s.columns)-1) {
			return false
		}
		if !s.value(b, i, field, len(field) == 0 && !quoted) {
			return false
		}
		line = rest
	}
	return true
}

// cut returns the first field; rest is nil behind the last one.
func (s *rows) cut(line []byte) (field, rest []byte, quoted, ok bool) {
	if len(line) == 0 || line[0] != '"' {
		n := bytes.IndexByte(line, s.divider)
		if n < 0 {
			return line, nil, false, true
		}
		return line[:n], line[n+1:], false, true
	}
	s.scratch = s.scratch[:0]
	for i := 1; i < len(line); i++ {
		if line[i] != '"' {
			s.scratch = append(s.scratch, line[i])
			continue
		}
		switch {
		case i+1 == len(line):
			return s.scratch, nil, true, true
		case line[i+1] == '"':
			s.scratch = append(s.scratch, '"')
			i++
		case line[i+1] == s.divider:
			return s.scratch, line[i+2:], true, true
		default:
			return nil, nil, true, false
		}
	}
	return nil, nil, true, false
}

// memberFold is the member whose name is that of a column but for case. Of several it is the first in order, so that a
// row has the same values whenever it is read.
func (s *rows) memberFold(members map[string]json.RawMessage, name string) (json.RawMessage, bool) {
	if len(s.foldedNames) == 0 {
		for member := range members {
			folded := strings.ToLower(member)
			if first, there := s.foldedNames[folded]; !there || member < first {
				s.foldedNames[folded] = member
			}
		}
	}
	member, there := s.foldedNames[strings.ToLower(name)]
	return members[member], there
}

// object reads a line of JSON by the names of its members. Members that no column has are left out.
func (s *rows) object(b *column.Batch, line []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(line, &members) != nil || members == nil {
		return false
	}
	clear(s.foldedNames)
	for i, c := range s.columns {
		raw, ok := members[c.Name]
		if !ok {
			raw, ok = s.memberFold(members, c.Name)
		}
		null := !ok || string(raw) == "null"
		if !null && raw[0] == '"' {
			var text string
			if json.Unmarshal(raw, &text) != nil {
				return false
			}
			raw = json.RawMessage(text)
		} else if c.Type.Kind == column.Int {
			raw = wholeNumber(raw)
		}
		if !s.value(b, i, raw, null) {
			return false
		}
	}
	return true
}

// wholeNumber returns a number of JSON that is whole by its digits alone: 1.0 and 1e2 are the integers 1 and 100 there,
// as many programs write them. Others are left as they are, and are no value of an integer.
func wholeNumber(raw []byte) []byte {
	if !bytes.ContainsAny(raw, ".eE") {
		return raw
	}
	mantissa, exponent := raw, 0
	if i := bytes.IndexAny(raw, "eE"); i >= 0 {
		e, err := strconv.ParseInt(string(raw[i+1:]), 10, 16)
		if err != nil {
			return raw
		}
		mantissa, exponent = raw[:i], int(e)
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	digits := append(slices.Clone(whole), fraction...)
	// The point stands behind so many of the digits.
	point := len(whole) + exponent
	for len(digits) > max(point, 1) && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	switch missing := point - len(digits); {
	case len(bytes.Trim(digits, "-0")) == 0:
		return []byte("0")
	case missing < 0, missing > maxIntegerDigits:
		return raw
	default:
		return append(digits, bytes.Repeat([]byte("0"), missing)...)
	}
}

// maxIntegerDigits is how many digits the largest integer has.
const maxIntegerDigits = 19
