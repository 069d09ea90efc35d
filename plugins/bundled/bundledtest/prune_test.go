package bundledtest

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestOldCodeGoes: what was compiled long ago is removed, what is new stays.
func TestOldCodeGoes(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{"old": 2 * time.Hour, "new": 0} {
		path := filepath.Join(dir, "v", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	removeOlder(dir, now.Add(-time.Hour))
	left, err := filepath.Glob(filepath.Join(dir, "v", "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "new" {
		t.Fatalf("%q, %v", left, err)
	}
}
