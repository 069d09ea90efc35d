package ui

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// What a browser takes before it shows anything: at most this much, compressed, in at most that many files.
const (
	mostFirstBytes  = 170 << 10
	mostScriptBytes = 130_000
	mostFirstFiles  = 12
)

// TestTheFirstLoadIsLight weighs the scripts and styles that the built page names; what is opened later is in files of
// its own.
func TestTheFirstLoadIsLight(t *testing.T) {
	page, err := os.ReadFile("dist/index.html")
	if os.IsNotExist(err) {
		t.Skip("the page is not built: make ui builds it")
	}
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?:src|href)="/([^"]+\.(?:js|css))"`).FindAllSubmatch(page, -1)
	if len(named) < 2 {
		t.Fatalf("the page names %d scripts and styles", len(named))
	}
	var all bytes.Buffer
	scripts := 0
	for _, n := range named {
		before := all.Len()
		content, err := os.ReadFile(filepath.Join("dist", string(n[1])))
		if err != nil {
			t.Fatal(err)
		}
		w := gzip.NewWriter(&all)
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if bytes.HasSuffix(n[1], []byte(".js")) {
			scripts += all.Len() - before
		}
	}
	if scripts > mostScriptBytes {
		t.Errorf("scripts of %d bytes, at most %d", scripts, mostScriptBytes)
	}
	if all.Len() > mostFirstBytes || len(named) > mostFirstFiles {
		t.Errorf("%d files of %d bytes, at most %d of %d", len(named), all.Len(), mostFirstFiles, mostFirstBytes)
	}
	t.Logf("%d files, %d bytes, %d of scripts", len(named), all.Len(), scripts)
}
