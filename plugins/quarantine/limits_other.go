//go:build !linux && !darwin && !netbsd && !openbsd

package quarantine

import (
	"os"
	"os/exec"
)

// limitSelf can do nothing here: the parent's wall timeout and Go's soft memory limit remain.
func limitSelf() error { return nil }

func isolate(*exec.Cmd) {}

func executable() (string, error) { return os.Executable() }
