package host

import (
	"context"
	"testing"

	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
)

// TestAnAdapterMaySayNothing: an empty answer is an empty document.
func TestAnAdapterMaySayNothing(t *testing.T) {
	ctx := context.Background()
	h := newHost(t, Options{})
	wasm := plugintest.Guest{Manifest: `{"kind":"adapter","name":"a","driver":"postgres"}`, Answer: " ",
		Code: map[string][]byte{"ls_call": plugintest.I64(0)}}.Build()
	info, err := h.Register(ctx, wasm, false)
	if err != nil {
		t.Fatal(err)
	}
	a, err := h.Adapter(ctx, info.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := a.Call(ctx, map[string]string{"op": "session"}, &answer); err != nil {
		t.Error(err)
	}
}
