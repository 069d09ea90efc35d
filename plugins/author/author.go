// Package author helps those who write plugins: it makes a project that builds
// anywhere, and builds it with the compiler of its language. What it makes holds a
// copy of the SDK, so that no registry and no checkout of Loadstone is needed.
package author

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/sdk"
)

//go:embed all:templates
var templates embed.FS

// Languages are those that have an SDK.
var Languages = []string{"go", "c", "assemblyscript", "rust"}

// nameForm is stricter than the host's: names become those of modules and crates too.
var nameForm = regexp.MustCompile(`^[a-z]([a-z0-9_-]{0,62}[a-z0-9])?$`)

// languageTexts are what a language puts into the texts of a project.
type languageTexts struct{ language, needs, file, sdk string }

var texts = map[string]languageTexts{
	"go": {"Go", "It needs Go 1.24 or later; `go test ./...` tries the generator without WebAssembly.", "main.go",
		"loadstone"},
	"c": {"C", "It needs clang and wasm-ld: on Debian, `apt-get install clang lld`.", "plugin.c", "loadstone.h"},
	"assemblyscript": {"AssemblyScript", "It needs Node.js 20 or later and the compiler, which `npm install` gets.",
		"assembly/plugin.ts", "assembly/loadstone"},
	"rust": {"Rust", "It needs Rust with its target for WebAssembly: `rustup target add wasm32-unknown-unknown`, or on " +
		"Debian\n" +
		"`apt-get install cargo libstd-rust-dev-wasm32`.", "src/lib.rs", "loadstone"},
}

// New makes a project of a workload plugin in the folder dir, which must not exist or
// be empty, and returns the files it wrote, relative to dir. The name is that of
// the plugin. Errors are *engine.Error.
func New(dir, language, name string) ([]string, error) {
	if !slices.Contains(Languages, language) {
		return nil, engine.InvalidField("--language", fmt.Sprintf("%q has no SDK", language),
			"one of "+strings.Join(Languages, ", "))
	}
	if !nameForm.MatchString(name) || name == "loadstone" {
		return nil, engine.InvalidField("NAME", fmt.Sprintf("%q cannot be the name of a plugin", name),
			"lower-case letters, digits, '-' and '_', beginning with a letter")
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("The folder %s is not empty.", dir),
			Hint: "choose another name, or --dir"}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, writeError(dir, err)
	}
	files, err := project(language, name)
	if err != nil {
		return nil, err
	}
	var written []string
	for file, content := range files {
		to := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return nil, writeError(dir, err)
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			return nil, writeError(to, err)
		}
		written = append(written, file)
	}
	slices.Sort(written)
	return written, nil
}

func writeError(path string, err error) error {
	return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("%s cannot be written: %v.", path, err),
		Cause: err}
}

// project is every file of a new project by its path.
func project(language, name string) (map[string][]byte, error) {
	w := texts[language]
	compiler, err := compilerVersion()
	if err != nil {
		return nil, err
	}
	fill := strings.NewReplacer("{{name}}", name, "{{table}}", strings.ReplaceAll(name, "-", "_"), "{{language}}",
		w.language,
		"{{needs}}", w.needs, "{{file}}", w.file, "{{sdk}}", w.sdk, "{{asc}}", compiler)
	files := map[string][]byte{".gitignore": []byte("*.wasm\nnode_modules\ntarget\n")}
	add := func(from, to string) error {
		b, err := templates.ReadFile(from)
		files[to] = []byte(fill.Replace(string(b)))
		return err
	}
	err = errors.Join(add("templates/template.yaml", "template.yaml"), add("templates/README.md", "README.md"))
	root := "templates/" + language
	err = errors.Join(err, fs.WalkDir(templates, root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return add(p, strings.TrimSuffix(strings.TrimPrefix(p, root+"/"), ".txt"))
	}))
	if err != nil {
		return nil, fmt.Errorf("reading the template of a project: %w", err)
	}
	return files, vendor(files, language)
}

// vendor adds a copy of the language's SDK.
func vendor(files map[string][]byte, language string) error {
	from, to := language, "loadstone/"
	switch language {
	case "go":
		from, to = ".", "loadstone/sdk/"
		files["loadstone/go.mod"] = []byte("module github.com/loadstone-db/loadstone\n\ngo 1.24\n")
	case "c":
		to = ""
	case "assemblyscript":
		from, to = "assemblyscript/assembly", "assembly/loadstone/"
	}
	err := fs.WalkDir(sdk.Source, from, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if language == "go" && (p == "c" || p == "assemblyscript" || p == "rust") {
				return fs.SkipDir
			}
			return err
		}
		// source.go embeds what a copy does not hold; tests need other modules.
		if base := path.Base(p); base == "source.go" || strings.HasSuffix(base, "_test.go") {
			return nil
		}
		b, err := sdk.Source.ReadFile(p)
		files[to+strings.TrimPrefix(p, from+"/")] = b
		return err
	})
	if err != nil {
		return fmt.Errorf("copying the SDK: %w", err)
	}
	return nil
}

// compilerVersion is the AssemblyScript compiler that the SDK is tested with.
func compilerVersion() (string, error) {
	b, err := sdk.Source.ReadFile("assemblyscript/package.json")
	if err != nil {
		return "", fmt.Errorf("reading the package of the AssemblyScript SDK: %w", err)
	}
	var p struct {
		DevDependencies map[string]string `json:"devDependencies"`
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return "", fmt.Errorf("reading the package of the AssemblyScript SDK: %w", err)
	}
	return p.DevDependencies["assemblyscript"], nil
}
