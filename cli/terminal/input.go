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

// Bounded reads a file that a user named, of at most so many bytes; what says
// what it shall be ("The template"). A device that never ends is too large like any other.
func Bounded(what, path string, most int64) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, missing(path, Unreadable(what, err))
	}
	defer f.Close()
	return All(what, path, f, most)
}

// All is Bounded for what is open already; path is what a user calls it.
func All(what, path string, r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, Unreadable(what, err)
	}
	if int64(len(text)) > most {
		return nil, &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("%s cannot be read: %s has more than the limit of %s.", what, path, size(most))}
	}
	return text, nil
}

// Regular is readBounded for what is a file and nothing else: a FIFO would be
// waited for, and a device answers what it likes.
func Regular(what, path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, Unreadable(what, err)
	}
	if !info.Mode().IsRegular() {
		return nil, &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("%s cannot be read: %s is not a regular file.", what, path)}
	}
	return Bounded(what, path, most)
}

// Unreadable is the error of a file that cannot be read.
func Unreadable(what string, err error) error {
	return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("%s cannot be read: %v.", what, err), Cause: err}
}

// mostNames is how many files are named of a folder in which one was looked for.
const mostNames = 5

// missing adds to the error of a file that is not there which was likely meant, or which there are of its kind.
func missing(path string, unreadable error) error {
	told, ok := errors.AsType[*engine.Error](unreadable)
	if !ok || !errors.Is(unreadable, fs.ErrNotExist) {
		return unreadable
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return unreadable
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		told.Hint = fmt.Sprintf("there is no folder %s", textsafe.OneLine(folder))
		return told
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
		told.Hint = fmt.Sprintf("did you mean %s?", filepath.Join(filepath.Dir(path), near))
	case len(alike) > 0:
		told.Hint = fmt.Sprintf("%s has %s", folder, strings.Join(alike[:min(mostNames, len(alike))], ", "))
		if n := len(alike) - mostNames; n > 0 {
			told.Hint += fmt.Sprintf(" and %d more", n)
		}
	default:
		told.Hint = "it was looked for in " + folder
	}
	return told
}

// size writes a bound for a person.
func size(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MB", n>>20)
	}
	return fmt.Sprintf("%d KB", n>>10)
}
