package wasm

// The instructions that are looked at by name.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opSelect       = 0x1b
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32Eqz       = 0x45
	opI32LtS       = 0x48
	opI32LtU       = 0x49
	opI32GtU       = 0x4b
	opI32LeU       = 0x4d
	opI64LtS       = 0x53
	opI64GtU       = 0x56
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32Or        = 0x72
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64Shl       = 0x86
	opI64ShrU      = 0x88
	opI64ExtendU   = 0xad
	opPrefix       = 0xfc
)

// blockNothing is the type of a block that takes and leaves nothing.
const blockNothing = 0x40

// The instructions behind opPrefix that plugins may use, besides 0 to 7 (conversions).
const (
	subMemoryInit = 8
	subDataDrop   = 9
	subMemoryCopy = 10
	subMemoryFill = 11
	subTableInit  = 12
	subElemDrop   = 13
	subTableCopy  = 14
)

// immediate is what follows an opcode.
type immediate uint8

const (
	immUnknown immediate = iota
	immNone
	immBlock
	immLabel
	immBrTable
	immCall
	immCallIndirect
	immLocal
	immGlobal
	immMemory // alignment and offset
	immZero   // the index of the only memory
	immI32
	immI64
	immF32
	immF64
	immPrefix
	immEnd // end and else
	// What plugins may not use is refused by name.
	immReference
	immSIMD
	immTailCall
	immException
	immThreads
	immGC
)

var refusedFeature = map[immediate]string{
	immReference: "reference types", immSIMD: "SIMD", immTailCall: "tail calls", immException: "exceptions",
	immThreads: "threads", immGC: "garbage-collected types",
}

// kinds and costs of the instructions, by opcode.
var kinds, costs = instructions()

// The cost of an instruction is about how many simple ones take its time. Those
// that become no machine code cost nothing.
const (
	costCall         = 4
	costCallIndirect = 6
	costCallHost     = 100
	costDivision     = 6
	costMemoryGrow   = 2000
	costBulk         = 20
)

func instructions() (kind [256]immediate, cost [256]uint16) {
	set := func(k immediate, c uint16, from, to int) {
		for op := from; op <= to; op++ {
			kind[op], cost[op] = k, c
		}
	}
	set(immNone, 0, 0x00, 0x01)        // unreachable, nop
	set(immBlock, 0, opBlock, opLoop)  // block, loop
	set(immBlock, 1, opIf, opIf)       //
	set(immEnd, 0, opElse, opElse)     //
	set(immException, 0, 0x06, 0x0a)   // try, catch, throw, rethrow, throw_ref
	set(immEnd, 0, opEnd, opEnd)       //
	set(immLabel, 1, opBr, opBrIf)     //
	set(immBrTable, 3, opBrTable, 0xe) //
	set(immNone, 1, opReturn, opReturn)
	set(immCall, costCall, opCall, opCall)
	set(immCallIndirect, costCallIndirect, opCallIndirect, opCallIndirect)
	set(immTailCall, 0, 0x12, 0x15)
	set(immException, 0, 0x18, 0x19) // delegate, catch_all
	set(immNone, 0, 0x1a, 0x1a)      // drop
	set(immNone, 1, 0x1b, 0x1b)      // select
	set(immReference, 0, 0x1c, 0x1c) // select with a type
	set(immException, 0, 0x1f, 0x1f) // try_table
	set(immLocal, 0, opLocalGet, 0x20)
	set(immLocal, 1, 0x21, opLocalTee)
	set(immGlobal, 1, opGlobalGet, opGlobalSet)
	set(immReference, 0, 0x25, 0x26) // table.get, table.set
	set(immMemory, 1, 0x28, 0x3e)    // loads and stores
	set(immZero, 1, 0x3f, 0x3f)      // memory.size
	set(immZero, costMemoryGrow, opMemoryGrow, opMemoryGrow)
	set(immI32, 0, opI32Const, opI32Const)
	set(immI64, 0, opI64Const, opI64Const)
	set(immF32, 0, opF32Const, opF32Const)
	set(immF64, 0, opF64Const, opF64Const)
	set(immNone, 1, opI32Eqz, 0xc4)        // comparing, calculating, converting, extending signs
	set(immNone, costDivision, 0x6d, 0x70) // i32 division and remainder
	set(immNone, costDivision, 0x7f, 0x82) // i64
	set(immNone, 4, 0x91, 0x91)            // f32.sqrt
	set(immNone, costDivision, 0x95, 0x95)
	set(immNone, 4, 0x9f, 0x9f) // f64.sqrt
	set(immNone, costDivision, 0xa3, 0xa3)
	set(immReference, 0, 0xd0, 0xd6) // ref.null and its family, br_on_null
	set(immGC, 0, 0xfb, 0xfb)
	set(immPrefix, costBulk, opPrefix, opPrefix)
	set(immSIMD, 0, 0xfd, 0xfd)
	set(immThreads, 0, 0xfe, 0xfe)
	return kind, cost
}

// conversions is how many instructions behind opPrefix are saturating conversions.
const conversions = 8

// costOf is the cost of an instruction as it stands in the code.
func (m *Module) costOf(i *instruction) int {
	switch i.op {
	case opPrefix:
		if i.a < conversions {
			return 2
		}
	case opCall:
		if i.a < uint32(len(m.Imports)) {
			return costCallHost
		}
	}
	return int(costs[i.op])
}
