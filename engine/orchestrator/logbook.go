package orchestrator

import (
	"encoding/json"
	"fmt"
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

// logbook numbers the lines of a run's log and holds those that are not stored yet.
type logbook struct {
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

func (b *logbook) add(e engine.LogEntry) {
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

func (b *logbook) take() []engine.LogEntry {
	p := b.pending
	b.pending = nil
	return p
}

// lost notes how many lines of the run a node has dropped so far.
func (b *logbook) lost(node string, lines int64) {
	if b.elsewhere == nil {
		b.elsewhere = map[string]int64{}
	}
	b.elsewhere[node] = max(b.elsewhere[node], lines)
}

// missing are the lines that are not in the log: stored and not stored are what the keeper knows of.
func (b *logbook) missing(notStored int64) int64 {
	n := b.dropped + notStored
	for _, lines := range b.elsewhere {
		n += lines
	}
	return n
}

// newest returns the newest lines, oldest first, as a copy.
func (b *logbook) newest(now time.Time) []engine.LogEntry {
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

// details are what a line is about, for programs.
type details map[string]any

// note writes a line of the orchestrator into the run's log.
func (l *live) note(level engine.LogLevel, w *runWorker, format string, args ...any) {
	l.noteWith(nil, level, w, format, args...)
}

// noteWith writes a line with what it is about; when it was, in the run, is among it.
func (l *live) noteWith(about details, level engine.LogLevel, w *runWorker, format string, args ...any) {
	now := l.clock.Now()
	e := engine.LogEntry{RunID: l.runID, TestID: l.runID, Level: level, Message: fmt.Sprintf(format, args...), Timestamp: engine.At(now)}
	if about == nil {
		about = details{}
	}
	if l.life.Phase() != engine.PhaseNone {
		about["phase"] = l.life.Phase()
	}
	if !l.run.StartTime.IsZero() {
		about["elapsed_seconds"] = float64(now.Sub(l.run.StartTime.Time).Milliseconds()) / 1000
	}
	if w != nil {
		e.WorkerID, e.TestID = w.id, w.testID
		about["node_id"], about["worker_status"] = w.state.NodeID, w.state.Status
	}
	// Names, numbers and times always marshal; a line without details is still a line.
	e.Details, _ = json.Marshal(about)
	l.logbook.add(e)
}
