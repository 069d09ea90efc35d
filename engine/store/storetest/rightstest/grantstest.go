package rightstest

import (
	"errors"
	"slices"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Grants keeps who started a run, or the matrix that it is of, for as long as these are there.
func Grants(t *testing.T, s store.Store) {
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
		if err := s.GrantStart(ctx, missing); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a start of what is not there: %v", err)
		}
	}
	must(t, s.GrantStart(ctx, store.StartGrant{MatrixID: "m", UserID: "1", UserName: "ada"}))
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
		must(t, s.GrantStart(ctx, again))
		is(again)
	}
	must(t, s.DeleteRun(ctx, "r"))
	none("r", "")
	must(t, s.DeleteMatrix(ctx, "m"))
	none("r", "m")
}
