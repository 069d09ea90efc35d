package histogram

import (
	"encoding/binary"
	"math/bits"

	"github.com/loadstone-db/loadstone/engine"
)

// Pack returns d in a fraction of its memory, nil of nil. Of one with more buckets than there are it keeps one too
// many, so that it is refused as before.
func Pack(d *engine.HistogramData) *engine.PackedHistogram {
	if d == nil {
		return nil
	}
	counts := d.Counts[:min(len(d.Counts), numBuckets+1)]
	var all uint64
	for _, c := range counts {
		all |= uint64(c)
	}
	width := 1 // 2, 4, 8
	for width < 8 && bits.Len64(all) > 8*width {
		width *= 2
	}
	packed := make([]byte, width*len(counts))
	for i, c := range counts {
		c := uint64(c)
		switch at := packed[i*width:]; width {
		case 1:
			at[0] = byte(c)
		case 2:
			binary.LittleEndian.PutUint16(at, uint16(c))
		case 4:
			binary.LittleEndian.PutUint32(at, uint32(c))
		default:
			binary.LittleEndian.PutUint64(at, c)
		}
	}
	return &engine.PackedHistogram{Schema: d.Schema, Offset: d.Offset, Width: width, Counts: packed, Sum: d.Sum,
		Min: d.Min, Max: d.Max}
}

// Unpack returns what was packed, nil of nil.
func Unpack(p *engine.PackedHistogram) *engine.HistogramData { return new(Unpacker).Unpack(p) }

// Unpacker unpacks one after the other into the same memory. The zero value is ready; one goroutine at a time may use
// it.
type Unpacker struct{ data engine.HistogramData }

// Unpack returns what was packed, until the next call; nil of nil.
func (u *Unpacker) Unpack(p *engine.PackedHistogram) *engine.HistogramData {
	if p == nil {
		return nil
	}
	n := len(p.Counts) / max(p.Width, 1)
	counts := u.data.Counts
	if counts == nil || cap(counts) < n {
		counts = make([]int64, n)
	}
	counts = counts[:n]
	switch p.Width {
	case 1:
		for i, c := range p.Counts {
			counts[i] = int64(c)
		}
	case 2:
		for i := range counts {
			counts[i] = int64(binary.LittleEndian.Uint16(p.Counts[2*i:]))
		}
	case 4:
		for i := range counts {
			counts[i] = int64(binary.LittleEndian.Uint32(p.Counts[4*i:]))
		}
	default:
		for i := range counts {
			counts[i] = int64(binary.LittleEndian.Uint64(p.Counts[8*i:]))
		}
	}
	u.data = engine.HistogramData{Schema: p.Schema, Offset: p.Offset, Counts: counts, Sum: p.Sum, Min: p.Min, Max: p.Max}
	return &u.data
}
