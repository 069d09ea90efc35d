package findings_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/findings"
)

// TestNeighboursAreNotChargedToTheRun: a healthy run beside others that spill, scan its tables or open sessions has no
// finding, whatever the counters of the whole database say.
func TestNeighboursAreNotChargedToTheRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Uint64().Draw(t, "seed"), 8)
		w.c.Facts(facts(true))
		spill := rapid.Float64Range(0, 500e6).Draw(t, "bytes a second")
		opened := rapid.Float64Range(0, 1000).Draw(t, "sessions a second")
		rows := rapid.Float64Range(0, 50e6).Draw(t, "rows a second")
		var others []engine.ActivitySample
		for i := range rapid.IntRange(1, 5).Draw(t, "neighbours") {
			class := rapid.SampledFrom([]engine.WaitClass{engine.WaitCPU, engine.WaitSpill, engine.WaitRead}).Draw(t, "class")
			others = append(others, engine.ActivitySample{Session: fmt.Sprint(i), State: engine.SessionActive, Class: class,
				Application: "nightly"})
		}
		for i := range 30 {
			n := float64(i)
			w.c.Counters(begin.Add(time.Duration(i)*time.Second), []engine.ServerCounter{
				{Name: plugin.CounterTempBytes, Value: spill * n}, {Name: plugin.CounterSessions, Value: opened * n},
				{Name: plugin.CounterTableScans, Object: "orders", Value: n},
				{Name: plugin.CounterTableScanRows, Object: "orders", Value: rows * n}})
			w.second(2000, usual, others...)
		}
		if rules := found(w.judge(0)); len(rules) > 0 {
			t.Fatalf("%v", rules)
		}
	})
}

// TestNamesOfTheServerAreBounded: a server that names a new event, session and table in each look does not fill the
// collector, and what it does is told of the rest.
func TestNamesOfTheServerAreBounded(t *testing.T) {
	c := findings.NewCollector()
	for i := range 20_000 {
		at := begin.Add(time.Duration(i) * 10 * time.Millisecond)
		name := fmt.Sprint("name", i)
		c.Look(engine.ServerLook{At: engine.At(at), Sessions: []engine.ActivitySample{
			{Session: "h" + name, State: engine.SessionInTransaction, Application: name},
			{Session: "1", Ours: true, State: engine.SessionActive, Class: engine.WaitLatch, Event: name, StatementID: "s"},
			{Session: "2", Ours: true, State: engine.SessionActive, Class: engine.WaitLock, Scope: "row",
				BlockedBy: []string{"h" + name}, StatementID: "s"}}})
		c.Counters(at, []engine.ServerCounter{{Name: plugin.CounterTableScans, Object: name, Value: 1}})
	}
	causes, counters, sessions := c.Sizes()
	if causes > 1000 || counters > 5000 || sessions > 501 {
		t.Errorf("%d causes, %d counters, %d sessions", causes, counters, sessions)
	}
	_, _, n := c.Grid()
	client := make([]findings.ClientSecond, n)
	for i := range client {
		client[i] = findings.ClientSecond{InFlight: 2, Ended: 1}
	}
	v := c.Judge(findings.Input{Client: client, From: begin, To: begin.Add(time.Hour)})
	if len(v.Findings) == 0 || len(v.Findings) > 40 || v.Findings[0].Who != nil {
		t.Errorf("%+v", v.Findings)
	}
}
