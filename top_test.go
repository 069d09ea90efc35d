package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// top are the folders that show the architecture, and those beside them.
var top = []string{".ci", "bench", "cli", "deploy", "docs", "engine", "examples", "plugins", "sdk", "server",
	"snowsim", "sql", "storage", "ui"}

// TestTheTopShowsTheArchitecture: nothing else has a folder at the top of the repository. A
// tool that took a flag for a folder's name had put eight hundred files there.
func TestTheTopShowsTheArchitecture(t *testing.T) {
	list, err := exec.CommandContext(t.Context(), "git", "ls-files").Output()
	if err != nil {
		t.Skipf("this is no checkout of git: %v", err)
	}
	seen := map[string]bool{}
	for path := range strings.Lines(string(list)) {
		folder, _, nested := strings.Cut(path, "/")
		if nested && !seen[folder] && !slices.Contains(top, strings.Trim(folder, `"`)) {
			t.Errorf("the folder %s does not belong at the top", folder)
		}
		seen[folder] = seen[folder] || nested
	}
}
