package host

import (
	"context"
	"errors"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// maxFeeds is how often a guest may ask to be fed before it has to give operations.
const maxFeeds = 64

// feedBatch is a feed on its way to a guest: the operations and their batch.
type feedBatch struct {
	from  plugin.Batch
	batch abi.Batch
	ended bool
}

// feedOnce gives the guest the next operations of the feed, or tells it that
// there are no more. fed is how often that has happened since it gave operations.
func (s *stream) feedOnce(fed int) error {
	i := s.instance
	switch {
	case s.feed == nil:
		return fail(plugin.ErrFailed, "Plugin %s issues operations of a feed, and there is none: set workload.feed.",
			i.module.name)
	case !i.module.shape.has(abi.ExportFeed):
		return fail(plugin.ErrFailed, "Plugin %s asks to be fed, but it does not export %s.", i.module.name, abi.ExportFeed)
	case fed >= maxFeeds || s.feedBatch.ended:
		return fail(plugin.ErrFailed, "Plugin %s asks to be fed again and again, and gives no operations.", i.module.name)
	}
	f := &s.feedBatch
	f.from.Reset()
	var data []byte
	fuel := fuelFor(0)
	switch err := s.feed.Next(&f.from); {
	case errors.Is(err, plugin.ErrEnded):
		f.ended = true
	case err != nil:
		return err
	default:
		if err := encodeBatch(&f.batch, &f.from); err != nil {
			return err
		}
		data = f.batch.Bytes()
		fuel = fuelFor(min(len(f.from.Ops), abi.MaxBatchOps))
	}
	var ptr uint64
	var err error
	if len(data) > 0 {
		// A running stream has no context; fuel bounds the guest.
		if ptr, err = i.send(context.Background(), data, fuel); err != nil {
			return err
		}
	}
	v, err := i.call(i.guest.ExportedFunction(abi.ExportFeed), abi.ExportFeed, fuel, ptr, uint64(len(data)))
	if err == nil && int32(uint32(v)) != 0 {
		err = i.reported(abi.ExportFeed)
	}
	return err
}
