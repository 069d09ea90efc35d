package objects

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// idFile has the name of a folder, which stays with it where it is mounted or moved to.
const idFile = ".place"

// ID implements Store. The name is made when it is first asked for.
func (f *Folder) ID() (position, label string, err error) {
	path := filepath.Join(f.dir, idFile)
	name, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = f.createID(path); err == nil {
			name, err = os.ReadFile(path)
		}
	}
	text := strings.TrimSpace(string(name))
	if err == nil && text == "" {
		err = fmt.Errorf("%s is empty", path)
	}
	if err != nil {
		return "", f.dir, fmt.Errorf("naming the results folder: %w", err)
	}
	return "folder:" + text, f.dir, nil
}

// createID names the folder, unless another server does: the file is there with all of the name, or it is not.
func (f *Folder) createID(path string) error {
	file, err := os.CreateTemp(f.dir, idFile+"-*")
	if err != nil {
		return err
	}
	_, err = file.WriteString(rand.Text() + "\n")
	if err = errors.Join(err, file.Close()); err == nil {
		if err = os.Link(file.Name(), path); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	return errors.Join(err, os.Remove(file.Name()))
}
