package wasm

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestPieces: what is moved or filled piece by piece is what the instruction itself
// would have moved or filled, and what does not fit writes nothing.
func TestPieces(t *testing.T) {
	const size = 10 << 16
	three := typ([]byte{tI32, tI32, tI32}, nil)
	args := []byte{opLocalGet, 0, opLocalGet, 1, opLocalGet, 2}
	m := metered(t, built{types: [][]byte{three}, pages: 10, funcs: []fn{
		{typ: own, name: "copy", code: code(args, opPrefix, subMemoryCopy, 0, 0)},
		{typ: own, name: "fill", code: code(args, opPrefix, subMemoryFill, 0)},
	}}.bytes())
	m.slices.size = 1 << 40
	random := rand.New(rand.NewPCG(1, 2))
	model := make([]byte, size)
	for i := range model {
		model[i] = byte(random.Uint32())
	}
	m.guest.Memory().Write(0, model)
	numbers := []uint32{0, 1, chunk - 1, chunk, chunk + 1, 3 * chunk, 5*chunk + 77, size - 1, size, size + 1, 1<<32 - 1}
	pieces := 0
	for range 2_000 {
		pick := func() uint32 {
			if random.IntN(2) == 0 {
				return numbers[random.IntN(len(numbers))]
			}
			return random.Uint32N(size)
		}
		name, to, from, n := "copy", pick(), pick(), pick()
		if random.IntN(4) == 0 {
			name = "fill"
		}
		fits := uint64(to)+uint64(n) <= size && (name == "fill" || uint64(from)+uint64(n) <= size)
		m.slices.calls = 0
		m.set(1<<41, 10)
		_, err := m.call(name, uint64(to), uint64(from), uint64(n))
		if (err == nil) != fits {
			t.Fatalf("%s(%d, %d, %d): %v", name, to, from, n, err)
		}
		switch {
		case !fits:
		case name == "fill":
			copy(model[to:to+n], bytes.Repeat([]byte{byte(from)}, int(n)))
		default:
			copy(model[to:to+n], model[from:from+n])
		}
		if fits && n > chunk {
			pieces++
			if want := int(n+chunk-1) / chunk; m.slices.calls < want {
				t.Fatalf("%s(%d, %d, %d) called the host %d times, expected %d", name, to, from, n, m.slices.calls, want)
			}
		}
		if got, _ := m.guest.Memory().Read(0, size); !bytes.Equal(got, model) {
			t.Fatalf("%s(%d, %d, %d) left another memory", name, to, from, n)
		}
	}
	if pieces < 100 {
		t.Errorf("only %d were done piece by piece", pieces)
	}
}

// TestLooks: code without a loop or a call looks whether fuel is left, and so does
// what comes after a call.
func TestLooks(t *testing.T) {
	m := metered(t, built{funcs: []fn{
		{typ: toI64, name: "straight",
			code: code(bytes.Repeat(code(opLocalGet, 0, i64(1), opI64Add, 0x21, 0), 5*maxStraightLine), opLocalGet, 0)},
		{typ: toI64, name: "back", code: code(opLocalGet, 0, opCall, 2, i32(0), 0x29, 0, 0, opI64Sub)},
		{typ: toI64, code: code(opLocalGet, 0)},
		{typ: toI64, name: "branch",
			code: code(opBlock, 0x40, opLocalGet, 0, opCall, 2, 0x1a, i32(0), 0x29, 0, 0, 0x50, opBrIf, 0, opEnd, opLocalGet,
				0)},
	}}.bytes())
	for _, c := range []struct {
		name  string
		least int
	}{{"straight", 5}, {"back", 3}, {"branch", 3}} {
		m.slices.calls, m.slices.size, m.slices.left = 0, 0, 0
		// Each look finds nothing left and calls the host, which gives nothing but goes on.
		m.slices.always = true
		m.set(-1, 10)
		if _, err := m.call(c.name, 1); err != nil {
			t.Fatal(err)
		}
		if m.slices.calls < c.least {
			t.Errorf("%s looked %d times, expected %d", c.name, m.slices.calls, c.least)
		}
	}
}
