// Package terminal writes for people: a status line that log lines scroll above, numbers in a
// few digits, and texts of others without what a terminal would obey.
package terminal

import (
	"bytes"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Unbounded is a width that no line of ours reaches.
const Unbounded = 1 << 10

// Screen is standard error, shared by the log and a status line: whole lines
// scroll above the status line, which is rewritten in place. It is safe for
// concurrent use. Where standard error is no terminal, it only passes on.
type Screen struct {
	w        io.Writer
	Terminal bool

	mu   sync.Mutex
	text string // the status line that stands on the terminal, if any
}

// NewScreen makes a screen of standard error, whatever that is.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w, Terminal: IsTerminal(w)} }

// Write passes on whole lines; the status line, if any, stands below them afterwards.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == "" {
		return s.w.Write(p)
	}
	var b bytes.Buffer
	b.WriteString(clearLine)
	b.Write(p)
	b.WriteString(s.text)
	if _, err := s.w.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// clearLine goes to the start of the line and empties it.
const clearLine = "\r\x1b[K"

// Status replaces the status line, cut to the width of the terminal.
func (s *Screen) Status(text string) {
	if runes, columns := []rune(text), s.Columns(); len(runes) > columns {
		text = string(runes[:columns])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = text
	_, _ = io.WriteString(s.w, clearLine+text)
}

// Keep lets the status line stand as it is; what follows begins below it.
func (s *Screen) Keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text != "" {
		s.text = ""
		_, _ = io.WriteString(s.w, "\n")
	}
}

// Columns is how many characters a status line may have: the terminal wraps
// and scrolls when its last column is written.
func (s *Screen) Columns() int {
	f, ok := s.w.(*os.File)
	if !ok {
		return Unbounded
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col < 2 {
		return 79
	}
	return int(size.Col) - 1
}

// Bold makes text stand out on a terminal, unless NO_COLOR is set.
func Bold(w io.Writer, text string) string {
	if !IsTerminal(w) || os.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	if s, ok := w.(*Screen); ok {
		return s.Terminal
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
