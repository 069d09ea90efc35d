package runlog

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// The bounds of a run's log.
const (
	maxLinesPerSecond = 500
	// The payload holds the lines of the last logSpan, at least logTail and at most logMost
	// of them, so that a page that skips some seconds misses none.
	minTail  = 50
	tailSpan = 10 * time.Second
	maxTail  = 2000
)

// Buffer numbers the lines of a run's log and holds those that are not stored yet.
type Buffer struct {
	seq     int64
	pending []engine.LogEntry
	tail    []bufferedLine // the newest, for the payload
	dropped int64
	// droppedByNode are lines that queues of the nodes have dropped, by node: each counts for itself.
	droppedByNode map[string]int64
}

type bufferedLine struct {
	at time.Time
	engine.LogEntry
}

// NewBufferAfter goes on after the line of that number.
func NewBufferAfter(seq int64) Buffer { return Buffer{seq: seq} }

// Add gives a line its number; a second that has too many loses the others, counted.
func (b *Buffer) Add(e engine.LogEntry) {
	if len(b.pending) >= maxLinesPerSecond {
		b.dropped++
		return
	}
	b.seq++
	e.Seq = b.seq
	b.pending = append(b.pending, e)
	b.tail = append(b.tail, bufferedLine{e.Timestamp.Time, e})
	if len(b.tail) > 2*maxTail {
		b.tail = append([]bufferedLine(nil), b.tail[len(b.tail)-maxTail:]...)
	}
}

// Waiting is how many lines have not been taken.
func (b *Buffer) Waiting() int { return len(b.pending) }

// Take returns the lines that have not been taken, for the store.
func (b *Buffer) Take() []engine.LogEntry {
	p := b.pending
	b.pending = nil
	return p
}

// RecordDropped notes how many lines of the run a node has dropped so far.
func (b *Buffer) RecordDropped(node string, lines int64) {
	if b.droppedByNode == nil {
		b.droppedByNode = map[string]int64{}
	}
	b.droppedByNode[node] = max(b.droppedByNode[node], lines)
}

// MissingLines are the lines that are not in the log: stored and not stored are what the writer knows of.
func (b *Buffer) MissingLines(notStored int64) int64 {
	n := b.dropped + notStored
	for _, lines := range b.droppedByNode {
		n += lines
	}
	return n
}

// Newest returns the newest lines, oldest first, as a copy.
func (b *Buffer) Newest(now time.Time) []engine.LogEntry {
	first := max(0, len(b.tail)-minTail)
	for first > 0 && len(b.tail)-first < maxTail && now.Sub(b.tail[first-1].at) <= tailSpan {
		first--
	}
	out := make([]engine.LogEntry, 0, len(b.tail)-first)
	for _, k := range b.tail[first:] {
		out = append(out, k.LogEntry)
	}
	return out
}
