package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

const features = api.CoreFeatureBulkMemoryOperations | api.CoreFeatureMultiValue | api.CoreFeatureMutableGlobal |
	api.CoreFeatureNonTrappingFloatToIntConversion | api.CoreFeatureSignExtensionOps

// agree checks that a validator thinks the same of a module before and after.
func agree(t *testing.T, before, after []byte) {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx,
		wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features).WithMemoryLimitPages(512))
	defer r.Close(ctx)
	_, one := r.CompileModule(ctx, before)
	_, two := r.CompileModule(ctx, after)
	if one != nil && strings.Contains(one.Error(), "custom section") {
		return // Meter leaves them out
	}
	if (one == nil) != (two == nil) {
		t.Fatalf("before: %v, after: %v\n%x\n%x", one, two, before, after)
	}
}

// machine runs a module.
type machine struct {
	guest  api.Module
	slices *slices
}

func run(t testing.TB, wasm []byte) *machine {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx,
		wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features).WithMemoryLimitPages(512))
	t.Cleanup(func() { _ = r.Close(ctx) })
	slice := &slices{}
	if err := slice.offer(ctx, r); err != nil {
		t.Fatal(err)
	}
	if _, err := r.NewHostModuleBuilder("ls").NewFunctionBuilder().WithFunc(func(int32, int32, int32) {}).Export("log").
		Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	guest, err := r.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatalf("%v\n%x", err, wasm)
	}
	return &machine{guest, slice}
}

// errNoFuel is how a guest ends whose fuel is used up.
var errNoFuel = errors.New("no fuel")

// slices stands in for the host: it gives a slice of fuel after the other.
type slices struct {
	// size of a slice, left of the fuel after this slice, and how often the host was called.
	size, left int64
	calls      int
	// always has the guest go on without fuel.
	always bool
}

func (s *slices) offer(ctx context.Context, r wazero.Runtime) error {
	_, err := r.NewHostModuleBuilder(ImportModule).NewFunctionBuilder().WithFunc(s.next).Export(ImportSlice).
		Instantiate(ctx)
	return err
}

func (s *slices) next(_ context.Context, guest api.Module) {
	if s.calls++; s.always {
		return
	}
	fuel := guest.ExportedGlobal(NameFuel).(api.MutableGlobal)
	has := int64(fuel.Get())
	s.left += has
	if s.left < 0 {
		fuel.Set(uint64(s.left))
		panic(errNoFuel)
	}
	give := min(s.size, s.left)
	s.left -= give
	fuel.Set(uint64(give))
}

// metered parses and rewrites a module and runs it.
func metered(t testing.TB, wasm []byte) *machine {
	t.Helper()
	m, err := Parse(wasm, wide)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, m.Meter())
}

func (m *machine) set(fuel int64, depth int32) {
	if s := m.slices; s.size > 0 {
		s.left = max(0, fuel-s.size)
		fuel = min(fuel, s.size)
	}
	m.guest.ExportedGlobal(NameFuel).(api.MutableGlobal).Set(uint64(fuel))
	m.guest.ExportedGlobal(NameDepth).(api.MutableGlobal).Set(uint64(uint32(depth)))
}

func (m *machine) left() (fuel int64, depth int32) {
	left := int64(0)
	if m.slices.size > 0 {
		left = m.slices.left
		if int64(m.guest.ExportedGlobal(NameFuel).Get()) < 0 {
			left = 0
		}
	}
	return left + int64(m.guest.ExportedGlobal(NameFuel).Get()), int32(uint32(m.guest.ExportedGlobal(NameDepth).Get()))
}

func (m *machine) call(name string, args ...uint64) ([]uint64, error) {
	return m.guest.ExportedFunction(name).Call(context.Background(), args...)
}

func TestMeteredSample(t *testing.T) {
	m := metered(t, sample().bytes())
	for _, c := range []struct {
		name string
		arg  []uint64
		want uint64
	}{{"up", []uint64{41}, 42}, {"loop", []uint64{100}, 5050}, {"indirect", []uint64{6}, 7}, {"copy", nil, 0},
		{"init", nil, 0}, {NameStart, nil, 0}} {
		m.set(1_000_000, 10)
		got, err := m.call(c.name, c.arg...)
		if err != nil || len(got) > 0 && got[0] != c.want {
			t.Errorf("%s: %v %v", c.name, got, err)
		}
		if fuel, depth := m.left(); fuel >= 1_000_000 || depth != 10 {
			t.Errorf("%s left fuel %d and depth %d", c.name, fuel, depth)
		}
	}
}

// TestStops: whatever runs on is stopped, and it can be told why.
func TestStops(t *testing.T) {
	forever := code(opLoop, 0x40, opBr, 0, opEnd)
	fib := code(opLocalGet, 0, i64(2), opI64LtS, opIf, tI64, opLocalGet, 0, opElse,
		opLocalGet, 0, i64(1), opI64Sub, opCall, 0, opLocalGet, 0, i64(2), opI64Sub, opCall, 0, 0x7c, opEnd)
	// f0 calls f1 twice, f1 calls f2 twice … no loop and no recursion, 2⁴⁰ calls.
	tree := make([]fn, 41)
	for i := range 40 {
		tree[i] = fn{typ: toI64, code: code(opLocalGet, 0, opCall, i+1, opCall, i+1)}
	}
	tree[40] = fn{typ: toI64, code: []byte{opLocalGet, 0}}
	tree[0].name = "run"
	for _, c := range []struct {
		name string
		m    built
		deep bool
	}{
		{"loop", built{funcs: []fn{{typ: toI64, name: "run", code: code(forever, i64(0))}}}, false},
		{"loop with a parameter", built{
			funcs: []fn{{typ: toI64, name: "run", code: code(opLocalGet, 0, opLoop, toI64, opBr, 0, opEnd)}}}, false},
		{"loop by branch table", built{
			funcs: []fn{{typ: toI64, name: "run", code: code(opLoop, 0x40, i32(3), opBrTable, 2, 0, 0, 0, opEnd, i64(0))}}},
			false},
		{"loop in an if", built{funcs: []fn{{typ: toI64, name: "run",
			code: code(i32(1), opIf, 0x40, forever, opElse, opEnd, i64(0))}}}, false},
		{"start", built{start: []byte{0},
			funcs: []fn{{code: forever}, {typ: toI64, name: "other", code: []byte{opLocalGet, 0}}}}, false},
		{"tree of calls", built{funcs: tree}, false},
		{"branching recursion", built{funcs: []fn{{typ: toI64, name: "run", code: fib}}}, false},
		{"copy", built{pages: 500, funcs: []fn{{typ: toI64, name: "run",
			code: code(opLoop, 0x40, i32(0), i32(8), i32(32_000_000), opPrefix, subMemoryCopy, 0, 0, opBr, 0, opEnd, i64(0))}}},
			false},
		{"fill", built{pages: 500, funcs: []fn{{typ: toI64, name: "run",
			code: code(opLoop, 0x40, i32(0), i32(8), i32(32_000_000), opPrefix, subMemoryFill, 0, opBr, 0, opEnd, i64(0))}}},
			false},
		{"recursion", built{funcs: []fn{{typ: toI64, name: "run", code: code(opLocalGet, 0, opCall, 0)}}}, true},
		{"recursion of two", built{funcs: []fn{{typ: toI64, name: "run", code: code(opLocalGet, 0, opCall, 1)},
			{typ: toI64, code: code(opLocalGet, 0, opCall, 0)}}}, true},
		{"recursion through a table", built{table: []byte{0, 1}, elems: [][]byte{code(0, i32(0), opEnd, 1, 0)},
			funcs: []fn{{typ: toI64, name: "run", code: code(opLocalGet, 0, i32(0), opCallIndirect, toI64, 0)}}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := metered(t, c.m.bytes())
			m.set(20_000_000, 5_000)
			name, args := "run", []uint64{60}
			if c.m.start != nil {
				name, args = NameStart, nil
			}
			_, err := m.call(name, args...)
			fuel, depth := m.left()
			if err == nil || (fuel < 0) == c.deep || (depth < 0) != c.deep {
				t.Errorf("%v, fuel %d, depth %d", err, fuel, depth)
			}
			if fuel < -20_000_000 {
				t.Errorf("it went on for %d units", -fuel)
			}
		})
	}
}

// TestHostCharges: what an imported function charges for its work counts as soon as
// it returns, also in code without loops and calls.
func TestHostCharges(t *testing.T) {
	ctx := context.Background()
	call := code(i32(0), i32(0), i32(0), opCall, 0)
	m, err := Parse(built{types: [][]byte{typ([]byte{tI32, tI32, tI32}, nil)},
		imports: [][]byte{code(sized([]byte("ls")), sized([]byte("log")), 0, own)},
		funcs:   []fn{{typ: toI64, name: "run", code: code(bytes.Repeat(call, 50), opLocalGet, 0)}}}.bytes(), wide)
	if err != nil {
		t.Fatal(err)
	}
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features))
	t.Cleanup(func() { _ = r.Close(ctx) })
	slice := &slices{}
	if err := slice.offer(ctx, r); err != nil {
		t.Fatal(err)
	}
	calls := 0
	dear := func(_ context.Context, guest api.Module, _, _, _ int32) {
		calls++
		fuel := guest.ExportedGlobal(NameFuel).(api.MutableGlobal)
		fuel.Set(uint64(int64(fuel.Get()) - 1_000_000))
	}
	if _, err := r.NewHostModuleBuilder("ls").NewFunctionBuilder().WithFunc(dear).Export("log").
		Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	guest, err := r.InstantiateWithConfig(ctx, m.Meter(), wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	w := &machine{guest, slice}
	w.set(2_500_000, 10)
	if _, err := w.call("run", 1); err == nil || calls != 3 {
		t.Errorf("%v after %d calls, expected a trap after 3", err, calls)
	}
	w.set(100_000_000, 10)
	if got, err := w.call("run", 1); err != nil || got[0] != 1 || calls != 53 {
		t.Errorf("%v, %v after %d calls", got, err, calls)
	}
}

// TestDeepEnough: a recursion within the limit is none of the meter's business.
func TestDeepEnough(t *testing.T) {
	down := built{funcs: []fn{{typ: toI64, name: "run", code: code(opLocalGet, 0, 0x50, opIf, tI64, i64(0), opElse,
		opLocalGet, 0, i64(1), opI64Sub, opCall, 0, i64(1), 0x7c, opEnd)}}}
	m := metered(t, down.bytes())
	for range 3 {
		m.set(10_000_000, 5_000)
		if got, err := m.call("run", 5_000); err != nil || got[0] != 5_000 {
			t.Fatal(got, err)
		}
	}
	if _, depth := m.left(); depth != 5_000 {
		t.Errorf("depth %d is left", depth)
	}
}

// TestOnlyCirclesAreCounted: calls that cannot recur cost nothing.
func TestOnlyCirclesAreCounted(t *testing.T) {
	m, err := Parse(built{funcs: []fn{
		{code: []byte{opCall, 1, opCall, 2}},
		{code: []byte{opCall, 2}},
		{code: []byte{}},
		{code: []byte{opCall, 4}},
		{code: []byte{opCall, 2, opCall, 3}},
	}}.bytes(), wide)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(m.recursive()); got != "[false false false false false true]" {
		t.Error(got)
	}
}

// exact charges each instruction by itself just before it, which is what Meter must
// never fall short of.
func exact(m *Module) []byte {
	w := &meter{m: m, fuel: uint32(m.globals), depth: uint32(m.globals) + 1, slice: math.MaxUint32}
	get, set := appendU32([]byte{opGlobalGet}, w.fuel), appendU32([]byte{opGlobalSet}, w.fuel)
	w.out = append(w.out, "\x00asm\x01\x00\x00\x00"...)
	wrote := false
	for _, s := range m.sections {
		switch s.id {
		case 6, 7:
			if s.id == 7 && !wrote {
				w.added(6, nil)
			}
			wrote = true
			w.added(s.id, s.body)
		case 10:
			var bodies [][]byte
			for _, b := range m.bodies {
				out := bytes.Clone(b.locals)
				r := &reader{b: b.code}
				var i instruction
				w.threads.begin()
				for r.rest() > 0 {
					r.instruction(&i)
					label, direct := w.threads.next(&i, b.code)
					if cost := m.costOf(&i); cost > 0 && i.op != opElse && i.op != opEnd {
						out = code(out, get, i64(int64(cost)), opI64Sub, set)
					}
					if direct {
						out = appendU32(append(out, opBr), label)
						continue
					}
					out = append(out, b.code[i.at:i.end]...)
				}
				bodies = append(bodies, sized(out))
			}
			w.section(10, vec(bodies...))
		case 8:
		default:
			w.section(s.id, s.body)
		}
	}
	return w.out
}
