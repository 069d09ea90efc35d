package cost

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// maxFileBytes is the most bytes that are read of a file; a list has far less.
const maxFileBytes = 1 << 20

// file is a list in a file, the built-in one while it is not there and need not be.
type file struct {
	path     string
	required bool
	// read is the time of the file that text and prices are from; zero of the built-in list.
	read   time.Time
	exists bool
	text   string
	prices Prices
}

// load reads the file if it has changed. After an error the last list stays.
func (f *file) load() error {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) && !f.required {
		if f.text == "" || f.exists {
			f.text, f.prices, f.read, f.exists = string(Embedded()), Default(), time.Time{}, false
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("the price list cannot be read: %w", err)
	}
	if info.ModTime().Equal(f.read) {
		return nil
	}
	f.read = info.ModTime()
	if !info.Mode().IsRegular() {
		return errors.New("the price list is not a regular file")
	}
	in, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("the price list cannot be read: %w", err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err != nil {
		return fmt.Errorf("the price list cannot be read: %w", err)
	}
	if len(text) > maxFileBytes {
		return errors.New("the price list is larger than a megabyte")
	}
	prices, err := Parse(text)
	if err != nil {
		return err
	}
	f.text, f.prices, f.exists = string(text), prices, true
	return nil
}

// loadError is the error of a list with which nothing can begin.
func (f *file) loadError(err error) error {
	wrong := &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("%s: %v.", f.path, err),
		Hint: "compare it with what loadstone prices prints", Cause: err}
	var list *engine.Error
	if errors.As(err, &list) {
		wrong.Message, wrong.Hint, wrong.Fields = f.path+": "+list.Message, list.Hint, list.Fields
	}
	return wrong
}

func (f *file) origin() Origin {
	switch {
	case f.required:
		return FromFlag
	case f.exists:
		return FromFile
	}
	return BuiltIn
}

// shownPath is the path of a list that is from a file.
func (f *file) shownPath() string {
	if f.origin() == BuiltIn {
		return ""
	}
	return f.path
}
