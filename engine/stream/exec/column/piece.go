package column

// Piece is some of the rows of a batch, without a copy of their values. The zero value is ready.
type Piece struct {
	batch Batch
	ends  [][]int32
}

// Slice returns the rows of b from from to before to. They are valid until the next call, and as long as b is.
func (p *Piece) Slice(b *Batch, from, to int) *Batch {
	if len(p.batch.Cols) != len(b.Cols) {
		p.batch.Cols, p.ends = make([]Vec, len(b.Cols)), make([][]int32, len(b.Cols))
	}
	p.batch.N, p.batch.More = to-from, b.More || to < b.N
	for c := range b.Cols {
		v := &b.Cols[c]
		of := Vec{Type: v.Type, Same: v.Same, Null: v.Null[from:to]}
		switch v.Type.Kind {
		case Float:
			of.Floats = v.Floats[from:to]
		case Boolean, Unknown:
			of.Bools = v.Bools[from:to]
		case Text:
			if of.Bytes = v.Bytes; v.Same {
				break
			}
			begin := int32(0)
			if from > 0 {
				begin = v.Ends[from-1]
			}
			ends := p.ends[c][:0]
			for _, e := range v.Ends[from:to] {
				ends = append(ends, e-begin)
			}
			p.ends[c], of.Ends, of.Bytes = ends, ends, v.Bytes[begin:]
		default:
			of.Ints = v.Ints[from:to]
		}
		p.batch.Cols[c] = of
	}
	return &p.batch
}
