package wasm

// instruction is one decoded instruction: code[at:end].
type instruction struct {
	op      byte
	at, end int
	// a is its first immediate: a label, an index, the number behind opPrefix, the
	// count of a branch table's targets (whose bytes begin at targets), or of a
	// block its type: an index, or one of the two below.
	a, b    uint32
	targets int
}

const (
	blockEmpty = 1<<32 - 1
	blockValue = 1<<32 - 2
)

// instruction decodes the next one.
func (r *reader) instruction(i *instruction) {
	i.at = r.pos
	i.op = r.byte()
	switch kind := kinds[i.op]; kind {
	case immNone, immEnd:
	case immLocal, immLabel, immCall, immGlobal:
		i.a = r.u32()
	case immMemory:
		i.a, i.b = r.u32(), r.u32()
	case immI32:
		r.skipSigned(32)
	case immI64:
		r.skipSigned(64)
	case immBlock:
		r.blockType(i)
	case immCallIndirect:
		i.a, i.b = r.u32(), r.u32()
	case immBrTable:
		i.a = uint32(r.count("targets of one branch table", 1, 1<<20))
		i.targets = r.pos
		for n := i.a; n > 0 && r.err == nil; n-- {
			r.u32()
		}
		i.b = r.u32() // the default
	case immF32:
		r.skip(4)
	case immF64:
		r.skip(8)
	case immZero:
		if r.byte() != 0 {
			r.fail("it uses several memories, which plugins may not")
		}
	case immPrefix:
		r.prefixed(i)
	default:
		if r.err != nil {
			return
		}
		if name := refusedFeature[kind]; name != "" {
			r.fail("it uses %s, which plugins may not: instruction %#x", name, i.op)
			return
		}
		r.fail("it holds the unknown instruction %#x", i.op)
	}
	i.end = r.pos
}

func (r *reader) blockType(i *instruction) {
	if r.pos < len(r.b) {
		switch t := r.b[r.pos]; {
		case t == 0x40:
			i.a = blockEmpty
			r.pos++
			return
		case t >= 0x40 && t < 0x80:
			r.valueType()
			i.a = blockValue
			return
		}
	}
	// A type's number as a signed one of 33 bits.
	begin := r.pos
	i.a = r.u32()
	if r.err == nil && (r.b[r.pos-1]&0x40 != 0 && r.pos-begin < 5 || i.a >= blockValue) {
		r.fail("a block of it has a type that is not there")
	}
}

func (r *reader) prefixed(i *instruction) {
	i.a = r.u32()
	switch {
	case r.err != nil || i.a < conversions:
	case i.a == subMemoryInit:
		i.b = r.u32()
		r.onlyMemory()
	case i.a == subDataDrop || i.a == subElemDrop:
		i.b = r.u32()
	case i.a == subMemoryCopy:
		r.onlyMemory()
		r.onlyMemory()
	case i.a == subMemoryFill:
		r.onlyMemory()
	case i.a == subTableInit, i.a == subTableCopy:
		i.b = r.u32()
		if t := r.u32(); (t != 0 || i.a == subTableCopy && i.b != 0) && r.err == nil {
			r.fail("it uses several tables, which plugins may not")
		}
	case i.a <= 17:
		r.fail("it uses reference types (table.grow, table.size or table.fill), which plugins may not")
	default:
		r.fail("it holds the unknown instruction 0xfc %d", i.a)
	}
}

func (r *reader) onlyMemory() {
	if r.byte() != 0 {
		r.fail("it uses several memories, which plugins may not")
	}
}

// bulk reports an instruction whose time depends on the length on top of the stack.
func (i *instruction) bulk() bool {
	return i.op == opPrefix && (i.a == subMemoryInit || i.a == subMemoryCopy || i.a == subMemoryFill ||
		i.a == subTableInit || i.a == subTableCopy)
}

// control is an open block while its function is read.
type control struct {
	op byte
	// arity is how many values a branch to it carries.
	arity int
	// loop is its place in Module.loops, and cost what the function cost up to it.
	loop int
	cost uint32
	// base is how high the stack of values is below what the block takes; takes and
	// leaves are how many values it takes and leaves.
	base, takes, leaves int
}

func (p *parser) code(r *reader) {
	n := r.count("function bodies", 2, p.limits.Functions)
	if defined := len(p.funcs) - len(p.Imports); n != defined && r.err == nil {
		r.fail("it declares %d functions but has the code of %d", defined, n)
		return
	}
	p.bodies = make([]body, 0, n)
	for i := 0; i < n && r.err == nil; i++ {
		size := r.u32()
		if r.err == nil && int64(size) > int64(p.limits.FunctionBytes) {
			r.fail("one of its functions has %d bytes, the limit is %d", size, p.limits.FunctionBytes)
			return
		}
		f := &reader{b: r.bytes(size)}
		if r.err != nil {
			return
		}
		p.function(f, p.types[p.funcs[len(p.Imports)+i]])
		r.err = f.err
	}
}

// function reads one function's code and checks every index in it.
func (p *parser) function(r *reader, t funcType) {
	b := body{calls: len(p.calls), lead: -1}
	vars := uint64(0)
	for groups := r.count("groups of locals in one function", 2, p.limits.Locals); groups > 0 && r.err == nil; groups-- {
		vars += uint64(r.u32())
		r.valueType()
		if vars > uint64(p.limits.Locals) {
			r.fail("one of its functions has over %d local variables", p.limits.Locals)
		}
	}
	if r.err != nil {
		return
	}
	b.locals, b.code = r.b[:r.pos], r.b[r.pos:]
	b.vars = uint32(vars) + uint32(t.params)
	r.b, r.pos = b.code, 0

	stack := append(p.control[:0], control{op: opBlock, arity: t.results})
	height, i := 0, instruction{}
	branches, merges, forks, loops, leads, straight := 0, 1, 0, 0, -1, true
	p.threads.begin()
	for len(stack) > 0 && r.err == nil {
		r.instruction(&i)
		if r.err != nil {
			return
		}
		p.threads.next(&i, b.code)
		b.cost += uint32(p.costOf(&i))
		height += p.effect(&i)
		b.height = max(b.height, height)
		switch kinds[i.op] {
		case immBlock:
			if len(stack) >= p.limits.Nesting {
				r.fail("one of its functions nests over %d blocks", p.limits.Nesting)
				return
			}
			c, ok := p.enter(r, &i, height)
			if !ok {
				return
			}
			c.cost = b.cost
			if i.op == opLoop {
				if loops++; loops > p.limits.Loops {
					r.fail("one of its functions nests over %d loops", p.limits.Loops)
					return
				}
				c.loop = len(p.loops)
				p.loops = append(p.loops, 0)
			}
			if straight && i.op == opLoop && b.cost <= maxLead {
				b.lead, leads = int(b.cost), c.loop
			}
			straight = straight && i.op == opBlock
			merges++
			stack = append(stack, c)
		case immEnd:
			straight = false
			top := &stack[len(stack)-1]
			if i.op == opElse {
				if top.op != opIf {
					r.fail("one of its functions has an else without an if")
				}
				top.op = opElse
				height = top.base + top.takes
				continue
			}
			if top.op == opLoop {
				loops--
				if p.loops[top.loop] = int64(b.cost - top.cost); !p.threads.ended.rounds {
					p.loops[top.loop] = -1
					if leads == top.loop {
						b.lead = -1
					}
				}
			}
			height = top.base + top.leaves
			stack = stack[:len(stack)-1]
		case immLabel:
			straight = false
			forks++
			p.label(r, stack, i.a)
		case immBrTable:
			straight = false
			forks += int(i.a) / 8
			branches += p.branchTable(r, stack, &i)
			if branches > p.limits.Branches {
				r.fail("the branch tables of one of its functions have over %d targets", p.limits.Branches)
			}
		default:
			straight = straight && plain(&i)
			p.indices(r, &b, &i)
		}
	}
	p.control = stack[:0]
	if r.err == nil && r.rest() != 0 {
		r.fail("one of its functions goes on for %d bytes after its end", r.rest())
	}
	p.weigh(r, b.vars, merges, forks)
	p.bodies = append(p.bodies, b)
}

// enter begins a block, whose operands are on the stack already; false where its type is none.
func (p *parser) enter(r *reader, i *instruction, height int) (control, bool) {
	c := control{op: i.op}
	if i.a < blockValue && int64(i.a) >= int64(len(p.types)) {
		r.fail("a block of it has type %d, but there are %d", i.a, len(p.types))
		return c, false
	}
	switch {
	case i.a == blockValue:
		c.leaves = 1
	case i.a < blockValue:
		c.takes, c.leaves = p.types[i.a].params, p.types[i.a].results
	}
	c.base = height - c.takes
	if c.arity = c.leaves; i.op == opLoop {
		c.arity = c.takes
	}
	return c, true
}

// weigh refuses a function that the compiler would be at for too long.
func (p *parser) weigh(r *reader, vars uint32, merges, forks int) {
	if r.err == nil && merges*(int(vars)+p.globals) > p.limits.Merges {
		r.fail("one of its functions has %d variables and %d blocks, which is more than the compiler should be given", vars,
			merges)
	}
	forks += merges
	if p.work += int64(forks) * int64(forks); p.work > p.limits.Work && r.err == nil {
		r.fail("its functions branch so much (one in %d places) that compiling it takes too long", forks)
	}
}

// maxLead bounds what a function may do before its first loop without being charged
// for it at its entry.
const maxLead = 8

// plain reports an instruction that neither branches nor calls.
func plain(i *instruction) bool {
	switch kinds[i.op] {
	case immLocal, immGlobal, immMemory, immI32, immI64, immF32, immF64:
		return true
	case immNone:
		return i.op >= 0x1a
	}
	return false
}

func (p *parser) label(r *reader, stack []control, label uint32) int {
	if int64(label) >= int64(len(stack)) {
		r.fail("a branch of it leaves more blocks than there are")
		return 0
	}
	return stack[len(stack)-1-int(label)].arity
}

// branchTable checks the targets and returns their weight.
func (p *parser) branchTable(r *reader, stack []control, i *instruction) int {
	weight := 1 + p.label(r, stack, i.b)
	t := &reader{b: r.b, pos: i.targets}
	for n := i.a; n > 0 && r.err == nil; n-- {
		weight += 1 + p.label(r, stack, t.u32())
	}
	return weight
}

// indices checks what an instruction that is no control instruction points at.
func (p *parser) indices(r *reader, b *body, i *instruction) {
	there := true
	switch kinds[i.op] {
	case immCall:
		if there = int64(i.a) < int64(len(p.funcs)); there && int64(i.a) >= int64(len(p.Imports)) {
			p.calls = append(p.calls, i.a-uint32(len(p.Imports)))
		}
	case immCallIndirect:
		there = int64(i.a) < int64(len(p.types)) && i.b == 0 && p.table
	case immLocal:
		there = i.a < b.vars
	case immGlobal:
		there = int64(i.a) < int64(p.globals)
	case immMemory:
		if i.a >= 0x40 {
			r.fail("it uses several memories or 64-bit addresses, which plugins may not")
		}
		there = p.memory && i.a <= 3
	case immZero:
		there = p.memory
	case immPrefix:
		switch i.a {
		case subMemoryInit:
			there = p.memory && p.hasDataCount && i.b < p.dataCount
		case subDataDrop:
			there = p.hasDataCount && i.b < p.dataCount
		case subMemoryCopy, subMemoryFill:
			there = p.memory
		case subTableInit:
			there = p.table && int64(i.b) < int64(p.elements)
		case subElemDrop:
			there = int64(i.b) < int64(p.elements)
		case subTableCopy:
			there = p.table
		}
		b.bulk = b.bulk || i.bulk()
	}
	if !there {
		r.fail("an instruction of it (%#x) points at something that is not there", i.op)
	}
}
