package sample

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// Feed feeds a plugin that asks for it: each statement in turn, without values.
type Feed struct {
	list []engine.Statement
	left int
}

// feedOps is more than any check takes.
const feedOps = 200_000

// NewFeed gives enough for any check.
func NewFeed(list []engine.Statement) *Feed {
	return &Feed{list: list, left: feedOps}
}

// Next implements plugin.Feed.
func (f *Feed) Next(b *plugin.Batch) error {
	if f.left <= 0 || len(f.list) == 0 {
		return plugin.ErrEnded
	}
	b.Reset()
	for range 64 {
		s := f.left % len(f.list)
		f.left--
		b.Ops = append(b.Ops, plugin.Op{Statement: plugin.StatementDelay, Delay: time.Millisecond},
			plugin.Op{Statement: uint16(s), FirstArg: uint32(len(b.Args)), NArgs: uint16(len(f.list[s].Binds))})
		b.Args = append(b.Args, make([]plugin.Value, len(f.list[s].Binds))...)
	}
	return nil
}

// Close implements plugin.Feed.
func (f *Feed) Close() error { return nil }
