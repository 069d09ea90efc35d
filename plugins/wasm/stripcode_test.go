package wasm

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// TestHollow: all but the code of a module stays, each function traps, and the modules of two codes differ.
func TestHollow(t *testing.T) {
	source := bundled(t, "mix")
	m, err := Parse(source, wide)
	if err != nil {
		t.Fatal(err)
	}
	metered := m.Meter()
	hollow := StripCode(metered, "one")
	if bytes.Equal(hollow, StripCode(metered, "other")) {
		t.Error("the mark makes no difference")
	}
	was, is := sectionsOf(metered), sectionsOf(hollow)
	for id := range byte(13) {
		switch same := bytes.Equal(was[id], is[id]); {
		case id == 0:
			if name := string(is[0]); name != "\x0eloadstone:code"+"one" {
				t.Errorf("the mark is %q", name)
			}
		case id == 10:
			if len(is[id]) > 10_000 || len(was[id]) < 1_000_000 {
				t.Errorf("%d bytes of code became %d", len(was[id]), len(is[id]))
			}
		case !same:
			t.Errorf("section %d is another one", id)
		}
	}
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features))
	defer r.Close(ctx)
	if _, err := r.CompileModule(ctx, hollow); err != nil {
		t.Errorf("it is not valid: %v", err)
	}
	small := run(t, StripCode(rewritten(t, built{funcs: []fn{{typ: toI64, name: "f", code: code(opLocalGet, 0)}}}), "x"))
	if _, err := small.call("f", 1); err == nil || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("a function without code: %v", err)
	}
}

// rewritten is a built module as Meter writes it.
func rewritten(t *testing.T, b built) []byte {
	t.Helper()
	m, err := Parse(b.bytes(), wide)
	if err != nil {
		t.Fatal(err)
	}
	return m.Meter()
}

func sectionsOf(wasm []byte) map[byte][]byte {
	sections := map[byte][]byte{}
	r := &reader{b: wasm, pos: 8}
	for r.rest() > 0 {
		id := r.byte()
		sections[id] = r.bytes(r.u32())
	}
	return sections
}
