package cli

import (
	"bytes"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// wide is a width that no line of ours reaches.
const wide = 1 << 10

// screen is standard error, shared by the log and a status line: whole lines
// scroll above the status line, which is rewritten in place. It is safe for
// concurrent use. Where standard error is no terminal, it only passes on.
type screen struct {
	w        io.Writer
	terminal bool

	mu   sync.Mutex
	text string // the status line that stands on the terminal, if any
}

func newScreen(w io.Writer) *screen { return &screen{w: w, terminal: isTerminal(w)} }

// Write passes on whole lines; the status line, if any, stands below them afterwards.
func (s *screen) Write(p []byte) (int, error) {
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

// status replaces the status line, cut to the width of the terminal.
func (s *screen) status(text string) {
	if runes, columns := []rune(text), s.columns(); len(runes) > columns {
		text = string(runes[:columns])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = text
	_, _ = io.WriteString(s.w, clearLine+text)
}

// keep lets the status line stand as it is; what follows begins below it.
func (s *screen) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text != "" {
		s.text = ""
		_, _ = io.WriteString(s.w, "\n")
	}
}

// columns is how many characters a status line may have: the terminal wraps
// and scrolls when its last column is written.
func (s *screen) columns() int {
	f, ok := s.w.(*os.File)
	if !ok {
		return wide
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col < 2 {
		return 79
	}
	return int(size.Col) - 1
}

// bold makes text stand out on a terminal, unless NO_COLOR is set.
func bold(w io.Writer, text string) string {
	if !isTerminal(w) || os.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}
