package hostiletest

import "fmt"

// group declares n locals of a type.
func group(n uint64, t byte) []byte { return append(u(n), t) }

func groups(g ...[]byte) []byte { return vector(g) }

// locals are declarations for which a compiler makes room before it sees any code.
func locals(l *list) {
	bomb := func(station Stage, name, says string, declared []byte) *File {
		return l.plugin(station, name, says, plugin{locals: map[string][]byte{"ls_describe": declared}})
	}
	const over = "local"
	bomb(Gate, "all-in-one-group", over, groups(group(maxU32, i64t)))
	bomb(Gate, "all-in-one-group-f64", over, groups(group(maxU32, f64t)))
	bomb(Gate, "all-in-one-group-v128", "", groups(group(maxU32, v128t)))
	bomb(Gate, "sum-wraps-to-nothing", over, groups(group(1<<31, i64t), group(1<<31, i64t)))
	bomb(Gate, "sum-wraps-in-four", over,
		groups(group(1<<30, i32t), group(1<<30, i64t), group(1<<30, f32t), group(1<<30, f64t)))
	bomb(Gate, "sixteen-groups", over, groups(times16(group(1<<28, i64t))...))
	bomb(Gate, "one-too-many", over, groups(group(50_001, i32t)))
	bomb(Gate, "many-small-groups", over, append(u(25_001), times(25_001, group(2, i32t))...))
	bomb(Gate, "of-type-reference", "", groups(group(1, externref)))
	bomb(Gate, "of-an-unknown-type", "", groups(group(1, 0x11)))
	bomb(Harmless, "as-many-as-allowed", "", groups(group(50_000, i32t)))
	bomb(Harmless, "empty-groups", "", append(u(50_000), times(50_000, group(0, i32t))...))
	// The shortest of its kind: the module that a compiler dies of.
	l.raw(Gate, "in-few-bytes", over, join([]byte(header), section(1, []byte{1, 0x60, 0, 0}), section(3, []byte{1, 0}),
		section(10, join([]byte{1, 8, 1}, u(maxU32), []byte{i64t, end[0]}))))
	// Each function keeps within the limit; together they do not fit.
	l.plugin(Bounded, "in-every-one-of-20-000-functions", "", plugin{after: func(m *module) {
		for range 20_000 {
			m.add(tNothing, groups(group(50_000, i64t)))
		}
	}}).Slow = true
	l.plugin(Bounded, "in-every-one-of-1-000-functions", "", plugin{after: func(m *module) {
		for range 1_000 {
			m.add(tNothing, groups(group(50_000, i64t)))
		}
	}}).Slow = true
	l.plugin(Gate, "times-blocks", "", plugin{locals: map[string][]byte{"ls_open": groups(group(50_000, i32t))},
		code: map[string][]byte{"ls_open": join(times(1000, block()), i32(0))}})
}

func times16(g []byte) [][]byte {
	out := make([][]byte, 16)
	for i := range out {
		out[i] = g
	}
	return out
}

func withTable(entries uint64, functions ...uint32) func(*module) {
	return func(m *module) {
		m.tables = [][]byte{join([]byte{funcref, 0}, u(entries))}
		if len(functions) > 0 {
			segment := join([]byte{0}, i32(0), end, u(uint64(len(functions))))
			for _, f := range functions {
				segment = append(segment, u(uint64(f))...)
			}
			m.elements = append(m.elements, segment)
		}
	}
}

// tables are large, or grow.
func tables(l *list) {
	for _, n := range []uint64{65_537, 10_000_000, 1 << 31, maxU32} {
		l.plugin(Gate, fmt.Sprintf("of-%d", n), "table", plugin{after: withTable(n)})
	}
	l.plugin(Harmless, "of-65536", "", plugin{after: withTable(65_536)})
	l.plugin(Harmless, "may-be-large", "", plugin{after: func(m *module) {
		m.tables = [][]byte{join([]byte{funcref, 1, 1}, u(maxU32))}
	}})
	l.plugin(Gate, "less-than-it-begins-with", "",
		plugin{after: func(m *module) { m.tables = [][]byte{{funcref, 1, 9, 3}} }})
	l.plugin(Gate, "several", "", plugin{after: func(m *module) {
		for range 16 {
			m.tables = append(m.tables, join([]byte{funcref, 0}, u(65_536)))
		}
	}})
	l.plugin(Gate, "of-references", "reference types",
		plugin{after: func(m *module) { m.tables = [][]byte{{externref, 0, 1}} }})
	l.plugin(Gate, "shared", "", plugin{after: func(m *module) { m.tables = [][]byte{{funcref, 3, 1, 1}} }})
	l.plugin(Gate, "64-bit", "", plugin{after: func(m *module) { m.tables = [][]byte{{funcref, 4, 1}} }})
	grow := func(name, says string, code ...[]byte) {
		l.plugin(Gate, name, says, plugin{after: withTable(1),
			code: map[string][]byte{"ls_open": join(join(code...), i32(0))}})
	}
	const refs = "reference types"
	grow("grow", refs, []byte{0xd0, funcref}, i32(1_000_000_000), []byte{0xfc, 15, 0}, drop)
	grow("grow-without-ref-null", refs, i32(0), i32(1_000_000_000), []byte{0xfc, 15, 0}, drop)
	grow("grow-in-a-loop", refs, endless([]byte{0xd0, funcref}, i32(65_536), []byte{0xfc, 15, 0}, drop))
	grow("size", refs, []byte{0xfc, 16, 0}, drop)
	grow("fill", refs, i32(0), i32(0), i32(10), []byte{0xfc, 17, 0})
	grow("get", "", i32(0), []byte{0x25, 0}, drop)
	grow("set", "", i32(0), i32(0), []byte{0x26, 0})
	l.plugin(Gate, "element-names-no-function", "", plugin{after: withTable(4, 4000)})
	l.plugin(Quarantine, "element-past-the-end", "", plugin{after: func(m *module) {
		withTable(1)(m)
		m.elements = append(m.elements, join([]byte{0}, i32(7), end, []byte{1, 0}))
	}})
	l.plugin(Quarantine, "element-at-minus-one", "", plugin{after: func(m *module) {
		withTable(1)(m)
		m.elements = append(m.elements, join([]byte{0}, i32(-1), end, []byte{2, 0, 0}))
	}})
	l.plugin(Gate, "element-without-a-table", "",
		plugin{after: func(m *module) { m.elements = [][]byte{join([]byte{0}, i32(0), end, []byte{1, 0})} }})
	l.plugin(Gate, "elements-of-expressions", "", plugin{after: func(m *module) {
		withTable(1)(m)
		m.elements = [][]byte{join([]byte{4}, i32(0), end, []byte{1, 0xd2, 0, 0x0b})}
	}})
	l.plugin(Bounded, "100-000-element-segments", "", plugin{after: func(m *module) {
		withTable(1)(m)
		for range 99_999 {
			m.elements = append(m.elements, join([]byte{0}, i32(0), end, []byte{1, 0}))
		}
	}})
}

// memories are too large, too many, or grow.
func memories(l *list) {
	limits := func(station Stage, name, says string, b []byte) {
		l.plugin(station, name, says, plugin{memory: b})
	}
	limits(Gate, "of-65536-pages", "memory", join([]byte{0}, u(65_536)))
	limits(Gate, "of-65537-pages", "memory", join([]byte{0}, u(65_537)))
	limits(Gate, "of-513-pages", "memory", join([]byte{0}, u(513)))
	limits(Gate, "shared", "shared", []byte{3, 3, 3})
	limits(Gate, "shared-without-a-limit", "shared", []byte{2, 3})
	limits(Gate, "64-bit", "", []byte{4, 3})
	limits(Gate, "unknown-flags", "", []byte{0x80, 3})
	limits(Gate, "at-most-less-than-at-least", "", []byte{1, 9, 3})
	limits(Harmless, "at-most-65536-pages", "", join([]byte{1, 3}, u(65_536)))
	limits(Bounded, "at-most-too-many-pages", "", join([]byte{1, 3}, u(maxU32)))
	limits(Quarantine, "of-no-page", "", []byte{0, 0})
	limits(Harmless, "of-512-pages", "", join([]byte{0}, u(512)))
	l.plugin(Gate, "none", "memory", plugin{after: func(m *module) { m.memory, m.data = nil, nil }})
	l.plugin(Gate, "two", "memories", plugin{after: func(m *module) { m.replace(5, []byte{2, 0, 3, 0, 3}) }})
	l.plugin(Gate, "imported", "", plugin{before: func(m *module) {
		m.imports = append(m.imports, join(text("env"), text("memory"), []byte{kindMemory, 0, 1}))
	}})
	l.plugin(Harmless, "grow-without-end", "", plugin{code: map[string][]byte{"ls_open": join(
		loop(i32(100), memoryGrow, i32(-1), []byte{0x47}, []byte{0x0d, 0}), i32(0))}})
	l.plugin(Quarantine, "grow-in-an-endless-loop", "",
		plugin{code: map[string][]byte{"ls_open": endless(i32(1), memoryGrow, drop)}}).Slow = true
	l.plugin(Harmless, "grow-by-everything", "",
		plugin{code: map[string][]byte{"ls_open": join(i32(-1), memoryGrow, drop, i32(0))}})
	l.plugin(Gate, "data-in-another-memory", "", plugin{after: func(m *module) {
		m.data = append(m.data, join([]byte{2, 1}, i32(0), end, text("x")))
	}})
	l.plugin(Quarantine, "data-past-the-end", "", plugin{after: func(m *module) { m.put(pages<<16-1, []byte("xy")) }})
	l.plugin(Quarantine, "data-at-minus-one", "",
		plugin{after: func(m *module) { m.data = append(m.data, join([]byte{0}, i32(-1), end, text("xy"))) }})
	l.plugin(Bounded, "100-000-data-segments", "", plugin{after: func(m *module) {
		for range 99_000 {
			m.put(70_000, []byte("x"))
		}
	}})
	l.plugin(Gate, "offset-from-a-global", "", plugin{after: func(m *module) {
		m.globals = append(m.globals, join([]byte{i32t, 0}, i32(0), end))
		m.data = append(m.data, join([]byte{0, 0x23, 0}, end, text("x")))
	}})
}

// nested is code in n blocks of one kind.
func nested(n int, open []byte, inner []byte) []byte {
	return join(times(n, open), inner, times(n, end))
}

// nesting goes deeper than a recursive parser survives.
func nesting(l *list) {
	for _, n := range []int{100_000, 6_000} {
		l.plugin(Gate, fmt.Sprintf("%d-of-block", n), "",
			plugin{code: map[string][]byte{"ls_open": join(nested(n, []byte{0x02, 0x40}, nil), i32(0))}})
		l.plugin(Gate, fmt.Sprintf("%d-of-loop", n), "",
			plugin{code: map[string][]byte{"ls_open": join(nested(n, []byte{0x03, 0x40}, nil), i32(0))}})
	}
	l.plugin(Gate, "100000-of-if", "",
		plugin{code: map[string][]byte{"ls_open": join(nested(100_000, []byte{0x41, 1, 0x04, 0x40}, nil), i32(0))}})
	l.plugin(Gate, "100000-of-else", "",
		plugin{code: map[string][]byte{"ls_open": join(times(100_000, []byte{0x41, 1, 0x04, 0x40, 0x05}), times(100_000, end),
			i32(0))}})
	l.plugin(Gate, "100000-of-block-with-a-value", "",
		plugin{code: map[string][]byte{"ls_open": nested(100_000, []byte{0x02, i32t}, i32(0))}})
	l.plugin(Bounded, "4000-of-block", "",
		plugin{code: map[string][]byte{"ls_open": join(nested(4_000, []byte{0x02, 0x40}, nil), i32(0))}})
	l.plugin(Gate, "4000-of-loop", "loops",
		plugin{code: map[string][]byte{"ls_open": join(nested(4_000, []byte{0x03, 0x40}, nil), i32(0))}})
	l.plugin(Gate, "blocks-that-never-end", "",
		plugin{code: map[string][]byte{"ls_open": times(1000, []byte{0x02, 0x40})}})
	l.plugin(Gate, "more-ends-than-blocks", "", plugin{code: map[string][]byte{"ls_open": join(i32(0), times(1000, end))}})
	l.plugin(Gate, "else-without-if", "", plugin{code: map[string][]byte{"ls_open": join(i32(0), []byte{0x05})}})
	l.plugin(Gate, "branch-out-of-everything", "",
		plugin{code: map[string][]byte{"ls_open": join([]byte{0x0c}, u(maxU32))}})
	l.plugin(Gate, "block-of-an-unknown-type", "",
		plugin{code: map[string][]byte{"ls_open": join([]byte{0x02}, u(60), end, i32(0))}})
}

// functions are many, or do not fit together.
func functions(l *list) {
	many := func(station Stage, n int, code []byte) *File {
		return l.plugin(station, fmt.Sprintf("%d-of-%d-bytes", n, len(code)), "", plugin{after: func(m *module) {
			for range n {
				m.add(tNothing, nil, code)
			}
		}})
	}
	many(Gate, 300_000, nil).Large = true
	many(Gate, 100_001, nil).Large = true
	f := many(Bounded, 49_000, []byte{0x01})
	f.Slow = true
	many(Bounded, 45_000, []byte{0x41, 0, 0x1a, 0x01}).Slow = true
	l.plugin(Gate, "of-a-type-that-is-not-there", "", plugin{after: func(m *module) { m.add(4000, nil) }})
	l.plugin(Gate, "call-of-one-that-is-not-there", "",
		plugin{code: map[string][]byte{"ls_open": join(call(4000), i32(0))}})
	l.plugin(Gate, "call-of-the-last-number", "",
		plugin{code: map[string][]byte{"ls_open": join([]byte{0x10}, u(maxU32), i32(0))}})
	l.plugin(Quarantine, "call-with-nothing-on-the-stack", "not valid",
		plugin{code: map[string][]byte{"ls_open": call(2)}})
	l.plugin(Quarantine, "returns-the-wrong-type", "not valid", plugin{code: map[string][]byte{"ls_open": i64(0)}})
	l.plugin(Quarantine, "returns-nothing", "not valid", plugin{code: map[string][]byte{"ls_open": nil}})
	l.plugin(Quarantine, "leaves-too-much", "not valid", plugin{code: map[string][]byte{"ls_open": join(i32(0), i32(0))}})
	l.plugin(Gate, "local-that-is-not-there", "", plugin{code: map[string][]byte{"ls_open": get(7)}})
	l.plugin(Gate, "local-of-the-last-number", "",
		plugin{code: map[string][]byte{"ls_open": join([]byte{0x20}, u(maxU32))}})
	l.plugin(Gate, "global-that-is-not-there", "", plugin{code: map[string][]byte{"ls_open": {0x23, 9}}})
	l.plugin(Gate, "indirect-call-without-a-table", "",
		plugin{code: map[string][]byte{"ls_open": join(i32(0), []byte{0x11, 0, 0}, i32(0))}})
	l.plugin(Quarantine, "indirect-call-of-nothing", "",
		plugin{after: withTable(4), code: map[string][]byte{"ls_open": join(i32(2), []byte{0x11, 0, 0}, i32(0))}})
	l.plugin(Quarantine, "indirect-call-past-the-table", "",
		plugin{after: withTable(4), code: map[string][]byte{"ls_open": join(i32(-1), []byte{0x11, 0, 0}, i32(0))}})
	l.plugin(Quarantine, "indirect-call-of-another-type", "",
		plugin{after: withTable(4, 0), code: map[string][]byte{"ls_open": join(i32(0), []byte{0x11, 0, 0}, i32(0))}})
	for _, i := range []struct {
		name string
		op   byte
	}{{"unused", 0x06}, {"throw", 0x08}, {"tail-call", 0x12}, {"null-reference", 0xd0}, {"function-reference", 0xd2},
		{"garbage-collection", 0xfb}, {"vector", 0xfd}, {"atomic", 0xfe}, {"unknown", 0xff}} {
		l.plugin(Gate, "instruction-"+i.name, "",
			plugin{code: map[string][]byte{"ls_open": join([]byte{i.op, 0, 0, 0}, i32(0))}})
	}
	l.plugin(Gate, "of-a-megabyte-and-more", "",
		plugin{code: map[string][]byte{"ls_open": join(repeat(1<<20, 0x01), i32(0))}}).Large = true
	l.plugin(Gate, "types-10-001", "types", plugin{after: func(m *module) {
		for range 10_001 {
			m.typ([]byte{0x60, 0, 0})
		}
	}})
	l.plugin(Gate, "type-with-65-parameters", "",
		plugin{after: func(m *module) { m.typ(join([]byte{0x60, 65}, repeat(65, i32t), []byte{0})) }})
	l.plugin(Gate, "type-with-1000-results", "",
		plugin{after: func(m *module) { m.typ(join([]byte{0x60, 0}, u(1000), repeat(1000, i32t))) }})
	l.plugin(Gate, "type-that-is-a-struct", "", plugin{after: func(m *module) { m.typ([]byte{0x5f, 0}) }})
	l.plugin(Gate, "globals-10-000", "", plugin{after: func(m *module) {
		for range 10_000 {
			m.globals = append(m.globals, []byte{i32t, 1, 0x41, 0, 0x0b})
		}
	}})
	l.plugin(Gate, "global-of-a-reference", "",
		plugin{after: func(m *module) { m.globals = [][]byte{{externref, 1, 0xd0, externref, 0x0b}} }})
	l.plugin(Quarantine, "global-of-another-type", "",
		plugin{after: func(m *module) { m.globals = [][]byte{join([]byte{i32t, 0}, i64(0), end)} }})
	l.plugin(Gate, "global-calculated", "", plugin{after: func(m *module) {
		m.globals = [][]byte{join([]byte{i32t, 0}, i32(1), i32(1), i32add, end)}
	}})
	l.plugin(Gate, "global-that-never-ends", "",
		plugin{after: func(m *module) { m.replace(6, join([]byte{1, i32t, 0}, repeat(5000, 0x41, 0))) }})
}

// compiler holds code that is short for us and long for a compiler.
func compiler(l *list) {
	big := func(station Stage, name string, p plugin) *File {
		f := l.plugin(station, name, "", p)
		f.Slow, f.Large = true, true
		return f
	}
	open := func(code ...[]byte) map[string][]byte { return map[string][]byte{"ls_open": join(code...)} }
	const room = 1<<20 - 200
	big(Bounded, "a-megabyte-of-nops", plugin{code: open(repeat(room, 0x01), i32(0))})
	big(Bounded, "a-megabyte-of-additions", plugin{code: open(i32(0), times(room/3, []byte{0x41, 1, 0x6a}))})
	big(Bounded, "a-deep-stack-of-values", plugin{code: open(times(room/4, []byte{0x41, 1}), times(room/4, drop), i32(0))})
	big(Bounded, "a-megabyte-of-loads", plugin{code: open(i32(0), times(room/3-8, []byte{0x28, 0, 0}))})
	big(Bounded, "a-megabyte-of-calls", plugin{code: open(times(room/3, []byte{0x10, 0, 0x1a}), i32(0))})
	big(Bounded, "a-megabyte-of-divisions", plugin{code: open(i32(1), times(room/3-8, []byte{0x41, 1, 0x6d}))})
	big(Bounded, "a-megabyte-of-selects", plugin{code: open(i32(0), times(room/5-8, []byte{0x41, 1, 0x41, 0, 0x1b}))})
	big(Bounded, "dead-code", plugin{code: open(unreachable, times(room/5-8, []byte{0x41, 1, 0x41, 0, 0x6a}))})
	big(Gate, "branches-one-after-the-other", plugin{code: open(times(room/6, []byte{0x41, 1, 0x04, 0x40, 0x0b}), i32(0))})
	big(Gate, "loops-one-after-the-other", plugin{code: open(times(room/3-8, []byte{0x03, 0x40, 0x0b}), i32(0))})
	big(Gate, "a-branch-table-of-a-megabyte",
		plugin{code: open(block(i32(0), []byte{0x0e}, u(room/2), repeat(room/2+1, 0)), i32(0))})
	big(Gate, "a-branch-table-of-90-000",
		plugin{code: open(block(i32(0), []byte{0x0e}, u(90_000), repeat(90_001, 0)), i32(0))})
	big(Gate, "branch-tables-in-every-function", plugin{after: func(m *module) {
		for range 100 {
			m.add(tNothing, nil, block(i32(0), []byte{0x0e}, u(50_000), repeat(50_001, 0)))
		}
	}})
	big(Gate, "branch-tables-of-19-000", plugin{after: func(m *module) {
		for range 400 {
			m.add(tNothing, nil, block(i32(0), []byte{0x0e}, u(19_000), repeat(19_001, 0)))
		}
	}})
	l.plugin(Harmless, "400-loops-in-one-another", "", plugin{code: open(nested(400, []byte{0x03, 0x40}, nil), i32(0))})
	big(Bounded, "variables-set-in-every-branch",
		plugin{locals: map[string][]byte{"ls_open": groups(group(100, i32t))},
			code: open(setsInBranches(5_000, 100), i32(0))})
	big(Gate, "variables-times-branches",
		plugin{locals: map[string][]byte{"ls_open": groups(group(5_000, i32t))},
			code: open(setsInBranches(20_000, 5_000), i32(0))})
	big(Bounded, "globals-set-in-every-branch", plugin{after: func(m *module) {
		for range 900 {
			m.globals = append(m.globals, []byte{i32t, 1, 0x41, 0, 0x0b})
		}
	}, code: open(globalsInBranches(4_000, 900), i32(0))})
	big(Bounded, "64-results-through-every-block", plugin{before: func(m *module) {
		m.typ(join([]byte{0x60, 64}, repeat(64, i32t), []byte{64}, repeat(64, i32t)))
	}, code: open(times(64, []byte{0x41, 1}), times(4_000, join([]byte{0x02, ownTypes}, end)), times(64, drop), i32(0))})
	big(Bounded, "64-arguments-in-every-call", plugin{before: func(m *module) {
		m.typ(join([]byte{0x60, 64}, repeat(64, i64t), []byte{0}))
	}, after: func(m *module) {
		f := m.add(ownTypes, nil)
		m.add(tNothing, nil, times(7_000, join(times(64, []byte{0x42, 1}), call(f))))
	}})
	big(Bounded, "seven-functions-of-a-megabyte", plugin{after: func(m *module) {
		for range 7 {
			m.add(tNothing, nil, i32(0), times(room/3, []byte{0x41, 1, 0x6a}), drop)
		}
	}})
	big(Bounded, "a-chain-of-10-000-calls", plugin{after: func(m *module) {
		f := m.add(tNothing, nil)
		for range 10_000 {
			f = m.add(tNothing, nil, call(f))
		}
	}})
}

func setsInBranches(n, variables int) []byte {
	var out []byte
	for i := range n {
		out = append(out, join(i32(1), ifThen(i32(int64(i)), set(uint32(2+i%variables))))...)
	}
	return out
}

func globalsInBranches(n, globals int) []byte {
	var out []byte
	for i := range n {
		out = append(out, join(i32(1), ifThen(i32(int64(i)), []byte{0x24}, u(uint64(i%globals))))...)
	}
	return out
}
