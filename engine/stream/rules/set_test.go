package rules_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tick is a second of a run with one heartbeat.
func tick(second int, worker string) *store.Tick {
	return &store.Tick{RunID: "r", Workers: []store.WorkerRow{{RunID: "r", WorkerID: worker, Status: engine.WorkerRunning,
		LastHeartbeat: time.Date(2026, 5, 1, 12, 0, second, 0, time.UTC)}}}
}

// until waits for a state.
func until(t *testing.T, s *rules.Set, what func([]engine.RuleState) bool) []engine.RuleState {
	t.Helper()
	for range 500 {
		if states := s.States(); what(states) {
			return states
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("it did not come to it: %+v", s.States())
	return nil
}

const dead = "SELECT timestamp, workerId FROM heartbeats WHERE workerId = 'w1'"

// TestARuleStopsItsRunOnce: with its row as the reason; further rows are counted, and told twenty times at most.
func TestARuleStopsItsRunOnce(t *testing.T) {
	now := time.Date(2026, 5, 1, 11, 0, 0, 0, time.UTC) // the run's, not the machine's
	s := rules.Start([]engine.Rule{{Name: "dead", When: dead, Do: engine.RuleStop}}, nil,
		rules.Options{Now: func() time.Time { return now }})
	s.Hub().Tick(tick(1, "w0"))
	for n := range 40 {
		s.Hub().Tick(tick(2+n, "w1"))
	}
	states := until(t, s, func(l []engine.RuleState) bool { return l[0].Out == 40 })
	if states[0].Status != engine.RuleRunning || !states[0].At.Equal(now) || !strings.Contains(states[0].Row, "12:00:41") {
		t.Errorf("%+v", states)
	}
	<-s.Ready()
	var stops []string
	said := s.TakeMessages(false)
	for _, one := range said {
		if one.Stop != "" {
			stops = append(stops, one.Stop)
		}
	}
	if want := "Rule 'dead' triggered: timestamp 2026-05-01T12:00:02Z, workerId w1"; len(stops) != 1 || stops[0] != want {
		t.Errorf("%q", stops)
	}
	if len(said) != 21 || !strings.Contains(said[20].Text, "counted only") {
		t.Errorf("%d lines, the last %q", len(said), said[len(said)-1].Text)
	}
	if s.End(true); s.States()[0].In != 41 || s.States()[0].Status != engine.RuleTriggered {
		t.Errorf("%+v", s.States())
	}
}

// TestARuleThatComesTooLateStopsNothing: what has triggered has stopped its run, so a rule whose row comes when the run
// ends for another reason has not; of two whose rows come at once the first one has. Their rows are told all the same.
func TestARuleThatComesTooLateStopsNothing(t *testing.T) {
	for name, ends := range map[string]bool{"while the run ends": true, "with another rule": false} {
		t.Run(name, func(t *testing.T) {
			s := rules.Start([]engine.Rule{{Name: "one", When: dead, Do: engine.RuleStop},
				{Name: "two", When: dead, Do: engine.RuleStop}}, nil, rules.Options{})
			s.Hub().Tick(tick(1, "w1"))
			until(t, s, func(l []engine.RuleState) bool { return l[0].Out == 1 && l[1].Out == 1 })
			stops, late := 0, 0
			for _, one := range s.TakeMessages(ends) {
				if one.Stop != "" {
					stops++
				}
				if strings.HasSuffix(one.Text, "' stops nothing, since the run ends already") {
					late++
				}
			}
			s.End(true)
			triggered := 0
			for _, l := range s.States() {
				switch {
				case l.Status == engine.RuleTriggered:
					triggered++
				case l.Status != engine.RuleEnded || l.Out != 1 || l.Row == "":
					t.Errorf("%+v", l)
				}
			}
			want := 1
			if ends {
				want = 0
			}
			if stops != want || triggered != want || late != 2-want {
				t.Errorf("%d stops, %d have triggered, %d were late", stops, triggered, late)
			}
		})
	}
}

// TestWhatIsLeftStopsNothing: windows that are open when the run is over are posted, and stop nobody.
func TestWhatIsLeftStopsNothing(t *testing.T) {
	const when = "SELECT start, COUNT(*) AS n FROM heartbeats WINDOW TUMBLING(timestamp, SIZE 1 MIN)"
	taken := make(chan int, 1)
	s := rules.Start(
		[]engine.Rule{{Name: "stops", When: when, Do: engine.RuleStop},
			{Name: "tells", When: when, Do: engine.RuleWebhook, URL: "https://x.example/"}},
		nil,
		rules.Options{
			Webhook: func(_ context.Context, _ engine.Rule, columns []column.Column, tell connector.AlertFunc) (connector.Sink,
				error) {
				return sink{func(b *column.Batch) error {
					taken <- b.N
					tell(connector.Alert{Row: connector.RowText(columns, b, 0), Rows: b.N})
					return nil
				}}, nil
			},
		},
	)
	s.Hub().Tick(tick(1, "w0"))
	s.Hub().Tick(tick(2, "w0"))
	s.Transition(store.Transition{To: engine.StatusCompleted}, time.Now())
	if n := <-taken; n != 1 {
		t.Errorf("%d rows", n)
	}
	if !s.End(true) {
		t.Error("there is nothing to keep")
	}
	l := s.States()
	if l[0].Status != engine.RuleEnded || l[0].Out != 0 || l[0].In != 2 || l[1].Status != engine.RuleEnded ||
		l[1].Out != 1 || !strings.HasSuffix(l[1].Row, "n 2") {
		t.Errorf("%+v", l)
	}
}

type sink struct{ write func(*column.Batch) error }

func (s sink) Write(b *column.Batch) error { return s.write(b) }
func (s sink) Close() error                { return nil }

// TestARuleThatFailsSaysSo: the others, and the run, go on.
func TestARuleThatFailsSaysSo(t *testing.T) {
	s := rules.Start(
		[]engine.Rule{{Name: "sealed", When: dead, Do: engine.RuleWebhook},
			{Name: "refused", When: dead, Do: engine.RuleWebhook}, {Name: "dead", When: dead, Do: engine.RuleStop}},
		nil,
		rules.Options{
			Webhook: func(_ context.Context, r engine.Rule, _ []column.Column, _ connector.AlertFunc) (connector.Sink, error) {
				if r.Name == "sealed" {
					return nil, connector.ErrSealed
				}
				return sink{func(*column.Batch) error { return errors.New("nobody is there") }}, nil
			},
		},
	)
	defer s.End(false)
	s.Hub().Tick(tick(1, "w1"))
	l := until(t, s, func(l []engine.RuleState) bool { return l[1].Status == engine.RuleFailed && l[2].Out == 1 })
	if l[0].Status != engine.RuleFailed || !strings.Contains(l[0].Failure, "sealed") ||
		!strings.Contains(l[1].Failure, "nobody is there") {
		t.Errorf("%+v", l)
	}
	failed := 0
	for _, one := range s.TakeMessages(false) {
		if strings.Contains(one.Text, "failed, and the run goes on without it") && one.Level == engine.LogError {
			failed++
		}
	}
	if failed != 2 {
		t.Errorf("%d failures were said", failed)
	}
}

// TestRowsThatNobodyTakes: a rule whose rows are not taken for a while says so, and that they are again. One that has
// not brought them away in time when the run is over has failed; nobody waits for it for longer, nor when its process
// ends, which is no failure.
func TestRowsThatNobodyTakes(t *testing.T) {
	start := func() (*rules.Set, chan func(connector.AlertFunc)) {
		asked := make(chan func(connector.AlertFunc))
		return rules.Start([]engine.Rule{{Name: "posts", When: dead, Do: engine.RuleWebhook}}, nil, rules.Options{
			Webhook: func(ctx context.Context, _ engine.Rule, _ []column.Column, tell connector.AlertFunc) (connector.Sink, error) {
				return sink{func(*column.Batch) error {
					for {
						select {
						case do := <-asked:
							if do == nil {
								tell(connector.Alert{Row: "w1", Rows: 1})
								return nil
							}
							do(tell)
						case <-ctx.Done():
							return ctx.Err()
						}
					}
				}}, nil
			},
		}), asked
	}
	s, asked := start()
	s.Hub().Tick(tick(1, "w1"))
	again := func(tell connector.AlertFunc) { tell(connector.Alert{Retrying: true, Failure: "it answers 500"}) }
	asked <- again
	asked <- again
	asked <- nil
	until(t, s, func(l []engine.RuleState) bool { return l[0].Out == 1 })
	var lines []string
	for _, one := range s.TakeMessages(false) {
		lines = append(lines, string(one.Level)+" "+one.Text)
	}
	if want := []string{"WARNING The rule 'posts' can not post its rows, and tries again: it answers 500",
		"INFO The rule 'posts' posts its rows again", "INFO The rule 'posts' gave: w1"}; !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
	s.Hub().Tick(tick(2, "w1"))
	asked <- again
	begun := time.Now()
	if s.End(true); time.Since(begun) < 2*time.Second || time.Since(begun) > 10*time.Second {
		t.Errorf("it took %v", time.Since(begun))
	}
	if l := s.States(); l[0].Status != engine.RuleFailed || l[0].Failure !=
		"not all of its rows were posted within 3s of the end of the run; the others are lost" {
		t.Errorf("%+v", l)
	}

	s, asked = start()
	s.Hub().Tick(tick(1, "w1"))
	asked <- again
	begun = time.Now()
	if s.End(false); time.Since(begun) > 2*time.Second || s.States()[0].Failure != "" {
		t.Errorf("after %v %+v", time.Since(begun), s.States())
	}
}

// TestWhoTakesARunOverGoesOnWithItsRules: counts go on. What had triggered is not evaluated again, and says once more
// that the run has to stop: who carried it may have been killed before that was kept.
func TestWhoTakesARunOverGoesOnWithItsRules(t *testing.T) {
	before := []engine.RuleState{
		{Name: "counts", Do: engine.RuleStop, Status: engine.RuleEnded, In: 7, Out: 3, Row: "n 1"},
		{Name: "fired", Do: engine.RuleStop, Status: engine.RuleTriggered, In: 5, Out: 1,
			Row: "workerId w1"}}
	s := rules.Start([]engine.Rule{{Name: "fired", When: dead, Do: engine.RuleStop},
		{Name: "counts", When: "SELECT workerId FROM heartbeats WHERE workerId = 'w9'", Do: engine.RuleStop}}, before,
		rules.Options{})
	s.Hub().Tick(tick(1, "w1"))
	<-s.Ready()
	said := s.TakeMessages(false)
	if len(said) != 1 || said[0].Stop != "Rule 'fired' triggered: workerId w1" {
		t.Errorf("%+v", said)
	}
	s.End(true)
	l := s.States()
	if l[0].Status != engine.RuleTriggered || l[0].In != 5 || l[0].Out != 1 || l[1].In != 8 || l[1].Out != 3 ||
		l[1].Row != "n 1" || l[1].Status != engine.RuleEnded || len(s.TakeMessages(false)) != 0 {
		t.Errorf("%+v", l)
	}
}

// TestNoRulesCostNothing: of a run without rules there is no set, and all may be asked of it.
func TestNoRulesCostNothing(t *testing.T) {
	s := rules.Start(nil, nil, rules.Options{})
	s.Hub().Tick(tick(1, "w"))
	s.Transition(store.Transition{To: engine.StatusFailed}, time.Now())
	if s != nil || s.Ready() != nil || s.TakeMessages(false) != nil || s.States() != nil || s.Changed() != nil ||
		s.Dirty() ||
		s.End(true) {
		t.Error("there is something")
	}
}
