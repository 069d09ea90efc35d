package hostile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// storedLimit is the size from which a file is not stored: the recipe is enough.
const storedLimit = 16 << 10

// Stored reports that the file lies in testdata/hostile.
func (f File) Stored() bool { return !f.Large && len(f.Bytes()) <= storedLimit }

// fileName is the path of a stored file in its folder.
func (f File) fileName() string {
	if f.Class == "formats" {
		// Not everything there is WebAssembly, and viewers take names at their word.
		return f.Name + ".bin"
	}
	return f.Name + ".wasm"
}

// index lists all files and where each is stopped, for people.
func index() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %d hostile files; made by plugins/host/hosttest/hostilegen, do not edit\n# station, stored bytes or - (made when needed), name, part of the sentence\n", len(Corpus()))
	for _, f := range Corpus() {
		size := "-"
		if f.Stored() {
			size = fmt.Sprint(len(f.Bytes()))
		}
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%-10s %6s  %-44s %s", f.Station, size, f.Name, f.Says), " "))
	}
	return b.Bytes()
}

// indexName is the file of index.
const indexName = "INDEX.txt"

// Write makes the folder anew.
func Write(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the old files: %w", err)
	}
	for name, b := range stored() {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil { //nolint:gosec // test data is for everybody
			return fmt.Errorf("writing a hostile file: %w", err)
		}
	}
	return nil
}

func stored() map[string][]byte {
	files := map[string][]byte{indexName: index()}
	for _, f := range Corpus() {
		if f.Stored() {
			files[filepath.FromSlash(f.fileName())] = f.Bytes()
		}
	}
	return files
}
