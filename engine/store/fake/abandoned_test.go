package fake

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// TestARunThatIsGivenUp: a run that fails too often is not tried again by itself, and the table is behind since it
// ended and says why, until the run changes, somebody resumes the table, or the run is deleted.
func TestARunThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, over := t.Context(), map[string]time.Time{"poor": time.Now()}
		q := NewRefreshQueue(func() (map[string]time.Time, func(string) bool) {
			return over, func(id string) bool { _, there := over[id]; return there }
		})
		_, err := q.CreateDynamicTable(ctx, refresh.Table{Name: "runs", Kind: refresh.Ingest, TargetLagSeconds: 60,
			Mode: refresh.Incremental})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		look := func(due bool, since time.Time, failures int, last string) {
			t.Helper()
			state, err := q.RefreshState(ctx, 9)
			if err != nil {
				t.Fatal(err)
			}
			if err := q.ScheduleRefreshes(ctx, refresh.Plan(state)); err != nil {
				t.Fatal(err)
			}
			table, read := state.Tables[0], slices.Contains(state.Runs["runs"], "poor")
			if read != due || table.BehindSince.Sub(since).Abs() > time.Millisecond || table.Failures != failures ||
				table.Error != last {
				t.Fatalf("to be taken in: %v, %+v; want %v, since %v", read, table, due, since)
			}
			if f := table.Failing; failures == 1 && (len(f) != 1 || !f[0].GivenUp || f[0].Failures < refresh.MaxFailures) {
				t.Fatalf("a run that is given up is among those that fail: %+v", f)
			}
		}
		fail := func(times int) {
			t.Helper()
			for n := 1; n <= times; n++ {
				time.Sleep(time.Minute * 10)
				claims, err := q.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 9)
				if err != nil || len(claims) != 1 {
					t.Fatalf("attempt %d: %+v, %v", n, claims, err)
				}
				if err := q.ReleaseRefresh(ctx, claims[0], refresh.Result{Error: "no " + strings.Repeat("I", n)}); err != nil {
					t.Fatal(err)
				}
				if n < refresh.MaxFailures && times > 1 {
					look(true, began, 0, "")
				}
			}
		}
		look(true, began, 0, "")
		fail(refresh.MaxFailures)
		look(false, began, 1, "Run poor: no IIIII")
		time.Sleep(time.Hour)
		look(false, began, 1, "Run poor: no IIIII")
		if l, err := q.RefreshLoad(ctx); err != nil || l.IngestLagSeconds < 3600 || l.Due != 0 {
			t.Errorf("%+v, %v", l, err)
		}
		changed := time.Now()
		over["poor"] = changed
		look(true, changed, 1, "Run poor: no IIIII")
		fail(1)
		look(false, changed, 1, "Run poor: no I")
		if err := q.SetDynamicTableStatus(ctx, "runs", refresh.Active); err != nil {
			t.Fatal(err)
		}
		look(true, changed, 0, "")
		began = changed
		fail(refresh.MaxFailures)
		look(false, changed, 1, "Run poor: no IIIII")
		delete(over, "poor")
		q.RunDeleted("poor")
		look(true, time.Now(), 0, "")
		fail(1)
	})
}
