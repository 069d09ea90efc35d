package postgres_test

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// TestWaitsForWorkersAreKnown: a table knows how long its refresh has waited for a worker; when the next one does not
// wait, that fades.
func TestWaitsForWorkersAreKnown(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := t.Context()
	if _, err := s.CreateDynamicTable(ctx, refresh.Table{Name: "a", Kind: refresh.SQL, Definition: "SELECT",
		TargetLagSeconds: 60, Mode: refresh.Auto}); err != nil {
		t.Fatal(err)
	}
	refreshed := func(due time.Duration) (over float64) {
		t.Helper()
		entry := refresh.Pending{Task: refresh.Task{Table: "a"}, Due: engine.At(time.Now().Add(due))}
		if err := s.ScheduleRefreshes(ctx, refresh.Schedule{Enqueue: []refresh.Pending{entry}}); err != nil {
			t.Fatal(err)
		}
		claims, err := s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 1)
		if err != nil || len(claims) != 1 {
			t.Fatal(claims, err)
		}
		if err := s.ReleaseRefresh(ctx, claims[0], refresh.Result{}); err != nil {
			t.Fatal(err)
		}
		table, err := s.DynamicTable(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		waited := claims[0].ClaimedAt.Sub(entry.Due.Time).Seconds()
		return table.WaitSeconds - waited
	}
	near := func(got, want float64) bool { return got > want-0.01 && got < want+0.01 }
	if over := refreshed(-1000 * time.Second); !near(over, 0) {
		t.Errorf("the wait is wrong by %v s", over)
	}
	if over := refreshed(-time.Millisecond); over < 800 || over > 901 {
		t.Errorf("of a wait of 1000 s there are %v s left", over)
	}
}
