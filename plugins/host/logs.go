package host

import (
	"bytes"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/manifest"
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
	// failure keeps the last line logged as an error: so do the other SDKs.
	failure string
	out     [2]line
	// sink takes the lines too, from information on; nil takes none.
	sink func(level engine.LogLevel, text string, dropped int)
}

// setSink lets the lines from now on reach take too; nil lets none.
func (g *guestLog) setSink(name string, take func(plugin.LogLine)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sink = nil
	if take != nil {
		g.sink = func(level engine.LogLevel, text string, dropped int) {
			take(plugin.LogLine{Plugin: name, Level: level, Text: text, Dropped: dropped})
		}
	}
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

// write takes stdout or stderr, and returns how many lines ended in it.
func (l *line) write(b []byte) (lines int) {
	l.owner.mu.Lock()
	defer l.owner.mu.Unlock()
	now := time.Now()
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
			l.end(now)
			lines++
		}
	}
	return lines
}

// end writes the line that is collected; empty ones are left out.
func (l *line) end(now time.Time) {
	g := l.owner
	first := l.level == zerolog.WarnLevel && g.stderr == ""
	admitted := g.admit(now)
	if first || admitted {
		text := manifest.Clean(l.buf, abi.MaxLogLine)
		if first {
			g.stderr = text
		}
		if admitted && text != "" {
			g.emit(l.level, text)
		}
	}
	l.buf = l.buf[:0]
}

// admit says whether the rate allows another line; g.mu is held. What is not
// admitted costs next to nothing, so that a flood is no load.
func (g *guestLog) admit(now time.Time) bool {
	if !g.last.IsZero() {
		g.left = min(logBurst, g.left+now.Sub(g.last).Seconds()*logPerSecond)
	}
	g.last = now
	if g.left < 1 {
		g.dropped++
		return false
	}
	g.left--
	return true
}

// emit writes a line that was admitted; g.mu is held.
func (g *guestLog) emit(level zerolog.Level, text string) {
	e := g.log.WithLevel(level) //nolint:zerologlint // it is sent below
	if g.sink != nil && level >= zerolog.InfoLevel {
		to := engine.LogInfo
		switch level {
		case zerolog.WarnLevel:
			to = engine.LogWarning
		case zerolog.ErrorLevel:
			to = engine.LogError
		}
		g.sink(to, text, g.dropped)
	}
	if g.dropped > 0 {
		e = e.Int("dropped", g.dropped)
		g.dropped = 0
	}
	e.Str("guest", text).Msg("plugin log")
}

// failureText is what the guest said of its own end, "" if nothing.
func (g *guestLog) failureText() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.stderr != "":
		return g.stderr
	case len(g.out[1].buf) > 0:
		return manifest.Clean(g.out[1].buf, abi.MaxLogLine)
	}
	return g.failure
}

// line writes what ls.log was given.
func (g *guestLog) line(level int32, b []byte) {
	to := zerolog.InfoLevel
	switch level {
	case abi.LogDebug:
		to = zerolog.DebugLevel
	case abi.LogWarning:
		to = zerolog.WarnLevel
	case abi.LogError:
		to = zerolog.ErrorLevel
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.admit(time.Now()) {
		return
	}
	text := manifest.Clean(b, abi.MaxLogLine)
	if to == zerolog.ErrorLevel {
		g.failure = text
	}
	g.emit(to, text)
}
