package wasm

import (
	"bytes"
	"os"
	"testing"
)

// wide are limits for tests that are not about limits.
var wide = Limits{ModuleBytes: 8 << 20, Types: 10_000, Params: 64, Imports: 100, Functions: 50_000, Globals: 1_000,
	Exports: 10_000, Segments: 100_000,
	TableEntries: 65_536, MemoryPages: 512, Locals: 50_000, FunctionBytes: 1 << 20, Nesting: 5_000, Loops: 500,
	Branches: 100_000, Merges: 4_000_000, Work: 100_000_000}

// The pieces of a module, written as bytes.
func vec(items ...[]byte) []byte {
	return append(appendU32(nil, uint32(len(items))), bytes.Join(items, nil)...)
}

func sized(b []byte) []byte { return append(appendU32(nil, uint32(len(b))), b...) }

func sect(id byte, body []byte) []byte { return append([]byte{id}, sized(body)...) }

func code(parts ...any) []byte {
	var out []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			out = append(out, byte(p))
		case byte:
			out = append(out, p)
		case []byte:
			out = append(out, p...)
		case string:
			out = append(out, p...)
		}
	}
	return out
}

func i32(v int32) []byte { return appendS64([]byte{opI32Const}, int64(v)) }
func i64(v int64) []byte { return appendS64([]byte{opI64Const}, v) }

const (
	tI32 = 0x7f
	tI64 = 0x7e
)

func typ(params, results []byte) []byte {
	return code(0x60, vec(split(params)...), vec(split(results)...))
}

func split(b []byte) [][]byte {
	var out [][]byte
	for i := range b {
		out = append(out, b[i:i+1])
	}
	return out
}

// fn is a function of a built module; its code stands without locals and without its end.
type fn struct {
	typ    uint32
	locals []byte // a vector of groups; nil is none
	code   []byte
	name   string // exported under it, when not ""
}

// built is a module with types of its own, one memory and one table.
type built struct {
	types   [][]byte
	imports [][]byte
	funcs   []fn
	globals [][]byte
	table   []byte // the table's limits, or nil
	elems   [][]byte
	datas   [][]byte
	start   []byte
	pages   uint32
	count   bool // with a data count section
}

// The types that every built module begins with.
const (
	void   = 0 // () → ()
	toI64  = 1 // (i64) → (i64)
	twoI64 = 2 // (i64, i64) → (i64)
	pair   = 3 // () → (i64, i64)
	own    = 4 // the first of the module's own
)

func (m built) bytes() []byte {
	types := append([][]byte{typ(nil, nil), typ([]byte{tI64}, []byte{tI64}), typ([]byte{tI64, tI64}, []byte{tI64}),
		typ(nil, []byte{tI64, tI64})}, m.types...)
	var functions, exports, bodies [][]byte
	exports = append(exports, code(sized([]byte("memory")), 2, 0))
	for i, f := range m.funcs {
		functions = append(functions, appendU32(nil, f.typ))
		if f.name != "" {
			exports = append(exports, code(sized([]byte(f.name)), 0, appendU32(nil, uint32(len(m.imports)+i))))
		}
		locals := f.locals
		if locals == nil {
			locals = []byte{0}
		}
		bodies = append(bodies, sized(code(locals, f.code, opEnd)))
	}
	out := code("\x00asm\x01\x00\x00\x00", sect(1, vec(types...)))
	if m.imports != nil {
		out = code(out, sect(2, vec(m.imports...)))
	}
	out = code(out, sect(3, vec(functions...)))
	if m.table != nil {
		out = code(out, sect(4, vec(code(0x70, m.table))))
	}
	out = code(out, sect(5, vec(code(0, appendU32(nil, max(1, m.pages))))))
	if m.globals != nil {
		out = code(out, sect(6, vec(m.globals...)))
	}
	out = code(out, sect(7, vec(exports...)))
	if m.start != nil {
		out = code(out, sect(8, m.start))
	}
	if m.elems != nil {
		out = code(out, sect(9, vec(m.elems...)))
	}
	if m.count {
		out = code(out, sect(12, appendU32(nil, uint32(len(m.datas)))))
	}
	out = code(out, sect(10, vec(bodies...)))
	if m.datas != nil {
		out = code(out, sect(11, vec(m.datas...)))
	}
	return out
}

// bundled returns a bundled guest, or skips where `make plugins` has not run.
func bundled(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile("../bundled/built/" + name + ".wasm")
	if err != nil {
		tb.Fatalf("%v: run `make plugins`", err)
	}
	return b
}
