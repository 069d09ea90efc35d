package store

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine"
)

// MaxMarks is how many a run has at most, MaxMarkText how many characters one has.
const (
	MaxMarks    = 500
	MaxMarkText = 200
)

// ExpectedMark is what somebody saw of a mark before changing or deleting it. At is compared to the millisecond, as it
// is told.
type ExpectedMark struct {
	Text string
	At   engine.Time
}

// Check refuses to touch a mark that is another by now.
func (w *ExpectedMark) Check(m engine.Mark) error {
	exact := func(t engine.Time) int64 { return t.UnixMilli() }
	if w == nil || w.Text == m.Text && exact(w.At) == exact(m.At) {
		return nil
	}
	return concurrentChangeError(
		"The mark was changed by "+cmp.Or(m.ChangedBy, "somebody else")+", after you had opened it.",
		"is no longer the mark",
	)
}

// CheckMark cleans the text of a mark, and refuses what no mark can be.
func CheckMark(m engine.Mark) (engine.Mark, error) {
	m.Text = strings.TrimSpace(CleanText(m.Text))
	switch n := utf8.RuneCountInString(m.Text); {
	case n == 0:
		return m, engine.InvalidField("text", "is empty", "say what has happened, for example: index created")
	case n > MaxMarkText:
		return m, engine.InvalidField("text", fmt.Sprintf("has %d characters", n),
			fmt.Sprintf("use up to %d", MaxMarkText))
	case m.At.IsZero():
		return m, engine.InvalidField("at", "is missing", "name the moment, RFC 3339")
	}
	return m, nil
}

// TooManyMarks is the ErrConflict about a run that takes no more.
func TooManyMarks() error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict,
		Message: fmt.Sprintf("The run has %d marks already, and takes no more.", MaxMarks),
		Hint:    "Delete some of them."}
}
