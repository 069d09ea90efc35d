package hostiletest

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	update = flag.Bool("update", false, "write the index")
	folder = flag.String("write", "", "write the files into this folder")
)

// fileName is the path of a file in the folder that write fills.
func (f File) fileName() string {
	if f.Class == "formats" {
		// Not everything there is WebAssembly, and viewers take names at their word.
		return f.Name + ".bin"
	}
	return f.Name + ".wasm"
}

// index lists all files: where each is stopped, what it is made of, and with which words.
func index() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %d hostile files; made by plugins/host/hostiletest, do not edit\n", len(Corpus()))
	fmt.Fprintln(&b, "# station, bytes, SHA-256, name, part of the sentence")
	for _, f := range Corpus() {
		content := f.Bytes()
		line := fmt.Sprintf("%-10s %8d  %x  %-44s %s", f.Stage, len(content), sha256.Sum256(content), f.Name, f.Message)
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
	}
	return b.Bytes()
}

// write puts every file into a folder, for other tools.
func write(dir string) error {
	for _, f := range Corpus() {
		path := filepath.Join(dir, filepath.FromSlash(f.fileName()))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
		if err := os.WriteFile(path, f.Bytes(), 0o644); err != nil {
			return fmt.Errorf("writing a hostile file: %w", err)
		}
	}
	return nil
}

// TestEveryHostileFileIsInTheIndex: the files that are made are those of the index,
// byte by byte. A changed generator shows in it, and no file is lost unseen.
func TestEveryHostileFileIsInTheIndex(t *testing.T) {
	path := filepath.Join("..", "testdata", "hostile", "INDEX.txt")
	if *update {
		if err := os.WriteFile(path, index(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(string(stored), "\n"), strings.Split(string(index()), "\n")
	for i := range max(len(want), len(got)) {
		if w, g := at(want, i), at(got, i); w != g {
			t.Fatalf("line %d of the index is\n%s\nand now made is\n%s\nIf that is meant: go test "+
				"./plugins/host/hostiletest -update", i+1, w, g)
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

// TestHostileFilesAreWritten: a folder of them holds all of the index.
func TestHostileFilesAreWritten(t *testing.T) {
	dir := *folder
	if dir == "" {
		dir = t.TempDir()
	}
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	sums := map[string]bool{}
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		n++
		sums[fmt.Sprintf("%x", sha256.Sum256(content))] = true
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n != len(Corpus()) {
		t.Errorf("%d files of %d", n, len(Corpus()))
	}
	for line := range strings.Lines(string(index())) {
		if f := strings.Fields(line); f[0] != "#" && !sums[f[2]] {
			t.Errorf("no file is %s", line)
		}
	}
}

func TestTheCorpusIsLarge(t *testing.T) {
	stations := map[Stage]int{}
	for _, f := range Corpus() {
		stations[f.Stage]++
		if !bytes.Equal(f.Bytes(), f.Bytes()) {
			t.Errorf("%s is another file each time", f.Name)
		}
	}
	if len(Corpus()) < 200 {
		t.Errorf("%d files", len(Corpus()))
	}
	for _, s := range []Stage{Gate, Quarantine, Run, Harmless, Bounded} {
		if stations[s] == 0 {
			t.Errorf("no file for %s", s)
		}
	}
}
