package objects

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/artifact"
	"github.com/loadstone-db/loadstone/engine/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// someFile is a file to store.
func someFile(t *testing.T, content string) (engine.Artifact, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "part.parquet")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	size, sum, err := artifact.Checksum(path)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Artifact{RunID: "run", Name: "part.parquet", SizeBytes: size, SHA256: sum}, path
}

func TestCopyAcrossFileSystems(t *testing.T) {
	ctx := context.Background()
	f, err := OpenFolder(filepath.Join(t.TempDir(), "results"))
	if err != nil {
		t.Fatal(err)
	}
	a, path := someFile(t, "content")
	final := filepath.Join(f.dir, a.Name)
	wrong := a
	wrong.SHA256 = strings.Repeat("0", 64)
	if err := copyInto(ctx, wrong, path, final); !errors.Is(err, ErrChecksum) {
		t.Fatalf("wrong checksum: %v", err)
	}
	if left, _ := os.ReadDir(f.dir); len(left) != 0 {
		t.Fatalf("left behind: %v", left)
	}
	if err := copyInto(ctx, a, path, final); err != nil {
		t.Fatal(err)
	}
	if ok, err := matches(final, a); !ok || err != nil {
		t.Fatalf("stored file differs: %v", err)
	}
}

func TestALinkInAFolderIsNotFollowed(t *testing.T) {
	f, err := OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a, path := someFile(t, "content")
	if err := f.Put(context.Background(), a, path); err != nil {
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
