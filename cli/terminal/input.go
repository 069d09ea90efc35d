// This part reads what a user names on the command line: files of a bounded size, and secrets
// that shall not be arguments, which every user of the machine can read.

package terminal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/schema"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
)

// ReadBounded reads a file that a user named, of at most so many bytes; what says
// what it shall be ("The template"). A device that never ends is too large like any other.
func ReadBounded(what, path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, withSuggestions(path, UnreadableError(what, err))
	}
	defer f.Close()
	return ReadAllBounded(what, path, f, limit)
}

// ReadAllBounded is ReadBounded for what is open already; path is what a user calls it.
func ReadAllBounded(what, path string, r io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, UnreadableError(what, err)
	}
	if int64(len(text)) > limit {
		return nil, &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("%s cannot be read: %s has more than the limit of %s.", what, path, formatBound(limit))}
	}
	return text, nil
}

// ReadRegular is readBounded for what is a file and nothing else: a FIFO would be
// waited for, and a device answers what it likes.
func ReadRegular(what, path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, UnreadableError(what, err)
	}
	if !info.Mode().IsRegular() {
		return nil, &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("%s cannot be read: %s is not a regular file.", what, path)}
	}
	return ReadBounded(what, path, limit)
}

// UnreadableError is the error of a file that cannot be read.
func UnreadableError(what string, err error) error {
	return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("%s cannot be read: %v.", what, err), Cause: err}
}

// maxSuggestions is how many files are named of a folder in which one was looked for.
const maxSuggestions = 5

// withSuggestions adds to the error of a file that is not there which was likely meant, or which there are of its kind.
func withSuggestions(path string, unreadable error) error {
	message, ok := errors.AsType[*engine.Error](unreadable)
	if !ok || !errors.Is(unreadable, fs.ErrNotExist) {
		return unreadable
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return unreadable
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		message.Hint = fmt.Sprintf("there is no folder %s", textsafe.OneLine(folder))
		return message
	}
	var names, alike []string
	for _, e := range entries {
		if !e.IsDir() && textsafe.OneLine(e.Name()) == e.Name() {
			names = append(names, e.Name())
			if ext := filepath.Ext(path); ext != "" && filepath.Ext(e.Name()) == ext {
				alike = append(alike, e.Name())
			}
		}
	}
	switch near := schema.Nearest(filepath.Base(path), names); {
	case near != "":
		message.Hint = fmt.Sprintf("did you mean %s?", filepath.Join(filepath.Dir(path), near))
	case len(alike) > 0:
		message.Hint = fmt.Sprintf("%s has %s", folder, strings.Join(alike[:min(maxSuggestions, len(alike))], ", "))
		if n := len(alike) - maxSuggestions; n > 0 {
			message.Hint += fmt.Sprintf(" and %d more", n)
		}
	default:
		message.Hint = "it was looked for in " + folder
	}
	return message
}

// formatBound writes a bound for a person.
func formatBound(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MB", n>>20)
	}
	return fmt.Sprintf("%d KB", n>>10)
}
