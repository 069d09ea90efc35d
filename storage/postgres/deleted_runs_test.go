package postgres_test

import (
	"slices"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// TestADeletedRunIsLookedForInTheResults: also one that was never taken in: its seconds may be there, from while it
// went on, or while nothing was taken in. One that was not started has left nothing.
func TestADeletedRunIsLookedForInTheResults(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx, conn := t.Context(), connect(t, dsn)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.CreateDynamicTable(ctx, refresh.Table{Name: "runs", Kind: refresh.Ingest, TargetLagSeconds: 60,
		Mode: refresh.Incremental})
	must(err)
	for _, id := range []string{"prepared", "ended"} {
		must(s.CreateRun(ctx, engine.Run{RunID: id}))
	}
	exec(t, conn, "UPDATE run_status SET status = 'RUNNING', start_time = now() WHERE run_id = 'ended'")
	for _, to := range []string{"STOPPING", "COMPLETED"} {
		exec(t, conn, "UPDATE run_status SET status = $1 WHERE run_id = 'ended'", to)
	}
	must(s.SetDynamicTableStatus(ctx, "runs", refresh.Suspended))
	must(s.DeleteRun(ctx, "prepared"))
	must(s.DeleteRun(ctx, "ended"))
	must(s.SetDynamicTableStatus(ctx, "runs", refresh.Active))
	state, err := s.RefreshState(ctx, 9)
	if err != nil || !slices.Equal(state.Runs["runs"], []string{"ended"}) {
		t.Fatalf("to be looked at are %v, %v", state.Runs, err)
	}
	must(s.ScheduleRefreshes(ctx, refresh.Plan(state)))
	claims, err := s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 9)
	if err != nil || len(claims) != 1 || claims[0].Subtask != "ended" {
		t.Fatalf("claimed %v, %v", claims, err)
	}
	must(s.ReleaseRefresh(ctx, claims[0], refresh.Result{Gone: true}))
	if state, err = s.RefreshState(ctx, 9); err != nil || len(state.Runs["runs"])+len(state.Pending) != 0 {
		t.Errorf("left are %v, %v, %v", state.Runs, state.Pending, err)
	}
}
