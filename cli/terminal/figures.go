package terminal

import (
	"fmt"
	"strconv"
	"strings"
)

// ShortRate writes a rate for a person.
func ShortRate(v float64) string {
	if v >= 10_000 {
		return fmt.Sprintf("%.1f k", v/1000)
	}
	return fmt.Sprintf("%.0f", v)
}

// Duration writes seconds as a clock does.
func Duration(seconds float64) string {
	s := int(seconds + 0.5)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

// MillisOrNone is Millis of a latency that may be missing.
func MillisOrNone(v *float64) string {
	if v == nil {
		return "–"
	}
	return Millis(*v)
}

// RateOrNone is Rate of a rate that may not be known.
func RateOrNone(v *float64) string {
	if v == nil {
		return "–"
	}
	return Rate(*v)
}

// Millis writes a latency with three significant digits.
func Millis(v float64) string {
	switch {
	case v >= 10_000:
		return fmt.Sprintf("%.1f s", v/1000)
	case v >= 100:
		return fmt.Sprintf("%.0f ms", v)
	case v >= 10:
		return fmt.Sprintf("%.1f ms", v)
	case v >= 1:
		return fmt.Sprintf("%.2f ms", v)
	default:
		return fmt.Sprintf("%.3f ms", v)
	}
}

// Rate writes operations per second with three significant digits.
func Rate(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2f M", v/1e6)
	case v >= 100e3:
		return fmt.Sprintf("%.0f k", v/1e3)
	case v >= 10e3:
		return fmt.Sprintf("%.1f k", v/1e3)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprintf("%.1f", v)
	}
}

// Count writes a whole number in groups of three.
func Count(n int64) string {
	text := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return sign + text
}

// Seconds is a time in seconds: tenths, or three digits of what is shorter than one.
func Seconds(seconds float64) string {
	if seconds < 1 {
		return strconv.FormatFloat(seconds, 'g', 3, 64)
	}
	return strconv.FormatFloat(seconds, 'f', 1, 64)
}
