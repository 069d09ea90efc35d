package orchestrator

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// The lines of one plugin in a run's log: a burst, then so many a second. A plugin has several
// instances, each with a limit of its own.
const (
	saidBurst     = 50
	saidPerSecond = 10
)

// said holds what plugins logged in calls for a run until the run's loop takes it.
type said struct {
	mu      sync.Mutex
	lines   []plugin.LogLine
	budgets map[string]*budget
}

type budget struct {
	left    float64
	last    time.Time
	dropped int
}

func (s *said) add(line plugin.LogLine, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.budgets[line.Plugin]
	if b == nil {
		b = &budget{left: saidBurst, last: now}
		if s.budgets == nil {
			s.budgets = map[string]*budget{}
		}
		s.budgets[line.Plugin] = b
	}
	b.left = min(saidBurst, b.left+now.Sub(b.last).Seconds()*saidPerSecond)
	b.last = now
	b.dropped += line.Dropped
	if b.left < 1 {
		b.dropped++
		return
	}
	b.left--
	line.Dropped, b.dropped = b.dropped, 0
	s.lines = append(s.lines, line)
}

func (s *said) take() []plugin.LogLine {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = nil
	return lines
}

// heard lets what plugins log in calls with the context reach the log of the run, while it is live here.
func (s *Service) heard(ctx context.Context, runID string) context.Context {
	return plugin.WithLog(ctx, func(line plugin.LogLine) {
		if l := s.runs.find(runID); l != nil {
			l.said.add(line, l.clock.Now())
		}
	})
}

// noteSaid writes what plugins logged into the run's log.
func (l *live) noteSaid() {
	for _, line := range l.said.take() {
		about := details{"plugin": line.Plugin}
		if line.Dropped > 0 {
			about["dropped"] = line.Dropped
			l.leftOut += int64(line.Dropped)
			l.logbook.Lost("plugins", l.leftOut)
		}
		l.noteWith(about, line.Level, nil, "The plugin %s says: %s", line.Plugin, line.Text)
	}
}

// lineAfter is a line that another process than the run's own writes, after its end.
func lineAfter(run engine.Run, level engine.LogLevel, text string, about details) engine.LogEntry {
	about["status"], about["recovered"] = run.Status, true
	body, _ := json.Marshal(about) // names and numbers
	return engine.LogEntry{RunID: run.RunID, TestID: run.RunID, Level: level, Message: text, Details: body,
		Timestamp: engine.At(time.Now())}
}
