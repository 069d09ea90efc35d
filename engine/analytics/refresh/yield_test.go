package refresh_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store/fake"
)

// beside is a process on whose machine runs are carried, and what was refreshed while they were.
type beside struct {
	mu      sync.Mutex
	why     string
	since   time.Time // when it became so
	working int
	most    int // refreshes at a time, in spite of a run
	done    []string
	// disturbed is how long refreshes went on beside runs, the longest.
	disturbed time.Duration
}

func (b *beside) busy() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why
}

func (b *beside) set(why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.why, b.since = why, time.Now()
}

// work takes so long, unless it is ended.
func (b *beside) work(took time.Duration) refresh.Work {
	return func(ctx context.Context, c refresh.Claim, _ func(context.Context) error) (refresh.Result, error) {
		b.mu.Lock()
		b.working++
		if b.why != "" {
			b.most = max(b.most, b.working)
		}
		b.mu.Unlock()
		refresh.Pause(ctx, nil, took)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.working--
		if b.why != "" {
			b.disturbed = max(b.disturbed, time.Since(b.since))
		}
		if ctx.Err() != nil {
			return refresh.Result{}, ctx.Err()
		}
		b.done = append(b.done, c.Table)
		return refresh.Result{}, nil
	}
}

func (b *beside) start(s *fake.Store, name string, took time.Duration, busy func() string) *refresh.Refresher {
	return refresh.Start(
		refresh.Options{Store: s, Work: b.work(took), Workers: 2, Name: name, Busy: busy, Role: refresh.Server,
			Log: zerolog.Nop()},
	)
}

func (b *beside) tables(t *testing.T, s *fake.Store, n int) {
	t.Helper()
	for i := range n {
		if _, err := s.CreateDynamicTable(t.Context(), refresh.Table{Name: fmt.Sprint("t", i), Kind: refresh.SQL,
			Definition: "SELECT 1", TargetLagSeconds: 366 * 24 * 3600, Mode: refresh.Full}); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *beside) finished() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.done)
}

// TestNothingIsRefreshedBesideARun: what is under way gives way at once and its claim is given back, nothing is begun,
// and all of it is done when the run is over. What has waited for too long is done in spite of the run, one at a time.
func TestNothingIsRefreshedBesideARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := fake.New(), &beside{}
		b.tables(t, s, 4)
		r := b.start(s, "server", time.Minute, b.busy)
		defer r.Close()
		time.Sleep(10 * time.Second)
		b.set("a run is carried")
		time.Sleep(10 * time.Minute)
		b.mu.Lock()
		if b.working > 0 || len(b.done) > 0 || b.disturbed > refresh.YieldCheckInterval {
			t.Errorf("beside a run %d are refreshed and %v were, for %s at most", b.working, b.done, b.disturbed)
		}
		b.mu.Unlock()
		state, err := s.RefreshState(t.Context(), 1)
		if err != nil || len(state.Claims) > 0 || len(state.Pending) != 4 {
			t.Errorf("claims %+v, %d entries, %v", state.Claims, len(state.Pending), err)
		}
		if len(state.Workers) != 1 || state.Workers[0].Waits != "a run is carried" || state.Workers[0].Slots != 2 {
			t.Errorf("workers %+v", state.Workers)
		}
		time.Sleep(5*time.Minute + 10*time.Second) // 15 minutes since they were seen
		for n := range 4 {
			time.Sleep(70 * time.Second)
			if got := b.finished(); got < n || got > n+2 {
				t.Errorf("%d were refreshed in spite of the run after %d minutes", got, n)
			}
		}
		time.Sleep(2 * time.Minute)
		if b.finished() != 4 || b.most != 1 {
			t.Errorf("in spite of the run %v were refreshed, %d at a time, want all, one at a time", b.done, b.most)
		}
	})
}

// TestWhatGivesWayIsDoneElsewhere: after the run, and by another worker at once where there is one.
func TestWhatGivesWayIsDoneElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := fake.New(), &beside{}
		b.tables(t, s, 2)
		r := b.start(s, "server", 20*time.Second, b.busy)
		defer r.Close()
		time.Sleep(10 * time.Second)
		b.set("a run is carried")
		time.Sleep(time.Minute)
		b.set("")
		time.Sleep(30 * time.Second)
		if b.finished() != 2 {
			t.Errorf("after the run %v were refreshed, want both", b.done)
		}
		b.set("another run is carried")
		b.mu.Lock()
		b.done = nil
		b.mu.Unlock()
		for _, name := range []string{"t0", "t1"} {
			if err := s.RequestRefresh(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		other := &beside{}
		n := other.start(s, "node", 20*time.Second, nil)
		defer n.Close()
		time.Sleep(30 * time.Second)
		if b.finished() != 0 || other.finished() != 2 {
			t.Errorf("the one with a run has refreshed %v, the other %v", b.done, other.done)
		}
	})
}

// TestGiveWayReturnsWhenTheClaimsAreBack, and no later than it is told to: where nothing is in the way it waits for
// nothing, a refresh that is deaf to its end is left alone, and so is one that is done in spite of what is in the way.
func TestGiveWayReturnsWhenTheClaimsAreBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := fake.New(), &beside{}
		b.tables(t, s, 2)
		deaf := make(chan struct{})
		var isDeaf atomic.Bool
		r := refresh.Start(
			refresh.Options{Store: s, Workers: 2, Name: "server", Busy: b.busy, Role: refresh.Server, Log: zerolog.Nop(),
				Work: func(ctx context.Context, c refresh.Claim, p func(context.Context) error) (refresh.Result, error) {
					if isDeaf.Load() {
						<-deaf
					}
					return b.work(time.Hour)(ctx, c, p)
				}},
		)
		defer r.Close()
		claims := func() int {
			state, err := s.RefreshState(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			return len(state.Claims)
		}
		waits := func(most time.Duration) time.Duration {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), most)
			defer cancel()
			r.AwaitYield(ctx)
			return time.Since(began)
		}
		time.Sleep(10 * time.Second)
		if waited, n := waits(time.Minute), claims(); waited > 0 || n != 2 {
			t.Errorf("with nothing in the way it waited for %s, and %d are claimed, want 2", waited, n)
		}
		b.set("a run is carried")
		if waited, n := waits(
			time.Minute,
		), claims(); waited > refresh.YieldCheckInterval+refresh.YieldPollInterval || waited == 0 ||
			n != 0 {
			t.Errorf("it waited for %s, and %d are claimed, want none", waited, n)
		}
		isDeaf.Store(true)
		b.set("")
		time.Sleep(10 * time.Second)
		b.set("a run is carried")
		if waited := waits(3 * time.Second); waited != 3*time.Second {
			t.Errorf("it waited %s for a refresh that is deaf, want 3s", waited)
		}
		close(deaf)
		isDeaf.Store(false)
		time.Sleep(refresh.StarvationLimit + time.Minute)
		if waited, n := waits(time.Minute), claims(); waited > 0 || n != 1 {
			t.Errorf("it waited %s for a refresh that has waited for too long itself; %d are claimed, want 1", waited, n)
		}
	})
}

// TestNothingIsClaimedAfterGiveWay: who asks whether something is in the way, and is told that there is nothing just
// before there is, has claimed and given back what it claims by the end of GiveWay, however long it takes to hear so.
func TestNothingIsClaimedAfterGiveWay(t *testing.T) {
	const slow, offsets = 200 * time.Millisecond, 60
	for i := range offsets {
		synctest.Test(t, func(t *testing.T) {
			s, b := fake.New(), &beside{}
			b.tables(t, s, 1)
			var out atomic.Bool // GiveWay has returned
			r := refresh.Start(refresh.Options{Store: s, Workers: 1, Name: "server", Role: refresh.Server, Log: zerolog.Nop(),
				Busy: func() string {
					why := b.busy()
					if why == "" {
						time.Sleep(slow)
					}
					return why
				},
				Work: func(ctx context.Context, c refresh.Claim, _ func(context.Context) error) (refresh.Result, error) {
					if out.Load() {
						t.Errorf("%s is refreshed beside what GiveWay was asked for after %v", c.Table, time.Duration(i)*slow/20)
					}
					refresh.Pause(ctx, nil, time.Hour)
					return refresh.Result{}, ctx.Err()
				}})
			defer r.Close()
			time.Sleep(time.Duration(i) * slow / 20)
			b.set("a run is carried")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r.AwaitYield(ctx)
			out.Store(true)
			if state, err := s.RefreshState(t.Context(), 1); err != nil || len(state.Claims) > 0 {
				t.Errorf("after %v: claims %+v, %v", time.Duration(i)*slow/20, state.Claims, err)
			}
			time.Sleep(time.Minute)
		})
	}
}

// TestWhatIsAwayHoldsUpNothingElse: what keeps the parts of runs is away while the results database is there. Tables
// are refreshed all the same, though runs come first; the worker says why runs wait, and they are taken in when it is
// back.
func TestWhatIsAwayHoldsUpNothingElse(t *testing.T) {
	for runs, takes := range map[int]time.Duration{1: 0, 300: 0, 50: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s, b := fake.New(), &beside{}
			table := refresh.Table{Name: "runs", Kind: refresh.Ingest, TargetLagSeconds: 60, Mode: refresh.Incremental,
				Priority: 10}
			if _, err := s.CreateDynamicTable(t.Context(), table); err != nil {
				t.Fatal(err)
			}
			var plan refresh.Schedule
			for i := range runs {
				plan.Enqueue = append(plan.Enqueue, refresh.Pending{Task: refresh.Task{Table: "runs", Subtask: fmt.Sprint(i)},
					Priority: 10, Due: engine.At(time.Now())})
			}
			if err := s.ScheduleRefreshes(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
			b.tables(t, s, 3)
			var away atomic.Bool
			away.Store(true)
			w := refresh.Start(
				refresh.Options{Store: s, Workers: 1, Name: "w", Role: refresh.Server, Log: zerolog.Nop(), Work: func(
					ctx context.Context, c refresh.Claim, prove func(context.Context) error) (refresh.Result, error) {
					if c.Table == "runs" && away.Load() {
						refresh.Pause(ctx, nil, takes)
						return refresh.Result{}, fmt.Errorf("reading: %w", &engine.Error{Code: engine.CodeUnavailable,
							Message: "The bucket is away."})
					}
					r, err := b.work(time.Millisecond)(ctx, c, prove)
					r.Gone = c.Table == "runs" // nothing looks for more of it then
					return r, err
				}},
			)
			defer w.Close()
			time.Sleep(30*time.Second + time.Duration(runs)*(takes+refresh.UnavailablePause)*3)
			state, err := s.RefreshState(t.Context(), 1)
			if err != nil || b.finished() != 3 || len(state.Pending) != runs || state.Workers[0].Waits != "The bucket is away." {
				t.Fatalf("%d runs: done are %v, %d wait, %+v, %v", runs, b.done, len(state.Pending), state.Workers, err)
			}
			for _, line := range state.Tables {
				if line.Failures > 0 || line.Status != refresh.Active {
					t.Errorf("%d runs: it is taken for a failure: %+v", runs, line)
				}
			}
			away.Store(false)
			time.Sleep(refresh.MaxUnavailableDelay + 2*refresh.PollInterval)
			if state, err = s.RefreshState(t.Context(), 1); err != nil || len(state.Pending) != 0 || b.finished() != 3+runs ||
				state.Workers[0].Waits != "" {
				t.Errorf("%d runs, when it is back: %d wait, %d are done, %+v, %v", runs, len(state.Pending), b.finished(),
					state.Workers, err)
			}
		})
	}
}

// TestWhoHasEndedIsNoWorker: one that ends says so, one that has died is forgotten by itself.
func TestWhoHasEndedIsNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := fake.New(), &beside{}
		p := &process{Store: s, w: &world{healed: true}}
		ended, dead := b.start(
			s,
			"ended",
			time.Second,
			nil,
		), refresh.Start(
			refresh.Options{Store: p, Work: b.work(time.Second), Workers: 1,
				Name: "dead", Role: refresh.Node, Kinds: []refresh.Kind{refresh.SQL}, Log: zerolog.Nop()},
		)
		looks := refresh.Start(refresh.Options{Store: s, Work: b.work(time.Second), Name: "looks", Log: zerolog.Nop()})
		defer looks.Close()
		workers := func(when string, want int) {
			t.Helper()
			state, err := s.RefreshState(t.Context(), 1)
			if err != nil || len(state.Workers) != want {
				t.Errorf("%s: %+v, %v", when, state.Workers, err)
			}
		}
		time.Sleep(time.Second)
		workers("with two", 2)
		ended.Close()
		workers("one has ended", 1)
		p.mu.Lock()
		p.dead = true
		p.mu.Unlock()
		time.Sleep(refresh.WorkerTTL + 2*refresh.PollInterval)
		workers("one has died", 0)
		dead.Close()
	})
}

// TestARevokedRefreshEndsAtOnce: what is under way of a table that is suspended, because its owner has lost the right to
// it, ends within moments, long before the next heartbeat; what is under way of others goes on.
func TestARevokedRefreshEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := fake.New(), &beside{}
		for _, name := range []string{"adas", "bobs"} {
			if _, err := s.CreateDynamicTable(t.Context(), refresh.Table{Name: name, Kind: refresh.SQL, OwnerID: name,
				Definition: "SELECT 1", TargetLagSeconds: 366 * 24 * 3600, Mode: refresh.Full}); err != nil {
				t.Fatal(err)
			}
		}
		r := b.start(s, "server", time.Minute, nil)
		defer r.Close()
		working := func() int {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.working
		}
		time.Sleep(10 * time.Second)
		if n := working(); n != 2 {
			t.Fatalf("%d tables are refreshed, want 2", n)
		}
		if err := s.RevokeDynamicTable(t.Context(), "adas", "adas", "ada is locked out"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := working(); n != 1 {
			t.Errorf("%d tables are refreshed a second after one was revoked, want 1", n)
		}
		time.Sleep(time.Minute)
		if b.finished() != 1 || b.done[0] != "bobs" {
			t.Errorf("refreshed: %v", b.done)
		}
	})
}
