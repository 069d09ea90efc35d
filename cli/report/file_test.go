package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/cli/report"
)

// TestAFileSaysEverythingOnce: of a figure that is there twice the last one would be compared, whatever the first says.
// Names of tags that differ in case are two.
func TestAFileSaysEverythingOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	for text, want := range map[string]string{
		`{"run_id":"a","qps":1,"qps":1000}`:                                     `the member "qps" is there twice`,
		`{"run_id":"a","qps":1,"QPS":1000}`:                                     `the member "QPS" is there twice`,
		`{"run_id":"a","seconds":[{"operations":1},{"errors":0,"errors":1}]}`:   `the member "errors" of seconds[1]`,
		`{"run_id":"a","tags":{"a":"1","a":"2"}}`:                               `the member "a" of tags`,
		`{"run_id":"a","qps":1,"tags":{"a":"1","A":"2"},"seconds":[{"qps":1}]}`: "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := report.Read(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
