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

// priceMost is the most bytes that are read of a file; a list has far less.
const priceMost = 1 << 20

// file is a list in a file, the built-in one while it is not there and need not be.
type file struct {
	path     string
	required bool
	// read is the time of the file that text and prices are from; zero of the built-in list.
	read   time.Time
	there  bool
	text   string
	prices Prices
}

// load reads the file if it has changed. After an error the last list stays.
func (f *file) load() error {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) && !f.required {
		if f.text == "" || f.there {
			f.text, f.prices, f.read, f.there = string(Embedded()), Default(), time.Time{}, false
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
	text, err := io.ReadAll(io.LimitReader(in, priceMost+1))
	if err != nil {
		return fmt.Errorf("the price list cannot be read: %w", err)
	}
	if len(text) > priceMost {
		return errors.New("the price list is larger than a megabyte")
	}
	prices, err := Parse(text)
	if err != nil {
		return err
	}
	f.text, f.prices, f.there = string(text), prices, true
	return nil
}

// wrong is the error of a list with which nothing can begin.
func (f *file) wrong(err error) error {
	wrong := &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("%s: %v.", f.path, err),
		Hint: "compare it with what loadstone prices prints", Cause: err}
	var list *engine.Error
	if errors.As(err, &list) {
		wrong.Message, wrong.Hint, wrong.Fields = f.path+": "+list.Message, list.Hint, list.Fields
	}
	return wrong
}

func (f *file) from() From {
	switch {
	case f.required:
		return FromFlag
	case f.there:
		return FromFile
	}
	return BuiltIn
}

// shown is the path of a list that is from a file.
func (f *file) shown() string {
	if f.from() == BuiltIn {
		return ""
	}
	return f.path
}
