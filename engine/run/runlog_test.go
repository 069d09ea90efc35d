package run

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// line finds a line of the run's log, with its details.
func (m *memoryStore) line(t *testing.T, part string) (engine.LogEntry, map[string]any) {
	t.Helper()
	for _, l := range m.lines() {
		if strings.Contains(l.Message, part) {
			var about map[string]any
			if err := json.Unmarshal(l.Details, &about); err != nil {
				t.Errorf("%q has the details %q: %v", l.Message, l.Details, err)
			}
			return l, about
		}
	}
	t.Errorf("the log has no line with %q", part)
	return engine.LogEntry{}, map[string]any{}
}

// TestTheLogOfARunHoldsWhatHappened: outages of the store, a warehouse that could not be set back,
// lost connections, and what each line is about.
func TestTheLogOfARunHoldsWhatHappened(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		made := v.svc.opts.Plan
		v.svc.opts.Plugins = noPlugins{}
		v.svc.opts.Plan = func(ctx context.Context, d prepare.Deps, sc engine.Scenario,
			say func(engine.PrepareProgress)) (*prepare.Prepared, error) {
			p, err := made(ctx, d, sc, say)
			p.Plan.Restore = []string{"ALTER WAREHOUSE W SUSPEND"}
			p.Server = target.ServerInfo{MaxConnections: 100}
			return p, err
		}
		sc := fiveWorkers(engine.ScalingFixed)
		v.start(sc)
		v.store.away(true)
		v.wait(20 * time.Second)
		v.mu.Lock()
		v.workers["worker-2"].lostConnections = 3
		v.mu.Unlock()
		v.store.away(false)
		v.wait(20 * time.Second)
		if _, err := v.svc.Stop(t.Context(), "run-1", "tester"); err != nil {
			t.Fatal(err)
		}
		v.figures()
		v.wait(time.Minute)
		gone, about := v.store.line(t, "control store is away")
		if gone.Level != engine.LogWarning || about["from"] == nil || about["error"] == "" {
			t.Errorf("%+v %v", gone, about)
		}
		back, about := v.store.line(t, "control store is back")
		if s, _ := about["away_seconds"].(float64); back.Level != engine.LogInfo || s < 15 || s > 30 ||
			about["waiting_writes"] == 0.0 {
			t.Errorf("%+v %v", back, about)
		}
		if l, _ := v.store.line(t, "has lost a connection"); l.WorkerID != "worker-2" || l.Level != engine.LogWarning {
			t.Errorf("%+v", l)
		}
		if l, about := v.store.line(t, "lost its connection in 3 operations"); l.WorkerID != "worker-2" ||
			about["lost"] != 3.0 || about["first"] == nil || about["last"] == nil {
			t.Errorf("%+v %v", l, about)
		}
		if l, _ := v.store.line(t, "could not be set back"); l.Level != engine.LogError ||
			!strings.Contains(l.Message, "There is no plugin here") {
			t.Errorf("%+v", l)
		}
		if _, about := v.store.line(t, "The run is being stopped"); about["status"] != "CANCELLING" ||
			about["stop_reason"] != "user_requested" || about["drain_seconds"] != 5.0 {
			t.Errorf("%v", about)
		}
		last := int64(0)
		for _, l := range v.store.lines() {
			if l.Seq != last+1 || len(l.Details) == 0 || !json.Valid(l.Details) {
				t.Errorf("line %d after %d: %q with %q", l.Seq, last, l.Message, l.Details)
			}
			last = l.Seq
		}
	})
}

type noPlugins struct{ plugin.Host }

func (noPlugins) Adapter(context.Context, string) (plugin.Adapter, error) {
	return nil, &engine.Error{Code: engine.CodeUnavailable, Message: "There is no plugin here."}
}
