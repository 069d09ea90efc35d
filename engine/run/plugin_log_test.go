package run

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/run/runlog"
)

// TestWhatAnAdapterLogsReachesTheRunsLog: with its level and its name, and no more of it than the limit of
// one plugin, however many instances it has.
func TestWhatAnAdapterLogsReachesTheRunsLog(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		made := v.svc.opts.Plan
		v.svc.opts.Plan = func(ctx context.Context, d prepare.Deps, sc engine.Scenario,
			say func(engine.PrepareProgress)) (*prepare.Prepared, error) {
			log := plugin.LogFrom(ctx)
			log(plugin.LogLine{Plugin: "mysql", Level: engine.LogWarning, Text: "the table has no statistics"})
			for range 3 * runlog.PluginBurst { // of two instances, each within its own limit
				log(plugin.LogLine{Plugin: "mysql", Level: engine.LogInfo, Text: "again"})
			}
			log(plugin.LogLine{Plugin: "other", Level: engine.LogError, Text: "its own budget"})
			time.Sleep(time.Second)
			log(plugin.LogLine{Plugin: "mysql", Level: engine.LogInfo, Text: "after a second", Dropped: 2})
			return made(ctx, d, sc, say)
		}
		v.start(fiveWorkers(engine.ScalingFixed))
		v.wait(5 * time.Second)
		if l, about := v.store.line(t, "The plugin mysql says: the table has no statistics"); l.Level != engine.LogWarning ||
			about["plugin"] != "mysql" || about["phase"] != "PREPARING" {
			t.Errorf("%+v %v", l, about)
		}
		if l, about := v.store.line(t, "The plugin other says: its own budget"); l.Level != engine.LogError ||
			about["plugin"] != "other" {
			t.Errorf("%+v %v", l, about)
		}
		if _, about := v.store.line(t, "after a second"); about["dropped"] != float64(2*runlog.PluginBurst+1+2) {
			t.Errorf("%v", about)
		}
		again := 0
		for _, l := range v.store.lines() {
			if strings.HasSuffix(l.Message, "says: again") {
				again++
			}
		}
		if again != runlog.PluginBurst-1 {
			t.Errorf("%d lines of one plugin at once", again)
		}
		if missing := v.svc.runs.Get("run-1").Buffer.MissingLines(0); missing != 2*runlog.PluginBurst+1+2 {
			t.Errorf("%d lines are said to be missing", missing)
		}
		if _, err := v.svc.Stop(t.Context(), "run-1", "tester"); err != nil {
			t.Fatal(err)
		}
		v.figures()
		v.wait(time.Minute)
	})
}
