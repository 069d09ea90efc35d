package hostile

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestStoredFiles: what is stored is what this package makes, and nothing else is.
func TestStoredFiles(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "hostile")
	want, total := stored(), 0
	for name, b := range want {
		total += len(b)
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%s is not what is made now (%v): go run ./plugins/host/hosttest/hostilegen", name, err)
		}
	}
	if total > 3<<20 {
		t.Errorf("the stored files have %d bytes; 3 MB are enough", total)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if name, _ := filepath.Rel(dir, path); want[name] == nil && name != filepath.Join("formats", "empty.bin") {
				t.Errorf("%s is not made any more: go run ./plugins/host/hosttest/hostilegen", name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheCorpusIsLarge(t *testing.T) {
	stations := map[Station]int{}
	for _, f := range Corpus() {
		stations[f.Station]++
		if !bytes.Equal(f.Bytes(), f.Bytes()) {
			t.Errorf("%s is another file each time", f.Name)
		}
	}
	if len(Corpus()) < 200 {
		t.Errorf("%d files", len(Corpus()))
	}
	for _, s := range []Station{Gate, Quarantine, Run, Harmless, Bounded} {
		if stations[s] == 0 {
			t.Errorf("no file for %s", s)
		}
	}
}
