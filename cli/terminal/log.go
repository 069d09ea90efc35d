package terminal

import (
	"io"
	"sync"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/trace"
)

// stampAsEngine makes the times of all loggers those of the engine. Once: others read it from then on.
var stampAsEngine = sync.OnceFunc(func() { zerolog.TimeFieldFormat = engine.TimeLayout })

// NewLogger writes a log of that level and format. Once traced was called, lines about a run name its trace.
func NewLogger(w io.Writer, level, format string) (log zerolog.Logger, traced func()) {
	stampAsEngine()
	lvl, err := zerolog.ParseLevel(level)
	if err != nil {
		lvl = zerolog.InfoLevel
	}
	if format == "text" || format == "auto" && IsTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: "15:04:05.000", FormatMessage: LogMessage,
			NoColor: !IsTerminal(w)}
	}
	lines := trace.NewLogWriter(PlainLogWriter(w))
	return zerolog.New(lines).Level(lvl).With().Timestamp().Logger(), lines.Enable
}
