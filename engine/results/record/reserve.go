package record

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// The default reserve: a share of the disk, within bounds.
const (
	minReserve = 500 << 20
	maxReserve = 5 << 30
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
		return minReserve
	}
	return max(min(size/20, maxReserve), minReserve)
}

// spaceCheckInterval is how often a writer looks at the free space.
const spaceCheckInterval = time.Second

// CheckDiskSpace is nil while the file system of dir has more free space than the reserve, in
// bytes as Reserve gives them, or it is unknown. stopped is what ends otherwise, as a sentence begins.
func CheckDiskSpace(dir string, reserve int64, stopped string) error {
	if reserve <= 0 {
		return nil
	}
	free, _, ok := Space(dir)
	if !ok || free >= reserve {
		return nil
	}
	return &engine.Error{Code: engine.CodeUnavailable,
		Message: fmt.Sprintf("%s: the disk of %s has %d MB left, and %d MB are kept free for the control store.", stopped,
			dir, free>>20, reserve>>20),
		Hint: "Delete old runs, or put the data directory on a larger disk. --disk-reserve changes what is kept free."}
}

// checkDiskSpace is Room, once a second.
func (w *Writer) checkDiskSpace(now time.Time) error {
	if !w.spaceCheckedAt.IsZero() && now.Sub(w.spaceCheckedAt) < spaceCheckInterval {
		return nil
	}
	w.spaceCheckedAt = now
	return CheckDiskSpace(w.opts.Dir, w.opts.Reserve, "Recording has stopped")
}
