package snowsim

import (
	"os"
	"path/filepath"
	"testing"
)

// A stand-in that cannot start has not begun a history.
func TestAStartThatFailsLeavesNoHistoryOpen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	if s, err := Start(t.Context(), Options{Postgres: "postgres://%zz", HistoryFile: file}); err == nil {
		s.Close()
		t.Fatal("it starts on an address that cannot be read")
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("its history was opened: %v", err)
	}
}
