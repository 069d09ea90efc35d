package host

import (
	"errors"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
)

// TestANameThatLooksLikeAnID is refused of what is new; a plugin that is there goes on being loaded and described.
func TestANameThatLooksLikeAnID(t *testing.T) {
	t.Parallel()
	for _, name := range []string{strings.Repeat("af", 16), strings.Repeat("af", 32)} {
		h := newHost(t, Options{CacheDir: t.TempDir()})
		wasm := plugintest.Guest{Manifest: plugintest.ManifestOf(name)}.Build()
		if _, err := h.Inspect(t.Context(), wasm); !errors.Is(err, plugin.ErrRefused) ||
			!strings.Contains(err.Error(), "looks like an id") {
			t.Errorf("%s: %v", name, err)
		}
		info, err := h.Register(t.Context(), wasm, false)
		if err != nil || info.Name != name {
			t.Fatalf("%s is not loaded: %+v, %v", name, info, err)
		}
		if _, err := h.Workload(t.Context(), info.SHA256); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
