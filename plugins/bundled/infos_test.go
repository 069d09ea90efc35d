package bundled_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/bundled"
	"github.com/loadstone-db/loadstone/plugins/bundled/bundledtest"
	"github.com/loadstone-db/loadstone/plugins/host"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

// TestInfosAreTrue: what was written down when the plugins were built is what
// they say of themselves, and a plugin that is only enlisted works when it is asked for.
func TestInfosAreTrue(t *testing.T) {
	t.Parallel()
	files, err := bundledtest.Files()
	if err != nil {
		t.Fatal(err)
	}
	infos, err := bundled.Infos()
	if err != nil {
		t.Fatal(err)
	}
	list, err := hosttest.Bundled(t).List(t.Context()) // each was read and asked there
	if err != nil {
		t.Fatal(err)
	}
	message := map[string]plugin.Info{}
	for _, info := range list {
		message[info.SHA256] = info
	}
	h, err := host.New(t.Context(), host.Options{CacheDir: bundledtest.CacheDir(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close(t.Context()) }()
	for name, wasm := range files {
		sum := sha256.Sum256(wasm)
		a, _ := json.Marshal(message[hex.EncodeToString(sum[:])])
		b, _ := json.Marshal(infos[name])
		if string(a) != string(b) {
			t.Errorf("%s is %s, and was written down as %s", name, a, b)
		}
		if err := h.Enlist(func() ([]byte, error) { return wasm, nil }, infos[name], true); err != nil {
			t.Error(err)
		}
	}
	w, err := h.Workload(t.Context(), "mix")
	if err != nil || w.Info().Name != "mix" {
		t.Fatalf("%v, %v", w, err)
	}
	if rows, err := w.Rows(t.Context(), nil, 0, 0, 5); err != nil || rows.Len() == 0 {
		t.Errorf("%v", err)
	}
}

// TestBundledBytesAreCheckedWhenTheyAreUsed: nothing is decompressed before a plugin is
// asked for, and other bytes than those that were described are refused then.
func TestBundledBytesAreCheckedWhenTheyAreUsed(t *testing.T) {
	t.Parallel()
	modules, err := bundled.Modules()
	if err != nil {
		t.Fatal(err)
	}
	infos, err := bundled.Infos()
	if err != nil {
		t.Fatal(err)
	}
	hosttest.Bundled(t) // fills the folder of compiled code
	h, err := host.New(t.Context(), host.Options{CacheDir: bundledtest.CacheDir(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close(t.Context()) }()
	requested := map[string]int{}
	for name, module := range modules {
		err := h.Enlist(func() ([]byte, error) {
			requested[name]++
			if name == "sql.wasm" {
				return modules["ycsb.wasm"]()
			}
			return module()
		}, infos[name], true)
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(requested) != 0 {
		t.Errorf("enlisting read %v", requested)
	}
	for range 2 {
		w, err := h.Workload(t.Context(), "mix")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Rows(t.Context(), nil, 0, 0, 5); err != nil {
			t.Error(err)
		}
	}
	if _, err := h.Workload(t.Context(), "sql"); !errors.Is(err, plugin.ErrRefused) {
		t.Errorf("other bytes under the name of sql: %v", err)
	}
	if len(requested) != 2 || requested["mix.wasm"] != 1 {
		t.Errorf("read %v, expected mix once and sql", requested)
	}
}

// TestBundledFilesShareWhatTheyHaveInCommon: each guest in Go brings the same runtime, which
// is in the program once. Of a file without the reference a quarter would be left.
func TestBundledFilesShareWhatTheyHaveInCommon(t *testing.T) {
	t.Parallel()
	files, err := bundledtest.Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, wasm := range files {
		packed, err := os.ReadFile("dist/" + name + ".zst")
		if errors.Is(err, fs.ErrNotExist) {
			packed, err = os.ReadFile("snowflake/" + name + ".zst")
		}
		if err != nil {
			t.Fatal(err)
		}
		if share := 100 * len(packed) / len(wasm); name != bundled.Reference && share > 15 {
			t.Errorf("%s takes %d %% of its size compressed", name, share)
		}
	}
}
