package plugin

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
)

// LogLine is a line that a plugin logged or printed, from INFO on: without control characters, of a bounded
// length, at a limited rate. Dropped lines were left out before it.
type LogLine struct {
	Plugin  string
	Level   engine.LogLevel
	Text    string
	Dropped int
}

type logKey struct{}

// WithLog gives what plugins log in calls with the context to take, from any goroutine. Streams have a log of their
// own.
func WithLog(ctx context.Context, take func(LogLine)) context.Context {
	return context.WithValue(ctx, logKey{}, take)
}

// LogFrom is what WithLog gave, else nil.
func LogFrom(ctx context.Context) func(LogLine) {
	take, _ := ctx.Value(logKey{}).(func(LogLine))
	return take
}
