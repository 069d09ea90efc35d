package record

import "github.com/loadstone-db/loadstone/engine"

// Quota bounds what the writers of a node put on its disk. Its methods are safe for
// concurrent use.
type Quota interface {
	// Grow asks for bytes of the part with that name before they are written. An error
	// ends the record: what has been written is kept, for which room was asked before.
	Grow(name string, bytes int64) error
	// Finished takes in that a part is whole and durable.
	Finished(a engine.Artifact)
	// Abandoned takes in that a part is not on the disk any more.
	Abandoned(name string)
}

// The room that is asked for a part's end before its rows are written: a footer, and
// what it says of each row group.
const (
	footerReserve = 64 << 10
	groupReserve  = 16 << 10
)

// quotaError is what Grow has answered.
type quotaError struct{ error }

func (e *quotaError) Unwrap() error { return e.error }

// reserveQuota asks the quota for so many bytes and for the end of the part.
func (p *part) reserveQuota(bytes int) error {
	q := p.opts.Quota
	if q == nil {
		return nil
	}
	need := p.size + int64(bytes) + footerReserve + groupReserve*int64(len(p.groups)+1) - p.reserved
	if need <= 0 {
		return nil
	}
	if err := q.Grow(p.name(), need); err != nil {
		return &quotaError{err}
	}
	p.reserved += need
	return nil
}
