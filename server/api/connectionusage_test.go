package api

import (
	"context"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// fakeUsageStore is a store of runs and of lines.
type fakeUsageStore struct {
	runs  []store.RunRow
	lines []store.AuditEntry
}

func (fakeUsageStore) ListTemplates(context.Context) ([]store.Template, error) { return nil, nil }

func (k fakeUsageStore) ListRuns(_ context.Context, f store.RunFilter) (store.RunList, error) {
	if f.ConnectionID != "shop" || f.Limit == 0 {
		return store.RunList{}, nil
	}
	return store.RunList{Runs: k.runs, Total: int64(len(k.runs))}, nil
}

func (k fakeUsageStore) ListAudit(context.Context, store.AuditFilter) ([]store.AuditEntry, error) {
	return k.lines, nil
}

// TestWhenAConnectionLastWorked: a run counts when the database answered something, until it stopped asking.
func TestWhenAConnectionLastWorked(t *testing.T) {
	t.Parallel()
	at := func(minute int) engine.Time {
		return engine.At(time.Date(2026, 11, 24, 12, minute, 0, 0, time.UTC))
	}
	run := func(id string, ops, failed int64, status engine.Status, end engine.Time) store.RunRow {
		return store.RunRow{Run: engine.Run{RunID: id, TotalOps: ops, ErrorCount: failed, Status: status,
			MeasurementEndTime: end, EndTime: at(59), UpdatedAt: at(58)}}
	}
	failed := run("refused", 10, 10, engine.StatusFailed, at(40))
	never := run("never", 0, 0, engine.StatusFailed, at(41))
	good := run("good", 10, 9, engine.StatusCompleted, at(30))
	live := run("live", 10, 0, engine.StatusRunning, engine.Time{})
	cut := run("cut", 10, 0, engine.StatusCancelled, engine.Time{})
	test := []store.AuditEntry{{At: at(35)}}
	for name, c := range map[string]struct {
		fakeUsageStore
		by, id string
		at     engine.Time
	}{
		"nothing answered":     {fakeUsageStore{runs: []store.RunRow{failed, never}}, "", "", engine.Time{}},
		"a run":                {fakeUsageStore{runs: []store.RunRow{failed, good}}, "run", "good", at(30)},
		"a test after it":      {fakeUsageStore{[]store.RunRow{failed, good}, test}, "test", "", at(35)},
		"one that goes on":     {fakeUsageStore{[]store.RunRow{live, good}, test}, "run", "live", at(58)},
		"one that was cut off": {fakeUsageStore{[]store.RunRow{good, cut}, test}, "run", "cut", at(59)},
	} {
		u, err := FindConnectionUsage(t.Context(), c.fakeUsageStore, store.Connection{ConnectionID: "shop", UpdatedAt: at(1)})
		if err != nil {
			t.Fatal(err)
		}
		if u.LastRun == nil || u.LastRun.RunID != c.runs[0].RunID {
			t.Errorf("%s: newest run %+v", name, u.LastRun)
		}
		switch w := u.Worked; {
		case c.by == "" && w != nil,
			c.by != "" && (w == nil || w.By != c.by || w.RunID != c.id || w.At != c.at || w.ChangedSince):
			t.Errorf("%s: %+v", name, w)
		}
	}
}
