package host

import (
	"bytes"
	"fmt"
	"sort"
	"strings"

	"github.com/loadstone-db/loadstone/sdk/abi"
)

// The gate's own limits, besides those of sdk/abi.
const (
	maxLocals       = 50_000
	maxTableEntries = 65_536
	maxFunctions    = 100_000
	maxTypes        = 10_000
	maxParams       = 64
	maxGlobals      = 10_000
	maxSegments     = 100_000
	maxFunctionSize = 1 << 20
)

// wasiAllowed is what a guest may import of WASI: what Go's runtime needs, and nothing that reaches a file.
var wasiAllowed = map[string]bool{
	"sched_yield": true, "proc_exit": true, "args_get": true, "args_sizes_get": true, "clock_time_get": true,
	"environ_get": true, "environ_sizes_get": true, "fd_write": true, "random_get": true, "poll_oneoff": true,
	"fd_close": true, "fd_fdstat_get": true, "fd_fdstat_set_flags": true, "fd_prestat_get": true, "fd_prestat_dir_name": true,
}

// signatures of the exports, as text: parameters, then results.
var signatures = map[string]string{
	abi.ExportInitialize: "() → ()",
	abi.ExportABI:        "() → (i32)",
	abi.ExportDescribe:   "() → (i64)",
	abi.ExportAlloc:      "(i32) → (i32)",
	abi.ExportOpen:       "(i32, i32) → (i32)",
	abi.ExportFill:       "(i32) → (i64)",
	abi.ExportFeed:       "(i32, i32) → (i32)",
	abi.ExportRows:       "(i32, i64, i32) → (i64)",
	abi.ExportCall:       "(i32, i32) → (i64)",
	abi.ExportError:      "() → (i64)",
}

// required exports of every plugin.
var required = []string{abi.ExportABI, abi.ExportDescribe}

// shape is what the gate has read of a module.
type shape struct {
	imports   []string // "module.name"
	exports   []string // sorted
	functions map[string]string
	memory    bool
}

func (s *shape) has(export string) bool { _, ok := s.functions[export]; return ok }

// reader reads a module's bytes; the first error sticks.
type reader struct {
	b   []byte
	pos int
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = refuse(format, args...)
	}
}

func (r *reader) rest() int { return len(r.b) - r.pos }

func (r *reader) byte() byte {
	if r.err != nil || r.rest() < 1 {
		r.fail("it is cut off")
		return 0
	}
	r.pos++
	return r.b[r.pos-1]
}

// u32 reads an unsigned LEB128 number.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > 1<<32-1 {
				break
			}
			return uint32(v)
		}
	}
	r.fail("a number in it is malformed")
	return 0
}

// count reads a count of things that take at least size bytes each.
func (r *reader) count(what string, size, limit int) int {
	n := r.u32()
	if r.err == nil && (uint64(n)*uint64(size) > uint64(r.rest()) || uint64(n) > uint64(limit)) {
		r.fail("it declares %d %s, which is more than fit", n, what)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *reader) bytes(n int) []byte {
	if r.err != nil || n < 0 || n > r.rest() {
		r.fail("it is cut off")
		return nil
	}
	r.pos += n
	return r.b[r.pos-n : r.pos]
}

func (r *reader) name() string { return clean(r.bytes(int(r.u32())), 200) }

// limits reads the limits of a table or memory.
func (r *reader) limits(what string, limit uint32) {
	flags := r.byte()
	if flags > 1 {
		r.fail("its %s is shared or 64-bit, which is not supported", what)
	}
	least := r.u32()
	if r.err == nil && least > limit {
		r.fail("its %s starts with %d, the limit is %d", what, least, limit)
	}
	if flags == 1 {
		r.u32()
	}
}

var valueTypes = map[byte]string{0x7f: "i32", 0x7e: "i64", 0x7d: "f32", 0x7c: "f64", 0x7b: "v128", 0x70: "funcref", 0x6f: "externref"}

func (r *reader) types(what string) string {
	n := r.count(what, 1, maxParams)
	names := make([]string, n)
	for i := range names {
		t := r.byte()
		name, ok := valueTypes[t]
		if !ok {
			r.fail("it uses the unknown value type %#x", t)
		}
		names[i] = name
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// module collects what later sections refer to.
type module struct {
	shape
	typeText  []string
	functions []uint32 // type of every function, imports first
}

// examine reads a module without compiling it, and refuses what would harm the
// compiler, import what is not offered, or export what is not the contract's.
func examine(wasm []byte) (shape, error) {
	if len(wasm) > abi.MaxModuleBytes {
		return shape{}, refuse("it has %d bytes, the limit is %d", len(wasm), abi.MaxModuleBytes)
	}
	if len(wasm) < 8 || !bytes.Equal(wasm[:4], []byte("\x00asm")) {
		return shape{}, refuse("it is not a WebAssembly module")
	}
	if !bytes.Equal(wasm[4:8], []byte{1, 0, 0, 0}) {
		return shape{}, refuse("it is a WebAssembly component or of an unknown version; a plugin is a core module")
	}
	m := &module{shape: shape{functions: map[string]string{}}}
	r := &reader{b: wasm, pos: 8}
	last := 0
	for r.err == nil && r.rest() > 0 {
		id := r.byte()
		// The data count section, 12, stands before the code.
		if order := sectionOrder(id); order == 0 || order > 0 && order <= last {
			r.fail("its section %d is unknown, out of order or there twice", id)
		} else if order > 0 {
			last = order
		}
		section := &reader{b: r.bytes(int(r.u32()))}
		if r.err != nil {
			break
		}
		m.section(id, section)
		if section.err == nil && id != 0 && section.rest() != 0 {
			section.fail("section %d of it has %d bytes too many", id, section.rest())
		}
		r.err = section.err
	}
	if r.err != nil {
		return shape{}, r.err
	}
	return m.shape, m.checkExports()
}

// sectionOrder is the place of a section, -1 for custom ones, 0 for unknown ones.
func sectionOrder(id byte) int {
	switch {
	case id == 0:
		return -1
	case id < 10:
		return int(id) * 10
	case id < 12:
		return int(id)*10 + 5
	case id == 12:
		return 95
	}
	return 0
}

func (m *module) section(id byte, r *reader) {
	switch id {
	case 1:
		for n := r.count("types", 3, maxTypes); n > 0 && r.err == nil; n-- {
			if form := r.byte(); form != 0x60 {
				r.fail("it declares a type that is not a function")
			}
			m.typeText = append(m.typeText, r.types("parameters")+" → "+r.types("results"))
		}
	case 2:
		m.importSection(r)
	case 3:
		for n := r.count("functions", 1, maxFunctions); n > 0 && r.err == nil; n-- {
			m.functions = append(m.functions, r.u32())
		}
	case 4:
		for n := r.count("tables", 3, 16); n > 0 && r.err == nil; n-- {
			r.byte()
			r.limits("table", maxTableEntries)
		}
	case 5:
		for n := r.count("memories", 2, 1); n > 0 && r.err == nil; n-- {
			r.limits("memory (in pages of 64 KB)", abi.MaxMemoryPages)
		}
	case 6:
		for n := r.count("globals", 4, maxGlobals); n > 0 && r.err == nil; n-- {
			r.byte()
			r.byte()
			r.constant()
		}
	case 7:
		m.exportSection(r)
	case 8, 12:
		r.u32()
	case 9:
		for n := r.count("element segments", 3, maxSegments); n > 0 && r.err == nil; n-- {
			r.elements()
		}
	case 10:
		m.codeSection(r)
	case 11:
		for n := r.count("data segments", 2, maxSegments); n > 0 && r.err == nil; n-- {
			r.data()
		}
	}
}

// constant skips a constant expression.
func (r *reader) constant() {
	for r.err == nil {
		switch op := r.byte(); op {
		case 0x0b:
			return
		case 0x41, 0x42:
			for shift := 0; r.byte() >= 0x80 && r.err == nil; shift++ {
				if shift > 10 {
					r.fail("a number in it is malformed")
				}
			}
		case 0x43:
			r.bytes(4)
		case 0x44:
			r.bytes(8)
		case 0x23:
			r.u32()
		default:
			r.fail("a constant in it uses the instruction %#x, which plugins may not", op)
		}
	}
}

// elements skips one element segment: functions by index only.
func (r *reader) elements() {
	flags := r.u32()
	if flags > 3 {
		r.fail("it uses reference types, which plugins may not")
		return
	}
	if flags == 2 {
		r.u32()
	}
	if flags&1 == 0 {
		r.constant()
	}
	if flags != 0 {
		r.byte()
	}
	for n := r.count("elements", 1, maxTableEntries); n > 0 && r.err == nil; n-- {
		r.u32()
	}
}

// data skips one data segment.
func (r *reader) data() {
	flags := r.u32()
	if flags > 2 {
		r.fail("a data segment of it has unknown flags")
	}
	if flags == 2 {
		r.u32()
	}
	if flags != 1 {
		r.constant()
	}
	r.bytes(int(r.u32()))
}

func (m *module) importSection(r *reader) {
	for n := r.count("imports", 4, 1000); n > 0 && r.err == nil; n-- {
		from, name := r.name(), r.name()
		m.imports = append(m.imports, from+"."+name)
		kind := r.byte()
		if r.err != nil {
			return
		}
		allowed := from == abi.ImportModule && name == abi.ImportLog || from == abi.WASIModule && wasiAllowed[name]
		if kind != 0 || !allowed {
			r.fail("it imports %s.%s, which plugins are not given", from, name)
			return
		}
		t := r.u32()
		if r.err == nil && int64(t) >= int64(len(m.typeText)) {
			r.fail("its import %s.%s has no type", from, name)
		}
		if r.err != nil {
			return
		}
		if from == abi.ImportModule && m.typeText[t] != "(i32, i32, i32) → ()" {
			r.fail("it imports ls.log as %s; it is (i32, i32, i32) → ()", m.typeText[t])
		}
		m.functions = append(m.functions, t)
	}
}

func (m *module) exportSection(r *reader) {
	for n := r.count("exports", 3, 10_000); n > 0 && r.err == nil; n-- {
		name, kind, index := r.name(), r.byte(), r.u32()
		if r.err != nil {
			return
		}
		m.exports = append(m.exports, name)
		switch {
		case kind == 2 && name == abi.ExportMemory:
			m.memory = true
		case kind == 0:
			if int64(index) >= int64(len(m.functions)) || int64(m.functions[index]) >= int64(len(m.typeText)) {
				r.fail("its export %q points at no function", name)
				return
			}
			m.shape.functions[name] = m.typeText[m.functions[index]]
		}
	}
	sort.Strings(m.exports)
}

// codeSection bounds locals: the compiler reserves memory for each before it looks at the code.
func (m *module) codeSection(r *reader) {
	for n := r.count("function bodies", 2, maxFunctions); n > 0 && r.err == nil; n-- {
		size := int(r.u32())
		if r.err == nil && size > maxFunctionSize {
			r.fail("one of its functions has %d bytes, the limit is %d", size, maxFunctionSize)
		}
		body := &reader{b: r.bytes(size)}
		total := uint64(0)
		if r.err != nil {
			return
		}
		for groups := body.count("groups of locals", 2, maxLocals); groups > 0 && body.err == nil; groups-- {
			total += uint64(body.u32())
			body.byte()
			if total > maxLocals {
				body.fail("one of its functions has over %d local variables", maxLocals)
			}
		}
		r.err = body.err
	}
}

func (m *module) checkExports() error {
	if !m.memory {
		return refuse("it does not export its memory under the name %q", abi.ExportMemory)
	}
	for _, name := range required {
		if !m.has(name) {
			return refuse("it does not export %s %s", name, signatures[name])
		}
	}
	for name, want := range signatures {
		if got, ok := m.shape.functions[name]; ok && got != want {
			return refuse("its export %s is %s; the contract says %s", name, got, want)
		}
	}
	return nil
}

// require reports the first export of the list that is missing.
func (s *shape) require(kind string, names ...string) error {
	for _, name := range names {
		if !s.has(name) {
			return refuse("it says it is %s plugin, but does not export %s %s", kind, name, signatures[name])
		}
	}
	return nil
}

// abiText writes an ABI version.
func abiText(version int32) string { return fmt.Sprintf("%d.%d", version>>16, version&0xffff) }
