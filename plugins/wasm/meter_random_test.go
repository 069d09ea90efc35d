package wasm

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/tetratelabs/wazero"
	"pgregory.net/rapid"
)

// program draws a random module: functions of (i64, i64) → i64 with blocks, loops,
// branches of every kind, calls in both directions, dead code and bulk memory.
func program(t *rapid.T) []byte {
	n := rapid.IntRange(1, 4).Draw(t, "functions")
	m := built{types: [][]byte{typ([]byte{tI64}, nil), typ(nil, []byte{tI64})}, table: []byte{0, 4},
		globals: [][]byte{code(tI64, 1, i64(3), opEnd)}}
	var elems [][]byte
	for i := range n {
		elems = append(elems, []byte{byte(i)})
		g := &generator{t: t, functions: n}
		m.funcs = append(m.funcs, fn{typ: twoI64, name: fmt.Sprintf("f%d", i), locals: []byte{2, 2, tI64, 2, tI32},
			code: code(g.block(4, 12), opLocalGet, 2)})
	}
	m.elems = [][]byte{code(0, i32(0), opEnd, vec(elems...))}
	if rapid.Bool().Draw(t, "no globals") {
		m.globals = nil
		for i := range m.funcs {
			m.funcs[i].code = bytes.ReplaceAll(m.funcs[i].code, []byte{opGlobalGet, 0}, []byte{opLocalGet, 1})
		}
	}
	return m.bytes()
}

type generator struct {
	t         *rapid.T
	functions int
	labels    []bool // whether the label of each open block is a loop's; all carry nothing
	tables    []int  // the places in labels of the loops around a table
}

func (g *generator) n(limit int, what string) int { return rapid.IntRange(0, limit).Draw(g.t, what) }

// value is code that leaves one i64.
func (g *generator) value() []byte {
	get := func() []byte {
		switch g.n(3, "operand") {
		case 0:
			return i64(int64(g.n(5, "constant")))
		case 1:
			return []byte{opGlobalGet, 0}
		}
		return []byte{opLocalGet, byte(g.n(3, "local"))}
	}
	switch g.n(6, "value") {
	case 0:
		return code(get(), get(), opI64Sub)
	case 1:
		return code(get(), get(), 0x7c)
	case 2:
		return code(get(), i64(3), 0x80) // unsigned division
	case 3:
		return code(get(), get(), opCall, g.n(g.functions-1, "callee"))
	case 4:
		return code(get(), get(), i32(int32(g.n(g.functions-1, "callee"))), opCallIndirect, twoI64, 0)
	case 5:
		return code(opBlock, own+1, get(), opEnd) // a block of a type by its number
	}
	return get()
}

func (g *generator) condition() []byte { return code(g.value(), i64(2), 0x81, 0xa7) }

// block is a list of statements, none of which leaves anything on the stack.
func (g *generator) block(depth, length int) []byte {
	var out []byte
	for range g.n(length, "length") {
		out = code(out, g.statement(depth))
	}
	return out
}

func (g *generator) inside(loop bool, depth int) []byte {
	g.labels = append(g.labels, loop)
	out := g.block(depth-1, 6)
	g.labels = g.labels[:len(g.labels)-1]
	return out
}

func (g *generator) statement(depth int) []byte {
	kind := g.n(12, "statement")
	if depth == 0 {
		kind %= 6
	}
	label := func() []byte { return appendU32(nil, uint32(g.n(max(0, len(g.labels)-1), "label"))) }
	switch kind {
	case 0, 1:
		return code(g.value(), 0x21, 2+g.n(1, "local"))
	case 2:
		return code(g.condition(), i32(16), 0x6c, i32(64), i32(100), opPrefix, subMemoryCopy, 0, 0)
	case 3, 4, 5:
		if len(g.tables) > 0 && g.n(2, "jump") > 0 {
			return g.jump()
		}
		if len(g.labels) == 0 {
			return []byte{0x01}
		}
		switch g.n(3, "branch") {
		case 0:
			return code(opBr, label())
		case 1:
			return code(g.condition(), opBrTable, 2, label(), label(), label())
		}
		return code(g.condition(), opBrIf, label())
	case 6, 7:
		return code(opBlock, 0x40, g.inside(false, depth), opEnd)
	case 8:
		return code(opLoop, 0x40, g.inside(true, depth), opEnd)
	case 9:
		return code(g.value(), opLoop, own, 0x21, 3, g.inside(true, depth)[:0], opEnd) // a loop with a parameter
	case 10:
		return code(g.condition(), opIf, 0x40, g.inside(false, depth), opEnd)
	case 11:
		return g.table(depth)
	}
	if g.n(20, "dead") == 0 {
		return code(g.condition(), opIf, 0x40, opUnreachable, g.inside(false, depth), opEnd)
	}
	return code(g.condition(), opIf, 0x40, g.inside(false, depth), opElse, g.inside(false, depth), opEnd)
}

// table is code as Go's compiler makes it: a loop around a table of blocks, which
// jumps choose from by a local.
func (g *generator) table(depth int) []byte {
	n := 1 + g.n(4, "blocks")
	out := code(i32(int32(g.n(n, "first"))), opLocalSet, 4, opLoop, 0x40)
	g.tables = append(g.tables, len(g.labels))
	g.labels = append(g.labels, true)
	for range n {
		out = append(out, opBlock, 0x40)
		g.labels = append(g.labels, false)
	}
	if g.n(9, "something else") == 0 {
		out = append(out, 0x01)
	}
	out = code(out, opLocalGet, 4, opBrTable, n)
	for range n + 1 {
		out = append(out, byte(g.n(n-1, "target")))
	}
	for range n {
		g.labels = g.labels[:len(g.labels)-1]
		out = code(out, opEnd, g.block(depth-1, 5))
	}
	g.labels, g.tables = g.labels[:len(g.labels)-1], g.tables[:len(g.tables)-1]
	return append(out, opEnd)
}

// jump goes to a table, mostly as Go's compiler does it.
func (g *generator) jump() []byte {
	loop := g.tables[g.n(len(g.tables)-1, "table")]
	to := i32(int32(g.n(6, "block") - 1))
	set := code(to, opLocalSet, 4)
	switch g.n(9, "otherwise") {
	case 0:
		set = code(to, opLocalTee, 4, opLocalSet, 4)
	case 1:
		set = code(to, opLocalSet, 5)
	case 2:
		set = to
	}
	if g.n(3, "always") == 0 {
		return code(set, opBr, len(g.labels)-1-loop)
	}
	return code(g.condition(), opIf, 0x40, set, opBr, len(g.labels)-loop, opEnd)
}

// TestJumpsGoThroughNoTable: a jump to a block that lies ahead goes there, and a
// loop that nothing goes back to is looked after no more.
func TestJumpsGoThroughNoTable(t *testing.T) {
	jump := func(to int32, depth int) []byte { return code(i32(to), opLocalSet, 1, opBr, depth) }
	// f(a): block 0 jumps to 2 where a is 0; 1 adds 10; 2 adds 1, and the one that
	// rounds begins again with a-1 where a is above 5.
	module := func(first, last []byte) []byte {
		return built{types: [][]byte{typ([]byte{tI64}, []byte{tI64})},
			funcs: []fn{{typ: toI64, name: "run", locals: []byte{3, 1, tI32, 1, tI64, 1, tI32}, code: code(
				opLoop, 0x40, opBlock, 0x40, opBlock, 0x40, opBlock, 0x40, opBlock, 0x40,
				opLocalGet, 1, opBrTable, 3, 0, 1, 2, 3, opEnd,
				opLocalGet, 0, 0x50, opIf, 0x40, first, opEnd, opEnd,
				opLocalGet, 2, i64(10), opI64Add, opLocalSet, 2, opEnd,
				opLocalGet, 2, i64(1), opI64Add, opLocalSet, 2, last, opEnd, opEnd, opLocalGet, 2)}}}.bytes()
	}
	back := code(opLocalGet, 0, i64(5), 0x55, opIf, 0x40, opLocalGet, 0, i64(1), opI64Sub, opLocalSet, 0, jump(1, 2),
		opEnd)
	ahead, second := jump(2, 4), code(i64(1), opLocalSet, 0)
	for _, c := range []struct {
		name        string
		first, last []byte
		arg, want   uint64
		looks       int
	}{
		{"ahead", ahead, nil, 0, 1, 1},
		{"none", ahead, nil, 3, 11, 1},
		{"back", ahead, back, 7, 33, 3},
		{"a number that is not set", code(second, i32(0), opLocalSet, 1, i32(2), opBr, 4), nil, 0, 11, 2},
		{"another variable", code(second, i32(2), opLocalSet, 3, opBr, 4), nil, 0, 11, 2},
		{"set before something else", code(second, i32(2), opLocalSet, 1, 0x01, opBr, 4), nil, 0, 1, 2},
	} {
		m := metered(t, module(c.first, c.last))
		m.slices.always = true
		m.set(-1_000_000, 10)
		got, err := m.call("run", c.arg)
		if err != nil || got[0] != c.want || m.slices.calls != c.looks {
			t.Errorf("%s: %v %v after %d looks, expected %d after %d", c.name, got, err, m.slices.calls, c.want, c.looks)
		}
	}
}

// sameResults: a metered program gives what the original gives, and pays for it.
func sameResults(t *rapid.T) {
	wasm := program(t)
	m, err := Parse(wasm, wide)
	if err != nil {
		t.Fatalf("%v\n%x", err, wasm)
	}
	ctx := context.Background()
	open := func(b []byte) *machine {
		r := wazero.NewRuntimeWithConfig(ctx,
			wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features).WithMemoryLimitPages(512))
		t.Cleanup(func() { _ = r.Close(ctx) })
		slice := &slices{size: 700}
		if err := slice.offer(ctx, r); err != nil {
			t.Fatal(err)
		}
		guest, err := r.InstantiateWithConfig(ctx, b, wazero.NewModuleConfig().WithStartFunctions())
		if err != nil {
			t.Fatalf("%v\n%x\n%x", err, wasm, b)
		}
		return &machine{guest, slice}
	}
	const plenty = math.MaxInt64 / 2
	fuelled := open(m.Meter())
	a, b := uint64(g5(t)), uint64(g5(t))
	fuelled.set(30_000, 100)
	got, err := fuelled.call("f0", a, b)
	fuel, depth := fuelled.left()
	if err != nil {
		// It ran on: then nothing can be compared, but the reason must be known, or be the program's own.
		if fuel >= 0 && depth >= 0 {
			if _, plain := open(wasm).call("f0", a, b); plain == nil {
				t.Fatalf("metered: %v; the original returns\n%x", err, wasm)
			}
		}
		return
	}
	want, err := open(wasm).call("f0", a, b)
	if err != nil || got[0] != want[0] {
		t.Fatalf("metered: %v; the original: %v %v\n%x", got, want, err, wasm)
	}
	if depth != 100 {
		t.Fatalf("depth %d is left of 100\n%x", depth, wasm)
	}
	counted := open(exact(m))
	counted.slices.size = 0
	counted.set(plenty, 100)
	if _, err := counted.call("f0", a, b); err != nil {
		t.Fatal(err)
	}
	spent, _ := counted.left()
	if cost := plenty - spent; 30_000-fuel < cost {
		t.Fatalf("it paid %d for what costs %d\n%x", 30_000-fuel, cost, wasm)
	}
}

func g5(t *rapid.T) int64 { return rapid.Int64Range(-5, 5).Draw(t, "argument") }

func TestSameResults(t *testing.T) {
	rapid.Check(t, sameResults)
}

func FuzzMeter(f *testing.F) {
	for _, seed := range []string{"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b", "\x03\x80\xff\x11\x42", "\xff"} {
		f.Add(bytes.Repeat([]byte(seed), 100))
	}
	f.Fuzz(rapid.MakeFuzz(sameResults))
}
