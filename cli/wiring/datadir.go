package wiring

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
)

// DefaultDataDir is where an installation keeps its data when nobody says otherwise.
func DefaultDataDir() string {
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

// MakeDataDir creates the folder and proves that files can be written there.
func MakeDataDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolving the data directory: %w", err)
	}
	refuse := func(err error) error {
		hint := "choose another one with --data-dir"
		if errors.Is(err, os.ErrPermission) {
			hint = fmt.Sprintf("the process runs as user %d, group %d: make the folder writable for it, or choose another "+
				"one with --data-dir", os.Geteuid(), os.Getegid())
		}
		return &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("The data directory %s cannot be used: %v.", abs, err), Hint: hint, Cause: err}
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

// ownerOf names the data directory in the leases of its runs. The name stays with
// the directory, so that a restart finds its own runs at once.
func ownerOf(dir string) (string, error) {
	path := filepath.Join(dir, "owner")
	refuse := func(err error) error {
		return &engine.Error{Code: engine.CodeUnavailable, Message: fmt.Sprintf("The file %s cannot be used: %v.", path, err),
			Hint: "make it readable and writable for this user", Cause: err}
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", refuse(err)
	}
	if id, err := uuid.Parse(strings.TrimSpace(string(text))); err == nil {
		return id.String(), nil
	}
	id := uuid.NewString()
	draft := path + ".new"
	if err := os.WriteFile(draft, []byte(id+"\n"), 0o600); err != nil {
		return "", refuse(err)
	}
	if err := os.Rename(draft, path); err != nil {
		return "", refuse(err)
	}
	return id, nil
}
