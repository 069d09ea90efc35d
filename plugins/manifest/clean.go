package manifest

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine/base/textsafe"
)

// The most characters of what a guest names, and of one text that is SQL or goes into it. A name is more than any
// database takes for an identifier.
const (
	maxName = 255
	maxSQL  = 64 << 10
	maxFill = 4 << 10
)

// Clean makes a guest's text fit to be shown: valid UTF-8 on one line, without what
// would be obeyed rather than shown, bounded.
func Clean(b []byte, limit int) string {
	cut := false
	if len(b) > limit {
		b, cut = b[:limit], true
	}
	s := strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\u2028' || r == '\u2029':
			return ' '
		case textsafe.IsControl(r) || r == utf8.RuneError:
			return -1
		}
		return r
	}, string(b))
	s = strings.TrimSpace(s)
	if cut {
		s += "…"
	}
	return s
}

// plain reports that a text has no control characters or marks that are not seen, which
// terminals obey and databases refuse. SQL may have lines.
func plain(s string) bool { return !strings.ContainsFunc(s, textsafe.IsControl) }

// plainLines is plain for a text that may have lines.
func plainLines(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return textsafe.IsControl(r) && r != '\n' && r != '\r' && r != '\t'
	})
}

// checkName refuses a name that cannot be shown. what says whose it is: "the name of column 3 of its table \"a\"".
func checkName(what, name string) error {
	if !plain(name) {
		return fmt.Errorf("%s %q contains control characters", what, Clean([]byte(name), 80))
	}
	if n := utf8.RuneCountInString(name); n > maxName {
		return fmt.Errorf("%s %q has %d characters, the limit is %d", what, Clean([]byte(name), 40), n, maxName)
	}
	return nil
}

// checkTexts refuses SQL by dialect that cannot be shown, or is longer than any statement.
func checkTexts(what string, texts map[string]string, limit int) error {
	for dialect, text := range texts {
		if err := checkName("the dialect of "+what, dialect); err != nil {
			return err
		}
		if !plainLines(text) {
			return fmt.Errorf("%s contains control characters", what)
		}
		if n := utf8.RuneCountInString(text); n > limit {
			return fmt.Errorf("%s has %d characters, the limit is %d", what, n, limit)
		}
	}
	return nil
}
