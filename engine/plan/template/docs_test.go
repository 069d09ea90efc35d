package template

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// whole is a template to which a page shows a part.
const whole = `name: part of a page
target: {connection: playground, table_name: orders}
workload: {plugin: mix}
`

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// notTemplate is of files for loadstone apply, which say their kind, and of the command line's configuration.
var notTemplate = regexp.MustCompile(`(?m)^(kind|server):`)

// TestTemplatesOfTheDocs: each template that stands in a page, or part of one, is a template.
func TestTemplatesOfTheDocs(t *testing.T) {
	t.Parallel()
	pages := []string{"../../../README.md"}
	err := filepath.WalkDir("../../../docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") && !strings.Contains(path, "decisions") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			if notTemplate.MatchString(block[1]) {
				continue
			}
			seen++
			if _, err := Parse(completed(t, block[1])); err != nil {
				t.Errorf("%s: %v\n%s", path, err, block[1])
			}
		}
	}
	if seen < 12 {
		t.Errorf("%d templates were found", seen)
	}
}

// completed adds to a part of a template what every template has.
func completed(t *testing.T, part string) []byte {
	t.Helper()
	var shown, base map[string]any
	if err := yaml.Unmarshal([]byte(part), &shown); err != nil {
		t.Fatalf("%v in\n%s", err, part)
	}
	if err := yaml.Unmarshal([]byte(whole), &base); err != nil {
		t.Fatal(err)
	}
	if shown["matrix"] != nil {
		delete(base, "target")
	}
	workload, _ := shown["workload"].(map[string]any)
	if base["workload"] != nil && workload != nil && workload["plugin"] == nil {
		workload["plugin"] = "mix"
	}
	for name, value := range shown {
		base[name] = value
	}
	if shown["find_max"] != nil && workload == nil {
		base["workload"] = map[string]any{"plugin": "mix", "load_mode": "FIND_MAX_CONCURRENCY"}
	}
	document, err := yaml.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	return document
}
