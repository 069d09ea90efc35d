package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
	"github.com/loadstone-db/loadstone/plugins/host/hostiletest"
	"github.com/loadstone-db/loadstone/plugins/quarantine"
	"github.com/loadstone-db/loadstone/plugins/quarantine/quarantinetest"
	"github.com/loadstone-db/loadstone/plugins/trial"
)

// invokeWith runs the command line as a shell would.
func invokeWith(t *testing.T, settings terminal.Settings, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = start(context.Background(), func() {}, func() {}, settings, args, &out, &err)
	return code, out.String(), err.String()
}

func invoke(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return invokeWith(t, clitest.Settings(), args...)
}

// TestRefusedFiles: exit 1 and one sentence that says why.
func TestRefusedFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := plugintest.Guest{Batch: plugintest.Batch(plugintest.Operation(0, plugintest.Int(1)))}.Build()
	files := map[string]string{
		write("garbage.wasm", []byte("garbage")):                   "not a WebAssembly module",
		write("empty.wasm", nil):                                   "not a WebAssembly module",
		write("component.wasm", []byte("\x00asm\x0d\x00\x01\x00")): "component",
		write("elf.wasm", []byte("\x7fELF\x02\x01\x01\x00")):       "not a WebAssembly module",
		write("half.wasm", good[:len(good)/2]):                     "cut off",
		write("large.wasm", append(good, make([]byte, 9<<20)...)):  "limit",
		filepath.Join(dir, "none.wasm"):                            "cannot be read",
		dir:                                                        "cannot be read",
	}
	for file, says := range files {
		for _, verb := range []string{"inspect", "test", "bench"} {
			code, stdout, stderr := invoke(t, "plugin", verb, file)
			// test prints what it found, and then its verdict.
			message := stderr
			if verb == "test" {
				message = stdout + stderr
			}
			if code != terminal.ExitUsage || !strings.Contains(message, says) {
				t.Errorf("%s %s: exit %d, %q; expected %q", verb, filepath.Base(file), code, message, says)
			}
			if first, _, _ := strings.Cut(stderr, "\n  hint"); strings.Count(strings.TrimSpace(first), "\n") > 0 ||
				!strings.HasPrefix(stderr, "loadstone: ") {
				t.Errorf("%s %s is more than one sentence: %q", verb, filepath.Base(file), stderr)
			}
		}
	}
}

// TestTerminalIsNotObeyed: what a plugin's schema says reaches a terminal as text.
func TestTerminalIsNotObeyed(t *testing.T) {
	manifest := `{"kind":"workload","name":"x","version":"1","statements":[{"id":"one","binds":["i64"],"sql":"SELECT $1::bigint"}],
		"parameters":{"type":"object","required":["a\u001b[2J"],"properties":{"a\u001b[2J":{"type":"integer","description":"\u001b]0;title\u0007\u202e"}}}}`
	file := filepath.Join(t.TempDir(), "x.wasm")
	if err := os.WriteFile(file, plugintest.Guest{Manifest: manifest,
		Batch: plugintest.Batch(plugintest.Operation(0, plugintest.Int(1)))}.Build(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"inspect", file}, {"test", file, "--params", `{"a\u001b[2J":"x"}`},
		{"bench", file, "--params", `{"a\u001b[2J":"x"}`}} {
		_, stdout, stderr := invoke(t, append([]string{"plugin"}, args...)...)
		if message := stdout + stderr; !strings.Contains(message, "a[2J") && args[0] != "inspect" ||
			strings.ContainsAny(message, "\x1b\x07\u202e") {
			t.Errorf("%s: %q", args[0], message)
		}
	}
}

// withQuarantine are settings with which plugin test examines files in the program itself: the limits of a quarantine
// leave no room for a test binary.
func withQuarantine(t *testing.T) terminal.Settings {
	t.Helper()
	s := clitest.Settings()
	s.Quarantine = []string{quarantinetest.Binary(t), quarantine.Command}
	return s
}

// TestWhatAServerRefusesFailsTheSuite: a file that keeps the contract, but whose
// compilation needs more than an upload is given, fails plugin test as it fails the upload.
func TestWhatAServerRefusesFailsTheSuite(t *testing.T) {
	clitest.Long(t, "the compiler takes seconds for a file of the hostile corpus")
	settings := withQuarantine(t)
	test := func(wasm []byte) (int, string) {
		file := filepath.Join(t.TempDir(), "x.wasm")
		if err := os.WriteFile(file, wasm, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			code, stdout, stderr := invokeWith(t, settings, "plugin", "test", file)
			if message := stdout + stderr; !strings.Contains(message, "the machine was so busy") {
				return code, message
			}
		}
		t.Fatal("the machine is too busy to examine a file")
		return 0, ""
	}
	if code, output := test(hostiletest.Honest()); code != 0 ||
		!strings.Contains(output, "pass  upload: A server examines it within 256 MB and 10s of processor time.") {
		t.Errorf("an honest file: exit %d, %s", code, output)
	}
	for _, f := range hostiletest.Corpus() {
		if f.Name != "compiler/64-arguments-in-every-call" {
			continue
		}
		if code, reported := test(f.Bytes()); code != terminal.ExitUsage || !strings.Contains(reported, "FAIL  upload: ") ||
			!strings.Contains(reported, "256 MB") {
			t.Errorf("%s: exit %d, %s", f.Name, code, reported)
		}
		return
	}
	t.Error("the file that needs too much memory is no longer in the corpus")
}

// TestAuthorsCommands makes, builds and measures a plugin in Go, whose compiler is there;
// the languages have tests of their own.
func TestAuthorsCommands(t *testing.T) {
	t.Parallel()
	// In the program itself: with the race detector the conformance suite takes half a minute of a processor.
	binary := quarantinetest.Binary(t)
	invoke := func(t *testing.T, args ...string) (code int, stdout, stderr string) {
		t.Helper()
		var out, err bytes.Buffer
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Stdout, cmd.Stderr = &out, &err
		if failed := cmd.Run(); failed != nil && cmd.ProcessState == nil {
			t.Fatal(failed)
		}
		return cmd.ProcessState.ExitCode(), out.String(), err.String()
	}
	dir := filepath.Join(t.TempDir(), "shelf")
	if code, out, err := invoke(t, "plugin", "new", "shelf", "--language", "go", "--dir", dir); code != 0 ||
		!strings.Contains(out, "loadstone plugin build") {
		t.Fatalf("exit %d: %s%s", code, out, err)
	}
	code, out, stderr := invoke(t, "plugin", "build", dir, "--json")
	var built struct{ File, Name, SHA256 string }
	if err := json.Unmarshal([]byte(out), &built); code != 0 || err != nil || built.Name != "shelf" ||
		len(built.SHA256) != 64 {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, stderr)
	}
	code, out, stderr = invoke(t, "plugin", "bench", built.File, "--duration", "20ms", "--params", `{"add":0.5}`,
		"--json")
	var figures trial.BenchFigures
	if err := json.Unmarshal([]byte(out), &figures); code != 0 || err != nil || figures.Operations == 0 ||
		figures.SHA256 != built.SHA256 {
		t.Errorf("exit %d, %v: %s%s", code, err, out, stderr)
	}
	code, out, stderr = invoke(t, "plugin", "test", built.File, "--json")
	var report trial.Report
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil || !report.Passed {
		t.Errorf("exit %d, %v: %s%s", code, err, out, stderr)
	}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"has no SDK", []string{"new", "x", "--language", "cobol"}},
		{"cannot be the name", []string{"new", "../x", "--language", "go"}},
		{"is not empty", []string{"new", "shelf", "--language", "go", "--dir", dir}},
		{"holds no plugin", []string{"build", t.TempDir()}},
		{"not a time to measure for", []string{"bench", built.File, "--duration=-1s"}},
		{"not a time to measure for", []string{"bench", built.File, "--duration", "9h"}},
		{"add", []string{"bench", built.File, "--params", `{"add":7}`}},
		{"not a JSON object", []string{"bench", built.File, "--params", `[]`}},
	} {
		if code, out, stderr := invoke(t, append([]string{"plugin"}, c.args...)...); code != terminal.ExitUsage ||
			!strings.Contains(stderr, c.says) {
			t.Errorf("%q: exit %d, %s%s; expected %q", c.args, code, out, stderr, c.says)
		}
	}
}

// TestAPluginIsNotCalledAsOneThatComesAlong: a project of that name could be built and tested, and never uploaded.
func TestAPluginIsNotCalledAsOneThatComesAlong(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "taken")
	for _, name := range []string{"mix", "postgres"} {
		var out, errs bytes.Buffer
		code := run(t.Context(), func() {}, []string{"plugin", "new", name, "--language", "c", "--dir", dir}, &out, &errs)
		if code != terminal.ExitUsage || !strings.Contains(errs.String(), name+`" is the name of a plugin that comes`) {
			t.Errorf("%s: exit %d: %s", name, code, errs.String())
		}
	}
}
