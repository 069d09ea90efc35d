package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
)

func shaOf(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return hex.EncodeToString(sum[:])
}

// inspected is what the host says of a file, as a build writes it down.
func inspected(t *testing.T, wasm []byte) plugin.Info {
	t.Helper()
	info, err := newHost(t, Options{CacheDir: t.TempDir()}).Inspect(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// reusedApproval makes the plugin ready in a new host, and says whether its bytes were asked for and read.
func reusedApproval(t *testing.T, o Options, wasm []byte, info plugin.Info) bool {
	t.Helper()
	h := newHost(t, o)
	requested := false
	if err := h.Enlist(func() ([]byte, error) { requested = true; return wasm, nil }, info, true); err != nil {
		t.Fatal(err)
	}
	w, err := h.Workload(t.Context(), info.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	// The code is that of the plugin: it does not trap.
	if _, err := w.Rows(t.Context(), nil, 0, 1, 1); !errors.Is(err, plugin.ErrFailed) {
		t.Errorf("rows: %v", err)
	}
	if r := h.find(func(*registered) bool { return true }); r.module.shape.functions["ls_fill"] != "(i32) → (i64)" ||
		r.module.sha != info.SHA256 || r.module.minPages == 0 || r.module.maxPages == 0 {
		t.Errorf("the shape is %+v", r.module)
	}
	return requested
}

// TestAnApprovalHoldsForItsBytesAndProgram: a file that this program let through before is not
// judged again; whatever else lies in the folder is no approval, the file is judged as at first,
// and what was wrong is mended.
func TestAnApprovalHoldsForItsBytesAndProgram(t *testing.T) {
	t.Parallel()
	o := Options{CacheDir: t.TempDir(), Program: "this"}
	says := plugintest.Guest{Rows: []byte{0}, Code: map[string][]byte{"ls_rows": plugintest.I64(-1)}, Error: "none today"}
	says.Manifest = plugintest.ManifestOf("one")
	wasm := says.Build()
	info := inspected(t, wasm)
	entry := filepath.Join(o.CacheDir, "approved", info.SHA256)
	says.Manifest = plugintest.ManifestOf("other")
	other := says.Build()
	otherEntry := filepath.Join(o.CacheDir, "approved", shaOf(other))

	if !reusedApproval(t, o, wasm, info) || reusedApproval(t, o, wasm, info) ||
		!reusedApproval(t, o, other, inspected(t, other)) {
		t.Fatal("a file is judged once")
	}
	good, err := os.ReadFile(entry)
	if err != nil {
		t.Fatal(err)
	}
	if mode, err := os.Stat(entry); err != nil || mode.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", mode.Mode(), err)
	}
	replace := func(b []byte) {
		if err := os.Remove(entry); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(entry, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code := codeOf(t, o, info.SHA256)
	// Where it would be on another kind of processor.
	remote := ""
	for _, name := range codeNames(approvalOf(t, o, info.SHA256).Module) {
		if name != filepath.Base(code) {
			remote = filepath.Join(filepath.Dir(code), name)
		}
	}
	flipped := func(at int) func() {
		return func() {
			b := bytes.Clone(good)
			b[at] ^= 1
			replace(b)
		}
	}
	for name, tamper := range map[string]func(){
		"a byte of the magic":   flipped(3),
		"a byte of the sum":     flipped(25),
		"a byte of the program": flipped(60),
		"a byte of the hash":    flipped(90),
		"a byte of the length":  flipped(117),
		"a byte of the shape":   flipped(130),
		"the last byte":         flipped(len(good) - 1),
		"empty":                 func() { replace(nil) },
		"torn in its head":      func() { replace(good[:50]) },
		"torn":                  func() { replace(good[:len(good)-1]) },
		"longer":                func() { replace(append(bytes.Clone(good), 0)) },
		"another plugin's": func() {
			b, err := os.ReadFile(otherEntry)
			if err != nil {
				t.Fatal(err)
			}
			replace(b)
		},
		"an earlier program's": func() {
			replace(nil)
			reusedApproval(t, Options{CacheDir: o.CacheDir, Program: "earlier"}, wasm, info)
		},
		"gone":             func() { removeFiles(t, entry) },
		"its code is gone": func() { removeFiles(t, code) },
		"its code is other code": func() {
			removeFiles(t, code)
			if err := os.WriteFile(code, []byte("traps"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"its code is that of traps": func() {
			apart := newHost(t, Options{CacheDir: t.TempDir()})
			_, err := apart.compiler.compile(t.Context(), approvalOf(t, o, info.SHA256).Module)
			if err := errors.Join(err, os.Rename(filepath.Join(apart.codeDir, filepath.Base(code)), code)); err != nil {
				t.Fatal(err)
			}
		},
		"its code is a link": func() {
			away := filepath.Join(t.TempDir(), "away")
			if err := errors.Join(os.Rename(code, away), os.Symlink(away, code)); err != nil {
				t.Fatal(err)
			}
		},
		"there is code for another processor": func() {
			if err := os.WriteFile(remote, []byte("traps"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"it was approved on another processor": func() {
			a := approvalOf(t, o, info.SHA256)
			a.Shape = bytes.Replace(a.Shape, []byte(filepath.Base(code)), []byte(filepath.Base(remote)), 1)
			if err := errors.Join(os.Rename(code, remote), approvals(t, o).Put(info.SHA256, a)); err != nil {
				t.Fatal(err)
			}
		},
		"a link to the same elsewhere": func() {
			away := filepath.Join(t.TempDir(), "away")
			if err := errors.Join(os.WriteFile(away, good, 0o600), os.Remove(entry),
				os.Symlink(away, entry)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		tamper()
		if !reusedApproval(t, o, wasm, info) {
			t.Errorf("%s: it was taken for an approval", name)
		}
		if b, err := os.ReadFile(entry); err != nil || !bytes.Equal(b, good) {
			t.Errorf("%s: it was not mended: %v", name, err)
		}
		if reusedApproval(t, o, wasm, info) {
			t.Errorf("%s: judged a second time", name)
		}
	}
	if !reusedApproval(t, Options{CacheDir: o.CacheDir}, wasm, info) {
		t.Error("a host that does not know its program took an approval")
	}
}

func removeFiles(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func approvals(t *testing.T, o Options) approvalFolder {
	t.Helper()
	folder, err := openApprovals(o.CacheDir, o.Program)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func approvalOf(t *testing.T, o Options, sha string) approval {
	t.Helper()
	a, ok := approvals(t, o).Get(sha)
	if !ok {
		t.Fatal("there is no approval")
	}
	return a
}

// codeOf is the file of the code that the next start takes.
func codeOf(t *testing.T, o Options, sha string) string {
	t.Helper()
	var k approvedShape
	if err := json.Unmarshal(approvalOf(t, o, sha).Shape, &k); err != nil || k.Code == nil {
		t.Fatalf("where the code is was not kept: %v; does wazero keep it in another way?", err)
	}
	return filepath.Join(codeFolder(o.CacheDir), k.Code.Name)
}

// TestCodeOfOneModuleIsNotAnothers: two plugins that differ in nothing but their code have their own.
func TestCodeOfOneModuleIsNotAnothers(t *testing.T) {
	t.Parallel()
	o := Options{CacheDir: t.TempDir(), Program: "this"}
	o.CallFuel = 1_000_000
	var modules [2][]byte
	for turn := range 3 {
		for i, c := range []struct {
			code []byte
			want error
		}{{plugintest.Unreachable, plugin.ErrTrapped}, {plugintest.Forever, plugin.ErrOutOfFuel}} {
			wasm := plugintest.Guest{Rows: []byte{0}, Code: map[string][]byte{"ls_rows": c.code}}.Build()
			h := newHost(t, o)
			requested := false
			err := h.Enlist(func() ([]byte, error) { requested = true; return wasm, nil }, inspected(t, wasm), true)
			if err != nil {
				t.Fatal(err)
			}
			w, err := h.Workload(t.Context(), shaOf(wasm))
			if err != nil || requested != (turn == 0) {
				t.Fatalf("turn %d: %v, judged %v", turn, err, requested)
			}
			if _, err := w.Rows(t.Context(), nil, 0, 1, 1); !errors.Is(err, c.want) {
				t.Errorf("turn %d: %v, expected %v", turn, err, c.want)
			}
			modules[i] = approvalOf(t, o, shaOf(wasm)).Module
			codeOf(t, o, shaOf(wasm))
		}
	}
	if bytes.Equal(modules[0], modules[1]) {
		t.Error("both are the same module")
	}
}

// TestAnApprovedGuestDoesTheSame: a guest in Go makes the same rows with code that was found as when it was compiled.
func TestAnApprovedGuestDoesTheSame(t *testing.T) {
	t.Parallel()
	o := Options{CacheDir: cacheDir, Program: "of " + t.Name()}
	wasm := bundledFile(t, "mix.wasm")
	if err := os.Remove(filepath.Join(cacheDir, "approved", shaOf(wasm))); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	info, err := newHost(t, Options{}).Inspect(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	var rows [2]string
	for i := range rows {
		h := newHost(t, o)
		requested := false
		if err := h.Enlist(func() ([]byte, error) { requested = true; return wasm, nil }, info, true); err != nil {
			t.Fatal(err)
		}
		w, err := h.Workload(t.Context(), "mix")
		if err != nil || requested != (i == 0) {
			t.Fatalf("%v, judged %v", err, requested)
		}
		made, err := w.Rows(t.Context(), nil, 0, 0, 50)
		if err != nil || made.Len() != 50 {
			t.Fatal(err)
		}
		rows[i] = fmt.Sprintf("%+v", made)
	}
	if rows[0] != rows[1] || len(rows[0]) < 1000 {
		t.Errorf("%.300s\n%.300s", rows[0], rows[1])
	}
	codeOf(t, o, info.SHA256)
}

// TestNoApprovalOfWhatIsRefused: what the gate, the compiler or the contract refuses is not kept, and the
// entry of an honest file under its name lets nothing through.
func TestNoApprovalOfWhatIsRefused(t *testing.T) {
	t.Parallel()
	o := Options{CacheDir: t.TempDir(), Program: "this"}
	h := newHost(t, o)
	honest := plugintest.Guest{}.Build()
	if _, err := h.Register(t.Context(), honest, false); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(o.CacheDir, "approved")
	entry, err := os.ReadFile(filepath.Join(folder, shaOf(honest)))
	if err != nil {
		t.Fatal(err)
	}
	for name, g := range map[string]plugintest.Guest{
		"the gate":     {Imports: [][2]string{{"env", "abort"}}},
		"the compiler": {Code: map[string][]byte{"ls_abi": plugintest.I64(1)}},
		"the contract": {Code: map[string][]byte{"ls_abi": plugintest.I32(2 << 16)}},
	} {
		wasm := g.Build()
		for range 2 {
			if _, err := h.Register(t.Context(), wasm, false); !errors.Is(err, plugin.ErrRefused) {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := os.Stat(filepath.Join(folder, shaOf(wasm))); err == nil {
				t.Errorf("%s: an approval was kept", name)
			}
			if err := os.WriteFile(filepath.Join(folder, shaOf(wasm)), entry, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Register(t.Context(), wasm, false); !errors.Is(err, plugin.ErrRefused) {
				t.Errorf("%s, with the entry of another file: %v", name, err)
			}
			if err := os.Remove(filepath.Join(folder, shaOf(wasm))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestOldApprovalsGo: an entry that nobody wrote again for a month is removed when another is written.
func TestOldApprovalsGo(t *testing.T) {
	t.Parallel()
	o := Options{CacheDir: t.TempDir(), Program: "this"}
	h := newHost(t, o)
	for i, age := range []time.Duration{31 * 24 * time.Hour, 29 * 24 * time.Hour, 0} {
		wasm := plugintest.Guest{Manifest: plugintest.ManifestOf(string(rune('a' + i)))}.Build()
		if _, err := h.Register(t.Context(), wasm, false); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(filepath.Join(o.CacheDir, "approved", shaOf(wasm)), then, then); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(filepath.Join(o.CacheDir, "approved"))
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}
