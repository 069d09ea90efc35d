package hostile

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// fileName is the path of a file in the folder that Write fills.
func (f File) fileName() string {
	if f.Class == "formats" {
		// Not everything there is WebAssembly, and viewers take names at their word.
		return f.Name + ".bin"
	}
	return f.Name + ".wasm"
}

// Index lists all files: where each is stopped, what it is made of, and with which words.
func Index() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %d hostile files; made by plugins/host/hosttest/hostilegen, do not edit\n", len(Corpus()))
	fmt.Fprintln(&b, "# station, bytes, SHA-256, name, part of the sentence")
	for _, f := range Corpus() {
		content := f.Bytes()
		line := fmt.Sprintf("%-10s %8d  %x  %-44s %s", f.Stage, len(content), sha256.Sum256(content), f.Name, f.Message)
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
	}
	return b.Bytes()
}

// Write puts every file into a folder, for other tools.
func Write(dir string) error {
	for _, f := range Corpus() {
		path := filepath.Join(dir, filepath.FromSlash(f.fileName()))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
		if err := os.WriteFile(path, f.Bytes(), 0o644); err != nil { //nolint:gosec // test data is for everybody
			return fmt.Errorf("writing a hostile file: %w", err)
		}
	}
	return nil
}
