package report

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine"
)

func measuring() *engine.LiveState {
	p95, elapsed, phase := 123.4, 12.0, engine.PhaseMeasurement
	u := &engine.LiveState{Status: engine.StatusRunning, Phase: &phase}
	u.Timing.PhaseElapsedSeconds, u.Timing.DurationSeconds = &elapsed, 20
	u.Latency.P95 = &p95
	u.Ops.CurrentPerSec = 19_100
	u.Errors.Count = 1_234
	return u
}

func TestNarrowTerminalsKeepWhatMatters(t *testing.T) {
	for columns := 60; columns <= 140; columns++ {
		line := statusLine(measuring(), engine.PhaseMeasurement, columns)
		if n := utf8.RuneCountInString(line); n > columns {
			t.Errorf("%d characters in %d columns: %q", n, columns, line)
		}
		for _, part := range []string{"measuring", "00:12 / 00:20", "19.1 k op/s"} {
			if !strings.Contains(line, part) {
				t.Errorf("%d columns: no %q in %q", columns, part, line)
			}
		}
		if columns >= 79 && !strings.Contains(line, "errors 1 234") {
			t.Errorf("%d columns: no errors in %q", columns, line)
		}
	}
}

func TestProgressIsTheSameWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out)
	u := measuring()
	u.Logs = []engine.LogEntry{{Seq: 1, Level: engine.LogWarning, Message: "slow"},
		{Seq: 2, Level: engine.LogInfo, Message: "fine"}}
	p.Show(u)
	p.Show(u)
	u.Status, u.Phase = engine.StatusCompleted, nil
	p.Show(u)
	p.End()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "slow") || !strings.Contains(lines[1], "errors 1 234") ||
		strings.Contains(out.String(), "\x1b") {
		t.Errorf("got %q", out.String())
	}
}
