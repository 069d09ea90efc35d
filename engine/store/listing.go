package store

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// Sorted reports whether the list is in another order than newest first. Its pages are then told by how many rows come
// before them: rows that come and go meanwhile shift them.
func (f RunFilter) Sorted() bool { return f.Sort != SortCreated || f.Ascending }

const offsetPrefix = "after-"

// OffsetCursor names the page of a sorted list that so many rows come before.
func OffsetCursor(rows int) string { return offsetPrefix + strconv.Itoa(rows) }

// Offset is how many rows come before the page that a cursor names.
func Offset(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	digits, ok := strings.CutPrefix(cursor, offsetPrefix)
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n > 1<<30 {
		return 0, engine.InvalidField("cursor", "this is not a cursor of an earlier page of this order",
			"leave it out for the first page")
	}
	return n, nil
}

// SortValue is the figure of a row that the list is in the order of, nil where it has none, or where the order is no
// figure's.
func (r RunRow) SortValue(s RunSort) *float64 {
	switch s {
	case SortThroughput:
		return r.QPS
	case SortP50:
		return r.P50Ms
	case SortP95:
		return r.P95Ms
	case SortP99:
		return r.P99Ms
	case SortErrorRate:
		return r.ErrorRate
	case SortOperations:
		n := float64(r.TotalOps)
		return &n
	case SortLength:
		if r.StartTime.IsZero() || r.EndTime.IsZero() {
			return nil
		}
		seconds := r.EndTime.Sub(r.StartTime.Time).Seconds()
		return &seconds
	case SortEnded:
		if r.EndTime.IsZero() {
			return nil
		}
		at := float64(r.EndTime.UnixMicro())
		return &at
	case SortConnected:
		n := float64(r.Scenario.Workload.ConcurrentConnections)
		return &n
	default:
		return nil
	}
}

// sortText is what a row has in a column of words, empty where it has nothing there, and whether the order is one of
// words.
func (r RunRow) sortText(s RunSort) (string, bool) {
	switch s {
	case SortName:
		return strings.Map(lowerASCII, r.RunName), true
	case SortStatus:
		return string(r.Status), true
	case SortStartedBy:
		return strings.Map(lowerASCII, r.CreatedBy), true
	case SortValidity:
		if r.Verdict == nil {
			return "", true
		}
		return string(*r.Verdict), true
	default:
		return "", false
	}
}

// lowerASCII makes letters of ASCII small, the others have their own places: what is done to them differs between
// databases.
func lowerASCII(c rune) rune {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// Compare puts two rows into the order of a sorted list; those without the figure come last.
func (f RunFilter) Compare(a, b RunRow) int {
	by := 0
	x, y := a.SortValue(f.Sort), b.SortValue(f.Sort)
	v, words := a.sortText(f.Sort)
	w, _ := b.sortText(f.Sort)
	switch {
	case f.Sort == SortCreated:
		by = a.CreatedAt.Compare(b.CreatedAt.Time)
	case words && v != "" && w != "":
		by = cmp.Compare(v, w)
	case words:
		return cmp.Compare(len(w), len(v))
	case x != nil && y != nil:
		by = cmp.Compare(*x, *y)
	case x != nil:
		return -1
	case y != nil:
		return 1
	}
	if !f.Ascending {
		return -by
	}
	return by
}
