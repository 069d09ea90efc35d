// Package files writes the files that a user names. What already stands under
// the name is written to and never replaced by something else: a device stays
// a device, a FIFO gets the text, a link keeps pointing where it did, and a file
// keeps its mode, its owner and its other names.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loadstone-db/loadstone/engine"
)

// Stdout is the name that means standard output.
const Stdout = "-"

// IsStdout reports whether path names standard output, of which stdout is the file.
func IsStdout(path string, stdout any) bool {
	switch path {
	case Stdout, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
		return true
	}
	// The file or pipe that standard output was redirected to: two writers would overwrite each other.
	f, ok := stdout.(*os.File)
	if !ok {
		return false
	}
	own, err := f.Stat()
	if err != nil || !own.Mode().IsRegular() && own.Mode()&fs.ModeNamedPipe == 0 {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(own, named)
}

// Check says, before the work whose result it is for, whether path can be written.
// It leaves nothing behind and touches nothing that is there.
func Check(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return cannot(path, "is a folder", nil)
	case err == nil && !info.Mode().IsRegular():
		return nil // opening a FIFO would wait for its reader
	case err == nil:
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return failed(path, err)
		}
		_ = f.Close()
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return failed(path, err)
	}
	dir := filepath.Dir(path)
	if to, err := os.Readlink(path); err == nil { // a link to what is not there yet
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		dir = filepath.Dir(to)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("The folder of %s does not exist.", path),
			Hint: "create it first"}
	}
	probe, err := os.CreateTemp(dir, ".loadstone-*")
	if err != nil {
		return failed(path, err)
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	return nil
}

// Write writes what write gives to the file at path. A file that is new, or that
// can be exchanged for another of the same mode and owner, appears at once and whole; anything else is written in
// place.
func Write(path string, write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return failed(path, err)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// An empty file first: it has the mode that the user's own umask gives.
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return failed(path, err)
		}
		info, err = f.Stat()
		_ = f.Close()
		if err == nil {
			err = replaceFile(path, info, text.Bytes())
		}
		if err != nil {
			_ = os.Remove(path)
			return failed(path, err)
		}
		return nil
	case err != nil:
		return failed(path, err)
	case canReplace(path, info) && replaceFile(path, info, text.Bytes()) == nil:
		return nil
	}
	if err := writeInPlace(path, text.Bytes()); err != nil {
		return failed(path, err)
	}
	return nil
}

// canReplace reports whether nobody can tell another file of the same mode from the one at path.
func canReplace(path string, info fs.FileInfo) bool {
	if !info.Mode().IsRegular() || !hasOneLink(info) {
		return false
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0) // what may not be written is not exchanged either
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// replaceFile puts a new file in the place of the one at path. On an error that one stays.
func replaceFile(path string, old fs.FileInfo, text []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".loadstone-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	if err := copyOwnership(tmp, old); err != nil {
		_ = tmp.Close()
		return err
	}
	if _, err := tmp.Write(text); err != nil {
		_ = tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// writeInPlace writes to whatever stands at path, through links.
func writeInPlace(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

func failed(path string, err error) error {
	var wrong *fs.PathError
	text := err.Error()
	if errors.As(err, &wrong) {
		text = wrong.Err.Error() // the path is said already, or is that of a draft
	}
	return cannot(path, text, err)
}

func cannot(path, why string, cause error) error {
	return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("The file %s cannot be written: %s.", path, why),
		Cause: cause}
}
