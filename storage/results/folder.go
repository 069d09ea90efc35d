// Package results keeps the Parquet parts of runs in a folder, one folder per
// run, and computes the exact figures of a run from them.
//
// A part is checked on the way in (size and SHA-256), stored under its final
// name in one rename, and never changes. Figures read columns, never rows.
package results

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
	"strings"
	"syscall"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/artifact"
	"github.com/loadstone-db/loadstone/engine/store"
)

// ErrChecksum says that a file is not the artifact it claims to be: its size or
// its SHA-256 differs. The file is left where it was.
var ErrChecksum = errors.New("checksum mismatch")

// Folder implements store.Results on a local folder. Its methods are safe for
// concurrent use, except Delete beside another method on the same run.
type Folder struct {
	dir string
}

var _ store.Results = (*Folder)(nil)

// Open returns the results kept in dir, which is made when absent.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("opening results folder: %w", err)
	}
	return &Folder{dir: dir}, nil
}

func (f *Folder) runDir(runID string) (string, error) {
	if !artifact.ValidName(runID) {
		return "", engine.InvalidField("run_id", fmt.Sprintf("%q is not a run id", runID),
			"Use the id that the list of runs shows.")
	}
	return filepath.Join(f.dir, runID), nil
}

func (f *Folder) partPath(runID, name string) (string, error) {
	dir, err := f.runDir(runID)
	if err != nil {
		return "", err
	}
	if !artifact.ValidName(name) || !strings.HasSuffix(name, ".parquet") {
		return "", engine.InvalidField("part", fmt.Sprintf("%q is not the name of a part", name),
			"Use a name from the run's list of artifacts.")
	}
	return filepath.Join(dir, name), nil
}

// Put implements store.Results. A file that is not what a says is refused with
// ErrChecksum; another file under the name of a stored part with store.ErrConflict.
func (f *Folder) Put(ctx context.Context, a engine.Artifact, path string) error {
	final, err := f.partPath(a.RunID, a.Name)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("storing part: %w", err)
	}
	if stored, err := matches(final, a); err == nil {
		if !stored {
			return fmt.Errorf("storing part %s: another file has that name: %w", a.Name, store.ErrConflict)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing fetched part: %w", err)
		}
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("storing part %s: %w", a.Name, err)
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o750); err != nil {
		return artifact.DiskError(f.dir, err)
	}
	if err := artifact.SyncDir(f.dir); err != nil {
		return artifact.DiskError(f.dir, err)
	}
	if err := place(ctx, a, path, final); err != nil {
		if errors.Is(err, ErrChecksum) || errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
			return fmt.Errorf("storing part %s: %w", a.Name, err)
		}
		return artifact.DiskError(f.dir, err)
	}
	return nil
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
	switch err := os.Rename(path, final); {
	case errors.Is(err, syscall.EXDEV):
		if err := copyInto(ctx, a, path, final); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	return artifact.SyncDir(filepath.Dir(final))
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
	if err := os.Rename(dst.Name(), final); err != nil {
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

// Open implements store.Results. A part that is not there is store.ErrNotFound.
func (f *Folder) Open(ctx context.Context, runID, name string) (io.ReadSeekCloser, int64, error) {
	path, err := f.partPath(runID, name)
	if err != nil {
		return nil, 0, err
	}
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !st.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("opening part %s: %w", name, store.ErrNotFound)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("opening part %s: %w", name, err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("opening part %s: %w", name, err)
	}
	return file, st.Size(), nil
}

// Names lists the run's stored parts, executions and enrichment, by name.
func (f *Folder) Names(runID string) ([]string, error) {
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
		if e.Type().IsRegular() && artifact.ValidName(e.Name()) && strings.HasSuffix(e.Name(), ".parquet") {
			names = append(names, e.Name())
		}
	}
	sort.Strings(names)
	return names, nil
}

// executionParts lists the paths of the parts that hold executions.
func (f *Folder) executionParts(runID string) ([]string, error) {
	names, err := f.Names(runID)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range names {
		if strings.HasPrefix(name, "executions-") {
			paths = append(paths, filepath.Join(f.dir, runID, name))
		}
	}
	return paths, nil
}

// Delete implements store.Results. A run without a folder is no error.
func (f *Folder) Delete(ctx context.Context, runID string) error {
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

// Dir is the folder that holds the runs' folders.
func (f *Folder) Dir() string { return f.dir }
