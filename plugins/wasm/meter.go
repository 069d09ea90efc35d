package wasm

// The names under which the rewritten module exports what Meter added.
const (
	// NameFuel is a mutable i64. It begins at 0; below 0 the guest traps.
	NameFuel = reserved + "fuel"
	// NameDepth is a mutable i32, how many more counted calls may be open. It begins
	// at 0; the call that makes it negative traps.
	NameDepth = reserved + "depth"
	// NameStart is the module's start function, if it has one.
	NameStart = reserved + "start"
)

const (
	// stripe is the most that one charge pays for in advance. Larger, it makes
	// straight code cheaper and short loops in large functions dearer than they are.
	stripe = 48
	// surcharge is how much of a whole function or loop is paid for at its head
	// besides: merging variables at a branch takes time that no instruction shows.
	surcharge = 64
	// bytesShift: a bulk-memory instruction moves 8 bytes in the time of a unit.
	bytesShift = 3
	noBranch   = 1 << 30
)

// Meter writes the module again with fuel and depth. Custom sections are left out.
// The result depends on the module's bytes only.
func (m *Module) Meter() []byte {
	total := 0
	for _, s := range m.sections {
		total += len(s.body)
	}
	w := &meter{m: m, fuel: uint32(m.globals), depth: uint32(m.globals) + 1, out: make([]byte, 0, total+total/3+1024)}
	w.charge = appendU32([]byte{opGlobalGet}, w.fuel)
	w.pay = appendU32([]byte{opI64Sub, opGlobalSet}, w.fuel)
	w.check = append(append([]byte{}, w.charge...), opI64Const, 0, opI64LtS, opIf, 0x40, opUnreachable, opEnd)
	get, set := appendU32([]byte{opGlobalGet}, w.depth), appendU32([]byte{opGlobalSet}, w.depth)
	w.enter = concat(get, []byte{opI32Const, 1, opI32Sub}, set, get, []byte{opI32Const, 0, opI32LtS, opIf, 0x40, opUnreachable, opEnd})
	w.leave = concat(get, []byte{opI32Const, 1, opI32Add}, set)
	w.counted = m.recursive()

	w.out = append(w.out, "\x00asm\x01\x00\x00\x00"...)
	wrote := byte(0)
	for _, s := range m.sections {
		// The globals stand after the types, imports, functions, the table and the
		// memory; the exports after them.
		for _, id := range []byte{6, 7} {
			if _, place := sectionOrder(s.id); place > int(id)*10 && wrote < id {
				w.added(id, nil)
				wrote = id
			}
		}
		switch s.id {
		case 5:
			w.memory()
		case 6, 7:
			w.added(s.id, s.body)
			wrote = s.id
		case 8:
		case 10:
			w.code()
		default:
			w.section(s.id, s.body)
		}
	}
	for _, id := range []byte{6, 7} {
		if wrote < id {
			w.added(id, nil)
		}
	}
	return w.out
}

func concat(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// meter writes the new module.
type meter struct {
	m           *Module
	fuel, depth uint32
	out         []byte
	// The pieces of code that are put in: a charge is charge, a constant, pay.
	charge, pay, check, enter, leave []byte
	// counted says for each of Module.calls whether it counts against the depth.
	counted []bool

	control []flow
	loop    int // the next of Module.loops
	call    int // the next of Module.calls
	body    []byte
}

func (w *meter) section(id byte, body []byte) {
	w.out = append(w.out, id)
	w.out = appendU32(w.out, uint32(len(body)))
	w.out = append(w.out, body...)
}

// memory writes the memory with a limit of its own.
func (w *meter) memory() {
	if !w.m.memory {
		w.section(5, []byte{0})
		return
	}
	w.section(5, appendU32(appendU32([]byte{1, 1}, w.m.minPages), min(w.m.maxPages, 65_536)))
}

// added writes the globals or the exports with what Meter adds to them.
func (w *meter) added(id byte, body []byte) {
	count, extra := uint32(0), uint32(2)
	var tail []byte
	if body != nil {
		r := &reader{b: body}
		count = r.u32()
		body = body[r.pos:]
	}
	if id == 6 {
		tail = []byte{0x7e, 1, opI64Const, 0, opEnd, 0x7f, 1, opI32Const, 0, opEnd}
	} else {
		tail = export(tail, NameFuel, KindGlobal, w.fuel)
		tail = export(tail, NameDepth, KindGlobal, w.depth)
		if w.m.HasStart {
			extra++
			tail = export(tail, NameStart, KindFunction, w.m.start)
		}
	}
	w.section(id, concat(appendU32(nil, count+extra), body, tail))
}

func export(b []byte, name string, kind byte, index uint32) []byte {
	b = append(appendU32(b, uint32(len(name))), name...)
	return appendU32(append(b, kind), index)
}

func (w *meter) code() {
	at := len(w.out)
	w.out = appendU32(append(w.out, make([]byte, 6)...), uint32(len(w.m.bodies)))
	for i := range w.m.bodies {
		w.function(&w.m.bodies[i])
	}
	// The section's head has a fixed length, so that the code need not move.
	w.out[at] = 10
	size := uint32(len(w.out) - at - 6)
	for i := range 5 {
		w.out[at+1+i] = byte(size>>(7*i))&0x7f | 0x80
	}
	w.out[at+5] &= 0x7f
}

// flow is an open block and what remains of the fuel that was paid in advance.
type flow struct {
	op byte
	// paid is the least that remains where a branch to the block's end is taken.
	paid int
	// entry is what remained at the head of an if; dead, that its head is never reached.
	entry int
	dead  bool
}

// function writes one function. It follows what remains of the fuel paid for over
// every forward path, takes the least where paths meet, and charges again where an
// instruction costs more than that. A loop's header charges each time, so that
// nothing need be known about the paths back to it.
func (w *meter) function(b *body) {
	out := w.body[:0]
	out = w.locals(out, b)
	code := b.code
	r := &reader{b: code}
	copied, spent := 0, 0
	charge := func(at, amount int, check bool) {
		out = append(out, code[copied:at]...)
		copied = at
		out = append(out, w.charge...)
		out = appendS64(append(out, opI64Const), int64(amount))
		out = append(out, w.pay...)
		if check {
			out = append(out, w.check...)
		}
	}
	total := int(b.cost)
	paid, lead, dead := b.lead, b.lead, false
	if lead < 0 {
		paid = min(max(total, 2), stripe)
		charge(0, paid+total/surcharge, true)
	}
	stack := append(w.control[:0], flow{op: opBlock, paid: noBranch})
	branch := func(label uint32) {
		if f := &stack[len(stack)-1-int(label)]; f.op != opLoop && !dead {
			f.paid = min(f.paid, paid)
		}
	}
	var i instruction
	for len(stack) > 0 {
		r.instruction(&i)
		cost := w.m.costOf(&i)
		if !dead && cost > paid {
			more := max(cost-paid, min(stripe, total-spent))
			charge(i.at, more, false)
			paid += more
		}
		spent += cost
		if !dead {
			paid -= cost
		}
		switch i.op {
		case opBlock:
			stack = append(stack, flow{op: opBlock, paid: noBranch, dead: dead})
		case opIf:
			stack = append(stack, flow{op: opIf, paid: noBranch, entry: paid, dead: dead})
		case opLoop:
			stack = append(stack, flow{op: opLoop, paid: noBranch, dead: dead})
			inside := int(w.m.loops[w.loop])
			w.loop++
			if !dead {
				paid = min(max(inside, 2), stripe)
				charge(i.end, paid+inside/surcharge+max(lead, 0), true)
				lead = 0
			}
		case opElse:
			f := &stack[len(stack)-1]
			if !dead {
				f.paid = min(f.paid, paid)
			}
			f.op, paid, dead = opElse, f.entry, f.dead
		case opEnd:
			f := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if f.op == opIf && !f.dead {
				f.paid = min(f.paid, f.entry)
			}
			if f.op != opLoop && f.paid != noBranch {
				if dead {
					paid = f.paid
				}
				paid, dead = min(paid, f.paid), false
			}
		case opBr:
			branch(i.a)
			dead = true
		case opBrIf:
			branch(i.a)
		case opBrTable:
			t := &reader{b: code, pos: i.targets}
			for n := i.a; n > 0; n-- {
				branch(t.u32())
			}
			branch(i.b)
			dead = true
		case opReturn, opUnreachable:
			dead = true
		case opCall:
			if i.a < uint32(len(w.m.Imports)) {
				// The host charges for its own work, and straight code has no other check.
				if !dead {
					out = append(append(out, code[copied:i.end]...), w.check...)
					copied = i.end
				}
				break
			}
			counted := w.counted[w.call]
			w.call++
			if counted && !dead {
				out = w.around(out, code[copied:i.at], code[i.at:i.end])
				copied = i.end
			}
		case opCallIndirect:
			if !dead {
				out = w.around(out, code[copied:i.at], code[i.at:i.end])
				copied = i.end
			}
		case opPrefix:
			if i.bulk() && !dead {
				out = append(out, code[copied:i.at]...)
				copied = i.at
				out = w.bulk(out, b, &i)
			}
		}
	}
	w.control = stack[:0]
	out = append(out, code[copied:]...)
	w.body = out
	w.out = append(appendU32(w.out, uint32(len(out))), out...)
}

// around counts a call.
func (w *meter) around(out, before, call []byte) []byte {
	out = append(append(out, before...), w.enter...)
	return append(append(out, call...), w.leave...)
}

// locals writes the locals, with one more for the length of bulk-memory instructions.
func (w *meter) locals(out []byte, b *body) []byte {
	if !b.bulk {
		return append(out, b.locals...)
	}
	r := &reader{b: b.locals}
	out = appendU32(out, r.u32()+1)
	out = append(out, b.locals[r.pos:]...)
	return append(out, 1, 0x7f)
}

// bulk charges by the length that lies on the stack.
func (w *meter) bulk(out []byte, b *body, i *instruction) []byte {
	out = appendU32(append(out, opLocalTee), b.vars)
	out = append(out, w.charge...)
	out = append(appendU32(append(out, opLocalGet), b.vars), opI64ExtendU)
	if i.a != subTableInit && i.a != subTableCopy {
		out = append(out, opI64Const, bytesShift, opI64ShrU)
	}
	return append(append(out, w.pay...), w.check...)
}

// recursive says for each direct call whether it closes a circle: whether its
// target is open in a walk over the graph of calls. Every recursion that no
// indirect call is part of has one such call, and indirect calls are all counted.
func (m *Module) recursive() []bool {
	counted := make([]bool, len(m.calls))
	const open, done = 1, 2
	state := make([]uint8, len(m.bodies))
	next := make([]int, len(m.bodies)) // the call of each function to look at next
	end := func(f int) int {
		if f+1 < len(m.bodies) {
			return m.bodies[f+1].calls
		}
		return len(m.calls)
	}
	var stack []int
	for root := range m.bodies {
		if state[root] != 0 {
			continue
		}
		state[root], next[root] = open, m.bodies[root].calls
		stack = append(stack[:0], root)
		for len(stack) > 0 {
			f := stack[len(stack)-1]
			if next[f] == end(f) {
				state[f] = done
				stack = stack[:len(stack)-1]
				continue
			}
			call := next[f]
			next[f]++
			switch to := int(m.calls[call]); state[to] {
			case open:
				counted[call] = true
			case 0:
				state[to], next[to] = open, m.bodies[to].calls
				stack = append(stack, to)
			}
		}
	}
	return counted
}
