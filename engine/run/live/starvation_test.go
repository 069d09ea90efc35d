package live

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// grow is what a process has noticed after another second of a machine whose threads wait so long before they run, and
// wake so late.
func grow(w engine.Witness, waitMs, lateMs float64) engine.Witness {
	w.Known = true
	w.RunNs += 2e8
	w.Slices += 2000
	w.WaitNs += int64(2000 * waitMs * 1e6)
	for range 200 {
		w.Late.Record(lateMs)
	}
	return w
}

// TestAStarvedGeneratorIsSeenByItsFigures: a closed loop on a busy machine had a P95 that was 82 % too high, and was
// VALID. What is too high is held against the figure, whether or not the target is local.
func TestAStarvedGeneratorIsSeenByItsFigures(t *testing.T) {
	type node struct{ wait, late float64 }
	quiet, busy := node{0.004, 0.05}, node{0.3, 8}
	latency := func(p50, p95, p99 float64) *engine.LatencyMs {
		return &engine.LatencyMs{P50: p50, P95: p95, P99: p99}
	}
	fast, slow := latency(2, 4, 6), latency(400, 800, 900)
	for name, c := range map[string]struct {
		warm, measured []node
		f              engine.Figures
		search, local  bool
		want           string // part of the cause, or of the note behind a tilde; empty: none
	}{
		"a quiet machine": {[]node{quiet}, []node{quiet}, engine.Figures{LatencyMs: fast}, false, false, ""},
		"late timers":     {[]node{quiet}, []node{{0.004, 0.3}}, engine.Figures{LatencyMs: latency(0.5, 1, 1.5)}, false, false, ""},
		"late timers of one of two": {[]node{quiet, quiet}, []node{quiet, {0.008, 2}}, engine.Figures{LatencyMs: fast}, false,
			false, ""},
		"threads that wake up": {[]node{quiet}, []node{{0.02, 0.2}}, engine.Figures{LatencyMs: latency(1, 2.5, 2.9)}, false,
			false, "~wake up: P95 by 0.2 ms of 2.5 ms, P99 by 0.2 ms of 2.9 ms."},
		"a P50 of less than threads take to wake up": {[]node{quiet}, []node{{0.06, 0.06}},
			engine.Figures{LatencyMs: latency(0.3, 2.5, 9)}, false, false, "~wake up: P50 by 0.06 ms of 0.3 ms."},
		"late beyond that": {[]node{quiet}, []node{{0.025, 0.3}}, engine.Figures{LatencyMs: latency(1, 2.5, 4)}, false, false,
			"P95 by 0.3"},
		"a tail beyond that": {[]node{quiet}, []node{{0.02, 0.5}}, engine.Figures{LatencyMs: latency(1, 8, 9)}, false, false,
			"P99 by 0.5"},
		"a busy one":             {[]node{quiet}, []node{busy}, engine.Figures{LatencyMs: fast}, false, false, "P99 by"},
		"a local target":         {[]node{quiet}, []node{busy}, engine.Figures{LatencyMs: fast}, false, true, "a: the generator was late"},
		"busy in the warm-up":    {[]node{busy}, []node{quiet}, engine.Figures{LatencyMs: fast}, false, false, ""},
		"too little for figures": {[]node{quiet}, []node{busy}, engine.Figures{LatencyMs: slow}, false, false, ""},
		"one node of two": {[]node{quiet, quiet}, []node{quiet, busy}, engine.Figures{LatencyMs: fast}, false, false,
			"b: the generator was late"},
		"a search": {[]node{quiet}, []node{busy}, engine.Figures{LatencyMs: fast}, true, false, ""},
		"nothing":  {[]node{quiet}, []node{busy}, engine.Figures{}, false, false, ""},
		"decoding between other work": {[]node{quiet}, []node{{0.2, 0.05}}, engine.Figures{LatencyMs: latency(190, 250, 300),
			SplitMs: &engine.SplitMs{RoundTrip: 60, Decode: 128}}, false, false, "P50 by 85"},
		"a large answer on a quiet machine": {[]node{quiet}, []node{quiet}, engine.Figures{LatencyMs: latency(190, 250, 300),
			SplitMs: &engine.SplitMs{RoundTrip: 60, Decode: 128}}, false, false, ""},
		"an open loop that begins late": {[]node{quiet}, []node{quiet}, engine.Figures{LatencyMs: latency(10, 20, 30),
			ScheduleLagMs: latency(1, 4, 8)}, false, false, "P50 by 1 ms of 10 ms, P95 by 4"},
	} {
		v := NewValidity()
		if c.local {
			v.AddNote(engine.Note{Code: engine.NoteTargetLocal})
		}
		told := make([]engine.Witness, len(c.measured))
		for second := range 40 {
			phase, now := engine.PhaseWarmup, c.warm
			if second >= 10 {
				phase, now = engine.PhaseMeasurement, c.measured
			}
			s := &Second{}
			for i, n := range now {
				told[i] = grow(told[i], n.wait, n.late)
				w := told[i]
				s.Nodes = append(s.Nodes, NodeSample{NodeID: string(rune('a' + i)), Resources: engine.Resources{Witness: &w}})
			}
			v.Observe(epoch.Add(time.Duration(second)*time.Second), phase, s)
			v = v.Clone()
		}
		v.Outcome(Outcome{From: epoch.Add(10 * time.Second), To: epoch.Add(40 * time.Second), Operations: 1000, Ended: true,
			Search: c.search})
		v.JudgeWitnesses(&c.f)
		got := v.Verdict().Causes
		want, noted := strings.CutPrefix(c.want, "~")
		if notes := v.Verdict().Notes; noted {
			c.want = ""
			if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, want) }) {
				t.Errorf("%s: %q", name, notes)
			}
		}
		if c.want == "" && len(got) != 0 || c.want != "" && (len(got) != 1 || got[0].Cause != engine.CauseGeneratorStarved ||
			!strings.Contains(got[0].Detail, c.want)) {
			t.Errorf("%s: %+v", name, got)
		}
		verdict := v.Verdict()
		if (verdict.Starved() != "") != (c.want != "") {
			t.Errorf("%s: the certificate is shown: %q", name, verdict.Starved())
		}
	}
}

// TestWitnessesOfAProcessThatBeginsAnew: its counts begin at 0, and nothing is taken twice or away.
func TestWitnessesOfAProcessThatBeginsAnew(t *testing.T) {
	w := newWitnesses()
	look := func(told engine.Witness) {
		w.observe(epoch, true, []NodeSample{{NodeID: "a", Resources: engine.Resources{Witness: &told}}, {NodeID: "b"}})
	}
	first := grow(grow(engine.Witness{}, 1, 9), 1, 9)
	look(first)
	look(grow(first, 1, 9))
	look(grow(engine.Witness{}, 1, 9))
	look(grow(grow(engine.Witness{}, 1, 9), 1, 9))
	if sum := w.measured["a"]; sum.Late.Count() != 400 || sum.Slices != 4000 || len(w.measured) != 1 {
		t.Errorf("%+v", w.measured)
	}
}

// TestFreezesAreWhose: by what the generator noticed meanwhile; a note below 5 % of the time, and a cause from there on.
func TestFreezesAreWhose(t *testing.T) {
	for name, c := range map[string]struct {
		frozen  float64 // s each, of six in 60 s
		stopped []float64
		again   int64
		silent  bool // nodes tell of no witness
		cause   bool
		want    string
	}{
		"the target":                          {0.9, []float64{0}, 0, false, true, "the target did not answer"},
		"the target, seldom":                  {0.3, []float64{0}, 0, false, false, "The target did not answer"},
		"the generator":                       {0.9, []float64{0.9}, 0, false, true, "the generator itself stood still"},
		"one generator of two":                {0.9, []float64{0.9, 0}, 0, false, true, "the target did not answer"},
		"both generators":                     {0.9, []float64{0.9, 0.8}, 0, false, true, "the generator itself stood still"},
		"a generator for a while":             {0.9, []float64{0.1}, 0, false, true, "the target did not answer"},
		"the network":                         {0.9, []float64{0}, 16, false, true, "the network lost or held"},
		"a segment lost":                      {0.9, []float64{0}, 1, false, true, "the target did not answer"},
		"some segments, of whom is not known": {0.9, []float64{0}, 5, false, true, "is not known"},
		"a system that tells of no segments":  {0.9, []float64{0}, -1, false, true, "is not known"},
		"versions without":                    {0.9, []float64{0}, 0, true, true, "is not known"},
	} {
		v := NewValidity()
		f := &engine.Figures{LatencyMs: &engine.LatencyMs{P50: 1000, P95: 1000, P99: 1000}, DurationSeconds: 60,
			Freezes: &engine.Freezes{Count: 6, Seconds: 6 * c.frozen, LongestSeconds: c.frozen}}
		told := make([]engine.Witness, len(c.stopped))
		for second := range 62 {
			s := &Second{}
			freeze := second >= 5 && second%10 == 5
			if freeze {
				f.Freezes.Times = append(f.Freezes.Times, engine.Stall{Seconds: c.frozen,
					From: engine.At(epoch.Add(time.Duration(second)*time.Second - 1500*time.Millisecond))})
			}
			for i := range told {
				told[i] = grow(told[i], 0.001, 0.05)
				if freeze {
					told[i].StoppedNs += int64(c.stopped[i] * 1e9)
					told[i].Retransmits += c.again
				}
				if c.again < 0 {
					told[i].Retransmits = -1
				}
				w := told[i]
				n := NodeSample{NodeID: string(rune('a' + i)), Resources: engine.Resources{Witness: &w}}
				if c.silent {
					n.Resources.Witness = nil
				}
				s.Nodes = append(s.Nodes, n)
			}
			v.Observe(epoch.Add(time.Duration(second)*time.Second), engine.PhaseMeasurement, s)
		}
		v.Outcome(Outcome{From: epoch, To: epoch.Add(time.Minute), Operations: 1000, Ended: true})
		v.JudgeFreezes(f, 8)
		got := v.Verdict()
		text := strings.Join(got.Notes, " ")
		if len(got.Causes) > 0 {
			text = got.Causes[0].Detail
		}
		want := c.want
		if !c.cause {
			want = strings.ToLower(want[:1]) + want[1:]
		}
		if len(got.Causes) > 0 != c.cause || !strings.Contains(text, want) || !strings.Contains(text, "6 times") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestAFewSegmentsAreNotTheNetwork: they are counted of the whole machine, so that with few connections those of another
// program must not make a freeze the network's, and where no more was kept nothing is known.
func TestAFewSegmentsAreNotTheNetwork(t *testing.T) {
	whose := func(connections int, again int64, before int) string {
		w := newWitnesses()
		told := engine.Witness{}
		look := func(at time.Time) {
			told = grow(told, 0.001, 0.05)
			now := told
			w.observe(at, true, []NodeSample{{NodeID: "a", Resources: engine.Resources{Witness: &now}}})
		}
		at := epoch
		for range before {
			look(at)
			told.Retransmits++
			at = at.Add(time.Second)
		}
		look(at)
		told.Retransmits += again
		look(at.Add(3 * time.Second))
		c := w.clone()
		return c.whose(engine.Stall{Seconds: 0.9, From: engine.At(at.Add(time.Second))}, connections)
	}
	for _, c := range []struct {
		connections int
		again       int64
		before      int
		want        string
	}{
		{4, 0, 0, ""}, {4, 1, 0, ""}, {4, 2, 0, engine.StallUnknown}, {4, 3, 0, engine.StallUnknown},
		{4, 4, 0, engine.StallOfNetwork}, {1, 2, 0, engine.StallUnknown}, {64, 16, 0, ""}, {64, 32, 0, engine.StallUnknown},
		{64, 64, 0, engine.StallOfNetwork}, {4, 1, maxMoments - 1, ""}, {4, 1, maxMoments + 1, engine.StallUnknown},
	} {
		if got := whose(c.connections, c.again, c.before); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestAConnectionThatHangsFromTheWarmUpOn: one of eight hangs in an operation of the warm-up for all of the measurement,
// whose throughput is an eighth too low and whose latencies show nothing; slow operations as usual are no such thing.
func TestAConnectionThatHangsFromTheWarmUpOn(t *testing.T) {
	for name, c := range map[string]struct {
		held   engine.HeldOver
		max    float64
		f      engine.Figures
		search bool
		want   bool
	}{
		"one of eight":             {engine.HeldOver{Seconds: 10.02, LongestSeconds: 10}, 40, engine.Figures{}, false, true},
		"one of a hundred":         {engine.HeldOver{Seconds: 0.8, LongestSeconds: 0.8}, 40, engine.Figures{}, false, false},
		"slow operations":          {engine.HeldOver{Seconds: 16, LongestSeconds: 3}, 4000, engine.Figures{}, false, false},
		"the backlog of a rate":    {engine.HeldOver{Seconds: 30, LongestSeconds: 5}, 40, engine.Figures{ServiceMs: &engine.LatencyMs{}}, false, false},
		"a record that lost parts": {engine.HeldOver{Seconds: 10, LongestSeconds: 10}, 40, engine.Figures{RecordPartial: true}, false, false},
		"a search":                 {engine.HeldOver{Seconds: 10, LongestSeconds: 10}, 40, engine.Figures{}, true, false},
	} {
		v, f := NewValidity(), c.f
		f.HeldOver, f.DurationSeconds, f.LatencyMs = c.held, 10, &engine.LatencyMs{Max: c.max}
		v.Outcome(Outcome{From: epoch, To: epoch.Add(10 * time.Second), Operations: 1000, Ended: true, Search: c.search})
		v.JudgeHeldOver(&f, 8)
		causes := v.Verdict().Causes
		if (len(causes) == 1) != c.want || c.want && (causes[0].Cause != engine.CauseConnectionsShort ||
			!strings.Contains(causes[0].Detail, "up to 10 s of the measurement")) {
			t.Errorf("%s: %+v", name, causes)
		}
	}
}
