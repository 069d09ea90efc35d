package record

import (
	"context"
	"io"
	"os"
)

// Source is where the bytes of an artifact come from: a node, or a file. Who stores
// them reads, and changes nothing of it; what becomes of it then is its owner's matter.
type Source interface {
	// Open begins to read from the first byte. The reader is the caller's; a file of
	// this machine is an *os.File. Reading ends with ctx, or when nothing comes for long.
	Open(ctx context.Context) (io.ReadCloser, error)
}

// LocalFile is a source on this machine, by its path.
type LocalFile string

// Open implements Source.
func (f LocalFile) Open(ctx context.Context) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return os.Open(string(f))
}
