package host

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
)

// TestAPluginIsCompiledOnceWhoeverCannotWait: a request that ends before the compiler does is told so in
// words that do not blame the file, and what it began goes on for those who ask after it.
func TestAPluginIsCompiledOnceWhoeverCannotWait(t *testing.T) {
	t.Parallel()
	guest := plugintest.Guest{Manifest: plugintest.ManifestOf("slow")}
	wasm := guest.Build()
	info := inspected(t, wasm)
	h := newHost(t, Options{CacheDir: t.TempDir(), Program: "this"})
	var requested atomic.Int32
	go1 := make(chan struct{})
	if err := h.Enlist(func() ([]byte, error) { requested.Add(1); <-go1; return wasm, nil }, info, true); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, err := h.Workload(ctx, info.SHA256)
		cancel()
		if !engine.HasCode(err, engine.CodeUnavailable) || errors.Is(err, plugin.ErrRefused) ||
			!strings.Contains(err.Error(), "is still being compiled") {
			t.Fatalf("%v", err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Workload(gone, info.SHA256); !errors.Is(err, context.Canceled) {
		t.Errorf("one who has gone: %v", err)
	}
	close(go1)
	if _, err := h.Workload(t.Context(), info.SHA256); err != nil {
		t.Fatal(err)
	}
	if n := requested.Load(); n != 1 {
		t.Errorf("compiled %d times", n)
	}
}

// TestACompilationThatFailedIsTriedAnew by the next who asks.
func TestACompilationThatFailedIsTriedAnew(t *testing.T) {
	t.Parallel()
	guest := plugintest.Guest{Manifest: plugintest.ManifestOf("away")}
	wasm := guest.Build()
	info := inspected(t, wasm)
	h := newHost(t, Options{CacheDir: t.TempDir(), Program: "this"})
	away := errors.New("the store is away")
	if err := h.Enlist(func() ([]byte, error) {
		if err := away; err != nil {
			away = nil
			return nil, err
		}
		return wasm, nil
	}, info, true); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Workload(t.Context(), info.SHA256); err == nil || !strings.Contains(err.Error(), "the store is away") {
		t.Fatal(err)
	}
	if _, err := h.Workload(t.Context(), info.SHA256); err != nil {
		t.Fatal(err)
	}
}

// TestATimeThatIsUpSaysNothingOfAFile: neither of one that is registered, nor to who closes the host meanwhile.
func TestATimeThatIsUpSaysNothingOfAFile(t *testing.T) {
	t.Parallel()
	guest := plugintest.Guest{Manifest: plugintest.ManifestOf("late")}
	wasm := guest.Build()
	h := newHost(t, Options{CacheDir: t.TempDir()})
	up, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Register(up, wasm, true); !errors.Is(err, context.Canceled) || errors.Is(err, plugin.ErrRefused) {
		t.Errorf("%v", err)
	}
	info := inspected(t, wasm)
	began := make(chan struct{})
	if err := h.Enlist(func() ([]byte, error) { close(began); <-h.life.Done(); return wasm, nil }, info,
		true); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := h.Workload(t.Context(), info.SHA256); done <- err }()
	<-began
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := h.Workload(t.Context(), info.SHA256); err == nil {
		t.Error("a closed host has plugins")
	}
}
