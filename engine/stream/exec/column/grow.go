package column

// growStep is how many values are moved in one piece.
const growStep = 1 << 14

// GrowSlice is s with room for so many more values. They are moved in pieces: while one copy of many megabytes goes on
// the collector can not stop the world, all that run meanwhile wait for it, and a run beside it is no longer VALID.
func GrowSlice[T any](s []T, more int) []T {
	need := len(s) + more
	if need <= cap(s) {
		return s
	}
	if need <= growStep {
		to := make([]T, len(s), max(need, 2*cap(s), 8))
		copy(to, s)
		return to
	}
	to := make([]T, len(s), max(need, cap(s)+cap(s)/2))
	for from := 0; from < len(s); from += growStep {
		copy(to[from:], s[from:min(from+growStep, len(s))])
	}
	return to
}

// Reserve makes room for so many more values, which have so many bytes of text together.
func (v *Vec) Reserve(more, bytes int) {
	v.Null = GrowSlice(v.Null, more)
	switch v.Type.Kind {
	case Float:
		v.Floats = GrowSlice(v.Floats, more)
	case Boolean:
		v.Bools = GrowSlice(v.Bools, more)
	case Text:
		v.Bytes, v.Ends = GrowSlice(v.Bytes, bytes), GrowSlice(v.Ends, more)
	case Unknown:
	default:
		v.Ints = GrowSlice(v.Ints, more)
	}
}
