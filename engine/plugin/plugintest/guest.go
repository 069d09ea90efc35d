package plugintest

// Guest describes a small module by what its exports return. Build writes it.
// The zero value of a field gives the honest behaviour.
type Guest struct {
	// Manifest is what ls_describe returns; "" is ManifestOf("guest").
	Manifest string
	// Batch is what ls_fill returns every time; Rows what ls_rows returns.
	Batch, Rows []byte
	// Error is what ls_error returns.
	Error string
	// Answer is what ls_call returns.
	Answer string
	// Code replaces the body of an export, without its locals and its end; ls_feed is
	// exported only with it.
	Code map[string][]byte
	// Omit leaves exports out; "memory" too.
	Omit []string
	// Type gives an export another type: an index of the types in Build.
	Type map[string]byte
	// Imports are functions of type () → (), or of ImportType.
	Imports    [][2]string
	ImportType byte
	// Locals of the body of ls_describe.
	Locals uint32
	// Pages is the least memory; 0 is 3.
	Pages uint32
	// MaxPages is the most memory by the module's own word; 0 is no word.
	MaxPages uint32
	// Start makes the import or function of this index the start function.
	Start *uint32
}

// The places of a guest's data in its memory.
const (
	manifestAt = 1024
	batchAt    = 65_536
	rowsAt     = 81_920
	errorAt    = 98_304
	answerAt   = 114_688
	inputAt    = 131_072
)

// BatchAt is where the batch lies in a guest's memory.
const BatchAt = batchAt

// Instructions for Guest.Code.
var (
	Unreachable = []byte{0x00}
	// Forever is a loop without an end.
	Forever = []byte{0x03, 0x40, 0x0c, 0x00, 0x0b, 0x00}
)

// I32 is i32.const.
func I32(v int32) []byte { return append([]byte{0x41}, signed(int64(v))...) }

// I64 is i64.const.
func I64(v int64) []byte { return append([]byte{0x42}, signed(v)...) }

// Call calls a function by its index; imports come first.
func Call(index byte) []byte { return []byte{0x10, index} }

// Code joins instructions.
func Code(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// CountingFill adds one to the i64 at offset of the batch and returns the batch.
func CountingFill(offset int32, size uint32) []byte {
	at := I32(batchAt + offset)
	return Code(at, at, []byte{0x29, 0, 0}, I64(1), []byte{0x7c, 0x37, 0, 0}, I64(packed(batchAt, size)))
}

func packed(at, size uint32) int64 { return int64(at)<<32 | int64(size) }

func signed(v int64) []byte {
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

func unsigned(v uint32) []byte {
	var out []byte
	for v >= 0x80 {
		out = append(out, byte(v)|0x80)
		v >>= 7
	}
	return append(out, byte(v))
}

func vector(items ...[]byte) []byte {
	out := unsigned(uint32(len(items)))
	for _, i := range items {
		out = append(out, i...)
	}
	return out
}

func text(s string) []byte { return append(unsigned(uint32(len(s))), s...) }

func section(id byte, body []byte) []byte {
	return append(append([]byte{id}, unsigned(uint32(len(body)))...), body...)
}

// The types of a guest, by index.
const (
	typeNothing = iota // () → ()
	TypeI32            // () → i32
	TypeI64            // () → i64
	typeI32I32
	typeOpen // (i32, i32) → i32
	typeFill // (i32) → i64
	typeRows // (i32, i64, i32) → i64
	typeCall // (i32, i32) → i64
	TypeLog  // (i32, i32, i32) → ()
	typeExit // (i32) → ()
)

var types = [][]byte{{0x60, 0, 0}, {0x60, 0, 1, 0x7f}, {0x60, 0, 1, 0x7e}, {0x60, 1, 0x7f, 1, 0x7f},
	{0x60, 2, 0x7f, 0x7f, 1, 0x7f}, {0x60, 1, 0x7f, 1, 0x7e},
	{0x60, 3, 0x7f, 0x7e, 0x7f, 1, 0x7e}, {0x60, 2, 0x7f, 0x7f, 1, 0x7e}, {0x60, 3, 0x7f, 0x7f, 0x7f, 0},
	{0x60, 1, 0x7f, 0}}

// TypeExit is the type of WASI's proc_exit.
const TypeExit = typeExit

// ManifestOf is a manifest with two statements: 0 takes an i64, 1 one value of each type.
func ManifestOf(name string) string {
	return `{"kind":"workload","name":"` + name + `","version":"1.2.3","x-unknown":[1],
"tables":[{"name":"t","columns":[{"name":"id","type":"i64"},{"name":"v","type":"text","nullable":true}],"key":["id"]}],
"statements":[{"id":"one","kind":"POINT_LOOKUP","table":"t","binds":["i64"],"columns":["v"]},
{"id":"all","kind":"INSERT","table":"t","binds":["i64",{"name":"f","type":"f64"},"text","bytes","bool","timestamp"]}]}`
}

// Build writes the module.
func (g Guest) Build() []byte {
	if g.Manifest == "" {
		g.Manifest = ManifestOf("guest")
	}
	if g.Pages == 0 {
		g.Pages = 3
	}
	type export struct {
		name string
		typ  byte
		code []byte
	}
	exports := []export{
		{"ls_abi", TypeI32, I32(1 << 16)},
		{"ls_describe", TypeI64, I64(packed(manifestAt, uint32(len(g.Manifest))))},
		{"ls_alloc", typeI32I32, I32(inputAt)},
		{"ls_open", typeOpen, I32(0)},
		{"ls_fill", typeFill, I64(packed(batchAt, uint32(len(g.Batch))))},
		{"ls_rows", typeRows, I64(packed(rowsAt, uint32(len(g.Rows))))},
		{"ls_call", typeCall, I64(packed(answerAt, uint32(len(g.Answer))))},
		{"ls_error", TypeI64, I64(packed(errorAt, uint32(len(g.Error))))},
	}
	if feed, ok := g.Code["ls_feed"]; ok {
		exports = append(exports, export{"ls_feed", typeOpen, feed})
	}
	omitted := func(name string) bool {
		for _, o := range g.Omit {
			if o == name {
				return true
			}
		}
		return false
	}
	var importList, functions, names, bodies [][]byte
	for _, i := range g.Imports {
		importList = append(importList, Code(text(i[0]), text(i[1]), []byte{0, g.ImportType}))
	}
	if !omitted("memory") {
		names = append(names, Code(text("memory"), []byte{2, 0}))
	}
	for _, e := range exports {
		if omitted(e.name) || e.name == "ls_rows" && g.Rows == nil || e.name == "ls_call" && g.Answer == "" {
			continue
		}
		typ, code := e.typ, e.code
		if t, ok := g.Type[e.name]; ok {
			typ = t
		}
		if c, ok := g.Code[e.name]; ok {
			code = c
		}
		index := uint32(len(g.Imports) + len(functions))
		functions = append(functions, []byte{typ})
		names = append(names, Code(text(e.name), []byte{0}, unsigned(index)))
		locals := []byte{0}
		if e.name == "ls_describe" && g.Locals > 0 {
			locals = Code([]byte{1}, unsigned(g.Locals), []byte{0x7e})
		}
		body := Code(locals, code, []byte{0x0b})
		bodies = append(bodies, Code(unsigned(uint32(len(body))), body))
	}
	var data [][]byte
	for _, d := range []struct {
		at    int32
		bytes string
	}{{manifestAt, g.Manifest}, {batchAt, string(g.Batch)}, {rowsAt, string(g.Rows)}, {errorAt, g.Error},
		{answerAt, g.Answer}} {
		if d.bytes != "" {
			data = append(data, Code([]byte{0}, I32(d.at), []byte{0x0b}, text(d.bytes)))
		}
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	out = append(out, section(1, vector(types...))...)
	if len(importList) > 0 {
		out = append(out, section(2, vector(importList...))...)
	}
	out = append(out, section(3, vector(functions...))...)
	memory := Code([]byte{1, 0}, unsigned(g.Pages))
	if g.MaxPages > 0 {
		memory = Code([]byte{1, 1}, unsigned(g.Pages), unsigned(g.MaxPages))
	}
	out = append(out, section(5, memory)...)
	out = append(out, section(7, vector(names...))...)
	if g.Start != nil {
		out = append(out, section(8, unsigned(*g.Start))...)
	}
	out = append(out, section(10, vector(bodies...))...)
	return append(out, section(11, vector(data...))...)
}
