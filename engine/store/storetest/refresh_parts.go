package storetest

import (
	"slices"
	"testing"

	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
)

// refreshParts: a table is refreshed in parts that are claimed by themselves. It is due again when the last is done,
// and one that fails for good fails the table.
func refreshParts(t *testing.T, s Store) {
	ctx := t.Context()
	makeTable(t, s, sqlTable("a"))
	makeTable(t, s, sqlTable("b", "a"))
	makeTable(t, s, ingestTable("runs"))
	enqueue(t, s, refresh.Task{Table: "a"})
	none, err := s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 5, refresh.Ingest)
	if Must(t, err); len(none) != 0 {
		t.Fatalf("claimed %+v, want those of INGEST tables alone", none)
	}
	claims, err := s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 5, refresh.SQL)
	if Must(t, err); len(claims) != 1 {
		t.Fatal(claims)
	}
	whole := claims[0]
	Must(t, s.ReleaseRefresh(ctx, whole, refresh.Result{Parts: []string{"1", "2", "3"}, ReplaceParts: true}))
	WantError(t, s.ReleaseRefresh(ctx, whole, refresh.Result{Parts: []string{"4"}}), store.ErrClaimLost)
	claims, err = s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 9)
	all := func(c refresh.Claim) bool { return c.Subtask == "" }
	if Must(t, err); len(claims) != 3 || slices.ContainsFunc(claims, all) {
		t.Fatalf("claimed %+v, want the parts alone", claims)
	}
	lost, err := s.ReleaseRefreshes(ctx, []refresh.Completion{{Claim: claims[0], Result: refresh.Result{Unchanged: true}},
		{Claim: whole}, {Claim: claims[1], Result: refresh.Result{Unchanged: true}}})
	if Must(t, err); len(lost) != 1 || lost[0].Epoch != whole.Epoch {
		t.Errorf("lost are %+v, want %+v", lost, whole)
	}
	if none, err = s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 9); err != nil || len(none) != 0 {
		t.Errorf("claimed %+v, %v before the last part is done", none, err)
	}
	Must(t, s.ReleaseRefresh(ctx, claims[2], refresh.Result{Unchanged: true}))
	if _, tables := refreshState(t, s); !tables["b"].BehindSince.IsZero() || !tables["a"].AsOf.IsZero() {
		t.Error("parts are shown before all of the table is there")
	}
	again := claimOne(t, s, "w")
	if again.Subtask != "" {
		t.Fatalf("claimed %+v, want all of the table", again)
	}
	Must(t, s.ReleaseRefresh(ctx, again, refresh.Result{Rows: 3}))
	state, tables := refreshState(t, s)
	// What the parts read was settled when it was divided.
	if !tables["a"].AsOf.Equal(whole.ClaimedAt.Time) || tables["b"].BehindSince.IsZero() || len(state.Pending) != 0 {
		t.Errorf("a is as of %v, it was divided at %v; %+v", tables["a"].AsOf, whole.ClaimedAt, state.Pending)
	}
	refreshFailedPart(t, s)
}

// refreshFailedPart: the part that fails is tried again, alone, and the table waits for it.
func refreshFailedPart(t *testing.T, s Store) {
	ctx := t.Context()
	Must(t, s.RequestRefresh(ctx, "a"))
	Must(t, s.ReleaseRefresh(ctx, claimOne(t, s, "w"), refresh.Result{Parts: []string{"1", "2"}, ReplaceParts: true}))
	claims, err := s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 9)
	if Must(t, err); len(claims) != 2 {
		t.Fatal(claims)
	}
	for _, c := range claims {
		result := refresh.Result{Unchanged: true}
		if c.Subtask == "2" {
			result.Error = "no"
		}
		Must(t, s.ReleaseRefresh(ctx, c, result))
	}
	state, tables := refreshState(t, s)
	pause, _ := refresh.AfterFailure(1)
	i := slices.IndexFunc(state.Pending, func(p refresh.Pending) bool { return p.Subtask == "2" })
	if len(state.Pending) != 2 || i < 0 || state.Pending[i].Due.Before(claims[0].ClaimedAt.Add(pause)) ||
		tables["a"].Status != refresh.Active {
		t.Fatalf("a part has failed once: %+v", state.Pending)
	}
	if f := tables["a"].Failing; len(f) != 1 || f[0].Subtask != "2" || f[0].Failures != 1 || f[0].GivenUp ||
		f[0].Error != "no" {
		t.Errorf("a part has failed once: %+v", f)
	}
	if early, err := s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 9); err != nil || len(early) != 0 {
		t.Errorf("claimed in its pause: %+v, %v", early, err)
	}
	// Whoever is asked for all of the table meanwhile names the part that is missing, which stays as it is.
	Must(t, s.RequestRefresh(ctx, "a"))
	whole := claimOne(t, s, "w")
	Must(t, s.ReleaseRefresh(ctx, whole, refresh.Result{Parts: []string{"2"}}))
	if early, err := s.ClaimRefreshes(
		ctx,
		"w",
		refresh.ClaimTTL,
		9,
	); whole.Subtask != "" || err != nil ||
		len(early) != 0 {
		t.Errorf("claimed %+v, and in its pause: %+v, %v", whole, early, err)
	}
	// A new division forgets what there was, and who still holds some of it.
	Must(t, s.RequestRefresh(ctx, "a"))
	Must(t, s.ReleaseRefresh(ctx, claimOne(t, s, "w"), refresh.Result{Parts: []string{"x"}, ReplaceParts: true}))
	held := claimOne(t, s, "w")
	Must(t, s.RequestRefresh(ctx, "a"))
	Must(t, s.ReleaseRefresh(ctx, claimOne(t, s, "w"), refresh.Result{Parts: []string{"y"}, ReplaceParts: true}))
	WantError(t, s.ReleaseRefresh(ctx, held, refresh.Result{Unchanged: true}), store.ErrClaimLost)
	if next := claimOne(t, s, "w"); held.Subtask != "x" || next.Subtask != "y" {
		t.Errorf("held %+v, then %+v", held, next)
	}
}
