package host

import (
	"context"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
)

func TestConformance(t *testing.T) {
	good := plugintest.Batch(plugintest.Operation(0, plugintest.Int(1)))
	for _, c := range []struct {
		name string
		wasm []byte
		// failed is the check that fails, "" when all pass.
		failed, says string
	}{
		{"mix", bundledFile(t, "mix.wasm"), "", ""},
		{"postgres", bundledFile(t, "postgres.wasm"), "", ""},
		{"snowflake_standard", bundledFile(t, "snowflake_standard.wasm"), "", ""},
		{"snowflake_hybrid", bundledFile(t, "snowflake_hybrid.wasm"), "", ""},
		{"snowflake_interactive", bundledFile(t, "snowflake_interactive.wasm"), "", ""},
		{"snowflake_postgres", bundledFile(t, "snowflake_postgres.wasm"), "", ""},
		{"garbage", []byte("garbage"), "module", "not a WebAssembly module"},
		{"not repeatable rows", plugintest.Guest{Batch: good, Rows: plugintest.Batch(plugintest.Operation(0, plugintest.Int(1), []byte{0}), plugintest.Operation(0, plugintest.Int(2), []byte{0}))}.Build(),
			"sample rows of t are repeatable", "1"},
		{"undeclared statement", plugintest.Guest{Batch: plugintest.Batch(plugintest.Operation(9))}.Build(), "stream", "only 2 were declared"},
		{"too many operations", plugintest.Guest{Batch: plugintest.Batch(plugintest.Operation(0, plugintest.Int(1)), plugintest.Operation(0, plugintest.Int(1)))}.Build(), "small batches", "asked for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Conformance(context.Background(), c.wasm, nil)
			if err != nil {
				t.Fatal(err)
			}
			if r.Passed != (c.failed == "") {
				t.Errorf("passed is %v: %+v", r.Passed, r.Checks)
			}
			found := c.failed == ""
			for _, check := range r.Checks {
				if check.Message == "" {
					t.Errorf("check %q has no sentence", check.Name)
				}
				if !check.Passed && c.failed == "" {
					t.Errorf("%s: %s", check.Name, check.Message)
				}
				found = found || check.Name == c.failed && !check.Passed && strings.Contains(check.Message, c.says)
			}
			if !found {
				t.Errorf("%q did not fail with %q: %+v", c.failed, c.says, r.Checks)
			}
		})
	}
}

// TestConformanceKeepsNothing: however large the batches of a stream are, what the
// suite took of it stays small, and so does what it looks at.
func TestConformanceKeepsNothing(t *testing.T) {
	ctx := context.Background()
	const blob = 6 << 20
	// The zeros behind the batch are the blob, and two NULLs.
	batch := append(plugintest.Batch(plugintest.Operation(1, plugintest.Int(1), []byte{0}, []byte{0})),
		binary.LittleEndian.AppendUint32([]byte{4}, blob)...)
	batch[10] = 6
	const at = plugintest.BatchAt
	h := newHost(t, Options{})
	info, err := h.Register(ctx, plugintest.Guest{Batch: batch, Pages: 120, Code: map[string][]byte{
		"ls_fill": plugintest.I64(at<<32 | int64(len(batch)+blob+2))}}.Build(), false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.Workload(ctx, info.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	got, err := take(ctx, p.(*workload), plugin.OpenRequest{}, withoutAdapter(info.Manifest.Statements), 64)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err != nil || got.operations < 2 || got.bytes > maxTaken+blob+100 {
		t.Errorf("%v: %d operations of %d bytes", err, got.operations, got.bytes)
	}
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 2*blob {
		t.Errorf("%d bytes are kept", kept)
	}
}
