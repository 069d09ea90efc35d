package sql

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var streamBlock = regexp.MustCompile("(?ms)^```stream\n(.*?)^```$")

// TestStatementsOfTheDocs: the statements of continuous queries in the pages are statements.
func TestStatementsOfTheDocs(t *testing.T) {
	t.Parallel()
	seen := 0
	err := filepath.WalkDir("../../../docs", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".md") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, block := range streamBlock.FindAllStringSubmatch(string(text), -1) {
			seen++
			if _, err := Parse(block[1]); err != nil {
				t.Errorf("%s: %v\n%s", path, err, block[1])
			}
		}
		return nil
	})
	if err != nil || seen < 4 {
		t.Errorf("%d blocks of statements were found: %v", seen, err)
	}
}
