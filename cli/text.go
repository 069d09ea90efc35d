package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// What a person is shown of one text that others wrote: plugins, databases, templates.
const mostShown = 600

// shown is a text of others on one line, cut, without what a terminal would obey.
func shown(s string) string { return shorten(oneLine(s), mostShown) }

// oneLine is a plugin's text on one line, without what a terminal would obey.
func oneLine(s string) string {
	return harmless(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, s))
}

// harmless is a text without what a terminal would obey but line ends and tabs:
// sentences quote plugins, schemas and databases.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// printer returns what writes lines of a table to w. Every text among its arguments
// is made harmless and cut; those with tabs are rows that were put together from such.
func printer(w io.Writer) func(format string, args ...any) {
	return func(format string, args ...any) {
		for i, arg := range args {
			switch text, ok := arg.(string); {
			case !ok:
			case strings.Contains(text, "\t"):
				args[i] = strings.ReplaceAll(harmless(text), "\n", " ")
			default:
				args[i] = shown(text)
			}
		}
		_, _ = fmt.Fprintf(w, format+"\n", args...)
	}
}

// plainLines drops from log lines what a terminal would obey; zerolog escapes only
// what JSON must. The colours of a console are made after it.
type plainLines struct{ w io.Writer }

func (p plainLines) Write(b []byte) (int, error) {
	for _, c := range b {
		if c >= 0x7f {
			if _, err := io.WriteString(p.w, harmless(string(b))); err != nil {
				return 0, err
			}
			return len(b), nil
		}
	}
	return p.w.Write(b)
}

// logged is a message in a log for people.
func logged(v any) string {
	text, _ := v.(string)
	return shorten(oneLine(text), 4*mostShown)
}
