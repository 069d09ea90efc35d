package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/store"
)

// killAt names the step at which a process of this test stores a file and is killed.
const killAt = "LOADSTONE_TEST_KILL_AT"

// big is a file that is written in several pieces.
func big(t *testing.T) (engine.Artifact, string, []byte) {
	t.Helper()
	content := bytes.Repeat([]byte("0123456789abcdef"), 3*copyBuffer/16)
	a, path := someFile(t, string(content))
	return a, path, content
}

// storeAndKill is the process: it gets the file in its environment.
func storeAndKill(step string) {
	f, err := OpenFolder(os.Getenv("LOADSTONE_TEST_FOLDER"))
	if err == nil {
		path := os.Getenv("LOADSTONE_TEST_FILE")
		var size int64
		var sum string
		if size, sum, err = record.Checksum(path); err == nil {
			f.fault = func(at string) error {
				if at == step {
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
					select {}
				}
				return nil
			}
			err = f.Put(context.Background(), engine.Artifact{RunID: "run", Name: "part.parquet", SizeBytes: size, SHA256: sum},
				record.LocalFile(path))
		}
	}
	fmt.Println("not killed:", err)
	os.Exit(1)
}

// leftovers are the files that have no meaning.
func (f *Folder) leftovers(t *testing.T) []os.DirEntry {
	t.Helper()
	left, err := os.ReadDir(filepath.Join(f.dir, incomingDir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return left
}

// checkWholeOrAbsent makes sure that the file is stored, or is not there at all.
func (f *Folder) checkWholeOrAbsent(t *testing.T, a engine.Artifact) (stored bool) {
	t.Helper()
	file, err := f.Open(t.Context(), a.RunID, a.Name)
	if errors.Is(err, store.ErrNotFound) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	if same, err := matches(filepath.Join(f.dir, a.RunID, a.Name), a); err != nil || !same {
		t.Errorf("half a file has its name: %v", err)
	}
	return true
}

// TestAServerKilledAtAnyStepOfStoring leaves the whole part or none of it, and its source; the next
// process stores it, and nothing else is left.
func TestAServerKilledAtAnyStepOfStoring(t *testing.T) {
	t.Parallel()
	for i, step := range steps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			a, path, content := big(t)
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append(os.Environ(), killAt+"="+step, "LOADSTONE_TEST_FOLDER="+dir, "LOADSTONE_TEST_FILE="+path)
			out, err := child.CombinedOutput()
			if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
				t.Fatalf("the process ended with %v: %s", err, out)
			}
			f, err := OpenFolder(dir)
			if err != nil {
				t.Fatal(err)
			}
			if left := f.leftovers(t); len(left) != 0 {
				t.Errorf("the next process leaves %v", left)
			}
			if stored := f.checkWholeOrAbsent(t, a); stored != (i >= 6) {
				t.Errorf("stored: %v", stored)
			}
			for range 2 {
				if err := f.Put(t.Context(), a, record.LocalFile(path)); err != nil {
					t.Fatal(err)
				}
			}
			if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, content) {
				t.Errorf("the source has changed: %v", err)
			}
			if !f.checkWholeOrAbsent(t, a) || len(f.leftovers(t)) != 0 {
				t.Error("it is not stored in the end")
			}
		})
	}
}

// TestADiskThatIsFullAtAnyStepOfStoring: the error says so, the source stays, nothing is half there, and
// with room again it is stored.
func TestADiskThatIsFullAtAnyStepOfStoring(t *testing.T) {
	t.Parallel()
	for _, step := range steps[:len(steps)-1] {
		f, err := OpenFolder(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		a, path, content := big(t)
		requested := 0
		f.fault = func(at string) error {
			if at == step {
				requested++
				return &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
			}
			return nil
		}
		err = f.Put(t.Context(), a, record.LocalFile(path))
		if requested != 1 || !engine.HasCode(err, engine.CodeUnavailable) ||
			!strings.Contains(err.Error(), "The disk is full") {
			t.Errorf("%s: asked %d times: %v", step, requested, err)
		}
		if left := f.leftovers(t); len(left) != 0 {
			t.Errorf("%s: left behind: %v", step, left)
		}
		f.checkWholeOrAbsent(t, a)
		if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, content) {
			t.Errorf("%s: the source has changed: %v", step, err)
		}
		f.fault = nil
		if err := f.Put(t.Context(), a, record.LocalFile(path)); err != nil || !f.checkWholeOrAbsent(t, a) {
			t.Errorf("%s, with room again: %v", step, err)
		}
	}
}
