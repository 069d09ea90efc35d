package series

import (
	"encoding/binary"
	"math"
	"slices"
)

// perBlock is how many numbers share a base and a width.
const (
	perBlock   = 1 << blockShift
	blockShift = 7
)

// numbers are float64s, in as few bytes as those around them need: most series count, and hardly move within two
// minutes. Each comes out as it went in, to the bit.
type numbers struct {
	n      int
	blocks []block
	packed []byte
}

// block is a stretch of perBlock numbers, the last one of what is left. A number is base and an unsigned integer of
// width bytes, least significant first; with the width 8 it is the bits of the number, without the base.
type block struct {
	base  float64
	at    uint32 // in packed
	width uint8
}

// pack returns the values as numbers; it does not keep them.
func pack(values []float64) numbers {
	p := numbers{n: len(values), blocks: make([]block, 0, (len(values)+perBlock-1)/perBlock)}
	bytes := 0
	for part := range slices.Chunk(values, perBlock) {
		b := block{at: uint32(bytes)}
		b.base, b.width = narrowest(part)
		p.blocks, bytes = append(p.blocks, b), bytes+len(part)*int(b.width)
	}
	p.packed = make([]byte, bytes)
	for i := range p.blocks {
		b, part := &p.blocks[i], values[i*perBlock:min((i+1)*perBlock, len(values))]
		to := p.packed[b.at:]
		switch b.width {
		case 1:
			for k, v := range part {
				to[k] = byte(v - b.base)
			}
		case 2:
			for k, v := range part {
				binary.LittleEndian.PutUint16(to[2*k:], uint16(v-b.base))
			}
		case 4:
			for k, v := range part {
				binary.LittleEndian.PutUint32(to[4*k:], uint32(v-b.base))
			}
		case 8:
			for k, v := range part {
				binary.LittleEndian.PutUint64(to[8*k:], math.Float64bits(v))
			}
		}
	}
	return p
}

// narrowest is from which base the values are how many bytes away.
func narrowest(values []float64) (base float64, width uint8) {
	base = values[0]
	same, most := true, base
	for _, v := range values {
		same = same && math.Float64bits(v) == math.Float64bits(values[0])
		base, most = min(base, v), max(most, v)
	}
	switch span := most - base; {
	case same:
		return values[0], 0
	case span <= math.MaxUint8:
		width = 1
	case span <= math.MaxUint16:
		width = 2
	case span <= math.MaxUint32:
		width = 4
	default: // also where one is not a number
		return 0, 8
	}
	for _, v := range values {
		// Fractions, -0, and what is too large for its distance to be exact.
		if math.Float64bits(base+float64(uint32(v-base))) != math.Float64bits(v) {
			return 0, 8
		}
	}
	return base, width
}

// at is the number i, from 0.
func (p *numbers) at(i int) float64 {
	b := &p.blocks[i>>blockShift]
	at, k := p.packed[b.at:], i%perBlock
	switch b.width {
	case 0:
		return b.base
	case 1:
		return b.base + float64(at[k])
	case 2:
		return b.base + float64(binary.LittleEndian.Uint16(at[2*k:]))
	case 4:
		return b.base + float64(binary.LittleEndian.Uint32(at[4*k:]))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(at[8*k:]))
}

// bytes is how much memory they take.
func (p *numbers) bytes() int64 { return int64(16*len(p.blocks) + len(p.packed)) }

// points are the samples of a series while they are gathered, times in milliseconds.
type points struct {
	times  []int64
	values []float64
}

func (p *points) add(at int64, v float64) {
	p.times, p.values = append(p.times, at), append(p.values, v)
}

// last is when the last one is; false where there is none.
func (p *points) last() (at int64, ok bool) {
	if len(p.times) == 0 {
		return 0, false
	}
	return p.times[len(p.times)-1], true
}

// moveTo gives them to a series.
func (p *points) moveTo(o *seriesData) {
	n := len(p.times)
	o.floats = pack(p.values)
	if n > 0 && p.times[n-1]-p.times[0] == int64(n-1)*1000 { // a second apart, none is missing
		o.start = p.times[0]
		return
	}
	times := make([]float64, n)
	for i, at := range p.times {
		times[i] = float64(at)
	}
	packed := pack(times)
	o.times = &packed
}
