package trace

import (
	"bytes"
	"io"
	"sync/atomic"
)

// LogWriter writes the lines of a log, in JSON, and puts the id of its trace into each that names a run.
type LogWriter struct {
	to io.Writer
	on atomic.Bool
}

// NewLogWriter writes to to, as it is until On.
func NewLogWriter(to io.Writer) *LogWriter { return &LogWriter{to: to} }

// Enable says that there are traces to be found.
func (l *LogWriter) Enable() { l.on.Store(true) }

// runField begins what names a run in a line. Within a text its quotes would be escaped.
var runField = []byte(`"run_id":"`)

// Write implements io.Writer for whole lines.
func (l *LogWriter) Write(line []byte) (int, error) {
	if !l.on.Load() {
		return l.to.Write(line)
	}
	at := bytes.Index(line, runField)
	end := bytes.LastIndexByte(line, '}')
	if at <= 0 || end < at || line[at-1] != ',' && line[at-1] != '{' {
		return l.to.Write(line)
	}
	run, _, ok := bytes.Cut(line[at+len(runField):], []byte{'"'})
	if !ok || len(run) == 0 {
		return l.to.Write(line)
	}
	out := make([]byte, 0, len(line)+len(`,"trace_id":""`)+32)
	out = append(append(out, line[:end]...), `,"trace_id":"`...)
	out = append(append(append(out, ID(string(run))...), '"'), line[end:]...)
	if n, err := l.to.Write(out); err != nil {
		return min(n, len(line)), err
	}
	return len(line), nil
}
