package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestSalvageKeepsWhatItCannotOpen lets parts fail to open for every reason but
// being torn: none of them is deleted, and they are salvaged when they open again.
func TestSalvageKeepsWhatItCannotOpen(t *testing.T) {
	dir := t.TempDir()
	opts := testOptions(dir)
	opts.PartRows = rowGroupRows
	w, err := NewWriter(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeAll(w, realistic(3*rowGroupRows, 16, 100, 0, 100)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := Salvage(dir)
	if err != nil || len(whole) != 3 {
		t.Fatalf("%d parts, %v", len(whole), err)
	}
	bytes, err := os.ReadFile(filepath.Join(dir, whole[0].Name))
	if err != nil {
		t.Fatal(err)
	}
	// A newer version's columns, and a footer that something else has damaged.
	damaged := append([]byte{}, bytes...)
	for i := len(damaged) - 200; i < len(damaged)-8; i++ {
		damaged[i] ^= 0xff
	}
	if err := os.WriteFile(filepath.Join(dir, "executions-x-00009.parquet"), damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(bytes), metaSchemaVersion+"\x18\x01"+fmt.Sprint(SchemaVersion),
		metaSchemaVersion+"\x18\x01"+fmt.Sprint(SchemaVersion+1), 1)
	if newer == string(bytes) {
		t.Fatal("the schema version was not found in the part")
	}
	if err := os.WriteFile(filepath.Join(dir, "executions-y-00001.parquet"), []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	reasons := map[string]error{whole[0].Name: syscall.EMFILE, whole[1].Name: syscall.EIO}
	failing := func(path string) (*Part, error) {
		if err := reasons[filepath.Base(path)]; err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return OpenPart(path)
	}
	found, err := salvage(dir, failing)
	var kept *QuarantineError
	if !errors.As(err, &kept) || len(kept.Parts) != 4 || len(found) != 1 || !errors.Is(err, syscall.EMFILE) ||
		!errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "newer version") {
		t.Fatalf("found %d, %v", len(found), err)
	}
	for _, p := range kept.Parts {
		if _, err := os.Stat(filepath.Join(dir, p.Name)); err != nil || !strings.HasSuffix(p.Name, quarantinedSuffix) {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	// Torn files go, also beside them.
	if err := os.WriteFile(filepath.Join(dir, "executions-z-00001.parquet"), bytes[:len(bytes)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	clear(reasons)
	found, err = salvage(dir, failing)
	if !errors.As(err, &kept) || len(kept.Parts) != 2 || len(found) != 3 {
		t.Fatalf("found %d, %v", len(found), err)
	}
	for i, a := range found {
		if a != whole[i] && a.SHA256 != whole[i].SHA256 {
			t.Errorf("%+v came back as %+v", whole[i], a)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 5 {
		t.Errorf("left %v", left)
	}
}
