package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheGatesScriptHidesAddresses: what has a password is in no argument and no trace, but in files that this user
// alone reads, and that are gone at the end. The result of a job before is gone, too.
func TestTheGatesScriptHidesAddresses(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	folder := t.TempDir()
	program := `#!/usr/bin/env bash
printf '%s\n' "$@" > "$SEEN/arguments"
env > "$SEEN/environment"
for argument in "$@"; do
  case $argument in target.connection.dsn=*)
    file=${argument#*=}
    cat "$file" >> "$SEEN/addresses"
    ls -l "$file" | cut -c1-10 >> "$SEEN/modes" ;;
  esac
done
exit 2
`
	if err := os.WriteFile(filepath.Join(folder, "loadstone"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(folder, "report")
	if err := os.Mkdir(report, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(report, "gate.json"), []byte(`  "verdict": "same"`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), bash, "-x", filepath.Join("..", "deploy", "ci", "gate.sh"))
	c.Env = []string{
		"PATH=" + folder + ":" + os.Getenv("PATH"),
		"SEEN=" + folder,
		"TMPDIR=" + folder,
		"GATE_TEMPLATE=t.yaml",
		"GATE_REPORT=" + report,
		"GITHUB_OUTPUT=" + filepath.Join(folder, "output"),
		"GATE_BASE_DSN=postgres://u:first-pw@h/base",
		"GATE_CANDIDATE_DSN=postgres://u:second-pw@h/candidate",
		"GATE_CANDIDATE_FILE=target.table_name=/some/file",
	}
	trace, err := c.CombinedOutput()
	if c.ProcessState == nil || c.ProcessState.ExitCode() != 2 {
		t.Fatalf("%v: %s", err, trace)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	arguments := read("arguments")
	for what, text := range map[string]string{"arguments": arguments, "the environment": read("environment"),
		"the trace": string(trace)} {
		if strings.Contains(text, "first-pw") || strings.Contains(text, "second-pw") {
			t.Errorf("%s: %s", what, text)
		}
	}
	if got := read("addresses"); got != "postgres://u:first-pw@h/base\npostgres://u:second-pw@h/candidate\n" {
		t.Errorf("the addresses are %q", got)
	}
	if got := read("modes"); got != "-rw-------\n-rw-------\n" {
		t.Errorf("the modes are %q", got)
	}
	if !strings.Contains(arguments, "--base-file\ntarget.connection.dsn=") ||
		!strings.Contains(arguments, "--candidate-file\ntarget.connection.dsn=") ||
		!strings.Contains(arguments, "--candidate-file\ntarget.table_name=/some/file\n") {
		t.Errorf("the arguments are %q", arguments)
	}
	if left, err := filepath.Glob(filepath.Join(folder, "tmp.*")); err != nil || len(left) > 0 {
		t.Errorf("%v stays, %v", left, err)
	}
	if got := read("output"); !strings.Contains(got, "verdict=\n") {
		t.Errorf("the verdict of a job before: %q", got)
	}
}
