package control_test

import (
	"context"
	"testing"

	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/control/controltest"
)

// dialled remembers the stream that was opened last, to break it.
type dialled struct {
	control.Dialer
	last control.ServerEnd
}

func (d *dialled) Dial(ctx context.Context) (control.ServerEnd, error) {
	end, err := d.Dialer.Dial(ctx)
	d.last = end
	return end, err
}

func TestMemoryConforms(t *testing.T) {
	controltest.Run(t, func(*testing.T) controltest.Link {
		m := control.NewMemory()
		d := &dialled{Dialer: m}
		return controltest.Link{Dialer: d, Listener: m, Break: func() { _ = d.last.Close() }}
	})
}
