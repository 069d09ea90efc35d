package notify_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// timed are runs with how long their operations take, in ms: measured for a minute, or for 5 s where that is negative.
type timed map[string]float64

// Baseline implements Baselines: the run "base" of every template but those without.
func (timed) Baseline(_ context.Context, templateID string) (store.Baseline, error) {
	if strings.HasPrefix(templateID, "none") {
		return store.Baseline{}, store.ErrNotFound
	}
	return store.Baseline{TemplateID: templateID, RunID: "base"}, nil
}

// Compare implements Comparer with the comparison that users see.
func (r timed) Compare(_ context.Context, a, b []string, o compare.Options) (compare.Comparison, error) {
	measured := func(id string) compare.MeasuredRun {
		ms, seconds := r[id], 60
		if ms < 0 {
			ms, seconds = -ms, 5
		}
		m := compare.MeasuredRun{Summary: engine.Summary{RunID: id}}
		if ms == 0 {
			return m // nothing is known of its seconds
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range seconds {
			h := histogram.New()
			for range 100 {
				h.Record(int64(ms * 1e6 * (0.9 + 0.2*rng.Float64())))
			}
			m.Seconds = append(m.Seconds, compare.Second{Operations: 100, Latency: h.Data()})
		}
		m.Summary.Figures = engine.Figures{Operations: int64(100 * seconds), QPS: new(100.0)}
		return m
	}
	return compare.Between([]compare.MeasuredRun{measured(a[0])}, []compare.MeasuredRun{measured(b[0])}, o)
}

// TestHeldAgainstTheBaseline: it decides what has regressed where it says anything; else thresholds do.
func TestHeldAgainstTheBaseline(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	all, took := runs{}, timed{"base": 2}
	cases := []struct {
		id, template string
		ms           float64
		passed       *bool
		search       bool
		event        notify.Event
		verdict      compare.Verdict // "" where the baseline says nothing
	}{
		{id: "slower", template: "t", ms: 3, passed: &yes, event: notify.Regressed, verdict: compare.Worse},
		{id: "slower, no thresholds", template: "t", ms: 3, event: notify.Regressed, verdict: compare.Worse},
		{id: "the same, thresholds fail as before", template: "t", ms: 2, passed: &no, event: notify.Finished,
			verdict: compare.Same},
		{id: "faster", template: "t", ms: 1.2, passed: &yes, event: notify.Finished, verdict: compare.Better},
		{id: "no baseline, slower", template: "none", ms: 3, passed: &yes, event: notify.Finished},
		{id: "no baseline, thresholds fail", template: "none", ms: 2, passed: &no, event: notify.Regressed},
		{id: "no template", ms: 3, passed: &no, event: notify.Regressed},
		{id: "too short to judge", template: "t", ms: -3, passed: &no, event: notify.Regressed},
		{id: "not to be compared", template: "t", passed: &no, event: notify.Regressed},
		{id: "a search", template: "t", ms: 3, passed: &yes, search: true, event: notify.Finished},
		{id: "base", template: "t", ms: 2, passed: &no, event: notify.Regressed},
	}
	for _, c := range cases {
		row := ended(c.id, engine.StatusCompleted, c.passed, nil)
		row.Scenario.TemplateID = c.template
		if c.search {
			row.Scenario.Workload.LoadMode = engine.LoadFindMax
		}
		all[c.id], took[c.id] = row, c.ms
	}
	hooks, chat := &heard{}, &heard{}
	ear, room := httptest.NewServer(hooks), httptest.NewServer(chat)
	defer ear.Close()
	defer room.Close()
	s, _ := postgrestest.Open(t)
	n := notify.Start(notify.Options{Settings: s, Runs: all, Baselines: took, Compare: took,
		Log: zerolog.Nop(), SettleTimeout: 3 * time.Second})
	t.Cleanup(n.Close)
	if _, err := n.Save(t.Context(), 0, []notify.HookInput{
		hook("all", notify.Webhook, ear.URL, "", notify.Finished, notify.Regressed),
		hook("chat", notify.Slack, room.URL, "", notify.Finished, notify.Regressed)}, store.User{Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		n.Ended(c.id)
	}
	hooks.await(t, len(cases))
	chat.await(t, len(cases))
	said := map[string]notify.Notice{}
	for _, body := range hooks.bodies {
		var v notify.Notice
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatal(err)
		}
		said[v.RunID] = v
	}
	for _, c := range cases {
		v := said[c.id]
		if v.Event != c.event || (v.Baseline != nil) != (c.verdict != "") {
			t.Errorf("%s: %s, held %+v; want %s", c.id, v.Event, v.Baseline, c.event)
		} else if h := v.Baseline; h != nil && (h.Verdict != c.verdict || h.BaselineRunID != "base" ||
			(len(h.Worse) > 0) != (c.verdict == compare.Worse)) {
			t.Errorf("%s: held %+v, want %s", c.id, h, c.verdict)
		}
	}
	var texts []string
	for _, body := range chat.bodies {
		texts = append(texts, string(body))
	}
	messages := strings.Join(texts, "\n")
	for _, want := range []string{"completed and is worse than its baseline. Mean: +50.", "P95: +",
		"completed and performs like its baseline. A threshold failed.", "completed and is better than its baseline.",
		"completed. A threshold failed."} {
		if !strings.Contains(messages, want) {
			t.Errorf("no message says %q:\n%s", want, messages)
		}
	}
}
