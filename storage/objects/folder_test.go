package objects

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/store"
)

func TestMain(m *testing.M) {
	if step := os.Getenv(killAt); step != "" {
		storeAndKill(step)
	}
	goleak.VerifyTestMain(m)
}

// someFile is a file to store.
func someFile(t *testing.T, content string) (engine.Artifact, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "part.parquet")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	size, sum, err := record.Checksum(path)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Artifact{RunID: "run", Name: "part.parquet", SizeBytes: size, SHA256: sum}, path
}

// TestWhatAKilledWriterLeftIsSwept: not what another process is writing at the moment.
func TestWhatAKilledWriterLeftIsSwept(t *testing.T) {
	dir := t.TempDir()
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	a, path := someFile(t, "content")
	in, err := f.receive(t.Context(), a, record.LocalFile(path))
	if err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(dir, incomingDir, "part-killed")
	if err := os.WriteFile(killed, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a killed writer left: %v", err)
	}
	if err := f.publish(in, filepath.Join(dir, "run", a.Name)); err != nil {
		t.Fatalf("what was being written: %v", err)
	}
	in.discard()
	if ok, err := matches(filepath.Join(dir, "run", a.Name), a); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, incomingDir)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestALinkInAFolderIsNotFollowed(t *testing.T) {
	f, err := OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a, path := someFile(t, "content")
	if err := f.Put(context.Background(), a, record.LocalFile(path)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(f.dir, "run", "link.parquet")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(context.Background(), "run", "link.parquet"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("link: %v", err)
	}
	if names, err := f.Names(context.Background(), "run"); err != nil || len(names) != 1 || names[0] != a.Name {
		t.Errorf("names %v: %v", names, err)
	}
}

// TestAFolderSaysWhetherItTakesFiles, before one has come, and leaves nothing.
func TestAFolderSaysWhetherItTakesFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.CheckWritable(); err != nil {
		t.Error(err)
	}
	if left := f.leftovers(t); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
	f.fault = func(string) error { return syscall.ENOSPC }
	if err := f.CheckWritable(); !engine.HasCode(err, engine.CodeUnavailable) {
		t.Errorf("on a full disk: %v", err)
	}
	f.fault = nil
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.CheckWritable(); err == nil {
		t.Error("a file takes files")
	}
}
