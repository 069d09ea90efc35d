package protocol

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// Result collects the rows of an answer in Snowflake's JSON form: the first of
// them for the answer itself, further ones in compressed chunks.
type Result struct {
	limits   Limits
	columns  []Column
	Fields   []pgconn.FieldDescription
	Total    int64
	Affected int64
	Bytes    int64 // before compression

	buf    []byte // rows, separated by commas
	rows   int    // in buf
	inline []byte // nil until the answer's own part is full
	first  int    // rows of inline
	chunks []Chunk
	// scales are the most digits after the point, for numbers whose type has no scale.
	scales []int
}

// Limits are the bytes, before compression, from which a part of a result is full.
type Limits struct {
	// Inline is for the part in the answer itself, Chunk for each further part.
	Inline, Chunk int
}

// Chunk is a part of a result that the client fetches separately.
type Chunk struct {
	Data         []byte // compressed
	Rows         int
	Uncompressed int
}

// NewResult returns a result of these columns without rows.
func NewResult(l Limits, columns []Column) *Result {
	return &Result{limits: l, columns: slices.Clone(columns)}
}

// begin starts a row.
func (r *Result) begin() {
	if r.rows > 0 {
		r.buf = append(r.buf, ',')
	}
	r.buf = append(r.buf, '[')
}

// end ends a row, and a chunk when it is full.
func (r *Result) end() {
	r.buf = append(r.buf, ']')
	r.rows++
	r.Total++
	limit := r.limits.Chunk
	if r.inline == nil {
		limit = r.limits.Inline
	}
	if len(r.buf) >= limit {
		r.flush()
	}
}

func (r *Result) flush() {
	if r.rows == 0 {
		return
	}
	r.Bytes += int64(len(r.buf))
	if r.inline == nil {
		r.inline, r.first = r.buf, r.rows
		r.buf, r.rows = nil, 0
		return
	}
	r.chunks = append(r.chunks, Chunk{Data: zip(r.buf), Rows: r.rows, Uncompressed: len(r.buf)})
	r.buf, r.rows = r.buf[:0], 0
}

func zip(text []byte) []byte {
	var zipped bytes.Buffer
	w, _ := gzip.NewWriterLevel(&zipped, gzip.BestSpeed) // the level is right
	_, _ = w.Write(text)                                 // into memory
	_ = w.Close()
	return zipped.Bytes()
}

// Row adds a row of Go values.
func (r *Result) Row(values []any) {
	r.begin()
	for i, v := range values {
		if i > 0 {
			r.buf = append(r.buf, ',')
		}
		if v == nil {
			r.buf = append(r.buf, "null"...)
			continue
		}
		r.buf = appendString(r.buf, goValue(v, &r.columns[i]))
	}
	r.end()
}

// goValue is a value in Snowflake's text form for a column.
func goValue(v any, c *Column) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case time.Time:
		return timeValue(v, c)
	}
	return fmt.Sprint(v)
}

// timeValue writes a moment for a column of dates or times.
func timeValue(t time.Time, c *Column) string {
	if c.Type == "date" {
		return strconv.FormatInt(floorDiv(t.Unix(), 86400), 10)
	}
	return epoch(t.Unix(), t.Nanosecond(), c.Scale)
}

// epoch writes seconds since 1970 with a fraction of scale digits. The fraction
// is counted forward from the second before, also before 1970: so gosnowflake reads it.
func epoch(seconds int64, ns, scale int) string {
	if scale <= 0 {
		return strconv.FormatInt(seconds, 10)
	}
	return strconv.FormatInt(seconds, 10) + "." + fmt.Sprintf("%09d", ns)[:min(scale, 9)]
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// PostgresRow adds a row of Postgres's, in its text format.
func (r *Result) PostgresRow(values [][]byte) error {
	if r.scales == nil {
		r.scales = make([]int, len(r.columns))
	}
	r.begin()
	for i, v := range values {
		if i > 0 {
			r.buf = append(r.buf, ',')
		}
		if v == nil {
			r.buf = append(r.buf, "null"...)
			continue
		}
		text, err := postgresValue(v, r.Fields[i].DataTypeOID, &r.columns[i])
		if err != nil {
			return err
		}
		if r.columns[i].Scale < 0 {
			if dot := bytes.IndexByte(text, '.'); dot >= 0 {
				r.scales[i] = max(r.scales[i], len(text)-dot-1)
			}
		}
		r.buf = appendString(r.buf, text)
	}
	r.end()
	return nil
}

// postgresValue turns Postgres's text into Snowflake's for a column.
func postgresValue(v []byte, oid uint32, c *Column) ([]byte, error) {
	if c.Type == "timestamp_tz" && oid != pgtype.TimestamptzOID {
		return zoned(v)
	}
	switch oid {
	case pgtype.BoolOID:
		if c.Type != "boolean" {
			return v, nil
		}
		if len(v) == 1 && v[0] == 't' {
			return []byte("1"), nil
		}
		return []byte("0"), nil
	case pgtype.ByteaOID:
		return bytes.ToUpper(bytes.TrimPrefix(v, []byte(`\x`))), nil
	case pgtype.DateOID, pgtype.TimestampOID, pgtype.TimestamptzOID:
		if c.Type == "text" {
			return v, nil
		}
		t, err := readTime(string(v), oid)
		if err != nil {
			return nil, err
		}
		return []byte(timeValue(t, c)), nil
	case pgtype.TimeOID:
		if c.Type == "text" {
			return v, nil
		}
		t, err := time.Parse("15:04:05.999999999", string(v))
		if err != nil {
			return nil, fmt.Errorf("reading a time of Postgres: %w", err)
		}
		return []byte(epoch(int64(t.Hour()*3600+t.Minute()*60+t.Second()), t.Nanosecond(), c.Scale)), nil
	case pgtype.JSONOID, pgtype.JSONBOID:
		if c.Type == "text" {
			return v, nil
		}
		var pretty bytes.Buffer
		if json.Indent(&pretty, v, "", "  ") == nil {
			return pretty.Bytes(), nil
		}
	}
	return v, nil
}

// zoned turns the translator's TIMESTAMP_TZ, ("2026-01-02 03:04:05.6+00",90), into
// Snowflake's: seconds since 1970, and the offset in minutes from -1440.
func zoned(v []byte) ([]byte, error) {
	moment, offset, _ := strings.Cut(strings.Trim(string(v), "()"), ",")
	t, err := readTime(strings.Trim(moment, `"`), pgtype.TimestamptzOID)
	if err != nil {
		return nil, err
	}
	minutes, err := strconv.Atoi(offset)
	if err != nil {
		return nil, fmt.Errorf("reading a TIMESTAMP_TZ of Postgres: %w", err)
	}
	return []byte(epoch(t.Unix(), t.Nanosecond(), 9) + " " + strconv.Itoa(minutes+1440)), nil
}

// readTime reads a date or a timestamp of Postgres with datestyle ISO in UTC.
func readTime(v string, oid uint32) (time.Time, error) {
	v, bc := strings.CutSuffix(v, " BC")
	layout := map[uint32]string{pgtype.DateOID: "2006-01-02", pgtype.TimestampOID: "2006-01-02 15:04:05.999999999",
		pgtype.TimestamptzOID: "2006-01-02 15:04:05.999999999-07"}[oid]
	t, err := time.Parse(layout, v)
	if err != nil || bc {
		return time.Time{}, &Error{Code: "100040", State: "22007", Message: "Date '" + v + "' is not recognized"}
	}
	return t.UTC(), nil
}

// appendString appends a JSON string.
func appendString[T string | []byte](b []byte, s T) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			continue
		}
		if c >= utf8.RuneSelf {
			continue // Postgres's text is valid UTF-8
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		default:
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		from = i + 1
	}
	return append(append(b, s[from:]...), '"')
}

type rowType struct {
	Name       string  `json:"name"`
	Database   string  `json:"database"`
	Schema     string  `json:"schema"`
	Table      string  `json:"table"`
	Nullable   bool    `json:"nullable"`
	Type       string  `json:"type"`
	ByteLength *int    `json:"byteLength"`
	Length     *int    `json:"length"`
	Scale      *int    `json:"scale"`
	Precision  *int    `json:"precision"`
	Collation  *string `json:"collation"`
}

// Finish returns the part of an answer that describes the rows, and the chunks outside
// it; size is the bytes of both.
func (r *Result) Finish() (data map[string]any, chunks []Chunk, size int) {
	if r.inline == nil {
		r.Bytes += int64(len(r.buf))
		r.inline, r.first = r.buf, r.rows
	} else {
		r.flush()
	}
	types := make([]rowType, len(r.columns))
	for i := range r.columns {
		c := &r.columns[i]
		if c.Scale < 0 {
			c.Scale = 0
			if r.scales != nil {
				c.Scale = min(r.scales[i], 37)
			}
		}
		t := rowType{Name: c.Name, Nullable: c.Nullable, Type: c.Type}
		switch c.Type {
		case "text", "binary":
			t.Length, t.ByteLength = &c.Length, &c.ByteLength
		case "fixed":
			t.Precision, t.Scale = &c.Precision, &c.Scale
		case "time", "timestamp_ntz", "timestamp_ltz", "timestamp_tz":
			zero := 0
			t.Precision, t.Scale = &zero, &c.Scale
		}
		types[i] = t
	}
	inline := append(append(append(make([]byte, 0, len(r.inline)+2), '['), r.inline...), ']')
	size = len(inline)
	for _, c := range r.chunks {
		size += len(c.Data)
	}
	return map[string]any{"rowtype": types, "rowset": json.RawMessage(inline), "total": r.Total, "returned": r.Total,
		"queryResultFormat": "json"}, r.chunks, size
}

// FinishArrow is Finish for a client that takes Arrow.
func (r *Result) FinishArrow() (data map[string]any, chunks []Chunk, size int, err error) {
	data, chunks, _ = r.Finish()
	delete(data, "rowset")
	data["queryResultFormat"], data["rowsetBase64"] = "arrow", ""
	if r.first > 0 {
		stream, err := arrowStream(r.columns, r.inline)
		if err != nil {
			return nil, nil, 0, err
		}
		data["rowsetBase64"] = base64.StdEncoding.EncodeToString(stream)
		size = len(stream)
	}
	for i := range chunks {
		c := &chunks[i]
		unzipped, err := gzip.NewReader(bytes.NewReader(c.Data))
		if err != nil {
			return nil, nil, 0, fmt.Errorf("reading a chunk: %w", err)
		}
		text, err := io.ReadAll(unzipped)
		if err != nil {
			return nil, nil, 0, fmt.Errorf("reading a chunk: %w", err)
		}
		stream, err := arrowStream(r.columns, text)
		if err != nil {
			return nil, nil, 0, err
		}
		c.Data, c.Uncompressed = zip(stream), len(stream)
		size += len(c.Data)
	}
	return data, chunks, size, nil
}
