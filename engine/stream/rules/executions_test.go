package rules_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/rules"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// worker is a run worker of this process that has recorded something.
type worker struct {
	tap executions.Observer
	mu  sync.Mutex
	has []engine.Execution
}

// opened is a run worker whose executions an exchange tells.
func opened(e *executions.Fanout, run, name string) *worker {
	w := &worker{}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tap = e.Open(executions.Stream{RunID: run, WorkerID: name, NodeID: "local", Now: time.Now,
		Statements: []engine.Statement{{ID: "find"}}, Flush: func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.tap.Write(w.has)
			w.has = nil
			return true
		}, Error: func(uint32) engine.ExecutionError { return engine.ExecutionError{} }})
	return w
}

// record adds executions that took so long.
func (w *worker) record(n int, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range n {
		w.has = append(w.has, engine.Execution{DueAt: time.Now().Add(-took).UnixNano(), Elapsed: int64(took), Success: true})
	}
}

// beside are the options of a rule beside run workers.
func beside(e *executions.Fanout, run string) rules.Options {
	return rules.Options{RunID: run, Node: "local", Executions: e, Account: &system.Account{}}
}

const slow = "SELECT runId, QUANTILE(latencyMs, 0.99) AS p99, COUNT(*) AS n FROM executions GROUP BY runId " +
	"WINDOW TUMBLING(timestamp, SIZE 1 SEC) HAVING p99 > 200"

// TestARuleOverExecutionsSeesItsRunAlone: of two runs at once in one process the slow one is stopped, with the row as
// its reason; also by run workers that were there before the rule. A listener to all runs has the executions of both.
func TestARuleOverExecutionsSeesItsRunAlone(t *testing.T) {
	e, all := &executions.Fanout{}, &system.Hub{Node: "local"}
	e.Listen("", all.Observers())
	early := opened(e, "slow", "w0")
	defer early.tap.Close()
	sets := map[string]*rules.Set{}
	for _, run := range []string{"slow", "quick"} {
		sets[run] = rules.Start([]engine.Rule{{Name: "slow", When: slow, Do: engine.RuleStop},
			{Name: "all", When: "SELECT runId FROM executions WHERE latencyMs < 0", Do: engine.RuleStop}}, nil, beside(e, run))
		defer sets[run].End(false)
	}
	quick := opened(e, "quick", "w0")
	defer quick.tap.Close()
	early.record(100, 300*time.Millisecond)
	quick.record(70, time.Millisecond)
	states := until(t, sets["slow"], func(l []engine.RuleState) bool { return l[0].Out > 0 })
	if states[0].In != 0 && states[0].In != 100 || !strings.Contains(states[0].Row, "runId slow, p99 30") ||
		!strings.HasSuffix(states[0].Row, "n 100") {
		t.Errorf("%+v", states)
	}
	said := sets["slow"].TakeMessages(false)
	if len(said) != 2 || !strings.HasPrefix(said[1].Stop, "Rule 'slow' triggered: runId s") {
		t.Errorf("%+v", said)
	}
	until(t, sets["quick"], func(l []engine.RuleState) bool { return l[0].In == 70 && l[1].In == 70 })
	for run, want := range map[string]int64{"slow": 100, "quick": 70} {
		sets[run].End(true)
		for _, s := range sets[run].States() {
			if s.In != want || s.Failure != "" {
				t.Errorf("%s: %+v", run, s)
			}
		}
	}
	if s := sets["quick"].States(); s[0].Status != engine.RuleEnded || s[0].Out != 0 {
		t.Errorf("%+v", s)
	}
}

// TestRulesThatEndedHearNothing: when the rules of a run are over its run workers tell nobody any more.
func TestRulesThatEndedHearNothing(t *testing.T) {
	e := &executions.Fanout{}
	s := rules.Start(
		[]engine.Rule{{Name: "all", When: "SELECT runId FROM executions WHERE rows > 5", Do: engine.RuleStop}},
		nil,
		beside(e, "r"),
	)
	w := opened(e, "r", "w0")
	defer w.tap.Close()
	if !s.Hub().HasReaders(connector.Executions) {
		t.Error("nobody reads them")
	}
	w.record(3, time.Millisecond)
	until(t, s, func(l []engine.RuleState) bool { return l[0].In == 3 })
	s.End(false)
	left := s.Hub().Open(connector.Executions, nil)
	w.tap.Write(make([]engine.Execution, 1<<13))
	_ = left.Close()
	for b := (&column.Batch{}); left.Read(b) == nil; {
		if b.N > 0 {
			t.Fatal("they are told though the rules are over")
		}
	}
	if got := s.States()[0]; got.In != 3 || s.Hub().HasReaders(connector.Executions) {
		t.Errorf("%+v", got)
	}
}

// TestRulesOverRunWorkersElsewhereSaySo: rules that would not have all executions of their run fail and say what to do.
func TestRulesOverRunWorkersElsewhereSaySo(t *testing.T) {
	s := rules.Start(
		[]engine.Rule{{Name: "slow", When: slow, Do: engine.RuleStop}},
		nil,
		beside(&executions.Fanout{}, "r"),
	)
	defer s.End(false)
	here := store.WorkerRow{RunID: "r", WorkerID: "w0", NodeID: "local", Status: engine.WorkerRunning,
		LastHeartbeat: time.Now()}
	far := here
	far.WorkerID, far.NodeID = "w1", "far"
	s.Hub().Tick(&store.Tick{RunID: "r", Workers: []store.WorkerRow{here}})
	if l := s.States(); l[0].Status != engine.RuleRunning {
		t.Fatalf("%+v", l)
	}
	s.Hub().Tick(&store.Tick{RunID: "r", Workers: []store.WorkerRow{here, far}})
	l := until(t, s, func(l []engine.RuleState) bool { return l[0].Status == engine.RuleFailed })
	if !strings.Contains(l[0].Failure, "PlacementError") || !strings.Contains(l[0].Failure, "far") ||
		!strings.Contains(l[0].Failure, "CREATE QUERY") {
		t.Errorf("%+v", l)
	}
	said := fmt.Sprint(s.TakeMessages(false))
	if !strings.Contains(said, "the run goes on without it") {
		t.Error(said)
	}
}
