// Package outage finds the outages of a target in the record of a run, by pure functions of when operations ended, and
// how.
package outage

import (
	"math"
	"time"
)

// The bins of a course are as short as that, or twice, four times … as long where the load took longer.
const (
	shortestBin = int64(10 * time.Millisecond)
	maxBins     = 1 << 19
)

// Course is when the operations of a run, or of one kind, succeeded and failed. A pause between two successes that is
// as long as two bins is known exactly.
type Course struct {
	from, length int64
	bins         []bin
}

// bin is what ended in a short time: the first and the last of each, in ns since the epoch, and how many. due is
// when the first of all that ended in it was due, 0 where none ended.
type bin struct {
	firstOK, lastOK, firstFailed, lastFailed, due int64
	ok, failed                                    uint32
}

// NewCourse returns a course that begins at a time, in ns since the epoch.
func NewCourse(from int64) *Course { return &Course{from: from, length: shortestBin} }

// Add takes in an operation. Failures that cannot be of an outage only tell that it was under way.
func (c *Course) Add(op Operation) {
	ended := op.Ended
	i := max(0, (ended-c.from)/c.length)
	for i >= maxBins {
		c.double()
		i = (ended - c.from) / c.length
	}
	for int64(len(c.bins)) <= i {
		c.bins = append(c.bins, bin{})
	}
	b := &c.bins[i]
	b.begin(op.Due)
	if op.OK {
		if b.ok == 0 {
			b.firstOK, b.lastOK = ended, ended
		}
		b.firstOK, b.lastOK = min(b.firstOK, ended), max(b.lastOK, ended)
		b.ok++
		return
	}
	if !Counts(op.Class) {
		return
	}
	if b.failed == 0 {
		b.firstFailed, b.lastFailed = ended, ended
	}
	b.firstFailed, b.lastFailed = min(b.firstFailed, ended), max(b.lastFailed, ended)
	b.failed++
}

// double makes the bins twice as long.
func (c *Course) double() {
	half := make([]bin, (len(c.bins)+1)/2)
	for i, b := range c.bins {
		half[i/2].merge(b)
	}
	c.bins, c.length = half, 2*c.length
}

// begin notes when an operation was due.
func (b *bin) begin(due int64) {
	if b.due == 0 || due < b.due {
		b.due = due
	}
}

func (b *bin) merge(o bin) {
	if o.due != 0 {
		b.begin(o.due)
	}
	if o.ok > 0 {
		if b.ok == 0 {
			b.firstOK, b.lastOK = o.firstOK, o.lastOK
		}
		b.firstOK, b.lastOK = min(b.firstOK, o.firstOK), max(b.lastOK, o.lastOK)
	}
	if o.failed > 0 {
		if b.failed == 0 {
			b.firstFailed, b.lastFailed = o.firstFailed, o.lastFailed
		}
		b.firstFailed, b.lastFailed = min(b.firstFailed, o.firstFailed), max(b.lastFailed, o.lastFailed)
	}
	b.ok, b.failed = b.ok+o.ok, b.failed+o.failed
}

// Merge takes in another course with the same beginning, which is not used any more.
func (c *Course) Merge(o *Course) {
	for c.length < o.length {
		c.double()
	}
	for o.length < c.length {
		o.double()
	}
	for len(c.bins) < len(o.bins) {
		c.bins = append(c.bins, bin{})
	}
	for i := range o.bins {
		c.bins[i].merge(o.bins[i])
	}
}

// at is the bin of a time, within those that there are.
func (c *Course) at(t int64) int {
	return int(min(max(0, (t-c.from)/c.length), int64(len(c.bins))))
}

// successes counts what succeeded in (from, to], but for what a bin at an edge does not tell apart.
func (c *Course) successes(from, to int64) (n float64) {
	for i := c.at(from); i < len(c.bins); i++ {
		b := &c.bins[i]
		begin := c.from + int64(i)*c.length
		if begin >= to {
			break
		}
		if b.ok == 0 {
			continue
		}
		// Of a bin at an edge what lies inside counts by its part of the time.
		inside := float64(min(begin+c.length, to)-max(begin, from)) / float64(c.length)
		n += float64(b.ok) * min(1, max(0, inside))
	}
	return n
}

// failed counts the failures in a time, those of a bin at an edge too.
func (c *Course) failed(from, to int64) (n float64) {
	for i := c.at(from); i < len(c.bins) && c.from+int64(i)*c.length <= to; i++ {
		if b := &c.bins[i]; b.failed > 0 && b.firstFailed <= to && b.lastFailed >= from {
			n += float64(b.failed)
		}
	}
	return n
}

// waiting says of each bin when the first operation was due that ended in it or later.
func (c *Course) waiting() []int64 {
	out, first := make([]int64, len(c.bins)), int64(math.MaxInt64)
	for i := len(c.bins) - 1; i >= 0; i-- {
		if due := c.bins[i].due; due != 0 {
			first = min(first, due)
		}
		out[i] = first
	}
	return out
}

// failures are the first and the last failure in a time; ok is false without one.
func (c *Course) failures(from, to int64) (first, last int64, ok bool) {
	first, last = math.MaxInt64, math.MinInt64
	for i := c.at(from); i < len(c.bins) && c.from+int64(i)*c.length <= to; i++ {
		b := &c.bins[i]
		if b.failed == 0 || b.firstFailed > to || b.lastFailed < from {
			continue
		}
		first, last, ok = min(first, max(b.firstFailed, from)), max(last, min(b.lastFailed, to)), true
	}
	return first, last, ok
}

// lastSuccess is when the last operation succeeded up to a time, firstSuccess when the first one did from a time on.
// The bin of the time itself is taken at its word: what it holds lies on one side.
func (c *Course) lastSuccess(upTo int64) (at int64, ok bool) {
	for i := min(c.at(upTo), len(c.bins)-1); i >= 0; i-- {
		switch b := &c.bins[i]; {
		case b.ok == 0 || b.firstOK > upTo:
		case b.lastOK <= upTo:
			return b.lastOK, true
		default:
			return b.firstOK, true
		}
	}
	return 0, false
}

func (c *Course) firstSuccess(since int64) (at int64, ok bool) {
	for i := c.at(since); i < len(c.bins); i++ {
		switch b := &c.bins[i]; {
		case b.ok == 0 || b.lastOK < since:
		case b.firstOK >= since:
			return b.firstOK, true
		default:
			return b.lastOK, true
		}
	}
	return 0, false
}

// last is when the last operation of the course ended.
func (c *Course) last() int64 {
	for i := len(c.bins) - 1; i >= 0; i-- {
		if b := &c.bins[i]; b.ok+b.failed > 0 {
			return max(b.lastOK, b.lastFailed)
		}
	}
	return c.from
}
