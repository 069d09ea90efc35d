package delivery

import (
	"context"
	"time"

	"github.com/rs/zerolog"
)

// SampleLimits are those of samples of live runs: about seven minutes of a run with 64 run workers.
var SampleLimits = Limits{Most: 500_000, Bytes: 64 << 20, AtOnce: 2000, First: 500 * time.Millisecond,
	Longest: 30 * time.Second}

// Outlet is a queue whose things are sent with a client.
type Outlet[T Thing] struct {
	*Queue[T]
	Client *Client
}

// OpenOutlet begins to deliver with a client, which is the outlet's from then on.
func OpenOutlet[T Thing](c *Client, l Limits, send Send[T], log zerolog.Logger) Outlet[T] {
	return Outlet[T]{Queue: Open(c.To(), l, send, log), Client: c}
}

// Take adds things, and does not wait.
func (o Outlet[T]) Take(things []T) { o.Put(things...) }

// Close sends what waits, for as long as ctx allows.
func (o Outlet[T]) Close(ctx context.Context) {
	o.Queue.Close(ctx)
	o.Client.Close()
}

// To is the address without secrets.
func (o Outlet[T]) To() string { return o.Client.To() }

// Named is an outlet as it is shown.
type Named struct {
	// Name is that of metrics; To is where it is, without secrets.
	Name, To string
	Counts   func() Counts
}
