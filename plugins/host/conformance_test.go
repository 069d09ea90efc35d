package host

import (
	"context"
	"strings"
	"testing"

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
