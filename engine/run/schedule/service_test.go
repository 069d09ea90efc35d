package schedule

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a store of one schedule, and what starts its runs. Real statements are tested in storage/postgres.
type world struct {
	mu       sync.Mutex
	holder   string
	until    time.Time
	down     error
	v        engine.Schedule
	starts   []engine.ScheduledStart
	running  time.Time     // until when the last run goes on
	takes    time.Duration // a run
	refuses  error
	hangs    chan struct{}
	begun    []time.Time
	missed   []engine.ScheduledStart
	inFlight int
	most     int // starts at once
}

func (w *world) AcquireTaskLease(_ context.Context, _, owner string, lasts time.Duration) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down != nil {
		return false, w.down
	}
	if w.holder != owner && time.Now().Before(w.until) {
		return false, nil
	}
	w.holder, w.until = owner, time.Now().Add(lasts)
	return true, nil
}

func (w *world) ReleaseTaskLease(_ context.Context, _, owner string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holder == owner {
		w.until = time.Time{}
	}
	return nil
}

func (w *world) Schedules(context.Context) ([]engine.Schedule, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return []engine.Schedule{w.v}, nil
}

func (w *world) Schedule(context.Context, string) (engine.Schedule, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.v, nil
}

func (w *world) CreateSchedule(_ context.Context, v engine.Schedule) (engine.Schedule, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v.ScheduleID, v.Version = "s", 1
	w.v = v
	return v, nil
}

func (w *world) UpdateSchedule(_ context.Context, v engine.Schedule) (engine.Schedule, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.Version != w.v.Version {
		return v, store.ErrConflict
	}
	v.Version++
	w.v = v
	return v, nil
}

func (w *world) DeleteSchedule(context.Context, string) error { return nil }

func (w *world) SuspendSchedule(_ context.Context, _ string, version int64, why string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if version == w.v.Version {
		w.v.Suspended, w.v.NextDue = why, engine.Time{}
	}
	return nil
}

func (w *world) ScheduledStarts(context.Context, string, int) ([]engine.ScheduledStart, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.starts), nil
}

func (w *world) DueSchedules(context.Context) (due []engine.Schedule, now, next time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now = time.Now()
	switch {
	case w.down != nil:
		return nil, now, next, w.down
	case w.v.NextDue.IsZero():
	case w.v.NextDue.After(now):
		next = w.v.NextDue.Time
	default:
		due = []engine.Schedule{w.v}
	}
	return due, now, next, nil
}

func (w *world) BeginStart(_ context.Context, v engine.Schedule, starts []engine.ScheduledStart, next time.Time) (
	[]engine.ScheduledStart, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.Version != w.v.Version || !v.NextDue.Equal(w.v.NextDue.Time) {
		return nil, store.ErrConflict
	}
	w.v.NextDue = engine.At(next)
	starts = slices.Clone(starts)
	for i, st := range starts {
		busy := time.Now().Before(w.running) || slices.ContainsFunc(w.starts, func(o engine.ScheduledStart) bool {
			return o.Outcome == engine.StartBegun
		})
		if starts[i].NotedAt = engine.At(time.Now()); st.Outcome == engine.StartBegun && busy {
			starts[i].Outcome = engine.StartSkipped
		}
		w.starts = append(w.starts, starts[i])
	}
	return starts, nil
}

func (w *world) FinishStart(_ context.Context, st engine.ScheduledStart) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down != nil {
		return w.down
	}
	for i, o := range w.starts {
		if o.DueAt == st.DueAt && o.Outcome == engine.StartBegun {
			w.starts[i] = st
		}
	}
	return nil
}

func (w *world) SettleStarts(_ context.Context, longer time.Duration) (settled []engine.ScheduledStart, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, o := range w.starts {
		if o.Outcome == engine.StartBegun && time.Since(o.NotedAt.Time) > longer {
			w.starts[i].Outcome = engine.StartFailed
			settled = append(settled, w.starts[i])
		}
	}
	return settled, nil
}

func (w *world) StartScheduled(ctx context.Context, _ engine.Schedule, created func(string, string) error) error {
	w.mu.Lock()
	w.inFlight++
	w.most = max(w.most, w.inFlight)
	refuses, hangs := w.refuses, w.hangs
	w.mu.Unlock()
	defer func() { w.mu.Lock(); w.inFlight--; w.mu.Unlock() }()
	if hangs != nil {
		select {
		case <-hangs:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if refuses != nil {
		return refuses
	}
	if err := created("run", ""); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun, w.running = append(w.begun, time.Now()), time.Now().Add(w.takes)
	return nil
}

func (w *world) ScheduleMissed(_ engine.Schedule, st engine.ScheduledStart) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missed = append(w.missed, st)
}

// server starts one on the store; the answer ends it.
func (w *world) server(name string) (s *Service, end func()) {
	s = New(Options{Store: w, Owner: name, Missed: w, Log: zerolog.Nop()})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx, w) }()
	return s, func() { cancel(); <-done }
}

func (w *world) outcomes() (all []engine.StartOutcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, st := range w.starts {
		all = append(all, st.Outcome)
	}
	return all
}

func hourly(t *testing.T, s *Service) {
	t.Helper()
	if _, err := s.Save(
		t.Context(),
		engine.Schedule{Name: "n", Cron: "@hourly"},
		store.User{UserID: "u", Name: "ada"},
	); err != nil {
		t.Fatal(err)
	}
}

// TestOneServerStartsEachRun: of two servers one starts each run, once and on time; when it ends, the other goes on.
func TestOneServerStartsEachRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{takes: time.Minute}
		first, endFirst := w.server("a")
		_, endSecond := w.server("b")
		hourly(t, first)
		time.Sleep(3*time.Hour + time.Minute)
		endFirst()
		time.Sleep(2 * time.Hour)
		endSecond()
		if len(w.begun) != 5 || len(w.missed) != 0 || w.holder != "b" {
			t.Fatalf("started at %v, missed %v, by %s", w.begun, w.missed, w.holder)
		}
		for _, at := range w.begun {
			if late := at.Sub(at.Truncate(time.Hour)); late > time.Second {
				t.Errorf("a start is %s late", late)
			}
		}
	})
}

// TestAServerThatDies: its lease expires, and another server starts what is due by then.
func TestAServerThatDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		s := New(Options{Store: w, Owner: "dead", Log: zerolog.Nop()})
		hourly(t, s)
		time.Sleep(time.Until(w.v.NextDue.Time) - 5*time.Second)
		if mine, _ := w.AcquireTaskLease(t.Context(), leaseName, "dead", leaseDuration); !mine {
			t.Fatal("no lease")
		}
		_, end := w.server("b")
		time.Sleep(time.Minute)
		end()
		if len(w.begun) != 1 || w.begun[0].Sub(w.begun[0].Truncate(time.Hour)) > leaseDuration+pollInterval {
			t.Errorf("started at %v", w.begun)
		}
	})
}

// TestARunThatGoesOn has the next starts skipped, and that is said.
func TestARunThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{takes: 90 * time.Minute}
		s, end := w.server("a")
		hourly(t, s)
		time.Sleep(4*time.Hour + time.Minute)
		end()
		want := []engine.StartOutcome{engine.StartDone, engine.StartSkipped, engine.StartDone, engine.StartSkipped}
		if got := w.outcomes(); !slices.Equal(got, want) || len(w.missed) != 2 {
			t.Errorf("%v, told %v", got, w.missed)
		}
	})
}

// TestStartsThatAreRefused are stored with the reason; one that hangs is given up, and holds up no server's end.
func TestStartsThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{refuses: &engine.Error{Code: engine.CodeForbidden, Message: "Not you.", Hint: "Ask."}}
		s, end := w.server("a")
		hourly(t, s)
		time.Sleep(time.Hour + time.Minute)
		w.mu.Lock()
		w.refuses, w.hangs = nil, make(chan struct{})
		w.mu.Unlock()
		time.Sleep(time.Hour + startTimeout)
		if got := w.outcomes(); !slices.Equal(got, []engine.StartOutcome{engine.StartFailed, engine.StartFailed}) ||
			w.starts[0].Reason != "Not you. Ask." || w.starts[1].Reason != "The run did not start within 2m0s." ||
			len(w.missed) != 2 {
			t.Errorf("%+v, told %v", w.starts, w.missed)
		}
		time.Sleep(time.Hour - startTimeout + time.Second)
		begun := time.Now()
		end()
		if time.Since(begun) > time.Second || w.starts[2].Reason != "The server was stopped while it started the run." {
			t.Errorf("%+v, it ended after %s", w.starts[2], time.Since(begun))
		}
	})
}

// TestAnOutage: what was due while no server could start it is said, once, and what is due still is started.
func TestAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		s, end := w.server("a")
		hourly(t, s)
		time.Sleep(time.Hour + time.Minute)
		w.mu.Lock()
		w.down = errors.New("no answer")
		w.mu.Unlock()
		time.Sleep(3*time.Hour + 30*time.Minute)
		w.mu.Lock()
		w.down = nil
		w.mu.Unlock()
		time.Sleep(time.Hour)
		end()
		want := []engine.StartOutcome{engine.StartDone, engine.StartMissed, engine.StartDone}
		if got := w.outcomes(); !slices.Equal(got, want) || len(w.missed) != 1 || w.missed[0].Missed != 3 {
			t.Errorf("%v, told %+v", got, w.missed)
		}
	})
}

// TestAStartOfADeadServer is ended by another server.
func TestAStartOfADeadServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		hourly(t, New(Options{Store: w, Owner: "dead", Log: zerolog.Nop()}))
		w.starts = []engine.ScheduledStart{{ScheduleID: "s", DueAt: engine.At(time.Now()), Outcome: engine.StartBegun,
			NotedAt: engine.At(time.Now())}}
		_, end := w.server("a")
		time.Sleep(settleAfter - time.Second)
		if got := w.outcomes(); got[0] != engine.StartBegun {
			t.Errorf("too early: %v", got)
		}
		time.Sleep(2 * pollInterval)
		end()
		if got := w.outcomes(); got[0] != engine.StartFailed || len(w.missed) != 1 {
			t.Errorf("%v, told %v", got, w.missed)
		}
	})
}

// TestOwnersWhoLoseTheirRights have their schedules suspended; whoever saves one resumes it.
func TestOwnersWhoLoseTheirRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		s, end := w.server("a")
		defer end()
		hourly(t, s)
		if err := s.Recheck(t.Context(), func(context.Context) (func(engine.Schedule) string, error) {
			return func(v engine.Schedule) string { return v.Owner + " is locked out" }, nil
		}); err != nil || w.v.Suspended != "ada is locked out" {
			t.Fatalf("%+v, %v", w.v, err)
		}
		time.Sleep(2 * time.Hour)
		if len(w.starts) != 0 {
			t.Errorf("started %v", w.starts)
		}
		v, _ := s.Schedule(t.Context(), "s")
		if _, err := s.Save(t.Context(), v, store.User{UserID: "v", Name: "bob"}); err != nil || w.v.Suspended != "" ||
			w.v.OwnerID != "v" {
			t.Fatalf("%+v, %v", w.v, err)
		}
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		if got := w.outcomes(); !slices.Equal(got, []engine.StartOutcome{engine.StartDone}) {
			t.Errorf("%v", got)
		}
	})
}

func TestPlan(t *testing.T) {
	e, err := Parse("*/10 * * * *", "UTC")
	if err != nil {
		t.Fatal(err)
	}
	due := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	v := engine.Schedule{ScheduleID: "s", NextDue: engine.At(due)}
	for after, want := range map[time.Duration]struct {
		outcomes []engine.StartOutcome
		missed   int
		next     time.Duration
	}{
		0:               {[]engine.StartOutcome{engine.StartBegun}, 0, 10 * time.Minute},
		5 * time.Minute: {[]engine.StartOutcome{engine.StartBegun}, 0, 10 * time.Minute},
		6 * time.Minute: {[]engine.StartOutcome{engine.StartMissed}, 1, 10 * time.Minute},
		10 * time.Minute: {[]engine.StartOutcome{engine.StartMissed, engine.StartBegun}, 1,
			20 * time.Minute},
		39 * time.Minute:          {[]engine.StartOutcome{engine.StartMissed}, 4, 40 * time.Minute},
		10 * 365 * 24 * time.Hour: {[]engine.StartOutcome{engine.StartMissed}, maxMissed, 10*365*24*time.Hour + 10*time.Minute},
		20*time.Minute + 4*time.Minute + 1: {[]engine.StartOutcome{engine.StartMissed, engine.StartBegun}, 2,
			30 * time.Minute},
	} {
		starts, next := plan(e, v, due.Add(after))
		var got []engine.StartOutcome
		missed := 0
		for _, st := range starts {
			got, missed = append(got, st.Outcome), missed+st.Missed
		}
		if !slices.Equal(got, want.outcomes) || missed != want.missed || !next.Equal(due.Add(want.next)) {
			t.Errorf("after %s: %v, %d missed, next %s", after, got, missed, next.Sub(due))
		}
	}
}
