package record

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// The default reserve: a share of the disk, within bounds.
const (
	leastReserve = 500 << 20
	mostReserve  = 5 << 30
)

// Reserve is the space that recording leaves free on the file system of dir, so
// that a control store beside it can still write: bytes, or for 0 the smaller of 5 %
// of it and 5 GB, at least 500 MB. Less than 0 is none.
func Reserve(dir string, bytes int64) int64 {
	if bytes != 0 {
		return max(bytes, 0)
	}
	_, size, ok := Space(dir)
	if !ok {
		return leastReserve
	}
	return max(min(size/20, mostReserve), leastReserve)
}

// spaceEvery is how often a writer looks at the free space.
const spaceEvery = time.Second

// space is replaced in tests, which fill no disk.
var space = Space

// Room is nil while the file system of dir has more free space than the reserve, in
// bytes as Reserve gives them, or it is unknown. stopped is what ends otherwise, as a sentence begins.
func Room(dir string, reserve int64, stopped string) error {
	if reserve <= 0 {
		return nil
	}
	free, _, ok := space(dir)
	if !ok || free >= reserve {
		return nil
	}
	return &engine.Error{Code: engine.CodeUnavailable,
		Message: fmt.Sprintf("%s: the disk of %s has %d MB left, and %d MB are kept free for the control store.", stopped,
			dir, free>>20, reserve>>20),
		Hint: "Delete old runs, or put the data directory on a larger disk. --disk-reserve changes what is kept free."}
}

// roomLeft is Room, once a second.
func (w *Writer) roomLeft(now time.Time) error {
	if !w.looked.IsZero() && now.Sub(w.looked) < spaceEvery {
		return nil
	}
	w.looked = now
	return Room(w.opts.Dir, w.opts.Reserve, "Recording has stopped")
}
