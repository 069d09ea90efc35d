package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
)

func sqlTable(name string, sources ...string) refresh.Table {
	return refresh.Table{Name: name, Kind: refresh.SQL, Definition: "SELECT 1 AS one",
		Description: "the table\x00 " + name, TargetLagSeconds: 60, Mode: refresh.Auto, PartitionBy: refresh.ByDay,
		Partitions: 3, Priority: 1, Sources: sources, CreatedBy: "ada"}
}

func ingestTable(name string) refresh.Table {
	return refresh.Table{Name: name, Kind: refresh.Ingest, TargetLagSeconds: 60, Mode: refresh.Incremental,
		PartitionBy: refresh.ByRun, Bundled: true}
}

func makeTable(t testing.TB, s Store, table refresh.Table) refresh.Table {
	t.Helper()
	made, err := s.CreateDynamicTable(t.Context(), table)
	Must(t, err)
	return made
}

func refreshState(t testing.TB, s Store) (refresh.State, map[string]refresh.Table) {
	t.Helper()
	state, err := s.RefreshState(t.Context(), 100)
	Must(t, err)
	byName := map[string]refresh.Table{}
	for _, table := range state.Tables {
		byName[table.Name] = table
	}
	return state, byName
}

// enqueue puts tasks into the queue, due now.
func enqueue(t testing.TB, s Store, tasks ...refresh.Task) {
	t.Helper()
	state, _ := refreshState(t, s)
	var plan refresh.Schedule
	for _, task := range tasks {
		plan.Enqueue = append(plan.Enqueue, refresh.Pending{Task: task, Due: state.Now})
	}
	Must(t, s.ScheduleRefreshes(t.Context(), plan))
}

func claimOne(t testing.TB, s Store, worker string) refresh.Claim {
	t.Helper()
	claims, err := s.ClaimRefreshes(t.Context(), worker, refresh.ClaimTTL, 1)
	Must(t, err)
	if len(claims) != 1 {
		t.Fatalf("%s has claimed %v, want one", worker, claims)
	}
	return claims[0]
}

func dynamicTables(t *testing.T, s Store) {
	ctx := t.Context()
	runs := makeTable(t, s, ingestTable("runs"))
	if runs.Version != 1 || runs.Status != refresh.Active || runs.CreatedAt.IsZero() || len(runs.Sources) != 0 {
		t.Errorf("a new table: %+v", runs)
	}
	odd := `odd "name" of 63 bytes; DROP TABLE é …`
	makeTable(t, s, sqlTable("daily", "runs"))
	made := makeTable(t, s, sqlTable(odd, "daily", "runs"))
	if !slices.Equal(made.Sources, []string{"daily", "runs"}) || made.Description != "the table "+odd {
		t.Errorf("made %+v", made)
	}
	_, err := s.CreateDynamicTable(ctx, sqlTable("daily"))
	WantTaken(t, err)
	_, err = s.CreateDynamicTable(ctx, sqlTable("lost", "nowhere"))
	WantError(t, err, store.ErrNotFound)
	_, err = s.CreateDynamicTable(ctx, sqlTable("self", "self"))
	WantError(t, err, store.ErrConflict)
	for _, bad := range []refresh.Table{sqlTable(""), {Name: "x", Kind: refresh.SQL, TargetLagSeconds: 60}, {Name: "x",
		Kind: refresh.SQL, Definition: "SELECT 1"}} {
		if _, err := s.CreateDynamicTable(ctx, bad); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	daily := sqlTable("daily", odd)
	daily.Version = 1
	_, err = s.UpdateDynamicTable(ctx, daily)
	WantError(t, err, store.ErrConflict) // a circle
	daily.Sources, daily.Definition, daily.UpdatedBy = []string{"runs"}, "SELECT 2 AS two", "bob"
	updated, err := s.UpdateDynamicTable(ctx, daily)
	Must(t, err)
	if updated.Version != 2 || updated.Definition != "SELECT 2 AS two" || !updated.AsOf.IsZero() {
		t.Errorf("updated %+v", updated)
	}
	read, err := s.DynamicTable(ctx, "daily")
	Must(t, err)
	Same(t, "the table that was changed", read, updated)
	_, err = s.DynamicTable(ctx, "nowhere")
	WantError(t, err, store.ErrNotFound)
	_, err = s.UpdateDynamicTable(ctx, daily) // the version that was edited is not the newest
	WantError(t, err, store.ErrConflict)
	if err == nil || !strings.Contains(err.Error(), "bob") ||
		!strings.Contains(err.Error(), updated.UpdatedAt.UTC().Format("15:04:05")) {
		t.Errorf("who was faster, and when: %v", err)
	}
	Must(t, s.SetDynamicTableStatus(ctx, "daily", refresh.Failed))
	daily.Version = 2
	if again, err := s.UpdateDynamicTable(ctx, daily); err != nil || again.Status != refresh.Active {
		t.Errorf("a failed table that was changed: %+v, %v", again, err)
	}
	Must(t, s.SetDynamicTableStatus(ctx, "daily", refresh.Suspended))
	daily.Version = 3
	if again, err := s.UpdateDynamicTable(ctx, daily); err != nil || again.Status != refresh.Suspended {
		t.Errorf("a suspended table that was changed: %+v, %v", again, err)
	}
	WantError(t, s.DropDynamicTable(ctx, "daily"), store.ErrInUse)
	WantError(t, s.DropDynamicTable(ctx, "nowhere"), store.ErrNotFound)
	Must(t, s.DropDynamicTable(ctx, odd))
	Must(t, s.DropDynamicTable(ctx, "daily"))
	if _, tables := refreshState(t, s); len(tables) != 1 {
		t.Errorf("tables that are left: %v", tables)
	}
}

func refreshClaims(t *testing.T, s Store) {
	ctx := t.Context()
	for _, name := range []string{"a", "b", "c"} {
		makeTable(t, s, sqlTable(name))
	}
	state, _ := refreshState(t, s)
	began := state.Now
	ago := func(d time.Duration) engine.Time { return engine.At(began.Add(-d)) }
	in := func(name string, priority int, due engine.Time) refresh.Pending {
		return refresh.Pending{Task: refresh.Task{Table: name}, Priority: priority, Due: due}
	}
	plan := refresh.Schedule{Enqueue: []refresh.Pending{in("a", 1, ago(time.Minute)), in("b", 2, ago(time.Second)),
		in("c", 2, ago(time.Hour))}, Due: map[string]engine.Time{"a": ago(time.Minute), "b": {}}}
	Must(t, s.ScheduleRefreshes(ctx, plan))
	plan.Enqueue[0].Priority = 9
	Must(t, s.ScheduleRefreshes(ctx, plan)) // another server; one entry each stays as it is
	state, tables := refreshState(t, s)
	if len(state.Pending) != 3 || !tables["a"].NextDue.Equal(ago(time.Minute).Time) || !tables["b"].NextDue.IsZero() {
		t.Errorf("queue %+v, tables %+v", state.Pending, tables)
	}
	first, err := s.ClaimRefreshes(ctx, "w1", refresh.ClaimTTL, 2)
	Must(t, err)
	if len(first) != 2 || first[0].Table+first[1].Table != "cb" && first[0].Table+first[1].Table != "bc" {
		t.Fatalf("claimed %+v, want the two of the highest priority", first)
	}
	second := claimOne(t, s, "w2")
	if second.Table != "a" || second.Epoch <= first[0].Epoch || second.Worker != "w2" ||
		second.ExpiresAt.Sub(second.HeartbeatAt.Time) != refresh.ClaimTTL {
		t.Errorf("the second claim is %+v", second)
	}
	none, err := s.ClaimRefreshes(ctx, "w3", refresh.ClaimTTL, 5)
	Must(t, err)
	if len(none) != 0 {
		t.Errorf("claimed twice: %+v", none)
	}
	Must(t, s.RenewRefresh(ctx, second, refresh.ClaimTTL))
	stale := second
	stale.Epoch--
	WantError(t, s.RenewRefresh(ctx, stale, refresh.ClaimTTL), store.ErrClaimLost)
	WantError(t, s.ReleaseRefresh(ctx, stale, refresh.Result{}), store.ErrClaimLost)
	Must(t, s.AbandonRefresh(ctx, stale, 0))
	if state, _ := refreshState(t, s); len(state.Claims) != 3 {
		t.Errorf("an old epoch took a claim away: %+v", state.Claims)
	}
	Must(t, s.AbandonRefresh(ctx, second, 0))
	again := claimOne(t, s, "w3")
	if again.Table != "a" || again.Epoch <= second.Epoch {
		t.Errorf("claimed again: %+v after %+v", again, second)
	}
	WantError(t, s.ReleaseRefresh(ctx, second, refresh.Result{}), store.ErrClaimLost)
	Must(t, s.ReleaseRefresh(ctx, again, refresh.Result{Rows: 3}))
	WantError(t, s.ReleaseRefresh(ctx, again, refresh.Result{}), store.ErrClaimLost)
	if state, _ := refreshState(t, s); len(state.Pending) != 2 || len(state.Claims) != 2 {
		t.Errorf("after the release: %+v", state)
	}
}

func refreshExpiry(t *testing.T, s Store) {
	ctx := t.Context()
	makeTable(t, s, sqlTable("a"))
	enqueue(t, s, refresh.Task{Table: "a"})
	claims, err := s.ClaimRefreshes(ctx, "w1", 20*time.Millisecond, 1)
	Must(t, err)
	if len(claims) != 1 {
		t.Fatal(claims)
	}
	for swept := 0; swept == 0; {
		Must(t, ctx.Err())
		time.Sleep(10 * time.Millisecond)
		// The expiry alone decides, whether somebody has swept or not.
		state, _ := refreshState(t, s)
		if expired := !state.Now.Before(claims[0].ExpiresAt.Time); expired {
			WantError(t, s.RenewRefresh(ctx, claims[0], refresh.ClaimTTL), store.ErrClaimLost)
			WantError(t, s.ReleaseRefresh(ctx, claims[0], refresh.Result{}), store.ErrClaimLost)
		}
		swept, err = s.SweepRefreshes(ctx)
		Must(t, err)
	}
	next := claimOne(t, s, "w2")
	if next.Epoch <= claims[0].Epoch {
		t.Errorf("the next epoch is %d, the one before %d", next.Epoch, claims[0].Epoch)
	}
	Must(t, s.ReleaseRefresh(ctx, next, refresh.Result{}))
}

func refreshResults(t *testing.T, s Store) {
	ctx := t.Context()
	makeTable(t, s, sqlTable("a"))
	makeTable(t, s, sqlTable("b", "a"))
	enqueue(t, s, refresh.Task{Table: "b"})
	before := claimOne(t, s, "w")
	enqueue(t, s, refresh.Task{Table: "a"})
	c := claimOne(t, s, "w")
	Must(t, s.ReleaseRefresh(ctx, c, refresh.Result{Rows: 7, Bytes: 70, Mode: refresh.Full, Note: "all of it"}))
	_, tables := refreshState(t, s)
	if a := tables["a"]; !a.AsOf.Equal(c.ClaimedAt.Time) || a.LastSeconds < 0 || !a.BehindSince.IsZero() {
		t.Errorf("a after its refresh: %+v", a)
	}
	if b := tables["b"]; b.BehindSince.IsZero() || b.ChangedAt.Before(c.ClaimedAt.Time) {
		t.Errorf("b reads a, which has changed: %+v", b)
	}
	// What changed while b was being refreshed may not be in it.
	Must(t, s.ReleaseRefresh(ctx, before, refresh.Result{Rows: 1}))
	_, tables = refreshState(t, s)
	if b := tables["b"]; b.BehindSince.IsZero() || !b.AsOf.Equal(before.ClaimedAt.Time) {
		t.Errorf("b after a refresh that began before a changed: %+v", b)
	}
	enqueue(t, s, refresh.Task{Table: "a"})
	c = claimOne(t, s, "w")
	behind := tables["b"].ChangedAt
	Must(t, s.ReleaseRefresh(ctx, c, refresh.Result{Unchanged: true}))
	_, tables = refreshState(t, s)
	if !tables["b"].ChangedAt.Equal(behind.Time) {
		t.Error("a refresh that changed nothing makes readers look")
	}
	history, err := s.RefreshHistory(ctx, "a", 10)
	Must(t, err)
	if len(history) != 2 || history[1].Rows != 7 || history[1].Bytes != 70 || history[1].Mode != refresh.Full ||
		history[1].Note != "all of it" || history[1].LagSeconds == nil || history[0].LagSeconds != nil {
		t.Errorf("history %+v", history)
	}
	Must(t, s.PruneRefreshHistory(ctx, 1))
	if history, err = s.RefreshHistory(ctx, "a", 10); err != nil || len(history) != 1 || history[0].Rows != 0 {
		t.Errorf("pruned to %+v, %v", history, err)
	}
	Must(t, s.RequestRefresh(ctx, "b"))
	got := claimOne(t, s, "w")
	if got.Table != "b" {
		t.Errorf("claimed %+v", got)
	}
	// Who asks for what is being done is answered by it: the table is not behind for that when it is done.
	Must(t, s.RequestRefresh(ctx, "b"))
	Must(t, s.ReleaseRefresh(ctx, got, refresh.Result{Mode: refresh.Full}))
	if state, tables := refreshState(t, s); !tables["b"].BehindSince.IsZero() || len(state.Pending) != 0 {
		t.Errorf("asked for in a refresh, it is behind afterwards: %+v, %+v", tables["b"], state.Pending)
	}
	// Nobody does it where the worker has died, though its claim is still there.
	Must(t, s.RequestRefresh(ctx, "b"))
	if dead, err := s.ClaimRefreshes(ctx, "w", time.Microsecond, 1); err != nil || len(dead) != 1 {
		t.Fatalf("claimed %+v, %v", dead, err)
	}
	_, tables = refreshState(t, s)
	asked := tables["b"].ChangedAt
	Must(t, s.RequestRefresh(ctx, "b"))
	if _, tables := refreshState(t, s); !tables["b"].ChangedAt.After(asked.Time) {
		t.Errorf("asked for while a dead worker has the claim: %+v", tables["b"])
	}
}

func refreshFailures(t *testing.T, s Store) {
	ctx := t.Context()
	makeTable(t, s, sqlTable("a"))
	for n := 1; n <= refresh.MaxFailures; n++ {
		Must(t, s.RequestRefresh(ctx, "a")) // now, and not when its pause is over
		c := claimOne(t, s, "w")
		Must(t, s.ReleaseRefresh(ctx, c, refresh.Result{Error: fmt.Sprintf("no %d", n)}))
		state, tables := refreshState(t, s)
		a := tables["a"]
		if a.Failures != n || a.Error != fmt.Sprintf("no %d", n) {
			t.Fatalf("after failure %d: %+v", n, a)
		}
		if n == refresh.MaxFailures {
			if a.Status != refresh.Failed || len(state.Pending) != 0 || Failed(t, s) != 1 {
				t.Errorf("after %d failures: %+v, %+v", n, a, state.Pending)
			}
			continue
		}
		pause, _ := refresh.AfterFailure(n)
		if len(state.Pending) != 1 || state.Pending[0].Due.Before(c.ClaimedAt.Add(pause)) {
			t.Errorf("after failure %d: %+v, want it %s later", n, state.Pending, pause)
		}
		if none, err := s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 1); err != nil || len(none) > 0 {
			t.Errorf("a task in its pause is claimed: %v, %v", none, err)
		}
	}
	WantError(t, s.RequestRefresh(ctx, "a"), store.ErrConflict)
	WantError(t, s.RequestRefresh(ctx, "nowhere"), store.ErrNotFound)
	enqueue(t, s, refresh.Task{Table: "a"})
	if state, _ := refreshState(t, s); len(state.Pending) != 0 {
		t.Error("a failed table is put into the queue")
	}
	Must(t, s.SetDynamicTableStatus(ctx, "a", refresh.Active))
	if _, tables := refreshState(t, s); tables["a"].Failures != 0 || tables["a"].Error != "" {
		t.Errorf("resumed: %+v", tables["a"])
	}
	enqueue(t, s, refresh.Task{Table: "a"})
	Must(t, s.SetDynamicTableStatus(ctx, "a", refresh.Suspended))
	if state, tables := refreshState(t, s); len(state.Pending) != 0 || tables["a"].Status != refresh.Suspended {
		t.Errorf("suspended: %+v", state)
	}
	WantError(t, s.SetDynamicTableStatus(ctx, "nowhere", refresh.Active), store.ErrNotFound)
}

// refreshOwners: a table whose owner has lost the right to it is suspended with the reason, and its claims end. Who
// resumes or changes a table is its owner then; what is bundled has none.
func refreshOwners(t *testing.T, s Store) {
	ctx := t.Context()
	owned := func(want ...string) {
		t.Helper()
		tables, err := s.OwnedTables(ctx)
		Must(t, err)
		var got []string
		for _, table := range tables {
			got = append(got, table.Name+" of "+table.Owner)
		}
		if !slices.Equal(got, want) {
			t.Errorf("tables with owners: %q, want %q", got, want)
		}
	}
	makeTable(t, s, ingestTable("runs"))
	makeTable(t, s, sqlTable("older"))
	adas := sqlTable("adas", "runs")
	adas.OwnerID, adas.Owner = "1", "ada"
	adas = makeTable(t, s, adas)
	owned("adas of ada")
	enqueue(t, s, refresh.Task{Table: "adas"})
	c := claimOne(t, s, "w")
	Must(t, s.RevokeDynamicTable(ctx, "adas", "2", "bob is gone"))
	Must(t, s.RenewRefresh(ctx, c, refresh.ClaimTTL)) // it is not bob's
	Must(t, s.RevokeDynamicTable(ctx, "adas", "1", "ada is locked out"))
	Must(t, s.RevokeDynamicTable(ctx, "nowhere", "1", "ada is locked out"))
	WantError(t, s.RenewRefresh(ctx, c, refresh.ClaimTTL), store.ErrClaimLost)
	WantError(t, s.ReleaseRefresh(ctx, c, refresh.Result{Rows: 1}), store.ErrClaimLost)
	enqueue(t, s, refresh.Task{Table: "adas"})
	state, tables := refreshState(t, s)
	if now := tables["adas"]; now.Status != refresh.Suspended || now.Suspended != "ada is locked out" ||
		len(state.Pending)+len(state.Claims) != 0 {
		t.Errorf("revoked: %+v, with %+v", now, state.Pending)
	}
	WantError(t, s.RequestRefresh(ctx, "adas"), store.ErrConflict)
	owned()

	// A change by nobody's hand does not resume it, and does not hide why it is suspended; one by a user does both, as a
	// hook is resumed that a user changes.
	adas.UpdatedBy, adas.OwnerID, adas.Owner = "the server", "", ""
	changed, err := s.UpdateDynamicTable(ctx, adas)
	Must(t, err)
	if changed.Status != refresh.Suspended || changed.Suspended != "ada is locked out" || changed.Owner != "ada" {
		t.Errorf("changed while it is suspended: %+v", changed)
	}
	adas.Version, adas.UpdatedBy, adas.OwnerID, adas.Owner = changed.Version, "eve", "3", "eve"
	changed, err = s.UpdateDynamicTable(ctx, adas)
	Must(t, err)
	if changed.Status != refresh.Active || changed.Suspended != "" || changed.Owner != "eve" {
		t.Errorf("changed by a user while it is suspended: %+v", changed)
	}
	owned("adas of eve")

	// Who suspends a table by hand finds it suspended after a change.
	Must(t, s.SetDynamicTableStatus(ctx, "adas", refresh.Suspended))
	adas.Version = changed.Version
	if changed, err = s.UpdateDynamicTable(ctx, adas); err != nil || changed.Status != refresh.Suspended {
		t.Errorf("suspended by hand, and changed: %+v, %v", changed, err)
	}
	for _, name := range []string{"adas", "runs", "older"} {
		Must(t, s.ResumeDynamicTable(ctx, name, "2", "bob"))
	}
	owned("adas of bob", "older of bob")
	if _, tables := refreshState(t, s); tables["adas"].Suspended != "" || tables["adas"].Status != refresh.Active ||
		tables["adas"].CreatedBy != "ada" {
		t.Errorf("resumed: %+v", tables["adas"])
	}
	WantError(t, s.ResumeDynamicTable(ctx, "nowhere", "2", "bob"), store.ErrNotFound)
}

func refreshRuns(t *testing.T, s Store) {
	ctx := t.Context()
	makeTable(t, s, ingestTable("runs"))
	makeTable(t, s, sqlTable("daily", "runs"))
	Create(t, s, "live")
	Create(t, s, "over")
	stale := func(want ...string) {
		t.Helper()
		state, _ := refreshState(t, s)
		if behind := Behind(t, s, "runs"); !slices.Equal(state.Runs["runs"], want) || behind != (len(want) > 0) {
			t.Fatalf("runs to take in: %v (%v), want %v", state.Runs["runs"], behind, want)
		}
	}
	stale()
	Move(t, s, "live", engine.StatusRunning)
	Move(t, s, "over", engine.StatusRunning, engine.StatusCancelling, engine.StatusFailed)
	processing, none := engine.PhaseProcessing, engine.PhaseNone
	_, err := s.Transition(ctx, store.Transition{RunID: "over", Phase: &processing})
	Must(t, err)
	stale() // its figures are being computed
	_, err = s.Transition(ctx, store.Transition{RunID: "over", Phase: &none})
	Must(t, err)
	stale("over")
	task := refresh.Task{Table: "runs", Subtask: "over"}
	refreshed := func(r refresh.Result) {
		t.Helper()
		enqueue(t, s, task)
		c := claimOne(t, s, "w")
		if c.Task != task {
			t.Fatalf("claimed %+v", c)
		}
		Must(t, s.ReleaseRefresh(ctx, c, r))
	}
	refreshed(refresh.Result{Rows: 5})
	stale()
	if _, tables := refreshState(t, s); tables["daily"].BehindSince.IsZero() {
		t.Error("what reads the runs does not know that one was taken in")
	}
	// Late figures make it a run to be taken in again.
	Must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "over", RunID: "over", FailureReason: "late"}))
	stale("over")
	refreshed(refresh.Result{Error: "damaged"})
	enqueue(t, s, task)
	if state, _ := refreshState(t, s); len(state.Pending) != 1 || !state.Pending[0].Due.After(state.Now.Time) {
		t.Errorf("a run that failed to be taken in: %+v", state.Pending)
	}
	stale("over") // what could not be taken in is not there
	_, tables := refreshState(t, s)
	if f := tables["runs"].Failing; len(f) != 1 || f[0].Subtask != "over" || f[0].Failures != 1 || f[0].GivenUp ||
		f[0].Error != "damaged" || f[0].FailedAt.IsZero() || tables["runs"].Failures != 0 {
		t.Errorf("a run that is tried again: %+v", tables["runs"])
	}
	Must(t, s.SetDynamicTableStatus(ctx, "runs", refresh.Suspended))
	stale()
	Must(t, s.SetDynamicTableStatus(ctx, "runs", refresh.Active))
	stale("over")
	refreshed(refresh.Result{})
	Must(t, s.DeleteRun(ctx, "over"))
	stale("over")
	refreshed(refresh.Result{Gone: true})
	stale()
}

func refreshRace(t *testing.T, s Store) {
	const tasks, workers = 120, 12
	makeTable(t, s, ingestTable("runs"))
	var all []refresh.Task
	for i := range tasks {
		all = append(all, refresh.Task{Table: "runs", Subtask: fmt.Sprintf("run-%d", i)})
	}
	enqueue(t, s, all...)
	var mu sync.Mutex
	epochs := map[int64]refresh.Task{}
	done := map[refresh.Task]int{}
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for t.Context().Err() == nil {
				claims, err := s.ClaimRefreshes(context.Background(), fmt.Sprintf("w%d", w), refresh.ClaimTTL, 1+w%3)
				if err != nil {
					t.Error(err)
					return
				}
				for _, c := range claims {
					mu.Lock()
					if task, taken := epochs[c.Epoch]; taken {
						t.Errorf("epoch %d is of %v and %v", c.Epoch, task, c.Task)
					}
					epochs[c.Epoch] = c.Task
					mu.Unlock()
					if err := s.ReleaseRefresh(context.Background(), c, refresh.Result{Unchanged: true}); err != nil {
						t.Errorf("a claim of its own is lost: %v", err)
					}
					mu.Lock()
					done[c.Task]++
					mu.Unlock()
				}
				mu.Lock()
				over := len(done) == tasks
				mu.Unlock()
				if over {
					return
				}
			}
		})
	}
	group.Wait()
	for task, times := range done {
		if times != 1 {
			t.Errorf("%v was refreshed %d times", task, times)
		}
	}
	if len(done) != tasks {
		t.Errorf("%d of %d tasks were refreshed", len(done), tasks)
	}
}

func awaitRefreshes(t *testing.T, s Store) {
	makeTable(t, s, sqlTable("a"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waiting, end := context.WithCancel(ctx)
	told, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() {
		ended <- s.AwaitRefreshes(waiting, func() {
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}()
	hear := func(what string) {
		t.Helper()
		select {
		case <-told:
		case err := <-ended:
			t.Fatalf("%s: it has ended with %v", what, err)
		case <-ctx.Done():
			t.Fatalf("%s: nobody was told", what)
		}
	}
	hear("it listens")
	for range 2 {
		Must(t, s.RequestRefresh(ctx, "a"))
		hear("a table is to be refreshed")
		Must(t, s.ReleaseRefresh(ctx, claimOne(t, s, "w"), refresh.Result{}))
	}
	end()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("waiting with a context that is over: %v", err)
	}
}
