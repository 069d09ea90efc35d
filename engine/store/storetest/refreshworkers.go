// This part is the part of storetest about who refreshes tables, and how much there is to refresh.

package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// Workers checks that workers are known while they say so.
func Workers(t *testing.T, s Store) {
	ctx := t.Context()
	server := refresh.Worker{Name: "b", Role: refresh.Server, Host: "one\x00", Kinds: []refresh.Kind{refresh.SQL,
		refresh.Ingest}, Slots: 2}
	node := refresh.Worker{Name: "a", Role: refresh.Node, Host: "two", Kinds: []refresh.Kind{refresh.SQL}, Slots: 4,
		Waits: "a run is carried here"}
	Must(t, s.NoteRefreshWorker(ctx, node))
	Must(t, s.NoteRefreshWorker(ctx, server))
	first := workers(t, s)
	if len(first) != 2 {
		t.Fatalf("workers: %+v", first)
	}
	time.Sleep(2 * time.Millisecond)
	node.Waits, node.Slots = "", 3
	Must(t, s.NoteRefreshWorker(ctx, node))
	got := workers(t, s)
	for name, want := range map[string]refresh.Worker{"a": node, "b": server} {
		w := got[name]
		if w.Role != want.Role || !slices.Equal(w.Kinds, want.Kinds) || w.Slots != want.Slots || w.Waits != want.Waits {
			t.Errorf("%+v, want %+v", w, want)
		}
	}
	if !got["a"].SeenAt.After(first["a"].SeenAt.Time) || !got["b"].SeenAt.Equal(first["b"].SeenAt.Time) {
		t.Errorf("seen %+v, before %+v", got, first)
	}
	Must(t, s.PruneRefreshHistory(ctx, 10))
	Must(t, s.ForgetRefreshWorker(ctx, "a"))
	Must(t, s.ForgetRefreshWorker(ctx, "nobody"))
	if got := workers(t, s); len(got) != 1 || got["b"].Name != "b" {
		t.Errorf("after one has ended: %+v", got)
	}
}

func workers(t testing.TB, s Store) map[string]refresh.Worker {
	t.Helper()
	state, err := s.RefreshState(t.Context(), 1)
	Must(t, err)
	all := map[string]refresh.Worker{}
	for _, w := range state.Workers {
		all[w.Name] = w
	}
	return all
}

// Load checks how much there is to refresh: what is due or under way, how long the oldest entry waits, how long
// refreshes took.
func Load(t *testing.T, s Store) {
	ctx := t.Context()
	load := func() refresh.Load {
		t.Helper()
		l, err := s.RefreshLoad(ctx)
		Must(t, err)
		return l
	}
	if l := load(); l != (refresh.Load{}) {
		t.Errorf("of an empty queue: %+v", l)
	}
	var plan refresh.Schedule
	state, err := s.RefreshState(ctx, 1)
	Must(t, err)
	for name, ago := range map[string]time.Duration{"a": time.Hour, "b": time.Minute, "later": -time.Hour} {
		_, err := s.CreateDynamicTable(ctx, refresh.Table{Name: name, Kind: refresh.SQL, Definition: "SELECT 1",
			TargetLagSeconds: 60, Mode: refresh.Full})
		Must(t, err)
		due := state.Now
		due.Time = due.Add(-ago)
		plan.Enqueue = append(plan.Enqueue, refresh.Pending{Task: refresh.Task{Table: name}, Due: due})
	}
	Must(t, s.ScheduleRefreshes(ctx, plan))
	if l := load(); l.Due != 2 || l.OldestSeconds < 3600 || l.OldestSeconds > 3660 || l.P95Seconds != 0 ||
		l.OverdueSeconds < 3600 || l.OverdueSeconds > 3660 {
		t.Errorf("with two that are due: %+v", l)
	}
	claims, err := s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 1)
	Must(t, err)
	if len(claims) != 1 || claims[0].Table != "a" {
		t.Fatalf("claimed %+v", claims)
	}
	if l := load(); l.Due != 2 || l.OldestSeconds < 60 || l.OldestSeconds > 120 || l.OverdueSeconds < 3600 {
		t.Errorf("with one that is under way: %+v", l)
	}
	time.Sleep(3 * time.Millisecond)
	Must(t, s.ReleaseRefresh(ctx, claims[0], refresh.Result{}))
	if l := load(); l.Due != 1 || l.P95Seconds < 0.003 || l.P95Seconds > 60 {
		t.Errorf("after one is done: %+v", l)
	}
	claims, err = s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 1)
	Must(t, err)
	before := load()
	Must(t, s.ReleaseRefresh(ctx, claims[0], refresh.Result{Error: "no"}))
	if l := load(); l.Due != 0 || l.OldestSeconds != 0 || l.P95Seconds != before.P95Seconds || l.OverdueSeconds <= 0 ||
		l.OverdueSeconds > 60 {
		t.Errorf("after a failure, which is tried again later: %+v", l)
	}
}

// Behind says whether an INGEST table, the only one, is behind the runs, and checks that what is shown of it and the
// load agree, also about how many tables have failed.
func Behind(t *testing.T, s Store, name string) bool {
	t.Helper()
	time.Sleep(time.Millisecond)
	state, err := s.RefreshState(t.Context(), 1)
	Must(t, err)
	l, err := s.RefreshLoad(t.Context())
	Must(t, err)
	i := slices.IndexFunc(state.Tables, func(t refresh.Table) bool { return t.Name == name })
	since := state.Tables[i].BehindSince
	behind, lag := !since.IsZero(), 0.0
	if behind {
		lag = state.Now.Sub(since.Time).Seconds()
	}
	if lag < 0 || lag > 60 || lag > l.IngestLagSeconds || l.IngestLagSeconds > lag+60 ||
		!behind && l.IngestLagSeconds > 0 {
		t.Errorf("%s is behind by %v s, and the load says %v s", name, lag, l.IngestLagSeconds)
	}
	Failed(t, s)
	return behind
}

// Failed checks that the load counts the tables that have failed, and returns how many.
func Failed(t *testing.T, s Store) (failed int) {
	t.Helper()
	state, err := s.RefreshState(t.Context(), 1)
	Must(t, err)
	for _, table := range state.Tables {
		if table.Status == refresh.Failed {
			failed++
		}
	}
	if l, err := s.RefreshLoad(t.Context()); err != nil || l.Failed != failed {
		t.Errorf("%d tables have failed, and the load says %d: %v", failed, l.Failed, err)
	}
	return failed
}
