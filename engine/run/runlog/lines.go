package runlog

import (
	"encoding/json"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Details are what a line is about, for programs.
type Details map[string]any

// LineAfterEnd is a line that another process than the run's own writes, after its end.
func LineAfterEnd(run engine.Run, level engine.LogLevel, text string, about Details) engine.LogEntry {
	about["status"], about["recovered"] = run.Status, true
	body, _ := json.Marshal(about) // names and numbers
	return engine.LogEntry{RunID: run.RunID, ResultID: run.RunID, Level: level, Message: text, Details: body,
		Timestamp: engine.At(time.Now())}
}
