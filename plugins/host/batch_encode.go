package host

import (
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// encodeBatch writes operations as a batch.
func encodeBatch(out *abi.Batch, b *plugin.Batch) error {
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
