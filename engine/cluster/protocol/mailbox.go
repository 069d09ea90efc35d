package protocol

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// Policy is what becomes of a message while its reader is slow or away.
type Policy uint8

const (
	// MustArrive keeps the message until it is read. There are as many of them as
	// decisions and results, which their number bounds.
	MustArrive Policy = iota
	// Latest lets a newer message of the same subject take the place of one that waits:
	// both say how things stand, and the older one is wrong by now.
	Latest
	// MayDrop drops the oldest of its kind beyond MaxWaiting, and counts it.
	MayDrop
)

// MaxWaiting is how many messages of one kind that may be dropped wait in a mailbox.
const MaxWaiting = 4096

// Subject is what a message is about: messages of one subject replace each other, or
// are bounded together.
type Subject struct {
	Kind, RunID, WorkerID string
}

// PolicyToNode says what becomes of a message to a node.
func PolicyToNode(m ToNode) (Policy, Subject) {
	switch m := m.(type) {
	case RunState:
		return Latest, Subject{Kind: "RunState", RunID: m.RunID}
	case Ping:
		return Latest, Subject{Kind: "Ping"}
	case StatusAck:
		return Latest, Subject{Kind: "StatusAck"}
	}
	// AssignRun, RunEvent, ArtifactAck, Drain, AssignWork, CancelWork
	return MustArrive, Subject{}
}

// PolicyFromNode says what becomes of a message from a node.
func PolicyFromNode(m FromNode) (Policy, Subject) {
	switch m := m.(type) {
	case Status:
		return Latest, Subject{Kind: "Status"}
	case Pong:
		return Latest, Subject{Kind: "Pong"}
	case Hello:
		return Latest, Subject{Kind: "Hello"}
	case WorkerState:
		if m.Status.Ended() {
			return MustArrive, Subject{}
		}
		// A heartbeat replaces the one before; what the worker passes through is told step by step.
		return Latest, Subject{Kind: "WorkerState " + string(m.Status), RunID: m.RunID, WorkerID: m.WorkerID}
	case Snapshot:
		if m.StepOver {
			return MustArrive, Subject{} // the step of a search ends with it
		}
		return MayDrop, Subject{Kind: "Snapshot"}
	case Log:
		return MayDrop, Subject{Kind: "Log"}
	}
	// RunAccepted, RunRejected, WorkReady, and what is about queries
	return MustArrive, Subject{}
}

// Mailbox holds what waits for one reader, in order. It is the one queue of a
// direction, in front of the stream, and of the loop of a run or of a run worker:
// who puts a message in never waits, so that one slow reader delays nobody else.
// Its methods are safe for concurrent use.
type Mailbox[M any] struct {
	policy  func(M) (Policy, Subject)
	dropped func(M)
	ready   chan struct{}

	mu sync.Mutex
	// items holds letters; waiting finds that of a subject whose latest counts.
	items   list.List
	waiting map[Subject]*list.Element
	// kinds counts those that may be dropped.
	kinds map[Subject]int
}

type entry[M any] struct {
	m       M
	policy  Policy
	subject Subject
}

// NewMailbox returns an empty mailbox. dropped, which may be nil, is called for each
// message that MaxWaiting drops, and must not use the mailbox.
func NewMailbox[M any](policy func(M) (Policy, Subject), dropped func(M)) *Mailbox[M] {
	return &Mailbox[M]{policy: policy, dropped: dropped, ready: make(chan struct{}, 1),
		waiting: map[Subject]*list.Element{}, kinds: map[Subject]int{}}
}

// Put adds a message behind all others; it never waits.
func (b *Mailbox[M]) Put(m M) {
	policy, subject := b.policy(m)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch policy {
	case Latest:
		if old := b.waiting[subject]; old != nil {
			b.items.Remove(old)
		}
		b.waiting[subject] = b.items.PushBack(entry[M]{m, policy, subject})
	case MayDrop:
		b.items.PushBack(entry[M]{m, policy, subject})
		if b.kinds[subject]++; b.kinds[subject] > MaxWaiting {
			b.dropOldest(subject)
		}
	default:
		b.items.PushBack(entry[M]{m, policy, subject})
	}
	b.signal()
}

// dropOldest needs mu.
func (b *Mailbox[M]) dropOldest(subject Subject) {
	for e := b.items.Front(); e != nil; e = e.Next() {
		if l := e.Value.(entry[M]); l.policy == MayDrop && l.subject == subject {
			b.items.Remove(e)
			b.kinds[subject]--
			if b.dropped != nil {
				b.dropped(l.m)
			}
			return
		}
	}
}

// PutBack makes a message that was taken and could not be handed on the first again.
func (b *Mailbox[M]) PutBack(m M) {
	policy, subject := b.policy(m)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch policy {
	case Latest:
		if b.waiting[subject] != nil {
			return // a newer one has come
		}
		b.waiting[subject] = b.items.PushFront(entry[M]{m, policy, subject})
	case MayDrop:
		b.kinds[subject]++
		fallthrough
	default:
		b.items.PushFront(entry[M]{m, policy, subject})
	}
	b.signal()
}

// signal needs mu.
func (b *Mailbox[M]) signal() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// Ready has a token while messages wait. Who receives it takes one, or all.
func (b *Mailbox[M]) Ready() <-chan struct{} { return b.ready }

// Take removes the first message; false when there is none.
func (b *Mailbox[M]) Take() (m M, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.items.Front()
	if first == nil {
		return m, false
	}
	l := b.items.Remove(first).(entry[M])
	switch l.policy {
	case Latest:
		delete(b.waiting, l.subject)
	case MayDrop:
		b.kinds[l.subject]--
	}
	if b.items.Len() > 0 {
		b.signal()
	}
	return l.m, true
}

// RemoveMatching removes the messages that match, and returns them in their order.
func (b *Mailbox[M]) RemoveMatching(match func(M) bool) (found []M) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var next *list.Element
	for e := b.items.Front(); e != nil; e = next {
		next = e.Next()
		l := e.Value.(entry[M])
		if !match(l.m) {
			continue
		}
		b.items.Remove(e)
		switch l.policy {
		case Latest:
			delete(b.waiting, l.subject)
		case MayDrop:
			b.kinds[l.subject]--
		}
		found = append(found, l.m)
	}
	return found
}

// Next waits for the first message, until ctx ends.
func (b *Mailbox[M]) Next(ctx context.Context) (m M, err error) {
	for {
		if m, ok := b.Take(); ok {
			return m, nil
		}
		select {
		case <-b.ready:
		case <-ctx.Done():
			return m, ctx.Err()
		}
	}
}

// Len is how many messages wait.
func (b *Mailbox[M]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.items.Len()
}

// Deliver hands over what is put into the mailbox, one after the other, with send,
// until ctx ends or the stream has closed. What could not be sent stays the first:
// a stalled stream delays it, and another session goes on with it. What can never be sent
// (ErrTooLarge, ErrUnsendable) is dropped, so that it holds up nothing behind it, and unsent is told.
func (b *Mailbox[M]) Deliver(ctx context.Context, send func(context.Context, M) error, unsent func(M, error)) error {
	for {
		m, err := b.Next(ctx)
		if err != nil {
			return err
		}
		err = send(ctx, m)
		if errors.Is(err, ErrTooLarge) || errors.Is(err, ErrUnsendable) {
			unsent(m, err)
			continue
		}
		if err != nil {
			b.PutBack(m)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if !isStalled(err) {
				return err
			}
		}
	}
}
