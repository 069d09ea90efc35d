package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// incomingDir is where files are written before they have a name; no run is called so.
const incomingDir = ".incoming"

// incomingFile is a file that has been received and has no name yet. Its lock says that
// its writer lives: what a killed one left is swept by whoever opens the folder next.
type incomingFile struct{ file *os.File }

// begin makes a file that has no name yet.
func (f *Folder) begin() (*incomingFile, error) {
	dir := filepath.Join(f.dir, incomingDir)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, record.DiskError(f.dir, err)
	}
	if err := f.reachStep("create"); err != nil {
		return nil, record.DiskError(f.dir, err)
	}
	in, err := begin(dir)
	if err != nil {
		return nil, record.DiskError(f.dir, err)
	}
	return in, nil
}

// receive writes what the source gives, checked and durable.
func (f *Folder) receive(ctx context.Context, a engine.Artifact, from record.Source) (in *incomingFile, err error) {
	if in, err = f.begin(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			in.discard()
		}
	}()
	failed, err := Receive(ctx, a, from, &faultyWriter{f, in.file, "write"})
	if err != nil {
		return in, fmt.Errorf("storing part %s: %w", a.Name, err)
	}
	if failed == nil {
		failed = f.reachStep("sync")
	}
	if failed == nil {
		failed = in.file.Sync()
	}
	if failed != nil {
		return in, record.DiskError(f.dir, failed)
	}
	return in, nil
}

// faultyWriter is the file as a test may make it fail.
type faultyWriter struct {
	*Folder
	w    io.Writer
	step string
}

func (f *faultyWriter) Write(p []byte) (int, error) {
	if err := f.reachStep(f.step); err != nil {
		return 0, err
	}
	f.step = "write again"
	return f.w.Write(p)
}

// begin makes an empty file that is locked for as long as it is open.
func begin(dir string) (*incomingFile, error) {
	for {
		file, err := os.CreateTemp(dir, "part-*")
		if err != nil {
			return nil, err
		}
		in := &incomingFile{file}
		if err := lock(file); err != nil {
			in.discard()
			return nil, err
		}
		// A sweep may have come between the two.
		if _, err := os.Lstat(file.Name()); err == nil {
			return in, nil
		}
		_ = file.Close() // empty, and nobody's
	}
}

func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// rename gives the file its name unless that is taken, which a rename would not tell.
func (in *incomingFile) rename(final string) error {
	switch err := os.Link(in.file.Name(), final); {
	case err == nil, errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist):
		return err
	}
	// Not every file system has two names for a file.
	if _, err := os.Lstat(final); err == nil {
		return fs.ErrExist
	}
	return os.Rename(in.file.Name(), final)
}

// discard removes what has no meaning any more: the file, or the name that it had.
func (in *incomingFile) discard() {
	_ = os.Remove(in.file.Name()) // what stays is swept
	_ = in.file.Close()           // it was synced, or is thrown away
}

// sweep removes what writers left that were killed.
func (f *Folder) sweep() {
	dir := filepath.Join(f.dir, incomingDir)
	left, err := os.ReadDir(dir)
	if err != nil {
		return // there is none
	}
	for _, e := range left {
		file, err := os.OpenFile(filepath.Join(dir, e.Name()), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if lock(file) == nil {
			_ = os.Remove(file.Name())
		}
		_ = file.Close()
	}
}
