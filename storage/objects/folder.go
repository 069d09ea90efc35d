package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Folder implements Store on a local folder, with one folder in it for each run. A file
// is stored under its final name in one rename, and never changes.
type Folder struct {
	dir string
	// fault is asked before each step of storing a file; nil but in tests.
	fault func(step string) error
}

// The steps of storing a file, in order.
var steps = []string{"create", "write", "write again", "sync", "make the folder", "name", "sync the folder", "done"}

// reachStep lets a test fail a step.
func (f *Folder) reachStep(step string) error {
	if f.fault == nil {
		return nil
	}
	return f.fault(step)
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
	f := &Folder{dir: dir}
	f.sweep()
	return f, nil
}

func (f *Folder) runDir(runID string) (string, error) {
	return filepath.Join(f.dir, runID), CheckRun(runID)
}

func (f *Folder) partPath(runID, name string) (string, error) {
	return filepath.Join(f.dir, runID, name), CheckNames(runID, name)
}

// Put implements Store: written and made durable under a name of no meaning, then given
// its own, which the folder then remembers.
func (f *Folder) Put(ctx context.Context, a engine.Artifact, from record.Source) error {
	final, err := f.partPath(a.RunID, a.Name)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("storing part: %w", err)
	}
	if done, err := alreadyStored(a, final); done || err != nil {
		return err
	}
	in, err := f.receive(ctx, a, from)
	if err != nil {
		return err
	}
	defer in.discard()
	if err := f.publish(in, final); !errors.Is(err, fs.ErrExist) {
		if err != nil {
			return record.DiskError(f.dir, err)
		}
		return f.reachStep("done")
	}
	// Another was faster.
	if done, err := alreadyStored(a, final); done || err != nil {
		return err
	}
	return fmt.Errorf("storing part %s: its name comes and goes: %w", a.Name, store.ErrConflict)
}

// CheckWritable is nil when the next file can be begun.
func (f *Folder) CheckWritable() error {
	in, err := f.begin()
	if err == nil {
		in.discard()
	}
	return err
}

// alreadyStored reports whether the file is stored.
func alreadyStored(a engine.Artifact, final string) (bool, error) {
	switch stored, err := matches(final, a); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("storing part %s: %w", a.Name, err)
	case !stored:
		return false, fmt.Errorf("storing part %s: another file has that name: %w", a.Name, store.ErrConflict)
	}
	// Who stored it may have ended before its name was durable.
	if err := record.SyncDir(filepath.Dir(final)); err != nil {
		return false, record.DiskError(filepath.Dir(final), err)
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
	_, sum, err := record.Checksum(path)
	return sum == a.SHA256, err
}

// publish gives what has come in its name, unless that is taken (fs.ErrExist).
func (f *Folder) publish(in *incomingFile, final string) error {
	if err := f.reachStep("make the folder"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o750); err != nil {
		return err
	}
	if err := record.SyncDir(f.dir); err != nil {
		return err
	}
	if err := f.reachStep("name"); err != nil {
		return err
	}
	if err := in.rename(final); err != nil {
		return err
	}
	if err := f.reachStep("sync the folder"); err != nil {
		return err
	}
	return record.SyncDir(filepath.Dir(final))
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
	opened, err := record.OpenFile(path)
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

// Remove implements Store.
func (f *Folder) Remove(_ context.Context, runID, name string) error {
	path, err := f.partPath(runID, name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("removing part %s: %w", name, err)
	}
	if err := record.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("removing part %s: %w", name, err)
	}
	return nil
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
	if err := record.SyncDir(f.dir); err != nil {
		return fmt.Errorf("deleting results: %w", err)
	}
	return nil
}

// Location implements Store.
func (f *Folder) Location(runID string) string { return filepath.Join(f.dir, runID) }
