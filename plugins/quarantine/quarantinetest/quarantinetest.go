// Package quarantinetest gives tests the program that a quarantine starts. The test binary itself will not do: the
// race detector needs more memory than a child may have.
package quarantinetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var built struct {
	once sync.Once
	dir  string
	err  error
}

// programEnv names the program where it is built already, as `make test` does.
const programEnv = "LOADSTONE_BUILT"

// Binary builds the program as `make build` does, once for each test binary, and
// returns its path. Remove it in TestMain, with Clean.
func Binary(tb testing.TB) string {
	tb.Helper()
	if program := os.Getenv(programEnv); program != "" {
		return program
	}
	built.once.Do(build)
	if built.err != nil {
		tb.Fatal(built.err)
	}
	return filepath.Join(built.dir, "loadstone")
}

func build() {
	if built.dir, built.err = os.MkdirTemp("", "loadstone-quarantine-"); built.err != nil {
		return
	}

	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o",
		filepath.Join(built.dir, "loadstone"), "github.com/loadstone-db/loadstone")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		built.err = fmt.Errorf("building the program: %w\n%s", err, out)
	}
}

// Clean removes what Binary built.
func Clean() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}
