package wasm

// effects is by how much an instruction without an immediate, or with one that
// does not matter here, makes the stack of values higher.
var effects = func() (effect [256]int8) {
	set := func(e int8, from, to int) {
		for op := from; op <= to; op++ {
			effect[op] = e
		}
	}
	set(-1, opIf, opIf)
	set(-1, opBrIf, opBrTable)
	set(-1, opCallIndirect, opCallIndirect)
	set(-1, 0x1a, 0x1a) // drop
	set(-2, opSelect, opSelect)
	set(1, opLocalGet, opLocalGet)
	set(-1, opLocalSet, opLocalSet)
	set(1, opGlobalGet, opGlobalGet)
	set(-1, opGlobalSet, opGlobalSet)
	set(-2, 0x36, 0x3e) // stores
	set(1, opMemorySize, opMemorySize)
	set(1, opI32Const, opF64Const)
	// Comparing and calculating take two and leave one, but for those that take one.
	set(-1, 0x46, 0xa6)
	for _, unary := range [][2]int{{0x50, 0x50}, {0x67, 0x69}, {0x79, 0x7b}, {0x8b, 0x91}, {0x99, 0x9f}} {
		set(0, unary[0], unary[1])
	}
	return effect
}()

// effect is by how much an instruction that opens or ends no block makes the stack higher.
func (m *Module) effect(i *instruction) int {
	e := int(effects[i.op])
	switch {
	case i.op == opCall && int(i.a) < len(m.funcs):
		t := m.types[m.funcs[i.a]]
		e += t.results - t.params
	case i.op == opCallIndirect && int(i.a) < len(m.types):
		e += m.types[i.a].results - m.types[i.a].params
	case i.bulk():
		e -= 3
	}
	return e
}
