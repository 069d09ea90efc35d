package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loadstone-db/loadstone/engine"
)

// defaultDataDir is where an installation keeps its data when nobody says otherwise.
func defaultDataDir() string {
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "loadstone")
	}
	if os.Geteuid() == 0 {
		return "/var/lib/loadstone"
	}
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		return filepath.Join(home, ".local", "share", "loadstone")
	}
	return filepath.Join(os.TempDir(), "loadstone")
}

// makeDataDir creates the folder and proves that files can be written there.
func makeDataDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolving the data directory: %w", err)
	}
	refuse := func(err error) error {
		hint := "choose another one with --data-dir"
		if errors.Is(err, os.ErrPermission) {
			hint = fmt.Sprintf("the process runs as user %d, group %d: make the folder writable for it, or choose another one with --data-dir", os.Geteuid(), os.Getegid())
		}
		return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("The data directory %s cannot be used: %v.", abs, err), Hint: hint, Cause: err}
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return "", refuse(err)
	}
	probe, err := os.CreateTemp(abs, ".writable-*")
	if err != nil {
		return "", refuse(err)
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	return abs, nil
}
