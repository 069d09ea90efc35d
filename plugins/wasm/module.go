package wasm

import (
	"bytes"
	"strings"
)

// Limits bound what Parse accepts, besides what the format and the bytes that
// remain do.
type Limits struct {
	ModuleBytes int
	// Types, Imports, Functions, Globals, Exports and Segments (of data, and of elements) are counts.
	Types, Imports, Functions, Globals, Exports, Segments int
	// Params bounds the parameters and the results of a type.
	Params int
	// TableEntries and MemoryPages bound how large the only table and the only memory begin.
	TableEntries, MemoryPages int
	// Locals, FunctionBytes and Nesting bound one function: its locals, its size
	// and how deep its blocks are nested.
	Locals, FunctionBytes, Nesting int
	// Loops bounds how many of those blocks may be loops: compilers look through
	// all of them for each.
	Loops int
	// Branches bounds the targets of all branch tables of one function, each
	// counted with the values it carries.
	Branches int
	// Merges bounds, for one function, its locals and the module's globals times
	// the places where code paths meet: a compiler may keep each variable there.
	Merges int
	// Work bounds the sum over all functions of the square of the places where they
	// branch: that is how the time of compilers grows.
	Work int64
}

// Import is one imported function.
type Import struct{ Module, Name, Type string }

// The kinds of what a module exports.
const (
	KindFunction = 0
	KindTable    = 1
	KindMemory   = 2
	KindGlobal   = 3
)

// maxPages is the most pages of 64 KB that WebAssembly has addresses for.
const maxPages = 65_536

// Memory is how many pages of 64 KB the module's memory begins with, and how many it may have by its
// own word. What Meter writes is not bound by the second.
func (m *Module) Memory() (minimum, limit uint32) { return m.minPages, min(m.maxPages, maxPages) }

// Export is one export.
type Export struct {
	Name  string
	Kind  byte
	Index uint32
	// Type is a function's, "(i32) → (i64)".
	Type string
}

// Module is what Parse has read. It refers to the bytes it was read from.
type Module struct {
	Imports []Import
	Exports []Export
	// HasStart reports a start function, which runs before any export is called.
	HasStart bool

	types    []funcType
	funcs    []uint32 // the type of every function, imports first
	globals  int
	memory   bool
	minPages uint32
	maxPages uint32
	table    bool
	elements int
	// dataCount is that of its section, and data the number of segments there are.
	hasDataCount bool
	dataCount    uint32
	data         int
	start        uint32

	sections []section
	bodies   []body
	// loops is what Meter needs to know of every loop before it reaches its end, in
	// the order of their headers: its cost, or -1 where nothing goes back to it; calls are the direct calls to defined
	// functions.
	loops []int64
	calls []uint32
}

type funcType struct {
	text            string
	params, results int
}

type section struct {
	id   byte
	body []byte
}

// body is one function: its declaration of locals, then its code.
type body struct {
	locals, code []byte
	// vars are parameters and locals.
	vars uint32
	cost uint32
	// calls is where its calls begin in Module.calls.
	calls int
	// lead is the cost of what stands before a loop that everything else of the
	// function follows, or -1: then the loop's header charges for the entry too.
	lead int
	bulk bool
	// height is the most values that lie on its stack.
	height int
}

// frameValuesPerCall is how many values of a function's frame weigh as much as a call in the depth.
const frameValuesPerCall = 32

// weight is how much a call by this function counts against the depth: its frame
// lies on the stack as long as the call lasts.
func (b *body) weight() int64 { return 1 + (int64(b.vars)+int64(b.height))/frameValuesPerCall }

// mistakenFormats names files that are often taken for a module.
var mistakenFormats = []struct{ magic, sentence string }{
	{"\x7fELF", "it is an ELF program or library, not a WebAssembly module"},
	{"MZ", "it is a Windows program, not a WebAssembly module"},
	{"\xcf\xfa\xed\xfe", "it is a Mach-O program, not a WebAssembly module"},
	{"\xca\xfe\xba\xbe", "it is a Mach-O program or a Java class, not a WebAssembly module"},
	{"\x1f\x8b", "it is compressed with gzip; a plugin is uploaded as it is"},
	{"\x28\xb5\x2f\xfd", "it is compressed with zstd; a plugin is uploaded as it is"},
	{"PK\x03\x04", "it is a ZIP archive, not a WebAssembly module"},
	{"BC\xc0\xde", "it is LLVM bitcode, not a WebAssembly module"},
	{"!<arch>\n", "it is an archive of object files, not a WebAssembly module"},
}

// header checks the first eight bytes, and says what the file is instead.
func header(wasm []byte) string {
	if len(wasm) == 0 {
		return "it is empty, not a WebAssembly module"
	}
	if !bytes.HasPrefix(wasm, []byte("\x00asm")) {
		for _, w := range mistakenFormats {
			if bytes.HasPrefix(wasm, []byte(w.magic)) {
				return w.sentence
			}
		}
		text := bytes.TrimLeft(wasm[:min(len(wasm), 512)], " \t\r\n\ufeff")
		switch {
		case bytes.HasPrefix(text, []byte("(module")) || bytes.HasPrefix(text, []byte("(component")) ||
			bytes.HasPrefix(text, []byte(";;")):
			return "it is WebAssembly in text form, not a WebAssembly module; translate it with wat2wasm"
		case bytes.HasPrefix(text, []byte("<")):
			return "it is a web page or XML, not a WebAssembly module"
		case bytes.IndexFunc(text, func(r rune) bool {
			return r == '\ufffd' || r < ' ' &&
				!strings.ContainsRune("\t\r\n", r)
		}) < 0:
			return "it is a text, not a WebAssembly module"
		}
		return "it is not a WebAssembly module: it does not begin with \\0asm"
	}
	if len(wasm) < 8 {
		return "it is cut off"
	}
	switch {
	case bytes.Equal(wasm[4:8], []byte{1, 0, 0, 0}):
		return ""
	case wasm[6] == 1 && wasm[7] == 0:
		return "it is a WebAssembly component; a plugin is a core module, which is what a component is made of"
	}
	return "it is of an unknown version of WebAssembly"
}

// Parse reads a module. The error is a clause about the file ("it is cut off"),
// to follow "…: ". The module keeps wasm, which must not change.
func Parse(wasm []byte, limits Limits) (*Module, error) {
	r := &reader{b: wasm}
	if len(wasm) > limits.ModuleBytes {
		r.fail("it has %d bytes, the limit is %d", len(wasm), limits.ModuleBytes)
		return nil, r.err
	}
	if not := header(wasm); not != "" {
		r.fail("%s", not)
		return nil, r.err
	}
	r.pos = 8
	m := &Module{}
	p := &parser{Module: m, limits: limits}
	last := 0
	for r.err == nil && r.rest() > 0 {
		id := r.byte()
		name, order := sectionOrder(id)
		switch {
		case order == 0:
			r.fail("it has a section of the unknown kind %d", id)
		case order > 0 && order == last:
			r.fail("its section of %s is there twice", name)
		case order > 0 && order < last:
			r.fail("its section of %s stands in the wrong place", name)
		case order > 0:
			last = order
		}
		s := &reader{b: r.bytes(r.u32())}
		if r.err != nil {
			break
		}
		if id == 0 {
			s.name()
			r.err = s.err
			continue
		}
		m.sections = append(m.sections, section{id, s.b})
		p.section(id, s)
		if s.err == nil && s.rest() != 0 {
			s.fail("its section of %s has %d bytes too many", name, s.rest())
		}
		r.err = s.err
	}
	if r.err == nil {
		p.whole(r)
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

var sectionNames = [...]string{1: "types", 2: "imports", 3: "functions", 4: "tables", 5: "memories", 6: "globals",
	7: "exports",
	8: "the start function", 9: "elements", 10: "code", 11: "data", 12: "the data count", 13: "tags"}

// sectionOrder is the place of a section, -1 for custom ones, 0 for unknown ones.
func sectionOrder(id byte) (string, int) {
	switch {
	case id == 0:
		return "", -1
	case id < 10:
		return sectionNames[id], int(id) * 10
	case id < 12:
		return sectionNames[id], int(id)*10 + 5
	case id == 12: // stands before the code
		return sectionNames[id], 95
	case id == 13: // between memories and globals
		return sectionNames[id], 55
	}
	return "", 0
}

// whole checks what sections say of one another.
func (p *parser) whole(r *reader) {
	if defined := len(p.funcs) - len(p.Imports); defined != len(p.bodies) {
		r.fail("it declares %d functions but has the code of %d", defined, len(p.bodies))
	}
	if p.hasDataCount && int(p.dataCount) != p.data {
		r.fail("it announces %d data segments but has %d", p.dataCount, p.data)
	}
}
