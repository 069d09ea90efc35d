package wasm

import (
	"bytes"
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"pgregory.net/rapid"
)

// dataOf returns the section of data of a metered module, and how many segments it says it has.
func dataOf(m *Module) ([]byte, uint32) {
	metered := &reader{b: m.Meter(), pos: 8}
	for metered.rest() > 0 {
		id := metered.byte()
		s := &reader{b: metered.bytes(metered.u32())}
		if id == 11 {
			return s.b, s.u32()
		}
	}
	return nil, 0
}

// content is the memory that an instance begins with, or nil where it cannot begin.
func content(wasm []byte) []byte {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx,
		wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features).WithMemoryLimitPages(512))
	defer r.Close(ctx)
	if err := (&slices{}).offer(ctx, r); err != nil {
		panic(err)
	}
	guest, err := r.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		return nil
	}
	b, _ := guest.Memory().Read(0, guest.Memory().Size())
	return bytes.Clone(b)
}

// TestJoinedDataIsTheSameMemory: whatever a module's data segments are, in whatever order,
// also one over another and beyond the memory's end, an instance begins with the same memory.
func TestJoinedDataIsTheSameMemory(t *testing.T) {
	const end = 1 << 16
	rapid.Check(t, func(t *rapid.T) {
		m := built{funcs: []fn{{typ: void}}, count: rapid.Bool().Draw(t, "count")}
		around := rapid.SampledFrom([]int32{0, 500, end - 400, -100}).Draw(t, "around")
		for range rapid.IntRange(1, 12).Draw(t, "segments") {
			at := around + int32(rapid.IntRange(0, 400).Draw(t, "at"))
			held := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "content")
			if rapid.IntRange(0, 20).Draw(t, "passive") == 0 {
				m.datas = append(m.datas, code(1, sized(held)))
				continue
			}
			m.datas = append(m.datas, code(0, i32(at), opEnd, sized(held)))
		}
		wasm := m.bytes()
		parsed, err := Parse(wasm, wide)
		if err != nil {
			t.Fatal(err)
		}
		before, after := content(wasm), content(parsed.Meter())
		if !bytes.Equal(before, after) || (before == nil) != (after == nil) {
			t.Fatalf("the memory is another one\n%x\n%x", wasm, parsed.Meter())
		}
	})
}

// TestDataIsJoined: what is close together becomes one segment, what is not stays apart, and
// what instructions name, or lies over another, stays as it is.
func TestDataIsJoined(t *testing.T) {
	position := func(at int32, content string) []byte { return code(0, i32(at), opEnd, sized([]byte(content))) }
	for _, c := range []struct {
		name  string
		datas [][]byte
		count bool
		want  uint32
	}{
		{"apart by what is filled", [][]byte{position(0, "ab"), position(2+mergeGapBytes, "cd")}, false, 1},
		{"apart by one more", [][]byte{position(0, "ab"), position(3+mergeGapBytes, "cd")}, false, 2},
		{"in another order", [][]byte{position(300, "e"), position(20, "cd"), position(0, "ab"), position(290, "d")}, false, 2},
		{"one over another", [][]byte{position(0, "abc"), position(2, "cd"), position(9, "x")}, false, 3},
		{"counted", [][]byte{position(0, "ab"), position(2, "cd")}, true, 2},
		{"passive", [][]byte{position(0, "ab"), position(2, "cd"), code(1, sized([]byte("p")))}, false, 3},
		{"none", [][]byte{}, false, 0},
	} {
		m, err := Parse(built{funcs: []fn{{typ: void}}, datas: c.datas, count: c.count}.bytes(), wide)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if _, got := dataOf(m); got != c.want {
			t.Errorf("%s: %d segments, expected %d", c.name, got, c.want)
		}
	}
}

// TestDataOfGoGuestsIsJoined: the linker's thousands of segments become a few, and the memory is the same.
func TestDataOfGoGuestsIsJoined(t *testing.T) {
	wasm := bundled(t, "mix")
	m, err := Parse(wasm, wide)
	if err != nil {
		t.Fatal(err)
	}
	joined, segments := dataOf(m)
	if m.data < 10_000 || segments > 100 {
		t.Errorf("%d segments became %d", m.data, segments)
	}
	held := make([]byte, 2<<20)
	fill := func(section []byte) []byte {
		clear(held)
		r := &reader{b: section}
		for n := r.u32(); n > 0; n-- {
			r.u32()
			r.byte()
			at := r.signed32()
			r.byte()
			copy(held[at:], r.bytes(r.u32()))
		}
		return bytes.Clone(held)
	}
	for _, s := range m.sections {
		if s.id == 11 && !bytes.Equal(fill(s.body), fill(joined)) {
			t.Error("the memory is another one")
		}
	}
}
