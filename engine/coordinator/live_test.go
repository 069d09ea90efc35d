package coordinator_test

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/catalog"
	"github.com/loadstone-db/loadstone/engine/catalog/keep/memstore"
	"github.com/loadstone-db/loadstone/engine/coordinator"
)

// TestWhatIsKnownOfAQueryThatRuns: its rates, when its last row left, and how far it has come in the time of its rows.
func TestWhatIsKnownOfAQueryThatRuns(t *testing.T) {
	k, p := &memstore.Keeper{}, &pipes{}
	c := begin(t, k, p, "one")
	execute(t, c, "CREATE SINK s TYPE PRINT; CREATE QUERY q AS SELECT runId FROM run_events INTO s;"+
		"CREATE QUERY w AS SELECT COUNT(*) AS n FROM run_events WINDOW TUMBLING(timestamp, SIZE 1 HOUR) INTO s")
	q, w := eventually(t, k, "q", catalog.Running), eventually(t, k, "w", catalog.Running)
	began := time.Now()
	if l := c.Live()[q.ID]; l.In != 0 || !l.LastOut.IsZero() || !l.LatestRow.IsZero() {
		t.Errorf("before a row it has %+v", l)
	}
	tell(p, "START")
	var plain, windowed coordinator.Live
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		plain, windowed = c.Live()[q.ID], c.Live()[w.ID]
		if plain.Out == 1 && windowed.In == 1 {
			break
		}
	}
	if plain.InPerSecond <= 0 || plain.OutPerSecond <= 0 || plain.LastOut.Before(began) || !plain.LatestRow.IsZero() {
		t.Errorf("a query without a window: %+v", plain)
	}
	if since := time.Since(windowed.LatestRow); windowed.OutPerSecond != 0 || !windowed.LastOut.IsZero() ||
		since < 0 || since > 20*time.Second {
		t.Errorf("a query whose window is open: %+v", windowed)
	}
}
