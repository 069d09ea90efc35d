package clitest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/loadstone-db/loadstone/storage/keyring"
)

// ShareKey makes data directories whose servers have one key, as servers of one control store need.
func ShareKey(t testing.TB, dirs ...string) {
	t.Helper()
	var key []byte
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "loadstone.key")
		if key != nil {
			if err := os.WriteFile(file, key, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if _, err := keyring.Open(file); err != nil {
			t.Fatal(err)
		}
		var err error
		if key, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
}
