package run_test

import (
	"errors"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/store/fake"
)

// TestTheLogOfARunThatWasNotBegunSaysWhy, once, and a reason is louder than a request.
func TestTheLogOfARunThatWasNotBegunSaysWhy(t *testing.T) {
	for stop, level := range map[engine.StopReason]engine.LogLevel{
		engine.StopSetupFailure: engine.LogWarning, engine.StopUserRequested: engine.LogInfo} {
		s := fake.New()
		if err := s.CreateRun(t.Context(), engine.Run{RunID: "r", ResultID: "r", WorkersExpected: 1}); err != nil {
			t.Fatal(err)
		}
		desk := enginerun.NewCreator(enginerun.CreatorOptions{Store: s})
		const why = "It was not begun: ada, who started it, is locked out."
		if err := desk.Cancel(t.Context(), "r", stop, why); err != nil {
			t.Fatal(err)
		}
		if err := desk.Cancel(t.Context(), "r", stop, why); !errors.Is(err, store.ErrConflict) {
			t.Errorf("cancelled twice: %v", err)
		}
		run, err := s.Run(t.Context(), "r")
		if err != nil || run.Status != engine.StatusCancelled || run.CancellationReason == nil ||
			*run.CancellationReason != why || run.StopReason != stop {
			t.Errorf("%+v, %v", run, err)
		}
		log, err := s.Logs(t.Context(), "r", 0, "", 0)
		if err != nil || len(log) != 1 || log[0].Level != level || log[0].Message != why || log[0].ResultID != "r" ||
			!log[0].Timestamp.Equal(run.EndTime.Time) {
			t.Errorf("%s: the log is %+v, %v", stop, log, err)
		}
	}
}
