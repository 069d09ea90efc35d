package hostile

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryHostileFileIsInTheIndex: the files that are made are those of the index,
// byte by byte. A changed generator shows in it, and no file is lost unseen.
func TestEveryHostileFileIsInTheIndex(t *testing.T) {
	stored, err := os.ReadFile(filepath.Join("..", "..", "testdata", "hostile", "INDEX.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(string(stored), "\n"), strings.Split(string(Index()), "\n")
	for i := range max(len(want), len(got)) {
		if w, g := at(want, i), at(got, i); w != g {
			t.Fatalf("line %d of the index is\n%s\nand now made is\n%s\nIf that is meant: go run "+
				"./plugins/host/hosttest/hostilegen", i+1, w, g)
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
	dir := t.TempDir()
	if err := Write(dir); err != nil {
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
	for line := range strings.Lines(string(Index())) {
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
