package hostiletest

import "slices"

// The types that every module here has, by index.
const (
	tNothing = iota // () → ()
	tI32            // () → i32
	tI64            // () → i64
	tAlloc          // (i32) → i32
	tOpen           // (i32, i32) → i32
	tFill           // (i32) → i64
	tRows           // (i32, i64, i32) → i64
	tCall           // (i32, i32) → i64
	tLog            // (i32, i32, i32) → ()
	tExit           // (i32) → ()
	tFour           // (i32, i32, i32, i32) → i32
	tClock          // (i32, i64, i32) → i32
	ownTypes        // the first index of a module's own
)

const (
	i32t, i64t, f32t, f64t, v128t        = 0x7f, 0x7e, 0x7d, 0x7c, 0x7b
	funcref, externref                   = 0x70, 0x6f
	kindFunc, kindTable                  = 0, 1
	kindMemory, kindGlobal               = 2, 3
	maxU32                        uint64 = 1<<32 - 1
)

var contractTypes = [][]byte{
	{0x60, 0, 0}, {0x60, 0, 1, i32t}, {0x60, 0, 1, i64t}, {0x60, 1, i32t, 1, i32t}, {0x60, 2, i32t, i32t, 1, i32t},
	{0x60, 1, i32t, 1, i64t}, {0x60, 3, i32t, i64t, i32t, 1, i64t}, {0x60, 2, i32t, i32t, 1, i64t},
	{0x60, 3, i32t, i32t, i32t, 0}, {0x60, 1, i32t, 0}, {0x60, 4, i32t, i32t, i32t, i32t, 1, i32t},
	{0x60, 3, i32t, i64t, i32t, 1, i32t},
}

// u is an unsigned LEB128 number.
func u(v uint64) []byte {
	var out []byte
	for v >= 0x80 {
		out = append(out, byte(v)|0x80)
		v >>= 7
	}
	return append(out, byte(v))
}

// s is a signed one.
func s(v int64) []byte {
	var out []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(out, c)
		}
		out = append(out, c|0x80)
	}
}

func join(parts ...[]byte) []byte { return slices.Concat(parts...) }

func text(t string) []byte { return append(u(uint64(len(t))), t...) }

func vector(items [][]byte) []byte { return append(u(uint64(len(items))), slices.Concat(items...)...) }

func section(id byte, body []byte) []byte { return join([]byte{id}, u(uint64(len(body))), body) }

func custom(name string, body []byte) []byte { return section(0, join(text(name), body)) }

// Instructions.
var (
	unreachable = []byte{0x00}
	forever     = []byte{0x03, 0x40, 0x0c, 0x00, 0x0b, 0x00}
	end         = []byte{0x0b}
	drop        = []byte{0x1a}
	i32load     = []byte{0x28, 2, 0}
	i32store    = []byte{0x36, 2, 0}
	i32add      = []byte{0x6a}
	memoryGrow  = []byte{0x40, 0}
	memoryFill  = []byte{0xfc, 11, 0}
	memoryCopy  = []byte{0xfc, 10, 0, 0}
)

func i32(v int64) []byte              { return append([]byte{0x41}, s(v)...) }
func i64(v int64) []byte              { return append([]byte{0x42}, s(v)...) }
func call(f uint32) []byte            { return append([]byte{0x10}, u(uint64(f))...) }
func get(l uint32) []byte             { return append([]byte{0x20}, u(uint64(l))...) }
func set(l uint32) []byte             { return append([]byte{0x21}, u(uint64(l))...) }
func block(body ...[]byte) []byte     { return join([]byte{0x02, 0x40}, join(body...), end) }
func loop(body ...[]byte) []byte      { return join([]byte{0x03, 0x40}, join(body...), end) }
func ifThen(body ...[]byte) []byte    { return join([]byte{0x04, 0x40}, join(body...), end) }
func br(depth uint32) []byte          { return append([]byte{0x0c}, u(uint64(depth))...) }
func repeat(n int, b ...byte) []byte  { return slices.Repeat(b, n) }
func times(n int, code []byte) []byte { return slices.Repeat(code, n) }

// endless repeats code for ever.
func endless(code ...[]byte) []byte { return join(loop(join(code...), br(0)), unreachable) }

func pack(at, size uint32) int64 { return int64(uint64(at)<<32 | uint64(size)) }

// module is written section by section; nothing about it is checked.
type module struct {
	types    [][]byte
	imports  [][]byte
	funcs    []function
	tables   [][]byte
	memory   []byte // limits, with their flags; nil for none
	globals  [][]byte
	exports  [][]byte
	start    *uint32
	elements [][]byte
	count    *uint32 // of data, in its section
	data     [][]byte
	// raw replaces the body of a section; before is put in front of one.
	raw, before map[byte][]byte
	tail        []byte
}

type function struct {
	typ          uint32
	locals, code []byte
}

func (m *module) typ(t []byte) uint32 {
	m.types = append(m.types, t)
	return uint32(len(m.types) - 1)
}

// add adds a function with its declaration of locals and returns its index. Imports come before.
func (m *module) add(typ uint32, locals []byte, code ...[]byte) uint32 {
	if locals == nil {
		locals = []byte{0}
	}
	m.funcs = append(m.funcs, function{typ, locals, join(code...)})
	return uint32(len(m.imports) + len(m.funcs) - 1)
}

func (m *module) imported(from, name string, typ uint32) uint32 {
	m.imports = append(m.imports, join(text(from), text(name), []byte{kindFunc}, u(uint64(typ))))
	return uint32(len(m.imports) - 1)
}

func (m *module) export(name string, kind byte, index uint32) {
	m.exports = append(m.exports, join(text(name), []byte{kind}, u(uint64(index))))
}

func (m *module) put(at uint32, b []byte) {
	m.data = append(m.data, join([]byte{0}, i32(int64(at)), end, u(uint64(len(b))), b))
}

func (m *module) replace(id byte, body []byte) {
	if m.raw == nil {
		m.raw = map[byte][]byte{}
	}
	m.raw[id] = body
}

func (m *module) insert(id byte, sections []byte) {
	if m.before == nil {
		m.before = map[byte][]byte{}
	}
	m.before[id] = append(m.before[id], sections...)
}

func (m *module) bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	write := func(id byte, there bool, body func() []byte) {
		out = append(out, m.before[id]...)
		if raw, ok := m.raw[id]; ok {
			out = append(out, section(id, raw)...)
		} else if there {
			out = append(out, section(id, body())...)
		}
	}
	write(1, len(m.types) > 0, func() []byte { return vector(m.types) })
	write(2, len(m.imports) > 0, func() []byte { return vector(m.imports) })
	write(3, len(m.funcs) > 0, func() []byte {
		b := u(uint64(len(m.funcs)))
		for _, f := range m.funcs {
			b = append(b, u(uint64(f.typ))...)
		}
		return b
	})
	write(4, len(m.tables) > 0, func() []byte { return vector(m.tables) })
	write(5, m.memory != nil, func() []byte { return append([]byte{1}, m.memory...) })
	write(6, len(m.globals) > 0, func() []byte { return vector(m.globals) })
	write(7, len(m.exports) > 0, func() []byte { return vector(m.exports) })
	write(8, m.start != nil, func() []byte { return u(uint64(*m.start)) })
	write(9, len(m.elements) > 0, func() []byte { return vector(m.elements) })
	write(12, m.count != nil, func() []byte { return u(uint64(*m.count)) })
	write(10, len(m.funcs) > 0, func() []byte {
		b := u(uint64(len(m.funcs)))
		for _, f := range m.funcs {
			size := len(f.locals) + len(f.code) + 1
			b = append(append(append(append(b, u(uint64(size))...), f.locals...), f.code...), 0x0b)
		}
		return b
	})
	write(11, len(m.data) > 0, func() []byte { return vector(m.data) })
	return append(out, m.tail...)
}

// The places of a plugin's data in its memory.
const (
	manifestAt = 1024
	inputAt    = 49_152
	counterAt  = 60_000
	batchAt    = 65_536
	rowsAt     = 98_304
	errorAt    = 114_688
	answerAt   = 120_000
	pages      = 3
)

// manifest declares two statements: 0 takes an i64, 1 one value of each type.
const manifest = `{"kind":"workload","name":"hostile","version":"1.0.0",` +
	`"tables":[{"name":"t","columns":["id i64",{"name":"v","type":"text","nullable":true}],"key":["id"]}],` +
	`"statements":[{"id":"one","kind":"POINT_LOOKUP","table":"t","binds":["i64"],"columns":["v"]},` +
	`{"id":"all","kind":"INSERT","table":"t","binds":["i64","f64","text","bytes","bool","timestamp"]}]}`

// goodBatch is one operation that the manifest allows.
var goodBatch = []byte{1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 7, 0, 0, 0, 0, 0, 0, 0}

// plugin is a guest that keeps the contract but for what its fields say. The
// zero value is honest.
type plugin struct {
	manifest  string
	batch     []byte
	rows      []byte
	answer    string
	errorText string // what ls_error says
	// code replaces the body of an export, locals its locals, typ its type.
	code   map[string][]byte
	locals map[string][]byte
	typ    map[string]uint32
	omit   []string
	// before runs on the module before its own functions are added: here imports go.
	before func(*module)
	after  func(*module)
	memory []byte
}

func (p plugin) module() *module {
	m := &module{types: slices.Clone(contractTypes), memory: []byte{0, pages}}
	if p.memory != nil {
		m.memory = p.memory
	}
	if p.manifest == "" {
		p.manifest = manifest
	}
	if p.batch == nil {
		p.batch = goodBatch
	}
	if p.before != nil {
		p.before(m)
	}
	if !slices.Contains(p.omit, "memory") {
		m.export("memory", kindMemory, 0)
	}
	for _, e := range []struct {
		name  string
		typ   uint32
		code  []byte
		there bool
	}{
		{"ls_abi", tI32, i32(1 << 16), true},
		{"ls_describe", tI64, i64(pack(manifestAt, uint32(len(p.manifest)))), true},
		{"ls_alloc", tAlloc, i32(inputAt), true},
		{"ls_open", tOpen, i32(0), true},
		{"ls_fill", tFill, i64(pack(batchAt, uint32(len(p.batch)))), true},
		{"ls_error", tI64, i64(pack(errorAt, uint32(len(p.errorText)))), true},
		{"ls_rows", tRows, i64(pack(rowsAt, uint32(len(p.rows)))), p.rows != nil},
		{"ls_call", tCall, i64(pack(answerAt, uint32(len(p.answer)))), p.answer != ""},
		{"_initialize", tNothing, nil, false},
		{"ls_feed", tOpen, i32(0), false},
	} {
		code, replaced := p.code[e.name]
		if slices.Contains(p.omit, e.name) || !e.there && !replaced {
			continue
		}
		if !replaced {
			code = e.code
		}
		if t, ok := p.typ[e.name]; ok {
			e.typ = t
		}
		m.export(e.name, kindFunc, m.add(e.typ, p.locals[e.name], code))
	}
	if len(p.manifest) > inputAt-manifestAt {
		// A long manifest lies behind everything else, in a memory that is large enough.
		at := uint32(pages) << 16
		m.memory = join([]byte{0}, u(uint64(pages+len(p.manifest)>>16+1)))
		m.put(at, []byte(p.manifest))
		if _, own := p.code["ls_describe"]; !own {
			m.funcs[1].code = i64(pack(at, uint32(len(p.manifest))))
		}
	} else {
		m.put(manifestAt, []byte(p.manifest))
	}
	for _, d := range []struct {
		at uint32
		b  []byte
	}{{batchAt, p.batch}, {rowsAt, p.rows}, {errorAt, []byte(p.errorText)}, {answerAt, []byte(p.answer)}} {
		if len(d.b) > 0 {
			m.put(d.at, d.b)
		}
	}
	if p.after != nil {
		p.after(m)
	}
	return m
}

func (p plugin) build() []byte { return p.module().bytes() }

// afterFourthCall runs bad code in ls_fill from the fourth call on, and is honest before.
func afterFourthCall(bad ...[]byte) map[string][]byte {
	at := i32(counterAt)
	return map[string][]byte{"ls_fill": join(at, at, i32load, i32(1), i32add, i32store,
		at, i32load, i32(3), []byte{0x4b}, ifThen(bad...), i64(pack(batchAt, uint32(len(goodBatch)))))}
}

var answerBatch = i64(pack(batchAt, uint32(len(goodBatch))))

// returned leaves a function with a value.
func returned(code ...[]byte) []byte { return join(join(code...), []byte{0x0f}) }
