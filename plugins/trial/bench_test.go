package trial

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
	"github.com/loadstone-db/loadstone/plugins/host"
)

func TestBench(t *testing.T) {
	f, err := measure(context.Background(), host.Options{CacheDir: cacheDir}, bundledFile(t, "mix.wasm"), nil,
		20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if f.Plugin != "mix" || f.Operations < BenchBatch || f.NsPerOperation <= 0 || f.BytesPerOperation <= 0 ||
		f.FuelPerOperation <= 0 ||
		f.MemoryPages <= 0 || f.MemoryPages > f.MaxMemoryPages || f.ReadyMs <= 0 {
		t.Errorf("%+v", f)
	}
}

func TestBenchRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		wasm   []byte
		params string
		is     error
		says   string
	}{
		"garbage":          {[]byte("garbage"), "", plugin.ErrRefused, "not a WebAssembly module"},
		"adapter":          {bundledFile(t, "postgres.wasm"), "", plugin.ErrFailed, "is an adapter"},
		"wrong parameters": {bundledFile(t, "mix.wasm"), `{"keys":7}`, plugin.ErrFailed, "keys"},
		"not JSON":         {bundledFile(t, "mix.wasm"), `{`, plugin.ErrFailed, "not a JSON object"},
		"a wrong batch": {plugintest.Guest{Batch: plugintest.Batch(plugintest.Operation(9))}.Build(), "",
			plugin.ErrInvalidBatch, "only 2 were declared"},
		"no operation": {plugintest.Guest{}.Build(), "", plugin.ErrFailed, "no operations"},
	} {
		var params json.RawMessage
		if c.params != "" {
			params = json.RawMessage(c.params)
		}
		_, err := measure(context.Background(), host.Options{CacheDir: cacheDir}, c.wasm, params, 20*time.Millisecond)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, expected %q", name, err, c.says)
		}
	}
}
