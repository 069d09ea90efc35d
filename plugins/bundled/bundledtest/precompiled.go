package bundledtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// The variables that tell TestCompile what to do.
const folderVariable, filesVariable = "LOADSTONE_PRECOMPILE", "LOADSTONE_PRECOMPILE_FILES"

// Compile fills dir, a folder of a host's Options, with the bundled plugins, compiled. Under the race detector
// the Wasm compiler takes ten times as long, and it is not what those tests are about: a process without the
// detector compiles for them. Without it Compile does nothing: compiling when asked is as fast.
func Compile(dir string) error {
	if !Race {
		return nil
	}
	root, err := module()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(root, "plugins", "bundled", "built", "*.wasm"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no bundled plugin is built; make plugins does it: %w", err)
	}

	cmd := exec.Command("go", "test", "-buildvcs=false", "-trimpath", "-count=1", "-run", "^TestCompile$",
		"./plugins/bundled/bundledtest")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", folderVariable+"="+dir,
		filesVariable+"="+strings.Join(files, string(os.PathListSeparator)))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling the bundled plugins: %w\n%s", err, out)
	}
	return nil
}

// maxAge is how long compiled code stays that nobody made again: a version's plugins are
// compiled anew after each change of them, and what is left of earlier ones is 200 MB a day.
const maxAge = 3 * 24 * time.Hour

var prune sync.Once

// CacheDir is where compiled code is kept between test binaries, a folder of the user's own; code of other versions
// in it is not used, and goes after some days.
func CacheDir() string {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	dir := filepath.Join(base, "loadstone-test", fmt.Sprintf("wasm-%d", os.Getuid()))
	prune.Do(func() { removeOlder(dir, time.Now().Add(-maxAge)) })
	return dir
}

// removeOlder removes the files below dir that were written before limit. Another process may
// do the same, or read one: a file that is gone is compiled again.
func removeOlder(dir string, limit time.Time) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // what cannot be read stays
		}
		if info, err := d.Info(); err == nil && info.ModTime().Before(limit) {
			_ = os.Remove(path)
		}
		return nil
	})
}

// module is the folder of go.mod: a test runs in that of its package.
func module() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("finding the module: no folder above the test has a go.mod")
		}
		dir = up
	}
}
