package recovery

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestWhatIsFoundAgainIsDropped: an outage is not found again when parts are taken in later, also one that a version
// without codes has stored.
func TestWhatIsFoundAgainIsDropped(t *testing.T) {
	t.Parallel()
	outage := engine.Note{Code: engine.AboutServerDown}
	for _, c := range []struct {
		cause engine.ValidityCause
		want  bool
	}{
		{engine.ValidityCause{Cause: engine.CauseErrors}, true},
		{engine.ValidityCause{Cause: engine.CauseIncompleteRecord, Detail: "Some parts are missing"}, true},
		{engine.ValidityCause{Cause: engine.CauseIncompleteRecord, Detail: outage.String(), About: outage}, false},
		{engine.ValidityCause{Cause: engine.CauseIncompleteRecord, Detail: outage.String()}, false},
		{engine.ValidityCause{Cause: engine.CauseGCPause}, false},
	} {
		if got := isRecomputed(c.cause); got != c.want {
			t.Errorf("%+v: %t", c.cause, got)
		}
	}
}
