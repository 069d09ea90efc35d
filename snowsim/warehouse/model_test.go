package warehouse

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// bench drives a model on virtual time: statements end when the model says so.
type bench struct {
	t     rapid.TB
	m     *Model
	now   time.Time
	ends  map[ID]time.Time
	begun []Event
	lost  []Event
}

func newBench(t rapid.TB, c Config) *bench {
	return &bench{t: t, m: New(c), now: start, ends: map[ID]time.Time{}}
}

func (b *bench) create(s Spec) {
	if err := b.m.Create(b.now, s); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) take() {
	for _, e := range b.m.Advance(b.now) {
		if e.Err != nil {
			b.lost = append(b.lost, e)
			continue
		}
		b.begun = append(b.begun, e)
		b.ends[e.ID] = e.At.Add(e.Total())
	}
}

// until lets time pass, event by event.
func (b *bench) until(to time.Time) {
	for {
		b.take()
		next, what := to, ID(0)
		if at, any := b.m.Next(); any && at.Before(next) {
			next = at
		}
		for id, at := range b.ends {
			if at.Before(next) || at.Equal(next) && what == 0 {
				next, what = at, id
			}
		}
		if next.After(to) || next.Equal(to) && what == 0 {
			b.now = to
			b.take()
			return
		}
		b.now = later(b.now, next)
		if what != 0 {
			delete(b.ends, what)
			b.m.Finish(b.now, what)
		}
	}
}

func (b *bench) state(name string) State {
	b.take()
	s, found := b.m.Get(name)
	if !found {
		b.t.Fatalf("there is no warehouse %s", name)
	}
	return s
}

func (b *bench) submit(name string, w Work) ID {
	id, err := b.m.Submit(b.now, name, w)
	if err != nil {
		b.t.Fatal(err)
	}
	b.take()
	return id
}

var scan = Work{Standard, Scan}

func TestSlots(t *testing.T) {
	for _, c := range []struct {
		name  string
		spec  Spec
		work  Work
		slots int
	}{
		{"standard", Spec{Name: "W"}, scan, 8},
		{"two clusters", Spec{Name: "W", MinClusters: 2, MaxClusters: 2}, scan, 16},
		{"fewer slots", Spec{Name: "W", MaxConcurrency: 3}, scan, 3},
		{"hybrid", Spec{Name: "W"}, Work{Hybrid, Lookup}, 128},
		{"interactive", Spec{Name: "W", Type: TypeInteractive}, Work{Interactive, Lookup}, 64},
		{"interactive elsewhere", Spec{Name: "W"}, Work{Interactive, Lookup}, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, Config{})
			b.create(c.spec)
			for range c.slots + 5 {
				b.submit("W", c.work)
			}
			if s := b.state("W"); s.Running != c.slots || s.Queued != 5 {
				t.Errorf("%d run and %d wait, of %d slots", s.Running, s.Queued, c.slots)
			}
		})
	}
}

func TestResumeAndSuspend(t *testing.T) {
	b := newBench(t, Config{})
	b.create(Spec{Name: "W", AutoSuspend: time.Minute, AutoResume: true, Suspended: true})
	id := b.submit("W", scan)
	if s := b.state("W"); s.Status != Resuming || s.Queued != 1 || s.StartedClusters != 0 {
		t.Errorf("a statement has it %+v", s)
	}
	b.until(start.Add(2 * time.Second))
	if len(b.begun) != 1 || b.begun[0].ID != id || b.begun[0].QueuedProvisioning != 2*time.Second ||
		b.begun[0].QueuedOverload != 0 {
		t.Fatalf("after the start: %+v", b.begun)
	}
	if s := b.state("W"); s.Status != Started || s.StartedClusters != 1 || s.Running != 1 {
		t.Errorf("started: %+v", s)
	}
	ended := b.ends[id]
	b.until(ended.Add(time.Minute - 1))
	if s := b.state("W"); s.Status != Started {
		t.Errorf("idle for less than a minute: %v", s.Status)
	}
	b.until(ended.Add(time.Minute + 1))
	if s := b.state("W"); s.Status != Suspended || s.StartedClusters != 0 {
		t.Errorf("idle for a minute: %+v", s)
	}
	if err := b.m.Suspend(b.now, "W"); !errors.Is(err, ErrState) {
		t.Errorf("suspending twice: %v", err)
	}
	if err := b.m.Resume(b.now, "W"); err != nil {
		t.Error(err)
	}
	b.create(Spec{Name: "MANUAL", Suspended: true})
	if _, err := b.m.Submit(b.now, "MANUAL", scan); !errors.Is(err, ErrSuspended) {
		t.Errorf("a statement on a suspended warehouse: %v", err)
	}
	if _, err := b.m.Submit(b.now, "NONE", scan); !errors.Is(err, ErrUnknown) {
		t.Errorf("a statement on no warehouse: %v", err)
	}
}

// TestSuspendWaits: what runs may end, what comes meanwhile wakes it again.
func TestSuspendWaits(t *testing.T) {
	b := newBench(t, Config{})
	b.create(Spec{Name: "W", AutoResume: true})
	first := b.submit("W", scan)
	if err := b.m.Suspend(b.now, "W"); err != nil {
		t.Fatal(err)
	}
	b.submit("W", scan)
	if s := b.state("W"); s.Status != Suspending || s.Running != 1 || s.Queued != 1 {
		t.Fatalf("%+v", s)
	}
	b.until(b.ends[first])
	if s := b.state("W"); s.Status != Resuming || s.Queued != 1 {
		t.Fatalf("%+v", s)
	}
	b.until(b.now.Add(time.Minute))
	if len(b.begun) != 2 || b.state("W").Running != 0 {
		t.Fatalf("%+v", b.begun)
	}
}

func TestQueueTimeout(t *testing.T) {
	b := newBench(t, Config{Profiles: map[Work]Profile{scan: {Execution: time.Minute, Share: 1}}})
	b.create(Spec{Name: "W", QueuedTimeout: 3 * time.Second})
	var ids []ID
	for range 10 {
		ids = append(ids, b.submit("W", scan))
	}
	b.until(start.Add(4 * time.Second))
	if len(b.lost) != 2 || b.lost[0].ID != ids[8] || !errors.Is(b.lost[0].Err, ErrQueueTimeout) ||
		!b.lost[0].At.Equal(start.Add(3*time.Second)) {
		t.Fatalf("refused: %+v", b.lost)
	}
}

func TestScaling(t *testing.T) {
	long := Config{Profiles: map[Work]Profile{scan: {Execution: 3 * time.Minute, Share: 1}}}
	b := newBench(t, long)
	b.create(Spec{Name: "W", MinClusters: 1, MaxClusters: 3})
	b.until(start.Add(time.Minute))
	for range 30 {
		b.submit("W", scan)
	}
	// One at once, the next 20 s after the first has started.
	for _, c := range []struct {
		after    time.Duration
		clusters int
	}{{0, 1}, {2 * time.Second, 2}, {21 * time.Second, 2}, {24 * time.Second, 3}, {time.Minute, 3}} {
		b.until(start.Add(time.Minute + c.after))
		if s := b.state("W"); s.StartedClusters != c.clusters || s.Running != 8*c.clusters {
			t.Errorf("after %v: %d clusters with %d statements", c.after, s.StartedClusters, s.Running)
		}
	}
	b.until(b.now.Add(time.Hour))
	if s := b.state("W"); s.StartedClusters != 1 || len(b.begun) != 30 {
		t.Errorf("in the end: %+v, %d statements began", s, len(b.begun))
	}

	// The economy policy wants six minutes of work first.
	b = newBench(t, long)
	b.create(Spec{Name: "E", MinClusters: 1, MaxClusters: 2, ScalingPolicy: PolicyEconomy})
	b.until(start.Add(time.Minute))
	for range 8 + 15 {
		b.submit("E", scan)
	}
	b.until(b.now.Add(30 * time.Second))
	if s := b.state("E"); s.StartedClusters != 1 {
		t.Errorf("less than six minutes of work: %d clusters", s.StartedClusters)
	}
	b.submit("E", scan)
	b.until(b.now.Add(5 * time.Second))
	if s := b.state("E"); s.StartedClusters != 2 {
		t.Errorf("six minutes of work: %d clusters", s.StartedClusters)
	}
}

func TestSizesAndLatencies(t *testing.T) {
	median := func(size string, w Work, houseType string) time.Duration {
		b := newBench(t, Config{Seed: 3})
		b.create(Spec{Name: "W", Size: size, Type: houseType})
		var all []time.Duration
		for range 400 {
			b.submit("W", w)
			b.until(b.now.Add(10 * time.Second))
		}
		for _, e := range b.begun {
			all = append(all, e.Execution)
		}
		slices.Sort(all)
		return all[200]
	}
	near := func(got, want time.Duration) bool {
		return float64(got) > 0.9*float64(want) && float64(got) < 1.1*float64(want)
	}
	if got := median("X-Small", scan, ""); !near(got, 320*ms) {
		t.Errorf("a scan on X-Small takes %v", got)
	}
	if got := median("Medium", scan, ""); !near(got, 320*ms*100/289) {
		t.Errorf("a scan on Medium takes %v", got)
	}
	if small, large := median("X-Small", Work{Hybrid, Lookup}, ""),
		median("4X-Large", Work{Hybrid, Lookup}, ""); !near(small, 7*ms) || small != large {
		t.Errorf("a hybrid lookup takes %v on X-Small and %v on 4X-Large", small, large)
	}
	if fast, slow := median("X-Small", Work{Interactive, Scan}, TypeInteractive),
		median("X-Small", Work{Interactive, Scan}, ""); !near(fast, 80*ms) || !near(slow, 320*ms) {
		t.Errorf("an interactive table's scan takes %v on an interactive warehouse and %v elsewhere", fast, slow)
	}
}

func TestHybridThrottling(t *testing.T) {
	b := newBench(t, Config{HybridRate: 100, HybridBurst: 10})
	b.create(Spec{Name: "W"})
	for range 60 {
		b.submit("W", Work{Hybrid, Lookup})
	}
	throttled, longest := 0, time.Duration(0)
	for _, e := range b.begun {
		throttled += int(e.Throttled)
		longest = max(longest, e.Throttle)
	}
	if throttled != 50 || longest != 500*ms {
		t.Errorf("%d of 60 at once were throttled, the last by %v", throttled, longest)
	}
	b.until(b.now.Add(time.Second))
	b.begun = nil
	b.submit("W", Work{Hybrid, Lookup})
	if b.begun[0].Throttled != 0 {
		t.Error("a second later it still throttles")
	}
}

func TestInteractiveWarehouse(t *testing.T) {
	b := newBench(t, Config{})
	b.create(Spec{Name: "I", Type: TypeInteractive})
	for _, w := range []Work{{Standard, Write}, {Hybrid, Write}, {Interactive, Write}, {Interactive, Load}} {
		if _, err := b.m.Submit(b.now, "I", w); !errors.Is(err, ErrInteractive) {
			t.Errorf("%v %v: %v", w.Table, w.Op, err)
		}
	}
	if s := b.state("I"); s.StatementTimeout != 5*time.Second {
		t.Errorf("its statements may take %v", s.StatementTimeout)
	}
	if err := b.m.Create(b.now, Spec{Name: "J", Type: TypeInteractive, AutoSuspend: time.Hour - time.Second}); err == nil {
		t.Error("an interactive warehouse suspends itself within a day")
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]string{"xsmall": "X-Small", "'X-SMALL'": "X-Small", "SMALL": "Small",
		"MEDIUM": "Medium", "LARGE": "Large", "XLARGE": "X-Large", "'X-LARGE'": "X-Large",
		"XXLARGE": "2X-Large", "2X-LARGE": "2X-Large", "X2LARGE": "2X-Large", "XXXLARGE": "3X-Large", "X4LARGE": "4X-Large",
		"4XLARGE": "4X-Large", "5X-Large": "5X-Large", "X6LARGE": "6X-Large"} {
		if got, err := ParseSize(text); got != want || err != nil {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "HUGE", "7XLARGE", "XSMALLISH", "LARGEX"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q is %q", text, got)
		}
	}
}

// TestModelKeepsItsPromises drives warehouses at random: no cluster takes more
// than it has (but for statements of open transactions), statements begin in
// their order, none is lost or begins twice,
// time never runs backwards, and all of them end.
func TestModelKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(t, Config{Seed: rapid.Uint64().Draw(t, "seed"),
			TimeScale: rapid.SampledFrom([]float64{1, 10}).Draw(t, "scale")})
		low := rapid.IntRange(1, 3).Draw(t, "min")
		spec := Spec{Name: "W", MinClusters: low, MaxClusters: low + rapid.IntRange(0, 2).Draw(t, "more"),
			MaxConcurrency: rapid.IntRange(1, 8).Draw(t, "slots"),
			ScalingPolicy:  rapid.SampledFrom([]string{PolicyStandard, PolicyEconomy}).Draw(t, "policy"), AutoResume: true,
			AutoSuspend: time.Duration(rapid.IntRange(0, 30).Draw(t, "suspend")) * time.Second}
		b.create(spec)
		var submitted []ID
		finished, open := map[ID]bool{}, map[ID]bool{}
		works := []Work{scan, {Standard, Write}, {Hybrid, Lookup}, {Hybrid, Write}}
		one := rapid.Bool().Draw(t, "one kind")
		t.Repeat(map[string]func(*rapid.T){
			"submit": func(t *rapid.T) {
				w := rapid.SampledFrom(works).Draw(t, "work")
				if one {
					w = scan
				}
				submitted = append(submitted, b.submit("W", w))
			},
			"submit open": func(t *rapid.T) {
				id, err := b.m.SubmitOpen(b.now, "W", rapid.SampledFrom(works).Draw(t, "work"))
				if err != nil {
					t.Fatal(err)
				}
				b.take()
				submitted, open[id] = append(submitted, id), true
			},
			"wait": func(t *rapid.T) {
				b.until(b.now.Add(time.Duration(rapid.Int64Range(0, int64(40*time.Second)).Draw(t, "for"))))
			},
			"cancel": func(t *rapid.T) {
				if len(submitted) == 0 {
					t.Skip()
				}
				id := rapid.SampledFrom(submitted).Draw(t, "which")
				delete(b.ends, id)
				finished[id] = true
				b.m.Finish(b.now, id)
				b.take()
			},
			"suspend": func(*rapid.T) { _ = b.m.Suspend(b.now, "W"); b.take() },
			"resume":  func(*rapid.T) { _ = b.m.Resume(b.now, "W"); b.take() },
			"alter": func(t *rapid.T) {
				changed := b.state("W").Spec
				changed.MaxClusters = changed.MinClusters + rapid.IntRange(0, 2).Draw(t, "max")
				if err := b.m.Alter(b.now, "W", changed); err != nil {
					t.Fatal(err)
				}
				b.take()
			},
			"": func(t *rapid.T) {
				h := b.m.houses["W"]
				busy := 0
				for _, c := range h.clusters {
					over := false
					for id, x := range h.running {
						over = over || x.cluster == c && open[id]
					}
					if c.busy < 0 || c.busy > h.MaxConcurrency*unitsPerSlot && !over {
						t.Fatalf("cluster %d has %d units", c.number, c.busy)
					}
					busy += c.busy
				}
				sum := 0
				for _, x := range h.running {
					sum += x.units
				}
				if sum != busy {
					t.Fatalf("%d units run, the clusters have %d", sum, busy)
				}
				if len(h.running) != len(b.ends) {
					t.Fatalf("%d statements run, %d have an end", len(h.running), len(b.ends))
				}
				if h.status == Started && len(h.queue) > 0 {
					for _, c := range h.clusters {
						if !c.ready.After(b.now) && (open[h.queue[0].id] || c.busy+h.queue[0].units <= h.MaxConcurrency*unitsPerSlot) {
							t.Fatal("a statement waits although there is room")
						}
					}
				}
				if h.status == Suspended && len(h.running)+len(h.queue) > 0 {
					t.Fatal("a suspended warehouse has statements")
				}
				if at, any := b.m.Next(); any && at.Before(b.now) {
					t.Fatalf("the next event was due %v ago", b.now.Sub(at))
				}
				seen := map[ID]bool{}
				last := map[bool]ID{}
				for _, e := range b.begun {
					if seen[e.ID] || e.ID < last[open[e.ID]] {
						t.Fatalf("statement %d began twice or before an earlier one", e.ID)
					}
					seen[e.ID], last[open[e.ID]] = true, e.ID
					if e.QueuedOverload < 0 || e.QueuedProvisioning < 0 || e.Execution < 0 {
						t.Fatalf("%+v", e)
					}
				}
			},
		})
		b.until(b.now.Add(24 * time.Hour))
		began := map[ID]bool{}
		for _, e := range b.begun {
			began[e.ID] = true
		}
		for _, id := range submitted {
			if !began[id] && !finished[id] {
				t.Fatalf("statement %d never began", id)
			}
		}
		if s := b.state("W"); s.Running+s.Queued > 0 {
			t.Fatalf("a day later %d run and %d wait", s.Running, s.Queued)
		}
	})
}

// TestDeterminism: the same requests at the same times have the same fate.
func TestDeterminism(t *testing.T) {
	run := func(seed uint64) []Event {
		b := newBench(t, Config{Seed: seed})
		b.create(Spec{Name: "W", MaxClusters: 3})
		for i := range 200 {
			b.submit("W", []Work{scan, {Hybrid, Lookup}, {Standard, Write}}[i%3])
			b.until(b.now.Add(17 * time.Millisecond))
		}
		b.until(b.now.Add(time.Hour))
		return b.begun
	}
	if !slices.Equal(run(1), run(1)) {
		t.Error("the same seed gave something else")
	}
	if slices.Equal(run(1), run(2)) {
		t.Error("another seed gave the same")
	}
}
