package wasm

const (
	// bytesShift: a bulk-memory instruction moves 8 bytes in the time of a unit.
	bytesShift = 3
	// chunk is how many bytes are moved or filled before the host is called: a few
	// tens of microseconds where every page is fresh.
	chunk = 64 << 10
)

// bulk charges by the length that lies on the stack, and has what is longer than a
// chunk done piece by piece.
func (k *meterWalk) bulk(i *instruction) {
	k.copyUpTo(i.at)
	length := appendU32([]byte{opLocalGet}, k.body.vars)
	k.out = appendU32(append(k.out, opLocalTee), k.body.vars)
	k.out = append(k.out, k.charge...)
	k.out = append(append(k.out, length...), opI64ExtendU)
	if i.a != subTableInit && i.a != subTableCopy {
		k.out = append(k.out, opI64Const, bytesShift, opI64ShrU)
	}
	k.out = append(k.out, k.pay...)
	k.emitFuelCheck(i.at)
	own := k.copy
	switch i.a {
	case subMemoryFill:
		own = k.fill
	case subMemoryCopy:
	default:
		return
	}
	k.out = appendS64(append(append(k.out, length...), opI32Const), chunk)
	k.out = appendS64(append(k.out, opI32GtU, opIf), int64(k.three))
	k.out = appendU32(append(k.out, opCall), own)
	k.out = append(append(k.out, opElse), k.body.code[i.at:i.end]...)
	k.out = append(k.out, opEnd)
	k.copied = i.end
}

// bulkHelpers are the functions that move and fill memory piece by piece, (to, from or
// value, length) → (). Their caller has charged for the whole length.
func (w *meter) bulkHelpers() [][]byte {
	if !w.m.memory || len(w.m.bodies) == 0 {
		return nil
	}
	const to, from, length, piece = 0, 1, 2, 3
	get := func(l byte) []byte { return []byte{opLocalGet, l} }
	// outside leaves whether what begins at a local reaches past the memory.
	outside := func(l byte) []byte {
		return concat(get(l), []byte{opI64ExtendU}, get(length), []byte{opI64ExtendU, opI64Add, opMemorySize, 0, opI64ExtendU,
			opI64Const, 16, opI64Shl, opI64GtU})
	}
	do := func(sub byte, args ...[]byte) []byte {
		out := append(concat(args...), opPrefix, sub, 0)
		if sub == subMemoryCopy {
			out = append(out, 0)
		}
		return out
	}
	next := func(l byte) []byte { return concat(get(l), get(piece), []byte{opI32Add, opLocalSet, l}) }
	// pieces calls the host and does one piece, until nothing is left.
	pieces := func(step ...[]byte) []byte {
		limit := appendS64([]byte{opI32Const}, chunk)
		return concat([]byte{opLoop, blockNothing, opCall}, appendU32(nil, w.slice),
			get(length), limit, get(length), limit, []byte{opI32LtU, opSelect, opLocalSet, piece},
			get(length), get(piece), []byte{opI32Sub, opLocalSet, length},
			concat(step...), get(length), []byte{opBrIf, 0, opEnd})
	}
	// What does not fit traps before a byte is written, as the instruction itself does.
	whole := func(sub byte, condition ...[]byte) []byte {
		return concat(concat(condition...), []byte{opIf, blockNothing}, do(sub, get(to), get(from), get(length)),
			[]byte{opReturn, opEnd})
	}
	locals := []byte{1, 1, 0x7f}
	fill := concat(locals, whole(subMemoryFill, outside(to)),
		pieces(do(subMemoryFill, get(to), get(from), get(piece)), next(to)), []byte{opEnd})
	// Where the two overlap, the piece that is read last must be written last.
	behind := []byte{opI32Add}
	copies := concat(locals, whole(subMemoryCopy, outside(to), outside(from), []byte{opI32Or}),
		get(to), get(from), []byte{opI32LeU, opIf, blockNothing},
		pieces(do(subMemoryCopy, get(to), get(from), get(piece)), next(to), next(from)), []byte{opElse},
		pieces(do(subMemoryCopy, get(to), get(length), behind, get(from), get(length), behind, get(piece))),
		[]byte{opEnd, opEnd})
	return [][]byte{copies, fill}
}
