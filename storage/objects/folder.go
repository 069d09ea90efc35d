package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"syscall"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/artifact"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Folder implements Store on a local folder, with one folder in it for each run. A file
// is stored under its final name in one rename, and never changes.
type Folder struct {
	dir string
}

var _ Store = (*Folder)(nil)

// OpenFolder returns the store in dir, which is made when absent.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("The folder for results %s cannot be made: %v.", dir, err),
			Hint:    "Name a folder that this user may write to, with --results or --data-dir.",
			Cause:   fmt.Errorf("opening results folder: %w", err)}
	}
	return &Folder{dir: dir}, nil
}

func (f *Folder) runDir(runID string) (string, error) {
	return filepath.Join(f.dir, runID), CheckRun(runID)
}

func (f *Folder) partPath(runID, name string) (string, error) {
	return filepath.Join(f.dir, runID, name), CheckNames(runID, name)
}

// Put implements Store: the file is moved on the same file system, else copied.
func (f *Folder) Put(ctx context.Context, a engine.Artifact, path string) error {
	final, err := f.partPath(a.RunID, a.Name)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("storing part: %w", err)
	}
	if done, err := already(a, path, final); done || err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o750); err != nil {
		return artifact.DiskError(f.dir, err)
	}
	if err := artifact.SyncDir(f.dir); err != nil {
		return artifact.DiskError(f.dir, err)
	}
	err = place(ctx, a, path, final)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist): // another was faster
		if done, err := already(a, path, final); done || err != nil {
			return err
		}
		return fmt.Errorf("storing part %s: its name comes and goes: %w", a.Name, store.ErrConflict)
	case errors.Is(err, ErrChecksum), errors.Is(err, fs.ErrNotExist), ctx.Err() != nil:
		return fmt.Errorf("storing part %s: %w", a.Name, err)
	}
	return artifact.DiskError(f.dir, err)
}

// already reports whether the file is stored, and takes it away then.
func already(a engine.Artifact, path, final string) (bool, error) {
	switch stored, err := matches(final, a); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("storing part %s: %w", a.Name, err)
	case !stored:
		return false, fmt.Errorf("storing part %s: another file has that name: %w", a.Name, store.ErrConflict)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("removing fetched part: %w", err)
	}
	return true, nil
}

// matches reports whether the file at path is the artifact.
func matches(path string, a engine.Artifact) (bool, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return false, err
	}
	if !st.Mode().IsRegular() || st.Size() != a.SizeBytes {
		return false, nil
	}
	_, sum, err := artifact.Checksum(path)
	return sum == a.SHA256, err
}

func place(ctx context.Context, a engine.Artifact, path, final string) error {
	ok, err := matches(path, a)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%s is not %d bytes with SHA-256 %s: %w", filepath.Base(path), a.SizeBytes, a.SHA256, ErrChecksum)
	}
	if err := syncFile(path); err != nil {
		return err
	}
	switch err := move(path, final); {
	case errors.Is(err, syscall.EXDEV):
		if err := copyInto(ctx, a, path, final); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	return artifact.SyncDir(filepath.Dir(final))
}

// move gives the file its final name unless that is taken, which a rename would not tell.
func move(path, final string) error {
	err := os.Link(path, final)
	switch {
	case err == nil:
		return os.Remove(path)
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EXDEV):
		return err
	}
	// Not every file system has hard links.
	return os.Rename(path, final)
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// copyInto stores the file from another file system: under a temporary name
// until its bytes are checked and durable. The source is removed at the end.
func copyInto(ctx context.Context, a engine.Artifact, path, final string) (err error) {
	src, err := os.Open(path)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.CreateTemp(filepath.Dir(final), ".fetch-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = dst.Close() // the file is thrown away
			_ = os.Remove(dst.Name())
		}
	}()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(dst, sum), contextReader{ctx, src})
	if err != nil {
		return err
	}
	if n != a.SizeBytes || hex.EncodeToString(sum.Sum(nil)) != a.SHA256 {
		return ErrChecksum
	}
	if err := dst.Sync(); err != nil {
		return err
	}
	if err := dst.Close(); err != nil {
		return err
	}
	if err := move(dst.Name(), final); err != nil {
		return err
	}
	return os.Remove(path)
}

// contextReader ends a copy when the context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// Open implements Store.
func (f *Folder) Open(_ context.Context, runID, name string) (File, error) {
	path, err := f.partPath(runID, name)
	if err != nil {
		return nil, err
	}
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !st.Mode().IsRegular() {
		return nil, fmt.Errorf("opening part %s: %w", name, store.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("opening part %s: %w", name, err)
	}
	opened, err := artifact.OpenFile(path)
	if err != nil {
		return nil, fmt.Errorf("opening part %s: %w", name, err)
	}
	return opened, nil
}

// Names implements Store.
func (f *Folder) Names(_ context.Context, runID string) ([]string, error) {
	dir, err := f.runDir(runID)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing parts: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && IsPart(e.Name()) {
			names = append(names, e.Name())
		}
	}
	sort.Strings(names)
	return names, nil
}

// Delete implements Store.
func (f *Folder) Delete(_ context.Context, runID string) error {
	dir, err := f.runDir(runID)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("deleting results: %w", err)
	}
	if err := artifact.SyncDir(f.dir); err != nil {
		return fmt.Errorf("deleting results: %w", err)
	}
	return nil
}

// Where implements Store.
func (f *Folder) Where(runID string) string { return filepath.Join(f.dir, runID) }
