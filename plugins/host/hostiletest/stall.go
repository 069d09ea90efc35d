package hostiletest

import "slices"

// Stall is a module that never ends in one phase of the contract.
type Stall struct {
	Kind, Phase string
	Wasm        []byte
}

// Phases of the contract in which a Stall computes: the exports by name.
var Phases = []string{"_initialize", "ls_describe", "ls_alloc", "ls_open", "ls_fill", "ls_feed", "ls_rows", "ls_call"}

// burner writes functions into a module and returns the one that never returns.
type burner struct {
	kind  string
	pages uint64
	write func(m *module) uint32
}

// Locals of the functions below: two numbers and a counter.
var burnLocals = []byte{1, 3, i32t}

// scatter fills nearly the whole memory with what is not zero, so that each page is there.
var scatter = join(i32(130_000), i32(0x35), i32(maxBulk), memoryFill)

// maxBulk is how much of the memory bulk instructions take: what lies before it is
// the contract's.
const (
	maxBulk = 512<<16 - 131_072
	mask    = 16<<20 - 4 // a part of the memory that no cache holds
)

// step loads from an address that depends on what was loaded before.
var step = join(get(0), i32(1_664_525), []byte{0x6c}, i32(1_013_904_223), i32add, get(0), i32(mask), []byte{0x71},
	[]byte{0x28, 2}, u(131_072), i32add, set(0))

// chase loads from where the last load pointed, a unit for each.
var chase = []byte{0x28, 2, 0x80, 0x80, 0x08}

// chain makes a cycle of pointers through 16 MB, each to a place far from the last.
var chain = loop(get(1), i32(4_856_828), i32add, i32(mask), []byte{0x71}, set(2),
	get(1), get(2), []byte{0x36, 2}, u(131_072), get(2), []byte{0x22, 1}, []byte{0x0d, 0})

func burners() []burner {
	add := func(kind string, locals []byte, code ...[]byte) burner {
		return burner{kind, 512, func(m *module) uint32 { return m.add(tNothing, locals, code...) }}
	}
	recursive := func(kind string, locals []byte, before, after []byte) burner {
		return burner{kind, 512, func(m *module) uint32 {
			f := uint32(len(m.imports) + len(m.funcs))
			m.add(tAlloc, locals, get(0), ifThen(before, get(0), i32(-1), i32add, call(f), drop, after), get(0))
			return m.add(tNothing, burnLocals, scatter, endless(i32(9_000), call(f), drop))
		}}
	}
	imported := func(kind, from, name string, typ uint32, code func(f uint32) []byte) burner {
		return burner{kind, 512, func(m *module) uint32 { return m.add(tNothing, burnLocals, code(0)) }}.importing(from, name,
			typ)
	}
	touch := join(get(0), i32(4_001), []byte{0x6c}, i32(mask), []byte{0x71}, []byte{0x28, 2}, u(131_072), drop)
	return []burner{
		add("nothing", nil, endless()),
		add("division", burnLocals, endless(get(0), i32(7), []byte{0x6e}, i32(99), i32add, set(0))),
		add("misses", burnLocals, scatter, endless(step)),
		add("misses in straight code", burnLocals, scatter, endless(times(2_000, step))),
		add("pointers in straight code", burnLocals, chain, endless(get(0), times(12_000, chase), set(0))),
		add("stores that miss", burnLocals,
			endless(get(0), i32(1_664_525), []byte{0x6c}, i32(1_013_904_223), i32add, []byte{0x22, 0},
				i32(mask), []byte{0x71}, get(0), []byte{0x36, 2}, u(131_072))),
		add("fill", nil, endless(scatter)),
		add("copy down", nil, endless(i32(131_072), i32(131_080), i32(maxBulk-8), memoryCopy)),
		add("copy up", nil, endless(i32(131_080), i32(131_072), i32(maxBulk-8), memoryCopy)),
		add("short fills", nil, endless(i32(200_000), i32(1), i32(65_536), memoryFill)),
		{"init", 512, func(m *module) uint32 {
			m.count = new(uint32)
			m.data = append(m.data, join([]byte{1}, u(6<<20), repeat(6<<20, 7)))
			return m.add(tNothing, nil, endless(i32(131_072), i32(0), i32(6<<20), []byte{0xfc, 8, 0, 0}))
		}},
		{"table copy", 512, func(m *module) uint32 {
			m.tables = [][]byte{join([]byte{funcref, 0}, u(65_536))}
			return m.add(tNothing, nil, endless(i32(0), i32(1), i32(65_535), []byte{0xfc, 14, 0, 0}))
		}},
		{"grow", 3, func(m *module) uint32 {
			return m.add(tNothing, burnLocals,
				endless(i32(16), memoryGrow, drop, []byte{0x3f, 0}, i32(512), []byte{0x46}, ifThen(
					loop(step, br(0)))))
		}},
		{"grow by one", 3, func(m *module) uint32 { return m.add(tNothing, nil, endless(i32(1), memoryGrow, drop)) }},
		recursive("recursion", nil, nil, nil),
		recursive("recursion with loads", nil, touch, nil),
		recursive("recursion that loads on its way back", nil, nil, times(20, touch)),
		recursive("recursion with large frames", groups(group(600, i64t)), liveLocals(600), usedLocals(600)),
		{"recursion through a table", 512, func(m *module) uint32 {
			f := uint32(len(m.imports) + len(m.funcs))
			withTable(1, f)(m)
			m.add(tAlloc, nil, get(0), ifThen(get(0), i32(-1), i32add, i32(0), []byte{0x11, tAlloc, 0}, drop, touch), get(0))
			return m.add(tNothing, burnLocals, scatter, endless(i32(9_000), call(f), drop))
		}},
		{"a chain of calls", 512, func(m *module) uint32 {
			f := m.add(tAlloc, nil, get(0))
			for range 3_000 {
				f = m.add(tAlloc, nil, get(0), i32(1), i32add, call(f), touch)
			}
			return m.add(tNothing, burnLocals, scatter, endless(get(0), call(f), set(0)))
		}},
		imported("log", "ls", "log", tLog,
			func(f uint32) []byte { return endless(i32(1), i32(131_072), i32(1<<30), call(f)) }),
		imported("lines", "wasi_snapshot_preview1", "fd_write", tFour, func(f uint32) []byte {
			return join(i32(131_072), i32('\n'), i32(65_536), memoryFill, i32(120_000), i32(131_072), i32store, i32(120_004),
				i32(65_536), i32store,
				endless(i32(1), i32(120_000), i32(1), i32(120_008), call(f), drop))
		}),
		imported("random", "wasi_snapshot_preview1", "random_get", tOpen, func(f uint32) []byte {
			return endless(i32(131_072), i32(65_536), call(f), drop)
		}),
	}
}

// importing has the module import a function first.
func (b burner) importing(from, name string, typ uint32) burner {
	write := b.write
	b.write = func(m *module) uint32 {
		m.imported(from, name, typ)
		return write(m)
	}
	return b
}

// liveLocals gives each local a value that the compiler does not know; usedLocals needs them all.
func liveLocals(n int) []byte {
	var out []byte
	for l := range n {
		out = append(out, join(get(0), []byte{0xac}, i64(int64(l)), []byte{0x7c}, set(uint32(l+1)))...)
	}
	return out
}

func usedLocals(n int) []byte {
	out := i64(0)
	for l := range n {
		out = join(out, get(uint32(l+1)), []byte{0x85})
	}
	return join(out, drop)
}

// Stalls returns a module for each kind of computing without an end in each phase.
func Stalls() []Stall {
	var out []Stall
	for _, b := range burners() {
		for _, phase := range Phases {
			f := uint32(0)
			p := plugin{memory: join([]byte{0}, u(b.pages)), rows: []byte{1}, answer: "{}", code: map[string][]byte{},
				before: func(m *module) { f = b.write(m) }, after: func(m *module) {
					if m.count != nil {
						*m.count = uint32(len(m.data))
					}
				}}
			if phase == "ls_feed" {
				p.code["ls_fill"] = i64(-2)
			}
			// The function's index is known once the module is begun.
			p.before(&module{types: slices.Clone(contractTypes)})
			results := map[string][]byte{"_initialize": nil, "ls_alloc": i32(inputAt), "ls_open": i32(0), "ls_feed": i32(0)}
			result, ok := results[phase]
			if !ok {
				result = i64(0)
			}
			p.code[phase] = join(call(f), result)
			out = append(out, Stall{b.kind, phase, p.build()})
		}
	}
	return out
}
