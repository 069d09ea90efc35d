package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/engine"
)

// TestARunThatIsEndedBeforeItBeginsIsNotFollowedForEver: it never has figures.
func TestARunThatIsEndedBeforeItBeginsIsNotFollowedForEver(t *testing.T) {
	why := "No nodes came in 10m0s"
	over := engine.RunDetail{Run: engine.Run{Status: engine.StatusCancelled, Phase: engine.PhaseNone,
		CancellationReason: &why}}
	if err := neverStartedError(over); err == nil || !strings.Contains(err.Error(), "before it was started: "+why+".") {
		t.Errorf("%v", err)
	}
	over.StartTime = engine.At(time.Now())
	waits := engine.RunDetail{Run: engine.Run{Status: engine.StatusPrepared, Phase: engine.PhaseNone}}
	for _, d := range []engine.RunDetail{over, waits} {
		if err := neverStartedError(d); err != nil {
			t.Errorf("%s: %v", d.Status, err)
		}
	}
}

// TestWhatARunWaitsForIsSaidOnce, and again when it is something else.
func TestWhatARunWaitsForIsSaidOnce(t *testing.T) {
	var out strings.Builder
	show := report.NewProgress(&out)
	message := show.Waiting(nil, "")
	for _, reason := range []string{"waits for 8 connections", "waits for 8 connections", "waits for 4 connections"} {
		message = show.Waiting(&engine.Waiting{Reason: reason}, message)
	}
	if got := out.String(); got != "The run waits for 8 connections.\nThe run waits for 4 connections.\n" {
		t.Errorf("%q", got)
	}
}
