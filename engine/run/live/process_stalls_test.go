package live

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestWhoIsNotHeardOfNeedNotHaveStoodStill: a node that was cut off, a server that stood still while nodes went on, and
// a takeover were all told as "Loadstone itself stood still" beside a stall of the target.
func TestWhoIsNotHeardOfNeedNotHaveStoodStill(t *testing.T) {
	at := func(seconds float64) time.Time { return epoch.Add(time.Duration(seconds * float64(time.Second))) }
	look := func(v *Validity, seconds float64, still ...float64) {
		s := &Second{}
		for i, ms := range still {
			s.Nodes = append(s.Nodes, NodeSample{NodeID: string(rune('a' + i)),
				Resources: engine.Resources{MaxStallMs: ms}})
		}
		v.Observe(at(seconds), engine.PhaseMeasurement, s)
	}
	snapshot := func(node string, seconds float64) engine.WorkerSnapshot {
		return engine.WorkerSnapshot{WorkerID: "worker-" + node, NodeID: node, Phase: engine.PhaseMeasurement,
			Timestamp: engine.At(at(10)), TickSeconds: seconds, PhaseSeconds: 10, TickStarted: 1}
	}
	for name, tt := range map[string]struct {
		observe func(v *Validity)
		stood   bool
	}{
		"the only node":     {func(v *Validity) { look(v, 8, 0); look(v, 10, 1900) }, true},
		"one of two nodes":  {func(v *Validity) { look(v, 8, 0, 0); look(v, 10, 1900, 0) }, false},
		"both nodes":        {func(v *Validity) { look(v, 8, 0, 0); look(v, 10, 1900, 1900) }, true},
		"one after another": {func(v *Validity) { look(v, 8, 1900, 0); look(v, 10, 0, 1900) }, true},
		"a takeover": {func(v *Validity) {
			look(v, 1, 0)
			v.Add(engine.CauseSnapshotGap, engine.TextNote("another server went on"), at(7), at(10))
		}, false},
		"the server alone": {func(v *Validity) { look(v, 6, 0); look(v, 10, 0) }, false},
		"a node cut off": {func(v *Validity) {
			s := &Second{Nodes: []NodeSample{{NodeID: "a"}}, Workers: []WorkerSample{{WorkerID: "worker-a", Newest: at(6)}}}
			for i := 6; i <= 10; i++ {
				v.Observe(at(float64(i)), engine.PhaseMeasurement, s)
				s.Nodes = nil
			}
		}, false},
		"a run worker by its own clock": {func(v *Validity) {
			v.Observe(at(10), engine.PhaseCooldown, &Second{Snapshots: []engine.WorkerSnapshot{snapshot("a", 4)}})
		}, true},
		"that of one node of two": {func(v *Validity) {
			look(v, 9, 0, 0)
			v.Observe(at(10), engine.PhaseMeasurement, &Second{Snapshots: []engine.WorkerSnapshot{snapshot("a", 4)}})
		}, false},
	} {
		v := NewValidity()
		tt.observe(v)
		for _, v := range []*Validity{v, v.Clone()} {
			if got := v.AllStalled(at(7), at(9)); got != tt.stood {
				t.Errorf("%s: it stood still: %v", name, got)
			}
			if !v.AnySilent(at(7), at(9)) {
				t.Errorf("%s: nothing is missing: %+v", name, v.Verdict())
			}
			if v.AllStalled(at(20), at(21)) || v.AnySilent(at(20), at(21)) {
				t.Errorf("%s: it stood still later too", name)
			}
		}
	}
}

// TestManyShortStopsAreACause: a run worker that was stopped for 0.9 s in each three seconds did 16 % less in a closed
// loop, and the run was VALID.
func TestManyShortStopsAreACause(t *testing.T) {
	for name, c := range map[string]struct {
		every int // s
		still float64
		want  engine.Verdict
	}{
		"a few": {10, 900, engine.VerdictValid}, "many": {3, 900, engine.VerdictDegraded},
		"many, and too short":  {1, 200, engine.VerdictValid},
		"half of every second": {1, 500, engine.VerdictDegraded},
	} {
		v, told := NewValidity(), 0.0
		for second := range 60 {
			ms := 0.0
			if second%c.every == 0 {
				ms = c.still + float64(second)/100
			}
			// What was in a second is told with it and with the next.
			v.Observe(epoch.Add(time.Duration(second)*time.Second), engine.PhaseMeasurement, &Second{Nodes: []NodeSample{
				{NodeID: "a", Resources: engine.Resources{MaxStallMs: max(ms, told)}}}})
			told = ms
			v = v.Clone()
		}
		got := v.Verdict()
		if got.Verdict != c.want || c.want == engine.VerdictDegraded && (len(got.Causes) != 1 ||
			got.Causes[0].Cause != engine.CauseSnapshotGap) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestAMachineOnWhichOthersWorkIsNoted: a closed loop on it was VALID without a word.
func TestAMachineOnWhichOthersWorkIsNoted(t *testing.T) {
	for name, c := range map[string]struct {
		host, own float64
		seconds   int // of 30
		local     bool
		noted     bool
	}{
		"others": {99, 10, 8, false, true}, "the generator itself": {99, 80, 30, false, false},
		"for a moment": {99, 10, 4, false, false}, "the target": {99, 10, 30, true, false},
		"nobody": {60, 10, 30, false, false},
	} {
		v := NewValidity()
		if c.local {
			v.AddNote(engine.Note{Code: engine.NoteTargetLocal})
		}
		for second := range 30 {
			r := engine.Resources{HostCPUPercent: 20, CPUPercent: 10}
			if second < c.seconds {
				r.HostCPUPercent, r.CPUPercent = c.host, c.own
			}
			v.Observe(epoch.Add(time.Duration(second)*time.Second), engine.PhaseMeasurement,
				&Second{Nodes: []NodeSample{{NodeID: "a", Resources: r}}})
			v = v.Clone()
		}
		got := v.Verdict()
		noted := slices.ContainsFunc(got.Notes, func(n string) bool { return strings.Contains(n, "8 of 30 s") })
		if noted != c.noted || !slices.Equal(got.Notes, got.LiveNotes) || got.Verdict != engine.VerdictValid {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestTimesOfStillnessAreBounded: a node that stops every few seconds for days does not grow the run, and its last time
// is still known.
func TestTimesOfStillnessAreBounded(t *testing.T) {
	v := &Validity{processStalls: processStalls{nodes: map[string]bool{}}}
	var from, to time.Time
	for i := range 2 * maxSpans {
		from = epoch.Add(time.Duration(i) * 5 * time.Second)
		to = from.Add(1200 * time.Millisecond)
		v.processStalls.addSpan("a", from, to)
	}
	for i := range maxSpans {
		v.processStalls.addSpan("b"+strconv.Itoa(i), from, to)
	}
	if n := len(v.processStalls.spans); n > maxSpans {
		t.Errorf("%d times are kept; want %d at most", n, maxSpans)
	}
	v.processStalls.nodes = map[string]bool{"a": true}
	if !v.AllStalled(from, to) || !v.AllStalled(epoch, epoch.Add(time.Second)) ||
		v.AllStalled(epoch.Add(2*time.Second), epoch.Add(4*time.Second)) {
		t.Error("the first time, or the last one, is not known, or what lies between the first two is taken for one")
	}
}
