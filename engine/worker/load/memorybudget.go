package load

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// MaxKeptBytes bounds the bytes of all operations that one run worker keeps: those that
// are due, that connections execute, and that were made ahead. A batch may have
// 8 MB, whatever it holds, and a late operation keeps its whole batch.
const MaxKeptBytes = 256 << 20

// memoryBudget counts the bytes of the batches of one source.
type memoryBudget struct {
	// owner makes the operations. most is maxKept, but in tests.
	owner engine.PluginRef
	max   int64
	bytes atomic.Int64
}

// share is what one batch adds to the bytes that are kept.
type share struct {
	of    *memoryBudget
	bytes atomic.Int64
}

// account counts a batch as it is now. When it is let go, the collector takes it off.
func (k *memoryBudget) account(p *OpBatch) {
	if p.share == nil {
		p.share = &share{of: k}
		runtime.AddCleanup(p, func(s *share) { s.of.bytes.Add(-s.bytes.Load()) }, p.share)
	}
	b := &p.Batch
	now := int64(cap(b.Data)) + int64(cap(b.Ops))*int64(unsafe.Sizeof(plugin.Op{})) + int64(cap(b.Args))*int64(
		unsafe.Sizeof(plugin.Value{}))
	k.bytes.Add(now - p.share.bytes.Swap(now))
}

// exceeded is the error when more is kept than may be. Batches that nobody uses
// any more count until they are collected, so that is done first.
func (k *memoryBudget) exceeded() error {
	if k.bytes.Load() <= k.max {
		return nil
	}
	runtime.GC()
	runtime.Gosched() // the cleanups run in a goroutine of their own
	if have := k.bytes.Load(); have > k.max {
		return fmt.Errorf("%w: the operations of %s %s that are due, under way and made ahead keep %d MB, "+
			"the quota of a plugin on a run worker is %d MB",
			plugin.ErrFailed, k.owner.Name, k.owner.Version, have>>20, k.max>>20)
	}
	return nil
}

// Trim gives back what a batch needed once and seldom needs.
func (p *OpBatch) Trim() {
	const seldom = 1 << 20
	if b := &p.Batch; cap(b.Data) > seldom && len(b.Data) < cap(b.Data)/4 {
		b.Ops, b.Args, b.Data = nil, nil, nil
	}
}
