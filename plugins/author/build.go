package author

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/files"
)

// Build builds the project in the folder dir and returns the path of the module,
// DIR/NAME.wasm, where NAME is the folder's. The language is told by the files: go.mod,
// Cargo.toml, package.json, or plugin.c. A missing compiler is an *engine.Error with
// the command that installs it; one that fails is an *engine.Error with its output.
func Build(ctx context.Context, dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolving the project's folder: %w", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("There is no folder %s.", dir)}
	}
	name := filepath.Base(dir) + ".wasm"
	// Compilers replace what stands under the name; the module is made elsewhere and then written there.
	draft, err := os.MkdirTemp("", "loadstone-build-")
	if err != nil {
		return "", fmt.Errorf("making a temporary folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(draft) }()
	module, out := filepath.Join(draft, name), filepath.Join(dir, name)
	has := func(file string) bool { _, err := os.Stat(filepath.Join(dir, file)); return err == nil }
	switch {
	case has("go.mod"):
		err = buildGo(ctx, dir, module)
	case has("Cargo.toml"):
		err = buildRust(ctx, dir, module)
	case has("package.json"):
		err = buildAssemblyScript(ctx, dir, module)
	case has("plugin.c"):
		err = buildC(ctx, dir, module)
	default:
		return "", &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("%s holds no plugin: there is no go.mod, Cargo.toml, package.json or plugin.c.", dir),
			Hint:    "loadstone plugin new --language go NAME makes a project"}
	}
	if err != nil {
		return "", err
	}
	built, err := os.ReadFile(module)
	if err != nil {
		return "", fmt.Errorf("reading what was built: %w", err)
	}
	return out, files.Write(out, func(w io.Writer) error { _, err := w.Write(built); return err })
}

// missing says what a build needs and how to get it.
func missing(what, install string) error {
	return &engine.Error{Code: engine.CodeInvalid, Message: what + " is missing.", Hint: install}
}

// compile runs a compiler in dir.
func compile(ctx context.Context, dir string, env []string, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text := strings.TrimSpace(output.String())
	if text == "" || errors.Is(err, exec.ErrNotFound) {
		text = err.Error()
	}
	return &engine.Error{Code: engine.CodePlugin,
		Message: fmt.Sprintf("The plugin does not build; %s says:\n%s", filepath.Base(program), text), Cause: err}
}

func buildGo(ctx context.Context, dir, out string) error {
	program, err := exec.LookPath("go")
	if err != nil {
		return missing("Go", "install Go 1.24 or later from https://go.dev/dl")
	}
	// The environment of the author's other builds does not hold here.
	env := []string{"GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0"}
	return compile(ctx, dir, env, program, "build", "-buildvcs=false", "-buildmode=c-shared", "-trimpath",
		"-ldflags=-s -w", "-o", out, ".")
}

func buildC(ctx context.Context, dir, out string) error {
	program, err := exec.LookPath("clang")
	if err == nil {
		_, err = exec.LookPath("wasm-ld")
	}
	if err != nil {
		return missing("clang or wasm-ld, its linker for WebAssembly,",
			"install them, on Debian with: apt-get install clang lld")
	}
	return compile(ctx, dir, nil, program, "--target=wasm32", "-O2", "-nostdlib", "-Wall", "-Wextra",
		"-Wl,--no-entry,--stack-first,--strip-all", "-o", out, "plugin.c")
}

func buildAssemblyScript(ctx context.Context, dir, out string) error {
	node, err := exec.LookPath("node")
	if err != nil {
		return missing("Node.js", "install Node.js 20 or later from https://nodejs.org")
	}
	asc := filepath.Join(dir, "node_modules", "assemblyscript", "bin", "asc.js")
	if _, err := os.Stat(asc); err != nil {
		return missing("The AssemblyScript compiler", "install it with: npm install --prefix "+dir)
	}
	return compile(ctx, dir, nil, node, asc, filepath.Join("assembly", "plugin.ts"), "-o", out, "-O3", "--runtime",
		"minimal",
		"--exportStart", "_initialize", "--use", "abort=assembly/loadstone/abi/abort")
}

// rustTarget is what plugins in Rust are compiled for.
const rustTarget = "wasm32-unknown-unknown"

func buildRust(ctx context.Context, dir, out string) error {
	cargo, rustc, err := findRust(ctx)
	if err != nil {
		return err
	}
	target := filepath.Join(dir, "target")
	env := []string{"CARGO_TARGET_DIR=" + target, "RUSTC=" + rustc}
	if err := compile(ctx, dir, env, cargo, "build", "--quiet", "--release", "--target", rustTarget); err != nil {
		return err
	}
	built, err := filepath.Glob(filepath.Join(target, rustTarget, "release", "*.wasm"))
	if err != nil || len(built) != 1 {
		return &engine.Error{Code: engine.CodePlugin,
			Message: fmt.Sprintf("The build made %d modules; a plugin is one cdylib.", len(built)), Cause: err}
	}
	file, err := os.ReadFile(built[0])
	if err != nil {
		return fmt.Errorf("reading what was built: %w", err)
	}
	if err := os.WriteFile(out, file, 0o644); err != nil {
		return writeError(out, err)
	}
	return nil
}

// findRust returns the first Rust that has the target: that on the path, or the system's.
func findRust(ctx context.Context) (cargo, rustc string, err error) {
	for _, dir := range []string{"", "/usr/bin/"} {
		cargo, cargoErr := exec.LookPath(dir + "cargo")
		rustc, rustcErr := exec.LookPath(dir + "rustc")
		if cargoErr != nil || rustcErr != nil {
			continue
		}
		root, err := exec.CommandContext(ctx, rustc, "--print", "sysroot").Output()
		if err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(strings.TrimSpace(string(root)), "lib", "rustlib", rustTarget)); err == nil {
			return cargo, rustc, nil
		}
	}
	return "", "", missing("Rust with its target for WebAssembly",
		"install it with: rustup target add "+rustTarget+", or on Debian with: apt-get install cargo libstd-rust-dev-wasm32")
}
