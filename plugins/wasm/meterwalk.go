package wasm

const (
	// maxPrepaid is the most that one charge pays for in advance. Larger, it makes
	// straight code cheaper and short loops in large functions dearer than they are.
	maxPrepaid = 48
	// surcharge is how much of a whole function or loop is paid for at its head
	// besides: merging variables at a branch takes time that no instruction shows.
	surcharge = 64
	// maxStraightLine is the most that code without a loop or a call executes before it
	// looks again whether fuel is left.
	maxStraightLine = 1000
	// maxTail is the most that a function does between a call and its end without a
	// look: when a deep stack unwinds, all these come one after the other. The
	// weight of a memory instruction is such that there may be none.
	maxTail    = 7
	tailMemory = 8
	// variablesPerUnit: for so many of its variables a function pays a unit at its entry,
	// because the frame that they lie in may be fresh memory.
	variablesPerUnit = 8
)

// state is what is known at a place in the code, over every path that leads there.
type state struct {
	// paid is the least that remains of what was paid for in advance.
	paid int
	// since is the most that was executed since fuel was looked at, and tail the most
	// since a call returned without a look after it, or -1.
	since, tail int
	// dead says that no path leads there.
	dead bool
}

// join is the state where two paths meet.
func (s state) join(o state) state {
	switch {
	case o.dead:
		return s
	case s.dead:
		return o
	}
	return state{paid: min(s.paid, o.paid), since: max(s.since, o.since), tail: max(s.tail, o.tail)}
}

// flow is an open block: out is the state where branches to its end meet, entry
// that at the head of an if.
type flow struct {
	op         byte
	out, entry state
}

// meterWalk writes one function. It follows what is known over every forward path.
// A loop's header charges and looks each time, so that nothing need be known about
// the paths back to it.
type meterWalk struct {
	*meter
	body  *body
	state state
	stack []flow
	out   []byte
	// copied is how much of the function's code is in out.
	copied int
	// total and spent are the cost of the function, and of what the walk has passed.
	total, spent int
	lead         int
}

// write writes one function.
func (w *meter) write(b *body) {
	k := meterWalk{meter: w, body: b, stack: append(w.control[:0], flow{op: opBlock, out: state{dead: true}}),
		out: w.locals(w.body[:0], b), total: int(b.cost), lead: b.lead}
	k.state = state{paid: b.lead, tail: -1}
	if b.lead < 0 {
		k.state.paid = min(max(k.total, 2), maxPrepaid)
		k.emitCharge(0, k.state.paid+k.total/surcharge+int(b.vars)/variablesPerUnit)
		k.emitFuelCheck(0)
	}
	r := &reader{b: b.code}
	var i instruction
	w.threads.begin()
	for len(k.stack) > 0 {
		r.instruction(&i)
		label, direct := w.threads.next(&i, b.code)
		k.chargeBefore(&i)
		if direct {
			k.copyUpTo(i.at)
			k.out = appendU32(append(k.out, opBr), label)
			i.a, k.copied = label, i.end
		}
		k.instruction(&i)
	}
	w.control = k.stack[:0]
	k.copyUpTo(len(b.code))
	w.body = k.out
	w.out = append(appendU32(w.out, uint32(len(k.out))), k.out...)
}

// copyUpTo copies the function's own code up to a place.
func (k *meterWalk) copyUpTo(at int) {
	k.out = append(k.out, k.body.code[k.copied:at]...)
	k.copied = at
}

// emitCharge puts in a charge.
func (k *meterWalk) emitCharge(at, amount int) {
	k.copyUpTo(at)
	k.out = append(k.out, k.charge...)
	k.out = appendS64(append(k.out, opI64Const), int64(amount))
	k.out = append(k.out, k.pay...)
}

// emitFuelCheck puts in a look at the fuel.
func (k *meterWalk) emitFuelCheck(at int) {
	k.copyUpTo(at)
	k.out = append(k.out, k.check...)
	k.state.since, k.state.tail = 0, -1
}

// chargeBefore pays for an instruction, and looks at the fuel where that is due.
func (k *meterWalk) chargeBefore(i *instruction) {
	cost := k.m.costOf(i)
	defer func() { k.spent += cost }()
	s := &k.state
	if s.dead {
		return
	}
	if cost > s.paid {
		more := max(cost-s.paid, min(maxPrepaid, k.total-k.spent))
		k.emitCharge(i.at, more)
		s.paid += more
	}
	s.paid -= cost
	if s.since += cost; s.since > maxStraightLine || s.tail > maxTail && k.mayExit(i) {
		k.emitFuelCheck(i.at)
		s.since = cost
	}
	if s.tail >= 0 {
		s.tail += cost
		if kinds[i.op] == immMemory {
			s.tail += tailMemory
		}
	}
}

// mayExit reports an instruction after which the function may be over.
func (k *meterWalk) mayExit(i *instruction) bool {
	last := uint32(len(k.stack) - 1)
	switch i.op {
	case opReturn:
		return true
	case opEnd:
		return last == 0
	case opBr, opBrIf:
		return i.a == last
	case opBrTable:
		if i.b == last {
			return true
		}
		t := &reader{b: k.body.code, pos: i.targets}
		for n := i.a; n > 0; n-- {
			if t.u32() == last {
				return true
			}
		}
	}
	return false
}

// branch has a path end at a label.
func (k *meterWalk) branch(label uint32) {
	if f := &k.stack[len(k.stack)-1-int(label)]; f.op != opLoop {
		f.out = f.out.join(k.state)
	}
}

// instruction follows the control flow, and puts in what an instruction needs besides fuel.
func (k *meterWalk) instruction(i *instruction) {
	switch i.op {
	case opBlock, opIf:
		k.stack = append(k.stack, flow{op: i.op, out: state{dead: true}, entry: k.state})
	case opLoop:
		k.openLoop(i)
	case opElse:
		f := &k.stack[len(k.stack)-1]
		f.out = f.out.join(k.state)
		f.op, k.state = opElse, f.entry
	case opEnd:
		f := k.stack[len(k.stack)-1]
		k.stack = k.stack[:len(k.stack)-1]
		if f.op == opIf {
			f.out = f.out.join(f.entry)
		}
		k.state = k.state.join(f.out)
	case opBr:
		k.branch(i.a)
		k.state.dead = true
	case opBrIf:
		k.branch(i.a)
	case opBrTable:
		t := &reader{b: k.body.code, pos: i.targets}
		for n := i.a; n > 0; n-- {
			k.branch(t.u32())
		}
		k.branch(i.b)
		k.state.dead = true
	case opReturn, opUnreachable:
		k.state.dead = true
	case opCall, opCallIndirect:
		k.writeCall(i)
	case opMemoryGrow:
		if !k.state.dead {
			// What a slice is worth depends on how large the memory is.
			k.copyUpTo(i.end)
			k.out = appendU32(append(k.out, opCall), k.slice)
			k.state.since, k.state.tail = 0, -1
		}
	case opPrefix:
		if i.bulk() && !k.state.dead {
			k.bulk(i)
		}
	}
}

// openLoop opens a loop, whose header charges for one round of it.
func (k *meterWalk) openLoop(i *instruction) {
	k.stack = append(k.stack, flow{op: opLoop, out: state{dead: true}})
	inside := int(k.m.loops[k.loop])
	k.loop++
	if k.state.dead || inside < 0 {
		return
	}
	k.state.paid = min(max(inside, 2), maxPrepaid)
	amount := k.state.paid + inside/surcharge
	if k.lead >= 0 {
		amount += k.lead + int(k.body.vars)/variablesPerUnit
		k.lead = -1
	}
	k.emitCharge(i.end, amount)
	k.emitFuelCheck(i.end)
}

// writeCall writes a call with the function's new number, and counts it where it may
// be part of a recursion.
func (k *meterWalk) writeCall(i *instruction) {
	k.copyUpTo(i.at)
	code := k.body.code[i.at:i.end]
	k.copied = i.end
	counted := true
	if i.op == opCall {
		code = appendU32([]byte{opCall}, k.function(i.a))
		if i.a < uint32(len(k.m.Imports)) {
			k.out = append(k.out, code...)
			if !k.state.dead {
				// The host charges for its own work, and straight code has no other look.
				k.emitFuelCheck(i.end)
			}
			return
		}
		counted = k.counted[k.call]
		k.call++
	}
	if counted && !k.state.dead {
		k.out = k.countCall(k.out, code)
	} else {
		k.out = append(k.out, code...)
	}
	k.state.since, k.state.tail = 0, 0
}

// countCall counts a call.
func (k *meterWalk) countCall(out, call []byte) []byte {
	weight := k.body.weight()
	get, set := appendU32([]byte{opGlobalGet}, k.depth), appendU32([]byte{opGlobalSet}, k.depth)
	out = appendS64(append(append(out, get...), opI32Const), weight)
	out = append(append(append(out, opI32Sub), set...), get...)
	out = append(out, opI32Const, 0, opI32LtS, opIf, blockNothing, opUnreachable, opEnd)
	out = append(append(out, call...), get...)
	out = appendS64(append(out, opI32Const), weight)
	return append(append(out, opI32Add), set...)
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
