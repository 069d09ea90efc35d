// Package bundled embeds the plugins that come with Loadstone. They go through
// the same door as uploaded ones. The files are built by `make plugins` and are
// not committed.
package bundled

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/loadstone-db/loadstone/engine/plugin"
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

// known holds what the host knew of each file when it was built.
const known = "dist/manifests.json"

// Infos returns what each bundled module is, by file name, without compiling it.
// Files that are not in it have to be asked; it is nil in a build without that knowledge.
func Infos() (map[string]plugin.Info, error) {
	text, err := dist.ReadFile(known)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what the bundled plugins are: %w", err)
	}
	var infos map[string]plugin.Info
	if err := json.Unmarshal(text, &infos); err != nil {
		return nil, fmt.Errorf("reading what the bundled plugins are: %w", err)
	}
	return infos, nil
}
