package protocol

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Binding is one bound value as it comes: a string, null, or an array of them.
type Binding struct {
	Type   string          `json:"type"`
	Value  json.RawMessage `json:"value"`
	Format string          `json:"fmt"`
}

// Bind is one bound value of a statement.
type Bind struct {
	// Type is Snowflake's name in lower case: "fixed", "real", "text", "boolean",
	// "date", "time", "timestamp_ntz", "timestamp_ltz", "timestamp_tz", "binary", "variant", …
	Type string
	// Array is true for an array bind: the statement runs once for each element,
	// Value is then the first one's.
	Array bool
	// Value is the value as Postgres reads it as text; nil is NULL.
	Value *string
}

// Param is one parameter of a plan's SQL.
type Param struct {
	// Bind is the index of the bound value, from 0.
	Bind int
	// OID is the parameter's Postgres type; 0 leaves it to Postgres.
	OID uint32
}

// Bindings are the bound values of a statement, as Postgres reads them.
type Bindings struct {
	First   []Bind
	columns [][]*string // one per bind; one element, or one for each row
	Rows    int
	Array   bool
}

// ReadBindings reads the values named "1", "2", ….
func ReadBindings(list map[string]Binding) (Bindings, error) {
	out := Bindings{Rows: 1}
	bad := func(format string, args ...any) (Bindings, error) {
		return Bindings{}, &Error{Code: "002049", State: "42601",
			Message: "SQL compilation error:\nBind variable: " + fmt.Sprintf(format, args...)}
	}
	for i := range len(list) {
		b, found := list[strconv.Itoa(i+1)]
		if !found {
			return bad("%d is not set.", i+1)
		}
		kind := strings.ToLower(b.Type)
		var values []*string
		array := strings.HasPrefix(strings.TrimSpace(string(b.Value)), "[")
		if array {
			if err := json.Unmarshal(b.Value, &values); err != nil {
				return bad("%d is not an array of strings.", i+1)
			}
		} else {
			var one *string
			if len(b.Value) > 0 {
				if err := json.Unmarshal(b.Value, &one); err != nil {
					return bad("%d is not a string.", i+1)
				}
			}
			values = []*string{one}
		}
		for k, v := range values {
			if v == nil {
				continue
			}
			text, err := toPostgres(kind, *v)
			if err != nil {
				return bad("%d: %v", i+1, err)
			}
			values[k] = &text
		}
		if array {
			if out.Array && len(values) != out.Rows {
				return bad("the arrays have %d and %d elements.", out.Rows, len(values))
			}
			out.Array, out.Rows = true, len(values)
		}
		bind := Bind{Type: kind, Array: array}
		if len(values) > 0 {
			bind.Value = values[0]
		}
		out.First = append(out.First, bind)
		out.columns = append(out.columns, values)
	}
	return out, nil
}

// Values returns the parameters of one row.
func (b *Bindings) Values(params []Param, row int) [][]byte {
	out := make([][]byte, len(params))
	for i, p := range params {
		column := b.columns[p.Bind]
		v := column[min(row, len(column)-1)]
		if v != nil {
			out[i] = []byte(*v)
		}
	}
	return out
}

// toPostgres turns a bound value into text that Postgres reads.
func toPostgres(kind, v string) (string, error) {
	// What is not a number is already a date or a time in words.
	switch kind {
	case "date":
		if ms, err := strconv.ParseInt(v, 10, 64); err == nil {
			return time.UnixMilli(ms).UTC().Format("2006-01-02"), nil
		}
	case "time":
		if ns, err := strconv.ParseInt(v, 10, 64); err == nil {
			return time.Unix(0, ns).UTC().Format("15:04:05.000000"), nil
		}
	case "timestamp_ntz":
		if t, err := nanoseconds(v); err == nil {
			return stamp(t), nil
		}
	case "timestamp_ltz":
		if t, err := nanoseconds(v); err == nil {
			return stamp(t) + "+00", nil
		}
	case "binary":
		return `\x` + v, nil
	case "real":
		switch v {
		case "+Inf", "inf":
			return "Infinity", nil
		case "-Inf", "-inf":
			return "-Infinity", nil
		}
	}
	if strings.IndexByte(v, 0) >= 0 {
		return "", fmt.Errorf("the stand-in's Postgres has no text with the character 0")
	}
	return v, nil
}

// nanoseconds reads a time as nanoseconds since 1970, which may have more than 64 bits.
func nanoseconds(v string) (time.Time, error) {
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		return time.Unix(0, n).UTC(), nil
	}
	n, ok := new(big.Int).SetString(v, 10)
	if !ok {
		return time.Time{}, fmt.Errorf("%q is no number", v)
	}
	seconds, rest := new(big.Int).DivMod(n, big.NewInt(1e9), new(big.Int))
	if !seconds.IsInt64() {
		return time.Time{}, fmt.Errorf("%q is out of range", v)
	}
	return time.Unix(seconds.Int64(), rest.Int64()).UTC(), nil
}

func stamp(t time.Time) string { return t.Format("2006-01-02 15:04:05.000000") }
