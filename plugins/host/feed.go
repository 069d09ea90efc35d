package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// maxFeeds is how often a guest may ask to be fed before it has to give operations.
const maxFeeds = 64

// food is a feed on its way to a guest: the operations and their batch.
type food struct {
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
	case fed >= maxFeeds || s.food.ended:
		return fail(plugin.ErrFailed, "Plugin %s asks to be fed again and again, and gives no operations.", i.module.name)
	}
	f := &s.food
	f.from.Reset()
	var data []byte
	fuel := fuelFor(0)
	switch err := s.feed.Next(&f.from); {
	case errors.Is(err, plugin.ErrEnded):
		f.ended = true
	case err != nil:
		return err
	default:
		if err := encode(&f.batch, &f.from); err != nil {
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

// encode writes operations as a batch.
func encode(out *abi.Batch, b *plugin.Batch) error {
	out.Reset()
	for _, op := range b.Ops {
		if op.Statement == plugin.StatementDelay {
			out.Delay(op.Delay.Microseconds())
			continue
		}
		out.Op(op.Statement)
		for _, v := range b.Args[op.FirstArg : op.FirstArg+uint32(op.NArgs)] {
			switch v.Type {
			case "":
				out.Null()
			case engine.TypeI64:
				out.I64(v.I)
			case engine.TypeF64:
				out.F64(v.F)
			case engine.TypeText:
				out.TextBytes(b.Bytes(v))
			case engine.TypeBytes:
				out.Blob(b.Bytes(v))
			case engine.TypeBool:
				out.Bool(v.I == 1)
			case engine.TypeTimestamp:
				out.Timestamp(v.I)
			case plugin.TypeRef:
				out.Ref(uint8(v.I>>8), uint8(v.I))
			default:
				return fmt.Errorf("the feed holds a value of the unknown type %q", v.Type)
			}
		}
	}
	if out.Len() == 0 || out.Size() > abi.MaxDocument {
		return fmt.Errorf("the feed gave %d operations of %d bytes at once; 1 or more and at most %d bytes are possible",
			out.Len(), out.Size(), abi.MaxDocument)
	}
	return nil
}
