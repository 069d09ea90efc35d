package host

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/tetratelabs/wazero/api"

	"github.com/loadstone-db/loadstone/sdk/abi"
)

// The log of one instance: a burst, then so many lines a second.
const (
	logBurst     = 50
	logPerSecond = 10
)

// guestLog takes what one instance logs and prints.
type guestLog struct {
	log  zerolog.Logger
	mu   sync.Mutex
	left float64
	last time.Time
	// dropped lines since the last one that was let through.
	dropped int
	// stderr keeps the first line written there: a Go guest says why it dies.
	stderr string
	out    [2]line
}

// line collects what a guest prints until its end.
type line struct {
	owner *guestLog
	level zerolog.Level
	buf   []byte
}

func newGuestLog(log zerolog.Logger) *guestLog {
	g := &guestLog{log: log, left: logBurst}
	g.out[0] = line{owner: g, level: zerolog.InfoLevel}
	g.out[1] = line{owner: g, level: zerolog.WarnLevel}
	return g
}

// Write takes stdout or stderr, and never fails: printing must not change a guest's behaviour.
func (l *line) Write(b []byte) (int, error) {
	l.owner.mu.Lock()
	defer l.owner.mu.Unlock()
	n := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		part := b
		if end >= 0 {
			part, b = b[:end], b[end+1:]
		} else {
			b = nil
		}
		if room := abi.MaxLogLine - len(l.buf); room > 0 {
			l.buf = append(l.buf, part[:min(room, len(part))]...)
		}
		if end >= 0 {
			if text := clean(l.buf, abi.MaxLogLine); text != "" {
				if l.level == zerolog.WarnLevel && l.owner.stderr == "" {
					l.owner.stderr = text
				}
				l.owner.emit(l.level, text)
			}
			l.buf = l.buf[:0]
		}
	}
	return n, nil
}

// emit writes a line while the rate allows; g.mu is held.
func (g *guestLog) emit(level zerolog.Level, text string) {
	now := time.Now()
	if !g.last.IsZero() {
		g.left = min(logBurst, g.left+now.Sub(g.last).Seconds()*logPerSecond)
	}
	g.last = now
	if g.left < 1 {
		g.dropped++
		return
	}
	g.left--
	e := g.log.WithLevel(level)
	if g.dropped > 0 {
		e = e.Int("dropped", g.dropped)
		g.dropped = 0
	}
	e.Str("guest", text).Msg("plugin log")
}

func (g *guestLog) firstStderr() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stderr == "" && len(g.out[1].buf) > 0 {
		return clean(g.out[1].buf, abi.MaxLogLine)
	}
	return g.stderr
}

type logKey struct{}

// hostLog is ls.log(level, ptr, len).
func hostLog(ctx context.Context, m api.Module, stack []uint64) {
	g, ok := ctx.Value(logKey{}).(*guestLog)
	if !ok || m.Memory() == nil {
		return
	}
	b, ok := m.Memory().Read(uint32(stack[1]), min(uint32(stack[2]), abi.MaxLogLine))
	if !ok {
		return
	}
	level := zerolog.InfoLevel
	switch int32(stack[0]) {
	case abi.LogDebug:
		level = zerolog.DebugLevel
	case abi.LogWarning:
		level = zerolog.WarnLevel
	case abi.LogError:
		level = zerolog.ErrorLevel
	}
	text := clean(b, abi.MaxLogLine)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.emit(level, text)
}
