package author

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/plugins/trial"
)

var blank = regexp.MustCompile(`\{\{[a-z]+\}\}`)

// TestProjectsBuild makes a project in every language far from this repository,
// builds it, and has the conformance suite judge it. make test has Go alone; make check has the other compilers, too.
func TestProjectsBuild(t *testing.T) {
	for _, language := range Languages {
		t.Run(language, func(t *testing.T) {
			if testing.Short() && language != "go" {
				t.Skip("make check has the compilers of the other languages")
			}
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "my-items_2")
			files, err := New(dir, language, "my-items_2")
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				b, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil || blank.Match(b) {
					t.Errorf("%s: %v, or a blank in it is not filled", file, err)
				}
			}
			if language == "assemblyscript" {
				compilerOfTheSDK(t, dir)
			}
			// What stands under the module's name is written to, not replaced.
			link, remote := filepath.Join(dir, "my-items_2.wasm"), filepath.Join(t.TempDir(), "module")
			if err := os.Symlink(remote, link); err != nil {
				t.Fatal(err)
			}
			out, err := Build(t.Context(), dir)
			if to, linkErr := os.Readlink(link); linkErr != nil || to != remote {
				t.Errorf("the link was replaced: %q %v", to, linkErr)
			}
			if err != nil {
				t.Fatalf("%v\n(make examples installs the compilers)", err)
			}
			wasm, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			report, err := trial.Conformance(t.Context(), wasm, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range report.Checks {
				if !c.Passed || c.Skipped {
					t.Errorf("%s: %s", c.Name, c.Message)
				}
			}
			if report.Info.Name != "my-items_2" {
				t.Errorf("its name is %s", report.Info.Name)
			}
			if language == "go" {
				test := exec.CommandContext(t.Context(), "go", "test", "./...")
				test.Dir, test.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off")
				if output, err := test.CombinedOutput(); err != nil {
					t.Errorf("its own tests: %v\n%s", err, output)
				}
			}
		})
	}
}

// compilerOfTheSDK lends a project the compiler that the SDK is tested with,
// which npm install would bring from the network.
func compilerOfTheSDK(t *testing.T, dir string) {
	t.Helper()
	if _, err := Build(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "npm install") {
		t.Errorf("without its compiler: %v", err)
	}
	modules, err := filepath.Abs("../../sdk/assemblyscript/node_modules")
	if err == nil {
		_, err = os.Stat(modules)
	}
	if err == nil {
		err = os.Symlink(modules, filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		t.Fatalf("%v (make examples installs the compiler)", err)
	}
}

func TestNewRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(full, "precious")
	for _, c := range []struct{ dir, language, name, says string }{
		{full, "go", "items", "is not empty"},
		{file, "go", "items", "cannot be written"},
		{"", "python", "items", "has no SDK"},
		{"", "", "items", "has no SDK"},
		{"", "go", "../items", "cannot be the name"},
		{"", "go", "", "cannot be the name"},
		{"", "go", "Items", "cannot be the name"},
		{"", "go", "items-", "cannot be the name"},
		{"", "go", "a\nb", "cannot be the name"},
		{"", "rust", "loadstone", "cannot be the name"},
		{"", "c", strings.Repeat("a", 65), "cannot be the name"},
	} {
		dir := c.dir
		if dir == "" {
			dir = filepath.Join(t.TempDir(), "new")
		}
		_, err := New(dir, c.language, c.name)
		if !errors.As(err, new(*engine.Error)) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q in %q: %v, expected %q", c.name, c.language, err, c.says)
		}
		if _, err := os.Stat(filepath.Join(dir, "README.md")); err == nil {
			t.Errorf("%q in %q was written all the same", c.name, c.language)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	empty, broken := t.TempDir(), filepath.Join(t.TempDir(), "broken")
	if _, err := New(broken, "go", "broken"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "main.go"), []byte("package main\nfunc main() { nonsense }\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for dir, says := range map[string]string{empty: "holds no plugin", filepath.Join(empty, "none"): "There is no folder",
		broken: "nonsense"} {
		if _, err := Build(t.Context(), dir); !errors.As(err, new(*engine.Error)) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, expected %q", dir, err, says)
		}
	}
}

// TestMissingCompilers takes the path away.
func TestMissingCompilers(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for language, says := range map[string]string{"go": "go.dev", "c": "apt-get install clang lld",
		"assemblyscript": "nodejs.org"} {
		dir := filepath.Join(t.TempDir(), "items")
		if _, err := New(dir, language, "items"); err != nil {
			t.Fatal(err)
		}
		var e *engine.Error
		if _, err := Build(context.Background(), dir); !errors.As(err, &e) || !strings.Contains(e.Message, "missing") ||
			!strings.Contains(e.Hint, says) {
			t.Errorf("%s: %v", language, err)
		}
	}
}
