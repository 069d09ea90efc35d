package load

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

const (
	// cancelGrace is how long cancelled operations get to end before their
	// connections are closed under them.
	cancelGrace = 2 * time.Second
	// closeGrace is how long they get to end after that, before they are abandoned.
	closeGrace = 3 * time.Second
)

// Drain stops the group and waits for the operations in flight. When ctx ends
// they are cancelled, and their connections closed if that does not help
// within two seconds; they are recorded as failed, class cancelled. Afterwards every record
// has reached the Sink. The error is the Sink's, or says that operations did not
// end even then: they are abandoned after three seconds more, without a record.
// Being cut off is no error. Drain returns within five seconds of the end of ctx,
// and of what the Sink takes.
func (g *Group) Drain(ctx context.Context) error {
	g.Stop()
	select {
	case <-g.done:
	case <-ctx.Done():
		g.cutOff()
	}
	if !g.abandoned.Load() {
		g.within(closeGrace, g.ramps.Wait)
	}
	err := g.coll.Finish()
	if err == nil && g.abandoned.Load() {
		err = g.abandonment()
	}
	return err
}

// within waits for f, which something outside can hold up, and abandons it after
// the limit. It reports whether f has returned.
func (g *Group) within(limit time.Duration, f func()) bool {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		f()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-returned:
		return true
	case <-timer.C:
		g.abandoned.Store(true)
		g.cfg.Log.Error().Err(g.abandonment()).Msg("a load group is abandoned")
		return false
	}
}

func (g *Group) abandonment() error {
	n := len(g.currentSlots())
	return &engine.Error{Code: engine.CodeTarget,
		Message: engine.Count(n, "connection") + " did not come back from the target, although their operations were " +
			"cancelled and they were closed.",
		Hint: "the driver waits for something that does not answer; the operations in flight have no record"}
}

// cutOff ends the operations in flight, gently, then not, and then leaves them.
func (g *Group) cutOff() {
	if g.abandoned.Load() {
		return
	}
	g.cut.Store(true)
	g.DropQueued()
	ctx, cancel := context.WithTimeout(g.ctx, cancelGrace)
	defer cancel()
	for _, s := range g.currentSlots() {
		if conn := s.connection(); conn != nil {
			go func() { _ = conn.Cancel(ctx) }() // the grace bounds it; closing is next
		}
	}
	select {
	case <-g.done:
		return
	case <-ctx.Done():
	}
	g.abandon()
	for _, s := range g.currentSlots() {
		if conn := s.connection(); conn != nil {
			go func() { _ = conn.Close() }() // only to end Exec; the slot closes it again
		}
	}
	g.within(closeGrace, func() { <-g.done })
}

// Close ends the group at once: operations in flight are cut off and recorded.
// After Drain it only releases what is left. Calling it again is harmless.
func (g *Group) Close() error {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	err := g.Drain(over)
	g.abandon()
	return err
}
