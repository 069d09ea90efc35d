package wasm

import (
	"bytes"
	"strings"
	"testing"
)

// sample is a module with a section of every kind.
// exported is the type of a function that the module exports by the name, "" without one.
func exported(m *Module, name string) string {
	for _, e := range m.Exports {
		if e.Name == name && e.Kind == KindFunction {
			return e.Type
		}
	}
	return ""
}

func sample() built {
	return built{
		imports: [][]byte{code(sized([]byte("ls")), sized([]byte("log")), 0, own)},
		types:   [][]byte{typ([]byte{tI32, tI32, tI32}, nil)},
		funcs: []fn{
			{typ: toI64, name: "up", code: code(opLocalGet, 0, i64(1), 0x7c)},
			{typ: toI64, name: "loop", locals: []byte{1, 1, tI64},
				code: code(opLoop, 0x40, opLocalGet, 1, opLocalGet, 0, 0x7c, 0x21, 1, opLocalGet, 0, i64(1), opI64Sub, opLocalTee,
					0, i64(0), 0x55, opBrIf, 0, opEnd, opLocalGet, 1)},
			{typ: void, name: "copy", code: code(i32(0), i32(64), i32(1000), opPrefix, subMemoryCopy, 0, 0)},
			{typ: toI64, name: "indirect", code: code(opLocalGet, 0, i32(0), opCallIndirect, toI64, 0)},
			{typ: void, name: "init", code: code(i32(0), i32(0), i32(2), opPrefix, subMemoryInit, 0, 0, opPrefix, subDataDrop,
				0)},
			{typ: void},
		},
		globals: [][]byte{code(tI64, 1, i64(-5), opEnd), code(tI32, 0, i32(9), opEnd)},
		table:   []byte{1, 4, 4},
		elems:   [][]byte{code(0, i32(0), opEnd, vec([]byte{1}, []byte{2}))},
		datas:   [][]byte{code(1, sized([]byte("xy"))), code(0, i32(8), opEnd, sized([]byte("abc")))},
		start:   []byte{6},
		count:   true,
	}
}

func TestAccepted(t *testing.T) {
	m, err := Parse(sample().bytes(), wide)
	if err != nil {
		t.Fatal(err)
	}
	if !m.HasStart || len(m.Imports) != 1 || m.Imports[0] != (Import{"ls", "log", "(i32, i32, i32) → ()"}) ||
		exported(m, "up") != "(i64) → (i64)" || exported(m, "memory") != "" {
		t.Errorf("%+v", m)
	}
	for _, name := range []string{"mix", "postgres"} {
		if _, err := Parse(bundled(t, name), wide); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	padded := built{funcs: []fn{{typ: toI64, code: code(opLocalGet, 0x80, 0x80, 0x80, 0x80, 0)}}}
	if _, err := Parse(padded.bytes(), wide); err != nil {
		t.Errorf("a number padded to five bytes, as linkers write them: %v", err)
	}
}

func TestRefused(t *testing.T) {
	head := "\x00asm\x01\x00\x00\x00"
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x0f}
	one := func(c ...any) []byte { return built{funcs: []fn{{code: code(c...)}}}.bytes() }
	with := func(f func(m *built)) []byte {
		m := sample()
		f(&m)
		return m.bytes()
	}
	for _, c := range []struct {
		name string
		wasm []byte
		says string
	}{
		{"empty", nil, "empty"},
		{"four bytes", []byte("\x00asm"), "cut off"},
		{"ELF", []byte("\x7fELF\x02\x01\x01"), "ELF"},
		{"Windows", []byte("MZ\x90\x00"), "Windows"},
		{"gzip", []byte("\x1f\x8b\x08\x00"), "gzip"},
		{"ZIP", []byte("PK\x03\x04"), "ZIP"},
		{"object archive", []byte("!<arch>\n"), "archive"},
		{"text form", []byte(" (module (memory 1))"), "wat2wasm"},
		{"web page", []byte("<html>not found</html>"), "web page"},
		{"text", []byte("hello\nworld"), "text"},
		{"noise", []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, "not a WebAssembly module"},
		{"component", []byte("\x00asm\x0d\x00\x01\x00"), "component"},
		{"another version", []byte("\x00asm\x02\x00\x00\x00"), "unknown version"},
		{"unknown section", []byte(head + "\x0e\x00"), "unknown kind 14"},
		{"section longer than the file", []byte(head + "\x01\x7f"), "cut off"},
		{"section size of 2³²−1", append([]byte(head+"\x01"), huge...), "cut off"},
		{"section twice", code(head, sect(1, []byte{0}), sect(1, []byte{0})), "twice"},
		{"section out of order", code(head, sect(3, []byte{0}), sect(1, []byte{0})), "wrong place"},
		{"bytes after a section", code(head, sect(1, []byte{0, 0})), "too many"},
		{"2³²−1 types", code(head, sect(1, huge)), "types"},
		{"2³²−1 imports", code(head, sect(2, huge)), "imports"},
		{"2³²−1 functions", code(head, sect(3, huge)), "functions"},
		{"300 000 functions", code(head, sect(1, vec(typ(nil, nil))),
			sect(3, code(appendU32(nil, 300_000), make([]byte, 300_000)))), "functions, the limit"},
		{"2³²−1 tables", code(head, sect(4, huge)), "tables"},
		{"2³²−1 memories", code(head, sect(5, huge)), "memories"},
		{"2³²−1 globals", code(head, sect(6, huge)), "globals"},
		{"2³²−1 exports", code(head, sect(7, huge)), "exports"},
		{"2³²−1 element segments", code(head, sect(9, huge)), "element segments"},
		{"2³²−1 bodies", code(head, sect(10, huge)), "function bodies"},
		{"2³²−1 data segments", code(head, sect(11, huge)), "data segments"},
		{"overlong number", code(head, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0), "longer than its type"},
		{"number over 32 bits", code(head, 1, 0xff, 0xff, 0xff, 0xff, 0x7f), "longer than its type"},
		{"overlong i32.const", one(opI32Const, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0x1a), "longer than its type"},
		{"i32.const over 32 bits", one(opI32Const, 0x80, 0x80, 0x80, 0x80, 0x10, 0x1a), "longer than its type"},
		{"functions without code", code(head, sect(1, vec(typ(nil, nil))), sect(3, []byte{1, 0})), "code of 0"},
		{"more code than functions", code(head, sect(10, vec(sized([]byte{0, opEnd})))), "code of 1"},
		{"type without function", with(func(m *built) { m.funcs[0].typ = 99 }), "has type 99"},
		{"locals bomb", built{funcs: []fn{{locals: code(1, huge, tI64)}}}.bytes(), "local variables"},
		{"locals bomb in groups", built{
			funcs: []fn{{locals: code(3, appendU32(nil, 30_000), tI64, appendU32(nil, 30_000), tI32, 0, tI32)}}}.bytes(),
			"local variables"},
		{"large table", with(func(m *built) { m.table = code(0, huge) }), "table starts with 4294967295 entries"},
		{"large memory", with(func(m *built) { m.pages = 65_536 }), "memory starts with 65536 pages"},
		{"shared memory", code(head, sect(5, []byte{1, 3, 1, 2})), "shared"},
		{"memory64", code(head, sect(5, []byte{1, 4, 1})), "memory64"},
		{"two memories", code(head, sect(5, []byte{2, 0, 1, 0, 1})), "memories"},
		{"two tables", code(head, sect(4, []byte{2, 0x70, 0, 1, 0x70, 0, 1})), "tables"},
		{"table of externref", code(head, sect(4, []byte{1, 0x6f, 0, 1})), "reference types"},
		{"tags", code(head, sect(13, []byte{1, 0, 0})), "exceptions"},
		{"imported memory", with(func(m *built) {
			m.imports[0] = code(sized([]byte("env")), sized([]byte("memory")), 2, 0,
				1)
		}), "a memory, env.memory"},
		{"import without type", with(func(m *built) { m.imports[0][len(m.imports[0])-1] = 77 }), "no type"},
		{"name that is not UTF-8", with(func(m *built) { m.funcs[0].name = "\xff\xfe" }), "UTF-8"},
		{"export twice", with(func(m *built) { m.funcs[1].name = "up" }), "up twice"},
		{"export of the host", with(func(m *built) { m.funcs[1].name = NameFuel }), "the host's"},
		{"export of nothing", code(head, sect(7, vec(code(sized([]byte("x")), 0, 5)))), "points at nothing"},
		{"global that is calculated", with(func(m *built) { m.globals[0] = code(tI64, 0, i64(1), i64(1), 0x7c, opEnd) }),
			"calculated"},
		{"start that takes an argument", with(func(m *built) { m.start = []byte{1} }), "start function is"},
		{"start that is not there", with(func(m *built) { m.start = []byte{60} }), "start function is number 60"},
		{"element of no function", with(func(m *built) { m.elems[0] = code(0, i32(0), opEnd, vec([]byte{99})) }),
			"names function 99"},
		{"elements by expression", with(func(m *built) { m.elems[0] = code(4, i32(0), opEnd, 0) }), "reference types"},
		{"data count that lies", with(func(m *built) {
			m.datas = m.datas[:1]
			m.count = false
			m.funcs = m.funcs[:4]
			m.start = nil
			m.datas = append(m.datas, []byte{3})
		}), "unknown flags"},
		{"unknown instruction", one(0x27), "unknown instruction 0x27"},
		{"SIMD", one(0xfd, 12), "SIMD"},
		{"threads", one(0xfe, 0), "threads"},
		{"garbage collection", one(0xfb, 0), "garbage-collected"},
		{"tail call", one(0x12, 0), "tail calls"},
		{"exceptions", one(0x08, 0), "exceptions"},
		{"table.get", one(i32(0), 0x25, 0), "reference types"},
		{"table.grow", one(i32(0), opPrefix, 15, 0), "table.grow"},
		{"ref.null", one(0xd0, 0x70, 0x1a), "reference types"},
		{"unknown prefixed", one(opPrefix, 99), "0xfc 99"},
		{"no end", built{funcs: []fn{{code: code(opBlock, 0x40)}}}.bytes(), "cut off"},
		{"two ends", one(opEnd), "after its end"},
		{"else without if", one(opElse), "else without an if"},
		{"branch too far", one(opBr, 1), "more blocks than there are"},
		{"branch table too far", one(i32(0), opBrTable, 1, 0, 9), "more blocks than there are"},
		{"2³²−1 targets", one(i32(0), opBrTable, huge), "targets"},
		{"branch table with many targets", one(i32(0), opBrTable, appendU32(nil, 30_000), make([]byte, 30_000), 0),
			"over 20000 targets"},
		{"call of nothing", one(opCall, 9), "not there"},
		{"local of nothing", one(opLocalGet, 0, 0x1a), "not there"},
		{"global that the host adds", one(opGlobalGet, 0, 0x1a), "not there"},
		{"call through no table", one(i32(0), opCallIndirect, 0, 0), "not there"},
		{"second memory", one(i32(0), 0x28, 0x42, 0, 0, 0x1a), "several memories"},
		{"data segment of nothing", one(i32(0), i32(0), i32(0), opPrefix, subMemoryInit, 0, 0), "not there"},
		{"block of no type", one(opBlock, 60, opEnd), "has type 60"},
		{"block of a negative type", one(opBlock, 0xff, 0x7f, opEnd), "type that is not there"},
		{"block of SIMD type", one(opBlock, 0x7b, opEnd), "SIMD"},
		{"100 000 nested blocks", one(bytes.Repeat([]byte{opBlock, 0x40}, 100_000), bytes.Repeat([]byte{opEnd}, 100_000)),
			"nests over 5000 blocks"},
		{"100 000 blocks", one(bytes.Repeat([]byte{opBlock, 0x40, opEnd}, 100_000)), "branch so much"},
		{"many locals over many blocks",
			built{funcs: []fn{{locals: code(1, appendU32(nil, 40_000), tI64),
				code: bytes.Repeat([]byte{opLoop, 0x40, opEnd}, 200)}}}.bytes(), "variables"},
		{"large function", one(make([]byte, 1<<20)), "1048578 bytes, the limit is 1048576"},
		{"large file", make([]byte, 8<<20+1), "the limit is 8388608"},
	} {
		t.Run(c.name, func(t *testing.T) {
			limits := wide
			limits.Branches = 20_000
			_, err := Parse(c.wasm, limits)
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "it ") &&
				!strings.HasPrefix(err.Error(), "its ") &&
				!strings.HasPrefix(err.Error(), "a ") && !strings.HasPrefix(err.Error(), "an ") &&
				!strings.HasPrefix(err.Error(), "one of ") && !strings.HasPrefix(err.Error(), "the ") {
				t.Errorf("%v, expected a sentence with %q", err, c.says)
			}
		})
	}
}

// TestCutOff: no prefix of a module is accepted, and none with a byte changed harms anybody.
func TestCutOff(t *testing.T) {
	wasm := sample().bytes()
	for n := range len(wasm) {
		m, err := Parse(wasm[:n], wide)
		// A module that ends between two sections is whole if nothing refers to the rest.
		if err == nil && len(m.bodies) > 0 && m.hasDataCount {
			t.Fatalf("the first %d of %d bytes are accepted", n, len(wasm))
		}
	}
	for n := range wasm {
		for _, bits := range []byte{0x01, 0x40, 0x80, 0xff} {
			changed := bytes.Clone(wasm)
			changed[n] ^= bits
			if m, err := Parse(changed, wide); err == nil {
				m.Meter()
			}
		}
	}
}

func TestShown(t *testing.T) {
	for name, want := range map[string]string{"fd_write": "fd_write", "a\x1b[31mb\n": `a\x1b[31mb\n`,
		"größe": `gr\u00f6\u00dfe`, strings.Repeat("x", 300): strings.Repeat("x", 100) + `\u2026`} {
		if got := SafeName(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample().bytes())
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, err := Parse(wasm, wide)
		if err != nil {
			return
		}
		agree(t, wasm, m.Meter())
	})
}
