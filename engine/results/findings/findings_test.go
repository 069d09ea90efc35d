package findings_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/findings"
)

var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// world makes seconds of a run: looks ten times a second, and the client's time.
type world struct {
	c      *findings.Collector
	client []findings.ClientSecond
	rand   *rand.Rand
	conns  int
	// churns: each look has sessions of its own.
	churns bool
}

func newWorld(seed uint64, connections int) *world {
	return &world{c: findings.NewCollector(), rand: rand.New(rand.NewPCG(seed, 1)), conns: connections}
}

// part is what sessions of the run do in a second, in average sessions.
type part struct {
	class     engine.WaitClass
	sessions  float64
	scope     string
	blockedBy string
	statement string
}

// own blocks by another session of the run in each look, which may have ended.
const own = "own"

// second adds one: parts are of the run, others are in every look.
func (w *world) second(ended float64, parts []part, others ...engine.ActivitySample) {
	n := len(w.client)
	w.client = append(w.client, findings.ClientSecond{InFlight: float64(w.conns), Ended: ended})
	for k := range 10 {
		l := engine.ServerLook{At: engine.At(begin.Add(time.Duration(n)*time.Second + time.Duration(k)*100*time.Millisecond)),
			TookMs: 0.5, Sessions: append([]engine.ActivitySample{}, others...)}
		id := 100
		for _, p := range parts {
			whole := int(p.sessions)
			if w.rand.Float64() < p.sessions-float64(whole) {
				whole++
			}
			for range whole {
				id++
				a := engine.ActivitySample{Session: fmt.Sprint(id), Ours: true, State: engine.SessionActive, Class: p.class,
					Scope: p.scope, StatementID: p.statement}
				if p.blockedBy == own {
					a.BlockedBy = []string{fmt.Sprint(100 + w.rand.IntN(50))}
				} else if p.blockedBy != "" {
					a.BlockedBy = []string{p.blockedBy}
				}
				if w.churns {
					a.Session = fmt.Sprint(n, ".", k, ".", id)
				}
				l.Sessions = append(l.Sessions, a)
			}
		}
		l.Idle = max(0, w.conns-(id-100))
		w.c.Look(l)
	}
}

func (w *world) judge(processors int) findings.Verdict {
	return w.c.Judge(
		findings.Input{Client: w.client, From: begin, To: begin.Add(time.Duration(len(w.client)) * time.Second),
			Processors: processors},
	)
}

// found are the rules of findings, notes left out.
func found(v findings.Verdict) (rules []string) {
	for _, f := range v.Findings {
		if f.Level == engine.LevelFinding {
			rules = append(rules, f.Rule)
		}
	}
	return rules
}

func facts(seen bool) engine.ServerFacts {
	return engine.ServerFacts{
		Facts: map[string]string{plugin.FactOthersSeen: fmt.Sprint(seen), plugin.FactMaxConnections: "100"},
	}
}

var usual = []part{{class: engine.WaitCPU, sessions: 2.5, statement: "read"}, {class: engine.WaitCommit, sessions: 0.8,
	statement: "write"}}

// staged is a run of 30 s of which ten are as it says.
func staged(seed uint64, parts []part, others ...engine.ActivitySample) *world {
	w := newWorld(seed, 8)
	w.c.Facts(facts(true))
	for i := range 30 {
		if i >= 10 && i < 20 {
			w.second(20, parts, others...)
			continue
		}
		w.second(2000+100*w.rand.Float64(), usual)
	}
	return w
}

// TestCausesAreRankedFirst: of each cause that is staged in ten of thirty seconds the finding comes first, names who it
// is, and its interval is that of the cause.
func TestCausesAreRankedFirst(t *testing.T) {
	foreign := func(state engine.SessionState, alters bool) engine.ActivitySample {
		return engine.ActivitySample{Session: "7", State: state, Application: "billing", User: "eve", Alters: alters,
			Text: "UPDATE orders SET paid = …", TransactionSeconds: 12}
	}
	waiting := func(scope, by string) []part {
		return []part{{class: engine.WaitLock, sessions: 7.6, scope: scope, blockedBy: by, statement: "write"}}
	}
	for _, c := range []struct {
		rule  string
		world *world
		who   string
	}{
		{findings.RuleIdleInTransaction, staged(1, waiting("row", "7"), foreign(engine.SessionInTransaction, false)), "7"},
		{findings.RuleForeignLock, staged(2, waiting("row", "7"), foreign(engine.SessionActive, false)), "7"},
		{findings.RuleTableLock, staged(3, waiting("table", "7"), foreign(engine.SessionActive, true)), "7"},
		{findings.RuleHotRow, staged(4, waiting("row", "101")), ""},
		{findings.RuleMaintenanceLock, staged(5, waiting("table", "7"), foreign(engine.SessionService, false)), "7"},
		{findings.RuleCommit, staged(6, []part{{class: engine.WaitCommit, sessions: 7.5, statement: "write"}}), ""},
		{findings.RuleReplica, staged(7, []part{{class: engine.WaitReplica, sessions: 7.5}}), ""},
		{findings.RuleCache, staged(8, []part{{class: engine.WaitRead, sessions: 6}}), ""},
		{findings.RuleSpill, staged(9, []part{{class: engine.WaitSpill, sessions: 6}}), ""},
		{findings.RuleLatch, staged(10, []part{{class: engine.WaitLatch, sessions: 6}}), ""},
	} {
		v := c.world.judge(4)
		rules := found(v)
		if len(rules) == 0 || rules[0] != c.rule {
			t.Errorf("%s: found %v: %+v", c.rule, rules, v.Findings)
			continue
		}
		f := v.Findings[0]
		if f.From.Sub(begin) != 10*time.Second || f.To.Sub(begin) != 20*time.Second {
			t.Errorf("%s: from %v to %v", c.rule, f.From.Sub(begin), f.To.Sub(begin))
		}
		if c.who != "" && (f.Who == nil || f.Who.Session != c.who || f.Who.Application != "billing" || f.Who.User != "eve") {
			t.Errorf("%s: who is %+v", c.rule, f.Who)
		}
		if *f.ShareLow <= 0.05 || *f.Share < *f.ShareLow || *f.ShareHigh < *f.Share || f.Try == "" ||
			!strings.Contains(f.Text, "%") {
			t.Errorf("%s: %+v", c.rule, f)
		}
		for _, other := range rules[1:] {
			t.Errorf("%s: %s is found too, of the same wait", c.rule, other)
		}
	}
}

// TestCountersNameTheCause: what sessions do with the processor is explained by what counters say, as far as it can be.
func TestCountersNameTheCause(t *testing.T) {
	for _, c := range []struct {
		rule, object string
		counters     func(i float64) []engine.ServerCounter
		processors   int
	}{
		{findings.RuleMissingIndex, "public.orders", func(i float64) []engine.ServerCounter {
			return []engine.ServerCounter{{Name: plugin.CounterTableScans, Object: "public.orders", Value: 100 * i},
				{Name: plugin.CounterTableScanRows, Object: "public.orders", Value: 60e6 * i}}
		}, 8},
		{findings.RuleSpill, "", func(i float64) []engine.ServerCounter {
			return []engine.ServerCounter{{Name: plugin.CounterTempBytes, Value: 600e6 * i}}
		}, 8},
		{findings.RuleConnectionStorm, "", func(i float64) []engine.ServerCounter {
			return []engine.ServerCounter{{Name: plugin.CounterSessions, Value: 1000 * i}}
		}, 8},
		{findings.RuleJIT, "", func(i float64) []engine.ServerCounter {
			return []engine.ServerCounter{{Name: plugin.CounterJIT, Value: 5000 * i}}
		}, 8},
		{findings.RuleProcessors, "", func(float64) []engine.ServerCounter { return nil }, 2},
	} {
		w := newWorld(3, 8)
		w.churns = c.rule == findings.RuleConnectionStorm
		for i := range 30 {
			w.c.Counters(begin.Add(time.Duration(i)*time.Second), c.counters(float64(i)))
			w.second(100, []part{{class: engine.WaitCPU, sessions: 7.5, statement: "read"}})
		}
		v := w.judge(c.processors)
		if rules := found(v); len(rules) == 0 || rules[0] != c.rule || v.Findings[0].Object != c.object {
			t.Errorf("%s: %v: %+v", c.rule, rules, v.Findings)
		}
	}
	// Tables of a few rows are read from end to end on purpose.
	w := newWorld(3, 8)
	for i := range 30 {
		w.c.Counters(begin.Add(time.Duration(i)*time.Second), []engine.ServerCounter{
			{Name: plugin.CounterTableScans, Object: "branches", Value: 2000 * float64(i)},
			{Name: plugin.CounterTableScanRows, Object: "branches", Value: 20_000 * float64(i)}})
		w.second(2000, []part{{class: engine.WaitCPU, sessions: 7.5, statement: "read"}})
	}
	if rules := found(w.judge(8)); len(rules) > 0 {
		t.Errorf("a small table: %v", rules)
	}
}

// TestHealthyNoiseIsNoFinding: whatever the mix of a healthy run, and however its seconds differ, nothing above a note is
// found, and what was seen is explained.
func TestHealthyNoiseIsNoFinding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Uint64().Draw(t, "seed"), 8)
		w.c.Facts(facts(rapid.Bool().Draw(t, "others are seen")))
		cpu := rapid.Float64Range(0, 3).Draw(t, "cpu")
		commit := rapid.Float64Range(0, 3.5).Draw(t, "commit")
		lock := rapid.Float64Range(0, 0.5).Draw(t, "lock")
		latch := rapid.Float64Range(0, 0.4).Draw(t, "latch")
		noise := rapid.Float64Range(0, 0.6).Draw(t, "noise")
		for range rapid.IntRange(5, 60).Draw(t, "seconds") {
			// A second may be slower than another by all its parts together, as on a busy machine.
			slow := 1 + noise*w.rand.Float64()
			w.second(2000/slow, []part{{class: engine.WaitCPU, sessions: cpu}, {class: engine.WaitCommit, sessions: commit},
				{class: engine.WaitLock, sessions: lock, scope: "row", blockedBy: own}, {class: engine.WaitLatch, sessions: latch}})
		}
		v := w.judge(8)
		if rules := found(v); len(rules) > 0 {
			t.Fatalf("%v: %+v", rules, v.Findings)
		}
		s := v.Time
		sum := s.Waiting + s.Network + s.Remainder
		for _, of := range s.Classes {
			sum += of
		}
		if math.Abs(sum-s.InFlight) > 1e-6*s.InFlight || s.RemainderPct > 10 {
			t.Fatalf("%v of %v is explained, %v %% are not", sum, s.InFlight, s.RemainderPct)
		}
	})
}

// TestSharesAreParts: of any seconds, shares of causes are between 0 and 1, bounds enclose them, and together they are
// at most the server's time.
func TestSharesAreParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Uint64().Draw(t, "seed"), 10)
		for i := range rapid.IntRange(1, 40).Draw(t, "seconds") {
			var parts []part
			left := 10.0
			for _, class := range engine.WaitClasses() {
				n := rapid.Float64Range(0, left).Draw(t, string(class))
				left -= n
				parts = append(parts, part{class: class, sessions: math.Floor(n), scope: "row", blockedBy: "7"})
			}
			w.c.Counters(begin.Add(time.Duration(i)*time.Second), []engine.ServerCounter{
				{Name: plugin.CounterTempBytes, Value: float64(i) * rapid.Float64Range(0, 1e10).Draw(t, "bytes")},
				{Name: plugin.CounterSessions, Value: float64(i) * rapid.Float64Range(0, 1e4).Draw(t, "sessions")}})
			w.second(rapid.Float64Range(0, 3000).Draw(t, "ended"), parts)
		}
		v := w.judge(rapid.IntRange(0, 8).Draw(t, "processors"))
		sum := 0.0
		for _, f := range v.Findings {
			if f.Share == nil {
				continue
			}
			if *f.ShareLow < 0 || *f.ShareHigh > 1 || *f.Share < *f.ShareLow || *f.Share > *f.ShareHigh+1e-9 {
				t.Fatalf("%+v", f)
			}
			sum += f.Seconds
		}
		busy := 0.0
		for _, of := range v.Time.Classes {
			busy += of
		}
		if sum > busy+1e-6 {
			t.Fatalf("causes have %v s of %v", sum, busy)
		}
	})
}

// TestNothingAndUnseen: an idle server is said to be, and so is what could not be seen.
func TestNothingAndUnseen(t *testing.T) {
	w := newWorld(1, 8)
	f := facts(false)
	f.Missing = []string{"Other users are not shown."}
	w.c.Facts(f)
	for range 20 {
		w.second(500, []part{{class: engine.WaitCPU, sessions: 0.4}})
	}
	v := w.judge(8)
	if len(v.Findings) < 2 || v.Findings[0].Rule != findings.RuleNothing ||
		!strings.Contains(v.Findings[0].Text, "idle") ||
		!strings.Contains(v.Findings[0].Try, "network") ||
		v.Findings[1].Rule != findings.RuleNotPermitted {
		t.Fatalf("%+v", v.Findings)
	}
	// A holder that the role may not see is not taken for one of the run's own.
	unseen := newWorld(2, 8)
	unseen.c.Facts(f)
	for i := range 30 {
		if i < 10 {
			unseen.second(2000, usual)
			continue
		}
		unseen.second(10, []part{{class: engine.WaitLock, sessions: 7.6, scope: "row", blockedBy: "99"}})
	}
	if v := unseen.judge(8); found(v)[0] != findings.RuleForeignLock || v.Findings[0].Who.Session != "99" {
		t.Fatalf("%+v", v.Findings[0])
	}
	if v := findings.NewCollector().Judge(findings.Input{}); v.Findings[0].Rule != findings.RuleNotObserved {
		t.Fatalf("%+v", v)
	}
}

// TestLongRunsAreMerged: a collector of a week holds no more than one of two hours, and its sums stay.
func TestLongRunsAreMerged(t *testing.T) {
	c := findings.NewCollector()
	for i := range 20_000 {
		c.Look(engine.ServerLook{At: engine.At(begin.Add(time.Duration(i) * time.Second)), Sessions: []engine.ActivitySample{
			{Session: "1", Ours: true, State: engine.SessionActive, Class: engine.WaitCPU}}})
	}
	_, step, n := c.Grid()
	if step != 4*time.Second || n != 5000 {
		t.Fatalf("%d slots of %v", n, step)
	}
	looks := 0
	for _, s := range c.Seconds(begin, 100) {
		looks += s.Looks
		if math.Abs(s.Ours[engine.WaitCPU]-1) > 1e-9 {
			t.Fatalf("%+v", s)
		}
	}
	if looks != 20_000 {
		t.Fatalf("%d looks", looks)
	}
}

// TestResetsAreNoDifferences: counters that begin anew, and a server that was started again, are told and not counted.
func TestResetsAreNoDifferences(t *testing.T) {
	w := newWorld(1, 4)
	for i, v := range []float64{1e9, 1e9, 5, 10} {
		w.c.Counters(
			begin.Add(time.Duration(i)*time.Second),
			[]engine.ServerCounter{{Name: plugin.CounterTempBytes, Value: v},
				{Name: plugin.CounterStarted, Value: float64(i / 2)}},
		)
		w.second(100, []part{{class: engine.WaitCPU, sessions: 3}})
	}
	v := w.judge(8)
	for _, f := range v.Findings {
		if f.Rule == findings.RuleSpill {
			t.Errorf("%+v", f)
		}
	}
	if events := w.c.Events(); len(events) != 1 || events[0].Kind != "restart" {
		t.Errorf("%+v", events)
	}
}
