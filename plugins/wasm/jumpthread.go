package wasm

// jumpThreader finds jumps whose way through a table is known. Go's compiler has basic
// blocks and no structure: a function is a loop around a table, and a jump sets the
// number of a block and goes back to the table,
//
//	loop  block … block  local.get n  br_table …  end  code of block 0  end  code of block 1 …
//	i32.const 7  local.set n  br (the loop)
//
// A jump to a block that is still open can go there directly. The number is set as
// before, and the table would have done nothing else. So the loop need not be
// looked after where nothing goes back any more, and what jumps forward need not
// pay for a round.
//
// It is shown every instruction of a function, in order.
type jumpThreader struct {
	open []openBlock
	// ahead is the loop at whose head only blocks were opened so far, or -1, and
	// reads the local that was read behind them.
	ahead int
	reads int64
	// constant and local are what the last two instructions set, and state how much
	// of that was seen: 1 the constant, 2 both.
	constant, local uint32
	state           int
	// ended is the block that ended last.
	ended openBlock
}

// openBlock is an open block.
type openBlock struct {
	op byte
	// of is the loop into whose table a block belongs, or -1.
	of int
	// A loop has the table of labels at its head, the local it is read by, and the
	// place in threads.open of the block that the table stands in.
	table  []uint32
	local  uint32
	inside int
	// rounds says that a branch goes there: in a loop, that there is another round.
	rounds bool
}

// begin makes ready for a function.
func (t *jumpThreader) begin() {
	t.open = append(t.open[:0], openBlock{op: opBlock, of: -1})
	t.ahead, t.reads, t.state = -1, -1, 0
}

// next takes in an instruction. Of a branch it returns the label it has to have.
// Labels that are not there it leaves to others.
func (t *jumpThreader) next(i *instruction, code []byte) (label uint32, direct bool) {
	ahead, reads, state := t.ahead, t.reads, t.state
	t.ahead, t.reads, t.state = -1, -1, 0
	switch i.op {
	case opLoop:
		if i.a == blockEmpty {
			t.ahead = len(t.open)
		}
		t.open = append(t.open, openBlock{op: opLoop, of: -1})
	case opBlock:
		of := -1
		if i.a == blockEmpty && reads < 0 {
			of, t.ahead = ahead, ahead
		}
		t.open = append(t.open, openBlock{op: opBlock, of: of})
	case opIf:
		t.open = append(t.open, openBlock{op: opIf, of: -1})
	case opEnd:
		t.ended = t.open[len(t.open)-1]
		t.open = t.open[:len(t.open)-1]
	case opLocalGet:
		if reads < 0 {
			t.ahead, t.reads = ahead, int64(i.a)
		}
	case opI32Const:
		r := &reader{b: code, pos: i.at + 1}
		t.constant, t.state = r.signed32(), 1
	case opLocalSet:
		if state == 1 {
			t.local, t.state = i.a, 2
		}
	case opBrTable:
		r := &reader{b: code, pos: i.targets}
		labels := make([]uint32, 0, i.a+1)
		for range i.a {
			labels = append(labels, r.u32())
		}
		labels = append(labels, i.b)
		for _, l := range labels {
			t.redirect(l)
		}
		if ahead >= 0 && reads >= 0 {
			l := &t.open[ahead]
			l.table, l.local, l.inside = labels, uint32(reads), len(t.open)-1
		}
	case opBr:
		if label, direct = t.threadedLabel(i.a, state); direct {
			return label, true
		}
		t.redirect(i.a)
	case opBrIf:
		t.redirect(i.a)
	}
	return i.a, false
}

// redirect has a branch go to a label.
func (t *jumpThreader) redirect(label uint32) {
	if int64(label) < int64(len(t.open)) {
		t.open[len(t.open)-1-int(label)].rounds = true
	}
}

// threadedLabel returns the label of the block that a table sends a branch to.
func (t *jumpThreader) threadedLabel(label uint32, state int) (uint32, bool) {
	if state != 2 || int64(label) >= int64(len(t.open)) {
		return 0, false
	}
	loop := len(t.open) - 1 - int(label)
	l := &t.open[loop]
	if l.table == nil || l.local != t.local {
		return 0, false
	}
	to := int64(l.inside) - int64(l.table[min(int64(t.constant), int64(len(l.table))-1)])
	if to <= int64(loop) || to >= int64(len(t.open)) || t.open[to].of != loop {
		return 0, false
	}
	return uint32(int64(len(t.open)) - 1 - to), true
}
