package sql

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestSchemaIsRerunnable(t *testing.T) {
	script := Print()
	for _, at := range regexp.MustCompile(`(?im)^CREATE (TABLE|INDEX|UNIQUE INDEX) `).FindAllStringIndex(script, -1) {
		if !strings.HasPrefix(script[at[1]:], "IF NOT EXISTS") {
			line, _, _ := strings.Cut(script[at[0]:], "\n")
			t.Errorf("not rerunnable: %s", line)
		}
	}
	if regexp.MustCompile(`(?im)^CREATE (FUNCTION|TRIGGER)`).MatchString(script) {
		t.Error("functions and triggers must be made with CREATE OR REPLACE")
	}
}

func TestFilesAreInOrder(t *testing.T) {
	var names []string
	for _, f := range Schema() {
		names = append(names, f.Name)
	}
	if len(names) < 5 || !slices.IsSorted(names) {
		t.Errorf("files %v", names)
	}
}
