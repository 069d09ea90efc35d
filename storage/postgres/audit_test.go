package postgres_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

// Audit writes lines and finds them again by every filter.
func Audit(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for i, e := range []store.AuditEntry{
		{UserID: "1", UserName: "Ada", Action: "run.start", Object: "r1", Detail: "50%_off", Address: "203.0.113.7",
			TokenID: "t1", TokenName: "ci"},
		{UserID: "1", UserName: "Ada", Action: "run.stop", Object: "r1", Outcome: store.OutcomeRefused},
		{UserID: "2", UserName: "eve", Action: "runner.x", Object: "500 off", Outcome: store.OutcomeFailed},
		{Action: "auth.signin", Outcome: store.OutcomeRefused, Object: "nul\x00byte"},
	} {
		e.At = engine.At(at.Add(time.Duration(i) * time.Hour))
		must(t, s.AppendAudit(ctx, e))
	}
	must(t, s.AppendAudit(ctx, store.AuditEntry{Action: "x.now"}))
	find := func(f store.AuditFilter) (actions []string) {
		t.Helper()
		list, err := s.ListAudit(ctx, f)
		must(t, err)
		for _, e := range list {
			actions = append(actions, e.Action)
		}
		return actions
	}
	for name, c := range map[string]struct {
		f    store.AuditFilter
		want []string
	}{
		"all":     {store.AuditFilter{}, []string{"x.now", "auth.signin", "runner.x", "run.stop", "run.start"}},
		"user":    {store.AuditFilter{User: "1"}, []string{"run.stop", "run.start"}},
		"name":    {store.AuditFilter{User: "AD"}, []string{"run.stop", "run.start"}},
		"action":  {store.AuditFilter{Action: "run.stop"}, []string{"run.stop"}},
		"actions": {store.AuditFilter{Action: "run"}, []string{"run.stop", "run.start"}},
		"object":  {store.AuditFilter{Object: "R1"}, []string{"run.stop", "run.start"}},
		"literal": {store.AuditFilter{Object: "0%_O"}, []string{"run.start"}},
		"outcome": {store.AuditFilter{Outcome: store.OutcomeRefused}, []string{"auth.signin", "run.stop"}},
		"time": {store.AuditFilter{Since: at.Add(time.Hour), Until: at.Add(3 * time.Hour)},
			[]string{"runner.x", "run.stop"}},
		"far":   {store.AuditFilter{Action: "run.start", Before: 1 << 53}, []string{"run.start"}},
		"limit": {store.AuditFilter{Limit: 1}, []string{"x.now"}},
		"none":  {store.AuditFilter{Object: "nobody"}, nil},
		"odd":   {store.AuditFilter{Object: "\x00'\\", User: "%"}, nil},
	} {
		if got := find(c.f); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	list, err := s.ListAudit(ctx, store.AuditFilter{Action: "run.start"})
	must(t, err)
	if e := list[0]; e.Address != "203.0.113.7" || e.TokenID != "t1" || e.TokenName != "ci" || e.UserName != "Ada" ||
		e.Outcome != store.OutcomeDone || !e.At.Equal(at) || e.AuditID == 0 {
		t.Errorf("line %+v", e)
	}
	if got := find(store.AuditFilter{Before: list[0].AuditID + 1}); !slices.Equal(got, []string{"run.start"}) {
		t.Errorf("the last page: %v", got)
	}
}

// AuditRetention removes what is older than the log is kept, and nothing else.
func AuditRetention(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	for i, days := range []int{400, 100, 20, 0} {
		must(t, s.AppendAudit(ctx, store.AuditEntry{Action: fmt.Sprint("a", i),
			At: engine.At(time.Now().AddDate(0, 0, -days))}))
	}
	prune := func(most, want int) {
		t.Helper()
		if n, err := s.PruneAudit(ctx, most); err != nil || n != want {
			t.Errorf("%d lines were removed, %v; want %d", n, err, want)
		}
	}
	prune(10, 0) // for ever, when nothing was said
	for _, bad := range []int{-1, 1, store.MinAuditDays - 1} {
		if _, err := s.SetAuditRetention(ctx, bad, nil); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%d days: %v", bad, err)
		}
	}
	never := 0 // when nothing was said, it is for ever
	oneWins(t, func() error {
		_, err := s.SetAuditRetention(ctx, 400, &never)
		return err
	})
	seen := 400
	oneWins(t, func() error {
		before, err := s.SetAuditRetention(ctx, 60, &seen)
		if err == nil && before != seen {
			t.Errorf("kept for %d days before", before)
		}
		return err
	})
	if days, err := s.AuditDays(ctx); err != nil || days != 60 {
		t.Errorf("kept for %d days, %v", days, err)
	}
	prune(1, 1)
	prune(10, 1)
	prune(10, 0)
	before, err := s.SetAuditRetention(ctx, 0, nil)
	must(t, err)
	if before != 60 {
		t.Errorf("kept for %d days before", before)
	}
	if list, err := s.ListAudit(ctx, store.AuditFilter{}); err != nil || len(list) != 2 {
		t.Errorf("left: %+v, %v", list, err)
	}
}
