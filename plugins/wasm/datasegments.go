package wasm

import "sort"

// mergeGapBytes is how many zeros between two data segments are written out to make one of them. A
// segment takes about ten bytes itself, and costs more than these: it is decoded, checked,
// and copied on its own each time an instance begins.
const mergeGapBytes = 64

// segment is content that the memory begins with.
type segment struct {
	at      uint32
	content []byte
}

func (s segment) end() uint64 { return uint64(s.at) + uint64(len(s.content)) }

// data writes the segments of the memory's first content, those that lie close together
// as one. Go's linker leaves out each run of ten zeros, which makes 31 000 segments of a
// guest, where these are 300. The memory is the same afterwards: it holds zeros wherever
// no segment lies.
func (w *meter) data(body []byte) {
	list, ok := w.constantSegments(body)
	if !ok {
		w.section(11, body)
		return
	}
	count, out := uint32(0), make([]byte, 0, len(body)+len(body)/8)
	var content []byte
	for len(list) > 0 {
		first, n := list[0], 1
		content = append(content[:0], first.content...)
		for n < len(list) && uint64(list[n].at)-list[n-1].end() <= mergeGapBytes {
			content = append(content, zeros[:uint64(list[n].at)-list[n-1].end()]...)
			content = append(content, list[n].content...)
			n++
		}
		out = append(appendS64(append(out, 0, opI32Const), int64(int32(first.at))), opEnd)
		out = append(appendU32(out, uint32(len(content))), content...)
		list = list[n:]
		count++
	}
	w.section(11, concat(appendU32(nil, count), out))
}

var zeros [mergeGapBytes]byte

// constantSegments reads data segments, in the order of their places. It says false where they
// must stay as they are: where instructions name them by their numbers, where one lies
// over another, and where the compiler will refuse them.
func (w *meter) constantSegments(body []byte) ([]segment, bool) {
	if w.m.hasDataCount {
		return nil, false
	}
	r := &reader{b: body}
	list := make([]segment, r.u32())
	for i := range list {
		if r.u32() != 0 || r.byte() != opI32Const {
			return nil, false
		}
		list[i].at = r.signed32()
		r.byte() // the end of the constant
		list[i].content = r.bytes(r.u32())
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].at < list[j].at })
	for i := range list[min(1, len(list)):] {
		if uint64(list[i+1].at) < list[i].end() {
			return nil, false
		}
	}
	return list, true
}
