// Package bundled embeds the plugins that come with Loadstone. They go through
// the same door as uploaded ones. The files are built by `make plugins` and are
// not committed.
package bundled

import (
	"embed"
	"errors"
	"fmt"
	"strings"
)

//go:embed all:dist
var dist embed.FS

// ErrNotBuilt is returned by Files when the program was built without its plugins.
var ErrNotBuilt = errors.New("this build has no bundled plugins: run `make plugins` and build again")

// Files returns the bundled modules by file name.
func Files() (map[string][]byte, error) {
	entries, err := dist.ReadDir("dist")
	if err != nil {
		return nil, fmt.Errorf("reading the bundled plugins: %w", err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".wasm") {
			continue
		}
		if files[e.Name()], err = dist.ReadFile("dist/" + e.Name()); err != nil {
			return nil, fmt.Errorf("reading the bundled plugins: %w", err)
		}
	}
	if len(files) == 0 {
		return nil, ErrNotBuilt
	}
	return files, nil
}
