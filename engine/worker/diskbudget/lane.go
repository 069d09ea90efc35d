package diskbudget

import "iter"

// lane is a list of files, the oldest first: each of them enters at the end when its time
// begins. So what is to go next stands at a beginning, however many files there are.
type lane struct {
	first, last *file
	bytes       int64
}

// The lanes of files of which something may be wanted.
const (
	cached         = iota // by when they were last used
	stored                // acknowledged
	expiredWork           // announced for too long
	finishedWork          // neither announced
	announcedWork         // nor fetched
	finishedRecord        // to be announced
	goingSpool            // ordered off the disk
	goingCache
	lanes
)

// place puts a file at the end of the lane where it belongs.
func (b *Budget) place(f *file) {
	f.leave()
	n := -1
	switch {
	case f.going && f.kind == Cache:
		n = goingCache
	case f.going:
		n = goingSpool
	case f.state == writing:
	case f.kind == Cache:
		n = cached
	case f.state == acknowledged:
		n = stored
	case f.state == expired:
		n = expiredWork
	case f.kind == Work && f.state == announced:
		n = announcedWork
	case f.kind == Work:
		n = finishedWork
	case f.state == finished:
		n = finishedRecord
	}
	if n < 0 {
		return
	}
	l := &b.lanes[n]
	f.lane, f.before = l, l.last
	if l.last != nil {
		l.last.next = f
	} else {
		l.first = f
	}
	l.last = f
	l.bytes += f.bytes
}

// leave takes a file out of its lane.
func (f *file) leave() {
	l := f.lane
	if l == nil {
		return
	}
	if f.before != nil {
		f.before.next = f.next
	} else {
		l.first = f.next
	}
	if f.next != nil {
		f.next.before = f.before
	} else {
		l.last = f.before
	}
	l.bytes -= f.bytes
	f.lane, f.before, f.next = nil, nil, nil
}

// victims are the files that may go, in order. unfetched includes those that nobody has
// fetched. None may be removed while they are gone through.
func (b *Budget) victims(unfetched bool) iter.Seq[*file] {
	return func(yield func(*file) bool) {
		for _, n := range []int{cached, stored, expiredWork} {
			for f := b.lanes[n].first; f != nil; f = f.next {
				if !yield(f) {
					return
				}
			}
		}
		if !unfetched {
			return
		}
		x, y := b.lanes[finishedWork].first, b.lanes[announcedWork].first
		for x != nil || y != nil {
			f := x
			if x == nil || y != nil && y.olderThan(x) {
				f, y = y, y.next
			} else {
				x = x.next
			}
			if !yield(f) {
				return
			}
		}
	}
}

// victim is the file that goes first of those that need not be redone, nil without one.
func (b *Budget) victim() *file {
	for f := range b.victims(false) {
		return f
	}
	return nil
}

func (f *file) olderThan(o *file) bool {
	if c := f.since.Compare(o.since); c != 0 {
		return c < 0
	}
	return f.order < o.order
}
