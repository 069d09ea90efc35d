package host

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrivateCache: code that somebody else could have put there is not executed.
func TestPrivateCache(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, dir string)
		says string
	}{
		{"not there", func(*testing.T, string) {}, ""},
		{"readable by all", func(t *testing.T, dir string) { mkdir(t, dir, 0o755) }, ""},
		{"writable by the group", func(t *testing.T, dir string) { mkdir(t, dir, 0o770) }, "written by other users"},
		{"writable by all", func(t *testing.T, dir string) { mkdir(t, dir, 0o707) }, "written by other users"},
		{"a link", func(t *testing.T, dir string) {
			if err := os.Symlink(t.TempDir(), dir); err != nil {
				t.Fatal(err)
			}
		}, "is a link"},
		{"a file", func(t *testing.T, dir string) {
			if err := os.WriteFile(dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "folder of compiled plugins"},
		{"of another user", func(t *testing.T, dir string) {
			mkdir(t, dir, 0o700)
			if err := os.Chown(dir, 54321, -1); err != nil {
				t.Skip("only root can give a folder away: ", err)
			}
		}, "belongs to another user"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			c.make(t, dir)
			h, err := New(context.Background(), Options{CacheDir: dir})
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, expected %q", err, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = h.Close(context.Background()) }()
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%v %v", info.Mode(), err)
			}
		})
	}
}

func mkdir(t *testing.T, dir string, mode os.FileMode) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil { // the umask does not apply
		t.Fatal(err)
	}
}
