package library

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	suffix        = ".wasm"
	partialSuffix = ".partial"
)

// hashOf is the name of a file: its SHA-256 in hex.
func hashOf(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return hex.EncodeToString(sum[:])
}

// files are this server's copies of uploaded plugins, by hash, in a folder that
// nobody else may read or write.
type files struct {
	dir string

	mu     sync.Mutex
	checks map[string]fileCheck
}

// fileCheck is what hashing a file found, and the file it was found of.
type fileCheck struct {
	size     int64
	modified time.Time
	intact   bool
}

func openFiles(dir string) (*files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of uploaded plugins: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of uploaded plugins private: %w", err)
	}
	return &files{dir: dir, checks: map[string]fileCheck{}}, nil
}

func (f *files) path(sha string) string { return filepath.Join(f.dir, sha+suffix) }

// put writes a file, whole or not at all; one that is there is replaced.
func (f *files) put(sha string, wasm []byte) error {
	draft, err := os.CreateTemp(f.dir, sha[:12]+"-*"+partialSuffix) // 0600
	if err != nil {
		return fmt.Errorf("storing the plugin file: %w", err)
	}
	_, err = draft.Write(wasm)
	if err == nil {
		err = draft.Sync()
	}
	err = errors.Join(err, draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), f.path(sha))
	}
	if err != nil {
		_ = os.Remove(draft.Name())
		return fmt.Errorf("storing the plugin file: %w", err)
	}
	f.forget(sha)
	return f.sync()
}

// sync makes the folder's names durable.
func (f *files) sync() error {
	dir, err := os.Open(f.dir)
	if err != nil {
		return fmt.Errorf("storing the plugin file: %w", err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("storing the plugin file: %w", err)
	}
	return nil
}

// read returns the bytes as they are; whoever executes them compares the hash.
func (f *files) read(sha string) ([]byte, error) { return os.ReadFile(f.path(sha)) }

func (f *files) remove(sha string) error {
	f.forget(sha)
	if err := os.Remove(f.path(sha)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the plugin file: %w", err)
	}
	return nil
}

func (f *files) forget(sha string) {
	f.mu.Lock()
	delete(f.checks, sha)
	f.mu.Unlock()
}

// intact tells whether the file has the bytes of its name. A file that is not
// there is intact: it comes back from the store. Only a file that looks changed
// is read again.
func (f *files) intact(sha string) bool {
	info, err := os.Stat(f.path(sha))
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return false
	}
	f.mu.Lock()
	known, ok := f.checks[sha]
	f.mu.Unlock()
	if ok && known.size == info.Size() && known.modified.Equal(info.ModTime()) {
		return known.intact
	}
	wasm, err := f.read(sha)
	v := fileCheck{size: info.Size(), modified: info.ModTime(), intact: err == nil && hashOf(wasm) == sha}
	f.mu.Lock()
	f.checks[sha] = v
	f.mu.Unlock()
	return v.intact
}

// sweep removes what an interrupted upload or another server's deletion left.
func (f *files) sweep(keep map[string]bool) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return fmt.Errorf("reading the folder of uploaded plugins: %w", err)
	}
	var errs []error
	for _, e := range entries {
		sha, isPlugin := strings.CutSuffix(e.Name(), suffix)
		if isPlugin && !keep[sha] || strings.HasSuffix(e.Name(), partialSuffix) {
			errs = append(errs, os.Remove(filepath.Join(f.dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}
