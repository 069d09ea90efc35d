package host

import (
	"errors"
	"testing"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
)

func TestUnregister(t *testing.T) {
	h := newHost(t, Options{})
	wasm := plugintest.Guest{}.Build()
	for range 3 { // what was forgotten can come back
		info, err := h.Register(t.Context(), wasm, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Register(t.Context(), bundledFile(t, "postgres.wasm"), true); err != nil {
			t.Fatal(err)
		}
		w, err := h.Workload(t.Context(), info.SHA256)
		if err != nil || !h.Has(info.SHA256) {
			t.Fatalf("before: %v", err)
		}
		if _, err := w.Rows(t.Context(), nil, 0, 1, 1); errors.Is(err, plugin.ErrTrapped) {
			t.Fatalf("rows: %v", err)
		}
		for range 2 {
			if err := h.Unregister(t.Context(), info.SHA256); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := h.Workload(t.Context(), info.SHA256); !errors.Is(err, plugin.ErrNotFound) || h.Has(info.SHA256) {
			t.Errorf("after: %v", err)
		}
		if _, err := h.Adapter(t.Context(), "postgres"); err != nil {
			t.Errorf("another plugin: %v", err)
		}
	}
}
