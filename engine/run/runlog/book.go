package runlog

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// The bounds of a run's log.
const (
	logsPerSecond = 500
	// The payload holds the lines of the last logSpan, at least logTail and at most logMost
	// of them, so that a page that skips some seconds misses none.
	logTail = 50
	logSpan = 10 * time.Second
	logMost = 2000
)

// Book numbers the lines of a run's log and holds those that are not stored yet.
type Book struct {
	seq     int64
	pending []engine.LogEntry
	tail    []kept // the newest, for the payload
	dropped int64
	// elsewhere are lines that queues of the nodes have dropped, by node: each counts for itself.
	elsewhere map[string]int64
}

type kept struct {
	at time.Time
	engine.LogEntry
}

// BookAfter goes on after the line of that number.
func BookAfter(seq int64) Book { return Book{seq: seq} }

// Add gives a line its number; a second that has too many loses the others, counted.
func (b *Book) Add(e engine.LogEntry) {
	if len(b.pending) >= logsPerSecond {
		b.dropped++
		return
	}
	b.seq++
	e.Seq = b.seq
	b.pending = append(b.pending, e)
	b.tail = append(b.tail, kept{e.Timestamp.Time, e})
	if len(b.tail) > 2*logMost {
		b.tail = append([]kept(nil), b.tail[len(b.tail)-logMost:]...)
	}
}

// Waiting is how many lines have not been taken.
func (b *Book) Waiting() int { return len(b.pending) }

// Take returns the lines that have not been taken, for the store.
func (b *Book) Take() []engine.LogEntry {
	p := b.pending
	b.pending = nil
	return p
}

// Lost notes how many lines of the run a node has dropped so far.
func (b *Book) Lost(node string, lines int64) {
	if b.elsewhere == nil {
		b.elsewhere = map[string]int64{}
	}
	b.elsewhere[node] = max(b.elsewhere[node], lines)
}

// Missing are the lines that are not in the log: stored and not stored are what the keeper knows of.
func (b *Book) Missing(notStored int64) int64 {
	n := b.dropped + notStored
	for _, lines := range b.elsewhere {
		n += lines
	}
	return n
}

// Newest returns the newest lines, oldest first, as a copy.
func (b *Book) Newest(now time.Time) []engine.LogEntry {
	first := max(0, len(b.tail)-logTail)
	for first > 0 && len(b.tail)-first < logMost && now.Sub(b.tail[first-1].at) <= logSpan {
		first--
	}
	out := make([]engine.LogEntry, 0, len(b.tail)-first)
	for _, k := range b.tail[first:] {
		out = append(out, k.LogEntry)
	}
	return out
}
