package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// UnstartedRun ends a run that nobody carries: its log says why, once, behind what it had, and no other run's does.
func UnstartedRun(t *testing.T, s Store) {
	ctx := t.Context()
	for _, id := range []string{"r1", "r2"} {
		Must(t, s.CreateRun(ctx, engine.Run{RunID: id, ResultID: id, RunName: id, CreatedBy: "ada", WorkersExpected: 1,
			Scenario: engine.Scenario{Name: id, Target: engine.Target{Connection: engine.ConnectionRef{Name: "x"},
				TableName: "t"}, Workload: engine.Workload{Plugin: "mix"}}}))
	}
	said := func(id string) (lines []string) {
		t.Helper()
		log, err := s.Logs(ctx, id, 0, "", 0)
		Must(t, err)
		for i, l := range log {
			if l.Seq != int64(i+1) || l.RunID != id || l.ResultID != id || l.Timestamp.IsZero() {
				t.Errorf("line %d of %s is %+v", i, id, l)
			}
			lines = append(lines, string(l.Level)+" "+l.Message)
		}
		return lines
	}
	line := func(level engine.LogLevel, text string) engine.LogEntry {
		return engine.LogEntry{ResultID: "r1", Level: level, Message: text}
	}
	at := engine.At(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	why := line(engine.LogWarning, "ada is locked out\x00")
	why.Timestamp = at
	_, err := s.Transition(ctx, store.Transition{RunID: "r1", Logs: []engine.LogEntry{line("LOUD", "x")}})
	if err == nil {
		t.Error("a line without a known level is taken")
	}
	_, err = s.Transition(ctx, store.Transition{RunID: "r1",
		Logs: []engine.LogEntry{line(engine.LogInfo, "one"), line(engine.LogInfo, "two")}})
	Must(t, err)
	end := store.Transition{RunID: "r1", From: []engine.Status{engine.StatusPrepared}, To: engine.StatusCancelled,
		Logs: []engine.LogEntry{why}}
	_, err = s.Transition(ctx, end)
	Must(t, err)
	if _, err := s.Transition(ctx, end); !errors.Is(err, store.ErrConflict) {
		t.Errorf("ended twice: %v", err)
	}
	if got := said("r1"); !slices.Equal(got, []string{"INFO one", "INFO two", "WARNING ada is locked out"}) {
		t.Errorf("the log is %q", got)
	}
	if log, err := s.Logs(ctx, "r1", 2, "", 0); err != nil || len(log) != 1 || !log[0].Timestamp.Equal(at.Time) {
		t.Errorf("the last line is %+v, %v", log, err)
	}
	if got := said("r2"); len(got) != 0 {
		t.Errorf("another run's log is %q", got)
	}
}
