package host

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
)

func TestConformanceSuite(t *testing.T) {
	plugintest.Run(t, func(t *testing.T, wasm []byte) (plugin.Host, plugin.Info, error) {
		h := newHost(t, Options{})
		info, err := h.Register(context.Background(), wasm, false)
		return h, info, err
	})
}

func TestRefusedFiles(t *testing.T) {
	code := func(export string, body []byte) map[string][]byte { return map[string][]byte{export: body} }
	start := uint32(0)
	for _, c := range []struct {
		name string
		wasm []byte
		says string
	}{
		{"empty", nil, "not a WebAssembly module"},
		{"text", []byte("<html>not found</html>"), "not a WebAssembly module"},
		{"component", []byte("\x00asm\x0d\x00\x01\x00"), "component"},
		{"header only", []byte("\x00asm\x01\x00\x00\x00"), "memory"},
		{"too large", make([]byte, 8<<20+1), "limit"},
		{"no memory", plugintest.Guest{Omit: []string{"memory"}}.Build(), "memory"},
		{"no ls_abi", plugintest.Guest{Omit: []string{"ls_abi"}}.Build(), "ls_abi"},
		{"no ls_fill", plugintest.Guest{Omit: []string{"ls_fill"}}.Build(), "ls_fill"},
		{"an adapter without ls_call",
			plugintest.Guest{Manifest: `{"kind":"adapter","name":"a","driver":"postgres"}`}.Build(), "ls_call"},
		{"wrong signature", plugintest.Guest{Type: map[string]byte{"ls_abi": plugintest.TypeI64},
			Code: code("ls_abi", plugintest.I64(1))}.Build(), "() → (i64)"},
		{"files", plugintest.Guest{Imports: [][2]string{{"wasi_snapshot_preview1", "path_open"}}}.Build(), "path_open"},
		{"another module", plugintest.Guest{Imports: [][2]string{{"env", "abort"}}}.Build(), "env.abort"},
		{"wrong log", plugintest.Guest{Imports: [][2]string{{"ls", "log"}}}.Build(), "ls.log"},
		{"allowed import of another type",
			plugintest.Guest{Imports: [][2]string{{"wasi_snapshot_preview1", "fd_write"}}}.Build(), "fd_write"},
		{"another ABI", plugintest.Guest{Code: code("ls_abi", plugintest.I32(2<<16))}.Build(), "2.0"},
		{"2³² locals", plugintest.Guest{Locals: 0xffffffff}.Build(), "local"},
		{"much memory", plugintest.Guest{Pages: 65_536}.Build(), "memory"},
		{"trap in describe", plugintest.Guest{Code: code("ls_describe", plugintest.Unreachable)}.Build(), "trapped"},
		{"endless describe", plugintest.Guest{Code: code("ls_describe", plugintest.Forever)}.Build(), "fuel"},
		{"endless start", plugintest.Guest{Start: &start, Type: map[string]byte{"ls_abi": 0},
			Code: code("ls_abi", plugintest.Forever)}.Build(), "ls_abi"},
		{"exit", plugintest.Guest{Imports: [][2]string{{"wasi_snapshot_preview1", "proc_exit"}},
			ImportType: plugintest.TypeExit,
			Code:       code("ls_describe", plugintest.Code(plugintest.I32(3), plugintest.Call(0), plugintest.I64(0)))}.Build(),
			"exit(3)"},
		{"manifest outside memory", plugintest.Guest{Code: code("ls_describe", plugintest.I64(1<<62|100))}.Build(),
			"outside"},
		{"manifest too large", plugintest.Guest{Code: code("ls_describe", plugintest.I64(0x7fffffff))}.Build(), "limit"},
		{"manifest that is no JSON", plugintest.Guest{Manifest: "hello"}.Build(), "manifest"},
		{"unknown kind", plugintest.Guest{Manifest: `{"kind":"driver","name":"x"}`}.Build(), "kind"},
		{"bad name", plugintest.Guest{Manifest: `{"kind":"workload","name":"../x"}`}.Build(), "name"},
		{"bad version", plugintest.Guest{Manifest: `{"kind":"workload","name":"x","version":"1 2"}`}.Build(), "version"},
		{"bad schema", plugintest.Guest{Manifest: `{"kind":"workload","name":"x","parameters":{"type":"objekt"}}`}.Build(),
			"JSON Schema"},
		{"schema that reads a file",
			plugintest.Guest{Manifest: `{"kind":"workload","name":"x","parameters":{"$ref":"file:///etc/passwd"}}`}.Build(),
			"JSON Schema"},
		{"unknown column type", plugintest.Guest{
			Manifest: `{"kind":"workload","name":"x","tables":[{"name":"t","columns":["id int"]}]}`}.Build(), "int"},
		{"key without column", plugintest.Guest{
			Manifest: `{"kind":"workload","name":"x","tables":[{"name":"t","columns":["id i64"],"key":"x"}]}`}.Build(), "key"},
		{"adapter without driver", plugintest.Guest{Manifest: `{"kind":"adapter","name":"x"}`, Answer: "{}"}.Build(),
			"driver"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t, Options{CallFuel: 50_000_000})
			_, err := h.Register(context.Background(), c.wasm, false)
			if !errors.Is(err, plugin.ErrRefused) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, expected ErrRefused with %q", err, c.says)
			}
			if list, _ := h.List(context.Background()); len(list) != 0 {
				t.Error("it is registered all the same")
			}
		})
	}
}

// TestEndlessGuests: a guest that does not return is stopped before it reaches the hot path.
func TestEndlessGuests(t *testing.T) {
	ctx := context.Background()
	for _, export := range []string{"ls_open", "ls_fill", "ls_rows", "ls_call", "ls_alloc"} {
		t.Run(export, func(t *testing.T) {
			h := newHost(t, Options{CallFuel: 50_000_000})
			info, err := h.Register(ctx,
				plugintest.Guest{Rows: []byte{1}, Answer: "{}", Code: map[string][]byte{export: plugintest.Forever}}.Build(), false)
			if err != nil {
				t.Fatal(err)
			}
			w, err := h.Workload(ctx, info.SHA256)
			if err != nil {
				t.Fatal(err)
			}
			switch export {
			case "ls_rows":
				_, err = w.Rows(ctx, nil, 0, 0, 1)
			case "ls_call":
				_, err = w.Statements(ctx, nil, nil)
			default:
				var s plugin.Stream
				if s, err = w.Open(ctx, plugin.OpenRequest{KeySlots: 1}, frozenList(info.Manifest.Statements)); err == nil {
					err = s.Fill(&plugin.Batch{}, 1)
					_ = s.Close()
				}
			}
			if !errors.Is(err, plugin.ErrOutOfFuel) || !strings.Contains(err.Error(), "fuel") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestEndedContextCallsNothing(t *testing.T) {
	h := newHost(t, Options{})
	info, err := h.Register(context.Background(),
		plugintest.Guest{Answer: "{}", Code: map[string][]byte{"ls_call": plugintest.Forever}}.Build(), false)
	if err != nil {
		t.Fatal(err)
	}
	w, err := h.Workload(context.Background(), info.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.Statements(ctx, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, expected the caller's own end", err)
	}
}

func TestUploadedPluginCannotTakeABundledName(t *testing.T) {
	h := newHost(t, Options{})
	ctx := context.Background()
	if _, err := h.Register(ctx, plugintest.Guest{}.Build(), true); err != nil {
		t.Fatal(err)
	}
	other := plugintest.Guest{Error: "other bytes"}.Build()
	if _, err := h.Register(ctx, other, false); !errors.Is(err, plugin.ErrRefused) {
		t.Errorf("%v", err)
	}
	if _, err := h.Inspect(ctx, other); err != nil {
		t.Errorf("inspecting it: %v", err)
	}
}

// TestTruncatedModules: no prefix of a module, and no module with a byte changed, harms the process.
func TestTruncatedModules(t *testing.T) {
	wasm := plugintest.Guest{Answer: "{}"}.Build()
	for n := range len(wasm) {
		if _, _, err := examine(wasm[:n]); err != nil && !errors.Is(err, plugin.ErrRefused) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	for n := range wasm {
		changed := append([]byte(nil), wasm...)
		changed[n] ^= 0x55
		if _, _, err := examine(changed); err != nil && !errors.Is(err, plugin.ErrRefused) {
			t.Fatalf("byte %d changed: %v", n, err)
		}
	}
}

func FuzzExamine(f *testing.F) {
	f.Add(plugintest.Guest{}.Build())
	f.Add(plugintest.Guest{Imports: [][2]string{{"ls", "log"}}, ImportType: plugintest.TypeLog}.Build())
	f.Fuzz(func(t *testing.T, wasm []byte) {
		if _, _, err := examine(wasm); err != nil && !errors.Is(err, plugin.ErrRefused) {
			t.Errorf("%v", err)
		}
	})
}

// TestOnlyDelays: a stream of think time without end gives nobody anything to do.
func TestOnlyDelays(t *testing.T) {
	ctx := context.Background()
	h := newHost(t, Options{})
	delay := []byte{1, 0, 0, 0, 1, 0, 0, 0, 0x03, 0xff, 1, 1, 5, 0, 0, 0, 0, 0, 0, 0}
	info, err := h.Register(ctx, plugintest.Guest{Batch: delay}.Build(), false)
	if err != nil {
		t.Fatal(err)
	}
	w, err := h.Workload(ctx, info.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Open(ctx, plugin.OpenRequest{}, []engine.Statement{{ID: "a", SQL: "SELECT 1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var b plugin.Batch
	for range 2 * maxEmptyBatches {
		if err = s.Fill(&b, 16); err != nil {
			break
		}
	}
	if !errors.Is(err, plugin.ErrInvalidBatch) || !strings.Contains(err.Error(), "only delays") {
		t.Errorf("%v", err)
	}
}

// TestEndlessLater: a guest that hangs long after its stream was opened is stopped
// too; its stream is gone, and others go on.
func TestEndlessLater(t *testing.T) {
	ctx := context.Background()
	h := newHost(t, Options{CallFuel: 50_000_000})
	one := []byte{1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	// The operation count of the batch is written by hand: once the byte after the batch
	// has been counted up to 20, the guest never returns.
	counter := plugintest.I32(plugintest.BatchAt + 64)
	late := plugintest.Code(counter, counter, []byte{0x28, 2, 0}, plugintest.I32(1), []byte{0x6a, 0x36, 2, 0},
		counter, []byte{0x28, 2, 0}, plugintest.I32(20), []byte{0x4b, 0x04, 0x40}, plugintest.Forever, []byte{0x0b},
		plugintest.I64(int64(plugintest.BatchAt)<<32|int64(len(one))))
	info, err := h.Register(ctx, plugintest.Guest{Batch: one, Code: map[string][]byte{"ls_fill": late}}.Build(), false)
	if err != nil {
		t.Fatal(err)
	}
	w, err := h.Workload(ctx, info.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, err := w.Open(ctx, plugin.OpenRequest{}, []engine.Statement{{ID: "a", SQL: "SELECT 1"}})
		if err != nil {
			t.Fatal(err)
		}
		var b plugin.Batch
		n := 0
		for ; n < 100; n++ {
			if err = s.Fill(&b, 16); err != nil {
				break
			}
		}
		if n != 20 || !errors.Is(err, plugin.ErrOutOfFuel) || !strings.Contains(err.Error(), "fuel") {
			t.Errorf("after %d batches: %v", n, err)
		}
		if second := s.Fill(&b, 16); second == nil {
			t.Error("a stopped stream goes on")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
