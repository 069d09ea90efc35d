package trial

import (
	"context"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
	"github.com/loadstone-db/loadstone/plugins/host"
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
		{"not repeatable rows", plugintest.Guest{Batch: good,
			Rows: plugintest.Batch(plugintest.Operation(0, plugintest.Int(1), []byte{0}),
				plugintest.Operation(0, plugintest.Int(2), []byte{0}))}.Build(),
			"sample rows of t are repeatable", "1"},
		{"undeclared statement", plugintest.Guest{Batch: plugintest.Batch(plugintest.Operation(9))}.Build(), "stream",
			"only 2 were declared"},
		{"too many operations", plugintest.Guest{Batch: plugintest.Batch(plugintest.Operation(0, plugintest.Int(1)),
			plugintest.Operation(0, plugintest.Int(1)))}.Build(), "small batches", "asked for"},
		{"unknown member", plugintest.Guest{Batch: good,
			Manifest: `{"kind":"workload","name":"g","prameters":{},"statements":[{"id":"one","binds":["i64"],"sql":"SELECT 1"}]}`}.Build(),
			"manifest", `"prameters", which nobody reads`},
		{"unknown member of a column",
			plugintest.Guest{Batch: good,
				Manifest: `{"kind":"workload","name":"g","tables":[{"name":"t","columns":[{"name":"id","type":"i64","nulable":true}]}],` +
					`"statements":[{"id":"one","binds":["i64"],"sql":"SELECT 1"}]}`}.Build(), "manifest",
			`tables[0].columns[0].nulable`},
		{"wrong default", plugintest.Guest{Batch: good,
			Manifest: `{"kind":"workload","name":"g","parameters":{"type":"object","properties":{"a":{"type":"integer","default":"x"}}},` +
				`"statements":[{"id":"one","binds":["i64"],"sql":"SELECT 1"}]}`}.Build(), "parameters",
			"the default of the parameter a"},
		{"wrong default of a part", plugintest.Guest{Batch: good,
			Manifest: `{"kind":"workload","name":"g","parameters":{"type":"object","properties":` +
				`{"w":{"type":"object","properties":{"a":{"type":"integer","default":"x"}}}}},"statements":[{"id":"one","binds":["i64"],"sql":"SELECT 1"}]}`}.Build(),
			"parameters", "the default of the parameter w.a"},
		{"NULL in a key", plugintest.Guest{Batch: good, Rows: plugintest.Batch(plugintest.Operation(0, []byte{0})),
			Manifest: `{"kind":"workload","name":"g","tables":[{"name":"t","columns":[{"name":"id","type":"i64","nullable":true}],"key":["id"]}],` +
				`"statements":[{"id":"one","binds":["i64"],"sql":"SELECT 1"}]}`}.Build(), "keys of t", "NULL in id"},
		{"the same key twice", plugintest.Guest{Batch: good,
			Rows: plugintest.Batch(plugintest.Operation(0, plugintest.Int(1), []byte{0}),
				plugintest.Operation(0, plugintest.Int(1), []byte{0}))}.Build(), "keys of t",
			"rows 0 and 1 of t have the same key"},
		{"a key of the first rows among the last",
			plugintest.Guest{Batch: good, Rows: plugintest.Batch(plugintest.Operation(0, plugintest.Int(1), []byte{0}))}.Build(),
			"keys of t", "rows 0 and 9900 of t have the same key"},
		{"NUL in a row", plugintest.Guest{Batch: good,
			Rows: plugintest.Batch(plugintest.Operation(0, plugintest.Int(1), plugintest.Data(3, "a\x00")))}.Build(),
			"keys of t", "NUL in v"},
		{"NUL in an operation", plugintest.Guest{
			Batch: plugintest.Batch(plugintest.Operation(1, plugintest.Int(1), []byte{0}, plugintest.Data(3, "a\x00"), []byte{0},
				[]byte{0}, []byte{0}))}.Build(),
			"stream", "argument 2 of all has a NUL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := conformance(context.Background(), host.Options{CacheDir: cacheDir}, c.wasm, nil, true)
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
			// What the suite fails is what an upload is refused for.
			if len(c.wasm) < 1<<20 {
				if _, err := SmokeTest(context.Background(), c.wasm); (err == nil) != r.Passed {
					t.Errorf("the suite says %v, an upload %v", r.Passed, err)
				}
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
	h := newHost(t)
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
	got, err := sampleStream(ctx, p, plugin.OpenRequest{}, statementsWithoutSQL(info.Manifest.Statements), 64)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err != nil || got.operations < 2 || got.bytes > maxSampleBytes+blob+100 {
		t.Errorf("%v: %d operations of %d bytes", err, got.operations, got.bytes)
	}
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 2*blob {
		t.Errorf("%d bytes are kept", kept)
	}
}
