package postgres_test

import (
	"errors"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// TestOnlyExpiredLeasesAreTakenOver lets leases expire by turning them back, which
// by the database's clock is the same as waiting.
func TestOnlyExpiredLeasesAreTakenOver(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx := t.Context()
	conn := connect(t, dsn)
	later := func(id string) {
		t.Helper()
		if _, err := conn.Exec(
			ctx,
			`UPDATE run_status SET lease_until = lease_until - interval '15.001 s', updated_at = updated_at - interval '15.001 s' WHERE run_id = $1`,
			id,
		); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"a", "b", "old"} {
		if err := s.CreateRun(ctx, engine.Run{RunID: id, Scenario: engine.Scenario{Name: id}}); err != nil {
			t.Fatal(err)
		}
		tr := store.Transition{RunID: id, From: []engine.Status{engine.StatusPrepared}, To: engine.StatusRunning, Owner: id}
		if id == "old" {
			tr.Owner = "" // as earlier versions left it
		}
		if _, err := s.Transition(ctx, tr); err != nil {
			t.Fatal(err)
		}
	}
	held := func(id, by string) bool {
		t.Helper()
		_, err := s.Claim(ctx, store.Claim{RunID: id, Owner: by, Reclaim: true})
		if err != nil && !errors.Is(err, store.ErrLeaseHeld) {
			t.Fatal(err)
		}
		return err != nil
	}
	later("a")
	if err := s.RenewLeases(ctx, "a", []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "old"} {
		if !held(id, "other") {
			t.Errorf("%s was taken from its owner", id)
		}
	}
	later("b")
	later("old")
	if err := errors.Join(s.RenewLeases(ctx, "a", []string{"b"}), s.RenewLeases(ctx, "b", []string{"a"})); err != nil {
		t.Fatal(err)
	}
	expired, err := s.ExpiredRuns(ctx)
	if err != nil || len(expired) != 2 || expired[0].RunID != "b" || expired[1].RunID != "old" {
		t.Errorf("expired: %v, %v", expired, err)
	}
	if held("b", "other") || held("old", "other") || !held("b", "b") {
		t.Error("an expired lease was not taken over, or not for good")
	}
	// A second of a run is a sign of life.
	epoch, err := s.Claim(ctx, store.Claim{RunID: "a", Owner: "a", Reclaim: true})
	if err != nil {
		t.Fatal(err)
	}
	later("a")
	if err := s.SaveTick(ctx, store.Tick{RunID: "a", Epoch: epoch}); err != nil {
		t.Fatal(err)
	}
	if !held("a", "other") {
		t.Error("a run that saves its seconds was taken over")
	}
}
