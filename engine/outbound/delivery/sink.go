package delivery

import (
	"context"
	"time"

	"github.com/rs/zerolog"
)

// SampleLimits are those of samples of live runs: about seven minutes of a run with 64 run workers.
var SampleLimits = Limits{MaxItems: 500_000, MaxBytes: 64 << 20, BatchSize: 2000, MinBackoff: 500 * time.Millisecond,
	MaxBackoff: 30 * time.Second}

// Sink is a queue whose things are sent with a client.
type Sink[T Item] struct {
	*Queue[T]
	Client *Client
}

// OpenSink begins to deliver with a client, which is the outlet's from then on.
func OpenSink[T Item](c *Client, l Limits, send Send[T], log zerolog.Logger) Sink[T] {
	return Sink[T]{Queue: Open(c.To(), l, send, log), Client: c}
}

// Take adds things, and does not wait.
func (o Sink[T]) Take(things []T) { o.Enqueue(things...) }

// Close sends what waits, for as long as ctx allows.
func (o Sink[T]) Close(ctx context.Context) {
	o.Queue.Close(ctx)
	o.Client.Close()
}

// To is the address without secrets.
func (o Sink[T]) To() string { return o.Client.To() }

// NamedSink is an outlet as it is shown.
type NamedSink struct {
	// Name is that of metrics; To is where it is, without secrets.
	Name, To string
	Counts   func() Counts
}
