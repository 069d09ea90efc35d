package postgres_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

// Rules holds that what the rules of a run gave is kept with each second, and that their addresses are sealed wherever
// they go.
func Rules(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	const at, shownAt = "https://hooks.example/services/s3cr3t?token=s3cr3t", "https://hooks.example/…"
	config := scenario()
	config.Rules = []engine.Rule{{Name: "slow", When: "SELECT 1 AS n FROM heartbeats", Do: engine.RuleWebhook, URL: at}}
	source := "name: x\ntarget: {connection: c, table_name: t}\nworkload: {plugin: mix}\nrules:\n" +
		"- {name: slow, when: SELECT runId FROM heartbeats, do: webhook, url: \"" + at + "\"}\n"
	made, err := s.CreateTemplate(ctx, store.Template{Name: "t", Config: config, Source: source})
	must(t, err)
	rulesHideSecret(t, "template", made)
	if made.Config.Rules[0].URL != shownAt || !strings.Contains(made.Source, shownAt) {
		t.Fatalf("%+v\n%s", made.Config.Rules, made.Source)
	}
	opens := func(what string, r engine.Rule) {
		t.Helper()
		if url, err := s.OpenURL(ctx, r); err != nil || url.Reveal() != at {
			t.Errorf("%s: %q, %v", what, url, err)
		}
	}
	opens("of a template", made.Config.Rules[0])
	change := made
	change.Config = change.Config.Clone()
	change.Config.Rules[0].URLSealed = ""
	changed, err := s.UpdateTemplate(ctx, change)
	must(t, err)
	opens("after an edit", changed.Config.Rules[0])
	change = changed
	change.Config = change.Config.Clone()
	change.Config.Rules[0].URL, change.Config.Rules[0].URLSealed = "https://evil.example/…", ""
	if _, err := s.UpdateTemplate(ctx, change); !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("a hidden address moved to another host: %v", err)
	}

	run := engine.Run{RunID: "r1", ResultID: "r1", RunName: "x", Scenario: scenario()}
	run.Scenario.Rules = changed.Config.Rules
	must(t, s.CreateRun(ctx, run))
	run.RunID, run.ResultID = "r2", "r2"
	run.Scenario.Rules = config.Rules
	must(t, s.CreateRun(ctx, run))
	for _, id := range []string{"r1", "r2"} {
		got, err := s.Run(ctx, id)
		must(t, err)
		rulesHideSecret(t, "run", got)
		opens("of a run", got.Scenario.Rules[0])
		if got.Rules != nil {
			t.Errorf("before anything: %+v", got.Rules)
		}
	}
	states := []engine.RuleState{{Name: "slow", Do: engine.RuleWebhook, Status: engine.RuleRunning, In: 7, Out: 2,
		At: engine.At(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)), Row: "p99 7"}}
	must(t, s.SaveTick(ctx, store.Tick{RunID: "r1", Rules: states}))
	must(t, s.SaveTick(ctx, store.Tick{RunID: "r1"}))
	got, err := s.Run(ctx, "r1")
	must(t, err)
	if !reflect.DeepEqual(got.Rules, states) {
		t.Errorf("%+v", got.Rules)
	}

	// That a rule has triggered is kept with the stop, and left alone by a change that does not speak of rules.
	states[0].Status, states[0].In = engine.RuleTriggered, 9
	_, err = s.Transition(ctx, store.Transition{RunID: "r1", To: engine.StatusRunning, Rules: states})
	must(t, err)
	_, err = s.Transition(ctx, store.Transition{RunID: "r1", To: engine.StatusCancelling,
		CancellationReason: "Rule 'slow' triggered: p99 7"})
	must(t, err)
	got, err = s.Run(ctx, "r1")
	must(t, err)
	if !reflect.DeepEqual(got.Rules, states) {
		t.Errorf("%+v", got.Rules)
	}
}

func scenario() engine.Scenario {
	return engine.Scenario{Name: "x", Target: engine.Target{Connection: engine.ConnectionRef{Name: "playground"},
		Adapter: "postgres", TableName: "orders"}, Workload: engine.Workload{Plugin: "mix"}}
}

func rulesHideSecret(t *testing.T, what string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	if strings.Contains(string(text), "s3cr3t") {
		t.Errorf("%s holds the address: %s", what, text)
	}
}
