package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/loadstone-db/loadstone/engine/base/textsafe"
)

// MaxShown is what a person is shown of one text that others wrote: plugins, databases, templates.
const MaxShown = 600

// Shown is a text of others on one line, cut, without what a terminal would obey.
func Shown(s string) string { return Shorten(OneLine(s), MaxShown) }

// OneLine is a plugin's text on one line, without what a terminal would obey.
func OneLine(s string) string { return textsafe.OneLine(s) }

// StripControls is a text without what a terminal would obey but line ends and tabs:
// sentences quote plugins, schemas and databases.
func StripControls(s string) string { return textsafe.Multiline(s) }

// LinePrinter returns what writes lines of a table to w. Every text among its arguments
// is made harmless and cut; those with tabs are rows that were put together from such.
func LinePrinter(w io.Writer) func(format string, args ...any) {
	return func(format string, args ...any) {
		for i, arg := range args {
			switch text, ok := arg.(string); {
			case !ok:
			case strings.Contains(text, "\t"):
				args[i] = strings.ReplaceAll(StripControls(text), "\n", " ")
			default:
				args[i] = Shown(text)
			}
		}
		_, _ = fmt.Fprintf(w, format+"\n", args...)
	}
}

// PlainLogWriter returns a writer that drops from log lines what a terminal would obey; zerolog
// escapes only what JSON must. The colours of a console are made after it.
func PlainLogWriter(w io.Writer) io.Writer { return plainLogWriter{w} }

type plainLogWriter struct{ w io.Writer }

func (p plainLogWriter) Write(b []byte) (int, error) {
	for _, c := range b {
		if c >= 0x7f {
			if _, err := io.WriteString(p.w, StripControls(string(b))); err != nil {
				return 0, err
			}
			return len(b), nil
		}
	}
	return p.w.Write(b)
}

// LogMessage is a message in a log for people.
func LogMessage(v any) string {
	text, _ := v.(string)
	return Shorten(OneLine(text), 4*MaxShown)
}

// Shorten cuts a text after so many characters.
func Shorten(s string, limit int) string { return textsafe.Shorten(s, limit) }

// JSON writes a document for a program, which somebody may look at: a terminal obeys nothing in it.
func JSON(w io.Writer, v any) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	_, err := w.Write(textsafe.EscapeJSON(out.Bytes()))
	return err
}
