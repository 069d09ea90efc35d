package simtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
)

// way is a link between an owner and a fragment. Words take a while, come in order, or are lost with the way.
type way struct {
	w *world
	// from and to are the processes at its ends, and about says what fragment it is.
	from, to, about string
	// l and n are those ends in a life of streams.
	l *carrier
	n *workerLife
	// cut: nothing arrives any more, and the ends find out by themselves. Unless something passes, it becomes cut; nil
	// stands for what passes always.
	cut    bool
	passes func() bool
	// delay is how long a word takes.
	delay         func() time.Duration
	owner, worker *wayEnd
}

type wayEnd struct {
	w      *way
	other  *wayEnd
	name   string
	in     chan protocol.FragmentMessage
	closed chan struct{}
	once   sync.Once
	last   time.Time // when the last word to this end arrives
}

func openWay(in *world, from, to, about string) *way {
	w := &way{w: in, from: from, to: to, about: about}
	w.delay = func() time.Duration { return in.between(100*time.Microsecond, 30*time.Millisecond) }
	end := func(name string) *wayEnd {
		return &wayEnd{w: w, name: name, in: make(chan protocol.FragmentMessage, 10_000), closed: make(chan struct{})}
	}
	w.owner, w.worker = end("owner"), end("worker")
	w.owner.other, w.worker.other = w.worker, w.owner
	return w
}

func (e *wayEnd) lose() { e.once.Do(func() { close(e.closed) }) }

// breaks: both ends hear of it.
func (w *way) breaks() { w.owner.lose(); w.worker.lose() }

// lost reports whether nothing arrives, which both ends notice after a while.
func (w *way) lost() bool {
	if !w.cut && w.passes != nil && !w.passes() {
		w.cut = true
		w.w.after(silence, w.breaks)
	}
	return w.cut
}

// silence is after how long an end gives up a way on which it hears nothing.
const silence = 12 * time.Second

// Send implements protocol.FragmentLink: it returns when the word has come.
func (e *wayEnd) Send(ctx context.Context, word protocol.FragmentMessage) error {
	if isClosed(e.closed) {
		return fragment.ErrLost
	}
	came := make(chan struct{})
	w := e.w.w
	w.hand(fmt.Sprintf("word %s %s %s %s %d", e.w.from, e.w.to, e.name, e.w.about, word.Kind), func() {
		at := time.Now().Add(e.w.delay())
		if at.Before(e.other.last) {
			at = e.other.last.Add(time.Microsecond)
		}
		e.other.last = at
		w.after(time.Until(at), func() {
			if e.w.lost() || isClosed(e.other.closed) {
				return
			}
			if word.Kind != fragment.Report && word.Kind != fragment.Frame {
				w.note("%s %s: %s %s says %d", e.w.from, e.w.to, e.name, e.w.about, word.Kind)
			}
			e.other.in <- word
			close(came)
		})
	})
	select {
	case <-came:
		return nil
	case <-e.closed:
		return fragment.ErrLost
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Receive implements protocol.FragmentLink.
func (e *wayEnd) Receive(ctx context.Context) (protocol.FragmentMessage, error) {
	select {
	case w := <-e.in:
		return w, nil
	default:
	}
	select {
	case w := <-e.in:
		return w, nil
	case <-e.closed:
		return protocol.FragmentMessage{}, fragment.ErrLost
	case <-ctx.Done():
		return protocol.FragmentMessage{}, ctx.Err()
	}
}

// Close implements protocol.FragmentLink. The other end hears of it a moment later, if it can.
func (e *wayEnd) Close() error {
	e.lose()
	w := e.w.w
	w.hand(fmt.Sprintf("close %s %s %s %s", e.w.from, e.w.to, e.name, e.w.about), func() {
		w.after(e.w.delay(), func() {
			if !e.w.lost() {
				e.other.lose()
			}
		})
	})
	return nil
}
