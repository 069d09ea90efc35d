package postgres_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

// Grants keeps who started a run, or the matrix that it is of, for as long as these are there.
func Grants(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	none := func(runID, matrixID string) {
		t.Helper()
		if g, err := s.StartGrant(ctx, runID, matrixID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the start of %q, %q: %+v, %v", runID, matrixID, g, err)
		}
	}
	must(t, s.CreateMatrix(ctx, engine.MatrixRun{MatrixID: "m", Name: "m", Labels: []string{"a"}}))
	must(t, s.CreateRun(ctx, engine.Run{RunID: "r", RunName: "r",
		MatrixMember: engine.MatrixMember{MatrixID: "m", MatrixLabel: "a"}}))
	none("r", "m")
	for _, missing := range []store.StartGrant{{RunID: "none", UserID: "1"}, {MatrixID: "none", UserID: "1"}} {
		if _, err := s.SaveStartGrant(ctx, missing); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a start of what is not there: %v", err)
		}
	}
	grant := func(g store.StartGrant) store.GrantChange {
		t.Helper()
		granted, err := s.SaveStartGrant(ctx, g)
		must(t, err)
		return granted
	}
	grant(store.StartGrant{MatrixID: "m", UserID: "1", UserName: "ada"})
	is := func(want store.StartGrant) {
		t.Helper()
		g, err := s.StartGrant(ctx, "r", "m")
		if err != nil || g.UserID != want.UserID || g.UserName != want.UserName || g.RunID != want.RunID ||
			!slices.Equal(g.Confirmed, want.Confirmed) || g.GrantedAt.IsZero() {
			t.Errorf("granted %+v, %v, want %+v", g, err, want)
		}
	}
	is(store.StartGrant{UserID: "1", UserName: "ada"})
	none("r", "")
	for _, again := range []store.StartGrant{{RunID: "r", UserID: "2", UserName: "bob", Confirmed: []string{"c1", "c2"}},
		{RunID: "r", UserID: "1", UserName: "ada", Confirmed: []string{"c3"}}} {
		grant(again)
		is(again)
	}
	settled(t, s, grant, is)
	must(t, s.DeleteRun(ctx, "r"))
	none("r", "")
	must(t, s.DeleteMatrix(ctx, "m"))
	none("r", "m")
}

// settled: a start that is refused gives back who was judged before, and one that was begun stays its user's.
func settled(
	t *testing.T,
	s *postgres.Store,
	grant func(store.StartGrant) store.GrantChange,
	is func(store.StartGrant),
) {
	ctx := t.Context()
	of := func(user string) store.StartGrant {
		return store.StartGrant{RunID: "r", UserID: user, UserName: "user " + user, Confirmed: []string{"c" + user}}
	}
	ada, bob := grant(of("1")), grant(of("2"))
	if bob.Previous == nil || bob.Previous.UserID != "1" || !bob.Previous.GrantedAt.Equal(ada.GrantedAt.Time) {
		t.Errorf("before bob's there was %+v, want %+v", bob.Previous, ada)
	}
	must(t, s.ResolveStart(ctx, bob, false))
	is(of("1"))
	// Two tried after ada and before her start was begun: their refusals come in the order that is worst.
	bob, eve := grant(of("2")), grant(of("3"))
	must(t, s.ResolveStart(ctx, bob, false))
	is(of("3"))
	must(t, s.ResolveStart(ctx, ada, true))
	must(t, s.ResolveStart(ctx, eve, false))
	is(of("1"))
	must(t, s.CreateRun(ctx, engine.Run{RunID: "alone", RunName: "alone"}))
	only := grant(store.StartGrant{RunID: "alone", UserID: "2", UserName: "bob"})
	must(t, s.ResolveStart(ctx, only, false))
	if g, err := s.StartGrant(ctx, "alone", ""); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after a refused start: %+v, %v", g, err)
	}
	_, err := s.Transition(ctx, store.Transition{RunID: "alone", From: []engine.Status{engine.StatusPrepared},
		To: engine.StatusCancelled})
	must(t, err)
	if _, err := s.SaveStartGrant(ctx, of("2")); err != nil {
		t.Errorf("another one: %v", err)
	}
	if _, err := s.SaveStartGrant(ctx, store.StartGrant{RunID: "alone", UserID: "2"}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a start of what is over: %v", err)
	}
	must(t, s.DeleteRun(ctx, "alone"))
}
