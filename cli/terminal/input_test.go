package terminal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// TestAFileThatIsNotThere is answered with the one that was likely meant, or with what the folder has.
func TestAFileThatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"lookups.yaml", "first-run.yaml", "a.csv", "up\x1b[31m.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, hint := range map[string]string{"lookup.yaml": "did you mean " + dir + "/lookups.yaml?",
		"something-else.yaml": dir + " has first-run.yaml, lookups.yaml", "none.at.all": "it was looked for in " + dir,
		"no/such.yaml": "there is no folder " + dir + "/no"} {
		_, err := terminal.ReadBounded("The template", filepath.Join(dir, name), 10)
		var message *engine.Error
		if !errors.As(err, &message) || message.Hint != hint || !strings.Contains(message.Message, "no such file") {
			t.Errorf("%s: %v, %q; want %q", name, err, message.Hint, hint)
		}
	}
	var reported *engine.Error
	if _, err := terminal.ReadBounded("The template", dir, 10); !errors.As(err, &reported) || reported.Hint != "" {
		t.Errorf("a folder: %v", err)
	}
}
