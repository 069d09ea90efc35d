package connector

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
)

// Folder is where the files of sources and sinks lie. Nothing outside of it is opened, nor a link, a device or a pipe
// in it.
type Folder struct {
	root *os.Root
	mu   sync.Mutex
	// written are the files that sinks write, by their paths.
	written map[string]*written
}

// OpenFolder opens a folder that is there.
func OpenFolder(name string) (*Folder, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of streams: %w", err)
	}
	return &Folder{root: root, written: map[string]*written{}}, nil
}

// Close lets the folder go.
func (f *Folder) Close() error { return f.root.Close() }

// ErrPath says that a file may not be opened, and why.
var ErrPath = errors.New("may not be opened")

// clean checks a path and returns it in its shortest form.
func clean(name string) (string, error) {
	if why := outsideReason(name); why != "" {
		return "", fmt.Errorf("%q %w: it %s", name, ErrPath, why)
	}
	return path.Clean(name), nil
}

// outsideReason says why a path is none of a file in the folder, as far as its spelling tells.
func outsideReason(name string) string {
	switch {
	case path.IsAbs(name) || strings.Contains(name, `\`) || strings.IndexByte(name, 0) >= 0:
		return "is not relative to the folder of streams"
	case strings.Contains("/"+name+"/", "/../"):
		return "leads out of the folder of streams"
	case path.Clean(name) == ".":
		return "is a folder"
	}
	return ""
}

// open opens a file that is one, whatever stands on the way to it being no link.
func (f *Folder) open(name string, flags int) (*os.File, error) {
	name, err := clean(name)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(name, "/")
	for i := range parts {
		info, err := f.root.Lstat(strings.Join(parts[:i+1], "/"))
		switch {
		case errors.Is(err, fs.ErrNotExist) && flags&os.O_CREATE != 0 && i == len(parts)-1:
		case err != nil:
			return nil, fmt.Errorf("%q %w: it is not there", name, ErrPath)
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, fmt.Errorf("%q %w: there is a link in it", name, ErrPath)
		case i == len(parts)-1 && !info.Mode().IsRegular():
			return nil, fmt.Errorf("%q %w: it is no file", name, ErrPath)
		}
	}
	// Who puts a link or a pipe there meanwhile is not followed, and does not make the server wait.
	// Nor is it emptied before it is known what it is.
	file, err := f.root.OpenFile(name, flags&^os.O_TRUNC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%q %w: %w", name, ErrPath, err)
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, fmt.Errorf("%q %w: it is no file", name, ErrPath)
	} else if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
		// Under its other name it may be a file that nobody has put here.
		_ = file.Close()
		return nil, fmt.Errorf("%q %w: it has another name besides", name, ErrPath)
	}
	if flags&os.O_TRUNC != 0 {
		if err := file.Truncate(0); err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("emptying %q: %w", name, err)
		}
	}
	return file, nil
}

// written is a file that sinks write. Several queries may have one sink, or several sinks one file: a batch of rows of
// one stands whole between those of others, and who begins later empties nothing.
type written struct {
	*os.File
	folder  *Folder
	name    string
	writers int
	mu      sync.Mutex
}

// write opens a file to be written, which is emptied unless somebody writes it already or appends is set.
func (f *Folder) write(name string, appends bool) (*written, error) {
	name, err := clean(name)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.written[name]; w != nil {
		w.writers++
		return w, nil
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if !appends {
		flags |= os.O_TRUNC
	}
	file, err := f.open(name, flags)
	if err != nil {
		return nil, err
	}
	w := &written{File: file, folder: f, name: name, writers: 1}
	f.written[name] = w
	return w, nil
}

// Close closes the file with the last that writes it.
func (w *written) Close() error {
	w.folder.mu.Lock()
	defer w.folder.mu.Unlock()
	if w.writers--; w.writers > 0 {
		return nil
	}
	delete(w.folder.written, w.name)
	return w.File.Close()
}
