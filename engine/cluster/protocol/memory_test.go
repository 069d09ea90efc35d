package protocol_test

import (
	"context"
	"testing"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/protocoltest"
)

// dialled remembers the stream that was opened last, to break it.
type dialled struct {
	protocol.Dialer
	last protocol.ServerEnd
}

func (d *dialled) Dial(ctx context.Context) (protocol.ServerEnd, error) {
	end, err := d.Dialer.Dial(ctx)
	d.last = end
	return end, err
}

func TestMemoryConforms(t *testing.T) {
	protocoltest.Run(t, func(*testing.T) protocoltest.Link {
		m := protocol.NewMemory()
		d := &dialled{Dialer: m}
		return protocoltest.Link{Dialer: d, Listener: m, Break: func() { _ = d.last.Close() }}
	})
}
