package bundled_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/bundled"
	"github.com/loadstone-db/loadstone/plugins/host"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest/precompiled"
)

// TestInfosAreTrue: what was written down when the plugins were built is what
// they say of themselves, and a plugin that is only enlisted works when it is asked for.
func TestInfosAreTrue(t *testing.T) {
	files, err := bundled.Files()
	if err != nil {
		t.Fatal(err)
	}
	infos, err := bundled.Infos()
	if err != nil {
		t.Fatal(err)
	}
	hosttest.Bundled(t) // fills the folder of compiled code
	h, err := host.New(t.Context(), host.Options{CacheDir: precompiled.CacheDir(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close(t.Context()) }()
	for name, wasm := range files {
		asked, err := h.Inspect(t.Context(), wasm)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(asked)
		b, _ := json.Marshal(infos[name])
		if string(a) != string(b) {
			t.Errorf("%s is %s, and was written down as %s", name, a, b)
		}
		if err := h.Enlist(append([]byte{0}, wasm...), infos[name], true); !errors.Is(err, plugin.ErrRefused) {
			t.Errorf("other bytes under the name of %s: %v", name, err)
		}
		if err := h.Enlist(wasm, infos[name], true); err != nil {
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
