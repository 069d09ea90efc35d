package postgres_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

func conflict(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("%v, want a conflict", err)
	}
}

// Settings holds a store to this: what was edited is compared with what is there, secrets come back, and a turn is one
// server's.
func Settings(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	none, err := s.Setting(ctx, "notifications")
	must(t, err)
	if none.Version != 0 || none.Name != "notifications" || none.Value != nil {
		t.Errorf("what was never saved: %+v", none)
	}
	first, err := s.SaveSetting(ctx, store.Setting{Name: "notifications", Value: json.RawMessage(`{"a":1}`),
		Secret: []byte("word"), UpdatedBy: "ada"})
	must(t, err)
	_, err = s.SaveSetting(ctx, store.Setting{Name: "notifications", Value: json.RawMessage(`{}`)})
	conflict(t, err)
	second := first
	second.Value, second.UpdatedBy = json.RawMessage(`{"a":2}`), "eve"
	second, err = s.SaveSetting(ctx, second)
	must(t, err)
	if second.Version != first.Version+1 || second.UpdatedAt.IsZero() {
		t.Errorf("saved again: %+v after %+v", second, first)
	}
	_, err = s.SaveSetting(ctx, first)
	conflict(t, err)
	got, err := s.Setting(ctx, "notifications")
	must(t, err)
	var value struct{ A int }
	must(t, json.Unmarshal(got.Value, &value))
	if value.A != 2 || string(got.Secret) != "word" || got.UpdatedBy != "eve" || got.Version != second.Version {
		t.Errorf("read: %+v", got)
	}
	got.Secret = nil
	_, err = s.SaveSetting(ctx, got)
	must(t, err)
	if got, err = s.Setting(ctx, "notifications"); err != nil || got.Secret != nil {
		t.Errorf("a secret that was taken away: %q, %v", got.Secret, err)
	}
	turn := func(owner string, lasts time.Duration, want bool) {
		t.Helper()
		mine, err := s.AcquireTaskLease(ctx, "retention", owner, lasts)
		must(t, err)
		if mine != want {
			t.Errorf("the turn of %s: %t", owner, mine)
		}
	}
	turn("a", time.Hour, true)
	turn("b", time.Hour, false)
	turn("a", time.Millisecond, true)
	time.Sleep(20 * time.Millisecond)
	turn("b", time.Hour, true)
	turn("a", time.Hour, false)
	must(t, s.ReleaseTaskLease(ctx, "retention", "a")) // it is not a's
	turn("a", time.Hour, false)
	must(t, s.ReleaseTaskLease(ctx, "retention", "b"))
	turn("a", time.Hour, true)
}
