package histogram

import (
	"encoding/binary"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
)

// Pack returns d in a fraction of its memory, nil of nil. Of one with more buckets than there are it keeps one too
// many, so that it is refused as before.
func Pack(d *engine.HistogramData) *engine.PackedHistogram {
	if d == nil {
		return nil
	}
	var room [512]byte
	packed, empty := room[:0], 0
	for _, c := range d.Counts[:min(len(d.Counts), numBuckets+1)] {
		if c == 0 {
			empty++
			continue
		}
		packed = appendEmpty(packed, empty)
		packed, empty = binary.AppendUvarint(packed, uint64(c)), 0 //nolint:gosec // a negative one comes back as it was
	}
	return &engine.PackedHistogram{Schema: d.Schema, Offset: d.Offset, Sum: d.Sum, Min: d.Min, Max: d.Max,
		Counts: slices.Clone(appendEmpty(packed, empty))}
}

func appendEmpty(packed []byte, n int) []byte {
	if n == 0 {
		return packed
	}
	return binary.AppendUvarint(append(packed, 0), uint64(n)) //nolint:gosec // n is positive
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
	counts := u.data.Counts[:0]
	if counts == nil {
		counts = make([]int64, 0, 4*len(p.Counts))
	}
	for at := 0; at < len(p.Counts); {
		c, n := binary.Uvarint(p.Counts[at:])
		if at += max(n, 1); c != 0 {
			counts = append(counts, int64(c)) //nolint:gosec // as it was
			continue
		}
		empty, n := binary.Uvarint(p.Counts[at:])
		at += max(n, 1)
		from := len(counts)
		counts = slices.Grow(counts, int(min(empty, numBuckets+1))) //nolint:gosec // bounded
		counts = counts[:from+int(min(empty, numBuckets+1))]        //nolint:gosec // bounded
		clear(counts[from:])
	}
	u.data = engine.HistogramData{Schema: p.Schema, Offset: p.Offset, Counts: counts, Sum: p.Sum, Min: p.Min, Max: p.Max}
	return &u.data
}
