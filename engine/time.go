package engine

import (
	"fmt"
	"time"
)

// TimeLayout is how times are written in JSON, SQL text and logs.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// Time is a UTC instant that marshals as RFC 3339 with milliseconds. The zero Time marshals as null.
type Time struct{ time.Time }

// At wraps t as a UTC Time.
func At(t time.Time) Time { return Time{t.UTC()} }

// MarshalJSON writes the time in TimeLayout, or null for the zero time.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + t.UTC().Format(TimeLayout) + `"`), nil
}

// UnmarshalJSON reads RFC 3339 or null.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		t.Time = time.Time{}
		return nil
	}
	if len(b) < 2 || b[0] != '"' {
		return fmt.Errorf("time %s is not a string", b)
	}
	parsed, err := time.Parse(time.RFC3339Nano, string(b[1:len(b)-1]))
	if err != nil {
		return fmt.Errorf("parsing time: %w", err)
	}
	t.Time = parsed.UTC()
	return nil
}

// Milliseconds converts d to fractional milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
