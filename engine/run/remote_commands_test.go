package run

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/store/fake"
)

// silentStore is a store that tells nothing.
type silentStore struct{ *fake.Store }

func (silentStore) WatchRunCommands(context.Context, func()) error {
	return errors.New("connection refused")
}

// poolerStore is a store behind a pooler in transaction mode, or at the end of a dead connection: it takes LISTEN, and tells
// nothing. Each of its answers takes a while.
type poolerStore struct {
	*fake.Store
	takes time.Duration
}

func (s poolerStore) WatchRunCommands(ctx context.Context, heard func()) error {
	heard()
	<-ctx.Done()
	return ctx.Err()
}

func (s poolerStore) EnqueueRunCommand(ctx context.Context, w store.RunCommand) (int64, error) {
	time.Sleep(3 * s.takes) // BEGIN, INSERT, NOTIFY
	defer time.Sleep(s.takes)
	return s.Store.EnqueueRunCommand(ctx, w)
}

func (s poolerStore) RunCommand(ctx context.Context, seq int64) (store.RunCommand, error) {
	time.Sleep(s.takes)
	return s.Store.RunCommand(ctx, seq)
}

func (s poolerStore) PendingRunCommands(ctx context.Context) ([]store.RunCommand, error) {
	time.Sleep(s.takes)
	return s.Store.PendingRunCommands(ctx)
}

func (s poolerStore) HearRunCommand(ctx context.Context, seq int64, server string) (string, error) {
	time.Sleep(s.takes)
	return s.Store.HearRunCommand(ctx, seq, server)
}

// commandCarrier does what is wanted once it is told that it carries the run.
type commandCarrier struct {
	has   atomic.Bool
	fails atomic.Int64 // how often it cannot yet
	// takenOver counts the runs that it took over; one that cannot is without its store.
	takenOver atomic.Int64
	cannot    atomic.Bool

	mu   sync.Mutex
	done []store.RunCommand
}

func (c *commandCarrier) handleRemoteCommand(_ context.Context, w store.RunCommand) (bool, error) {
	if !c.has.Load() {
		return false, nil
	}
	if c.fails.Add(-1) >= 0 {
		return false, errors.New("the store is away")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = append(c.done, w)
	return true, nil
}

func (c *commandCarrier) carries(store.RunCommand) bool { return c.has.Load() }

func (c *commandCarrier) carriesAny() bool { return c.has.Load() }

func (c *commandCarrier) takeOverToStop(context.Context, store.RunCommand) error {
	c.takenOver.Add(1)
	if c.cannot.Load() {
		return store.ErrUnavailable
	}
	c.has.Store(true)
	return nil
}

func (c *commandCarrier) did() []store.RunCommand {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// commandInVirtualTime gives a test a store with the run r, and servers.
func commandInVirtualTime(
	t *testing.T,
	test func(t *testing.T, kept *fake.Store, serve func(name string, s CommandStore) (*RemoteCommands, *commandCarrier)),
) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		defer serving.Wait()
		defer cancel()
		kept := fake.New()
		run := engine.Run{RunID: "r", ResultID: "r", Status: engine.StatusPrepared, Phase: engine.PhasePreparing}
		if err := kept.CreateRun(ctx, run); err != nil {
			t.Fatal(err)
		}
		test(t, kept, func(name string, s CommandStore) (*RemoteCommands, *commandCarrier) {
			c := &commandCarrier{}
			r := NewRemoteCommands(RemoteCommandOptions{Store: s, Server: name, Log: zerolog.Nop(), Handler: c})
			serving.Go(func() { r.Run(ctx) })
			synctest.Wait()
			return r, c
		})
	})
}

// TestWhoCarriesARunHearsAtOnceWhatIsWantedOfIt, and when nothing is told in time to keep its
// run.
func TestWhoCarriesARunHearsAtOnceWhatIsWantedOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		of     func(s *fake.Store) CommandStore
		within time.Duration
	}{
		"told":     {func(s *fake.Store) CommandStore { return s }, 15 * time.Millisecond},
		"not told": {func(s *fake.Store) CommandStore { return silentStore{s} }, carryingPollInterval + 2*maxAnswerPoll},
		"through a pooler": {func(s *fake.Store) CommandStore { return poolerStore{s, 0} },
			carryingPollInterval + 2*maxAnswerPoll},
		"on a slow store": {func(s *fake.Store) CommandStore { return poolerStore{s, 300 * time.Millisecond} },
			commandTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			commandInVirtualTime(
				t,
				func(t *testing.T, kept *fake.Store, serve func(string, CommandStore) (*RemoteCommands, *commandCarrier)) {
					_, owner := serve("owner", c.of(kept))
					asked, other := serve("asked", c.of(kept))
					time.Sleep(2500 * time.Millisecond)
					owner.has.Store(true) // and has just looked for commands
					begin := time.Now()
					if err := asked.Request(t.Context(), "r", store.CommandStop, "ada"); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(begin); took > c.within {
						t.Errorf("it took %v", took)
					}
					if n := other.takenOver.Load(); n > 0 {
						t.Errorf("a run was taken over %d times from an owner that is well", n)
					}
					did := owner.did()
					if len(did) != 1 || did[0].RunID != "r" || did[0].Kind != store.CommandStop || did[0].By != "ada" ||
						did[0].Server != "asked" {
						t.Errorf("done is %+v", did)
					}
					time.Sleep(time.Minute)
					if len(owner.did()) != 1 {
						t.Error("it is done again")
					}
					if open, err := kept.PendingRunCommands(t.Context()); err != nil || len(open) > 0 {
						t.Errorf("open are %+v, %v", open, err)
					}
				},
			)
		})
	}
}

// TestWhatNobodyAnswersIsNotedForWhoTakesTheRunOver.
func TestWhatNobodyAnswersIsNotedForWhoTakesTheRunOver(t *testing.T) {
	commandInVirtualTime(
		t,
		func(t *testing.T, kept *fake.Store, serve func(string, CommandStore) (*RemoteCommands, *commandCarrier)) {
			r, survivor := serve("survivor", kept)
			survivor.cannot.Store(true)
			begin := time.Now()
			err := r.Request(t.Context(), "r", store.CommandStop, "ada")
			if !engine.HasCode(err, engine.CodeUnavailable) || time.Since(begin) != commandTimeout {
				t.Fatalf("after %v: %v", time.Since(begin), err)
			}
			// Somebody who is impatient asks once more, and leaves.
			leaving, leave := context.WithTimeout(t.Context(), time.Second)
			defer leave()
			if err := r.Request(leaving, "r", store.CommandStop, "bob"); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if n := survivor.takenOver.Load(); n < 5 {
				t.Errorf("a takeover that fails was tried %d times while its user waited", n)
			}
			// Between two looks by itself: one at the same moment would do what the first has not.
			time.Sleep(time.Minute + carryingPollInterval/2)
			survivor.fails.Store(1)
			survivor.has.Store(true)
			r.Wake()
			synctest.Wait()
			if len(survivor.did()) > 0 {
				t.Error("what has failed is done")
			}
			time.Sleep(commandPollInterval)
			synctest.Wait()
			if did := survivor.did(); len(did) != 1 || did[0].By != "ada" {
				t.Errorf("done is %+v", did)
			}
		},
	)
}

// TestACommandOfARunThatIsDeletedIsNotWaitedFor.
func TestACommandOfARunThatIsDeletedIsNotWaitedFor(t *testing.T) {
	commandInVirtualTime(
		t,
		func(t *testing.T, kept *fake.Store, serve func(string, CommandStore) (*RemoteCommands, *commandCarrier)) {
			r, _ := serve("asked", kept)
			if err := r.Request(t.Context(), "nobody", store.CommandStop, "ada"); !errors.Is(err, store.ErrNotFound) {
				t.Error(err)
			}
			asked := make(chan error, 1)
			go func() { asked <- r.Request(t.Context(), "r", store.CommandStop, "ada") }()
			time.Sleep(time.Second)
			if err := kept.DeleteRun(t.Context(), "r"); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			if err := <-asked; !errors.Is(err, store.ErrNotFound) || time.Since(begin) > maxAnswerPoll {
				t.Errorf("after %v: %v", time.Since(begin), err)
			}
		},
	)
}

// TestAStopThatNobodyHearsIsDoneByTheServerThatWasAsked: after a second, whether the store tells of commands or not. An
// owner that has heard it has the run for as long as it takes.
func TestAStopThatNobodyHearsIsDoneByTheServerThatWasAsked(t *testing.T) {
	for name, of := range map[string]func(s *fake.Store) CommandStore{
		"told":             func(s *fake.Store) CommandStore { return s },
		"not told":         func(s *fake.Store) CommandStore { return silentStore{s} },
		"through a pooler": func(s *fake.Store) CommandStore { return poolerStore{s, 0} },
	} {
		t.Run(name, func(t *testing.T) {
			commandInVirtualTime(
				t,
				func(t *testing.T, kept *fake.Store, serve func(string, CommandStore) (*RemoteCommands, *commandCarrier)) {
					r, survivor := serve("survivor", of(kept))
					begin := time.Now()
					if err := r.Request(t.Context(), "r", store.CommandStop, "ada"); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(begin); took < hearTimeout || took > hearTimeout+3*maxAnswerPoll {
						t.Errorf("it took %v", took)
					}
					if survivor.takenOver.Load() != 1 || len(survivor.did()) != 1 {
						t.Errorf("taken over %d times, done %v", survivor.takenOver.Load(), survivor.did())
					}
					if err := r.Request(t.Context(), "r", store.CommandStopEnrichment, "ada"); err != nil {
						t.Error(err) // it has the run now
					}
				},
			)
		})
	}
	commandInVirtualTime(
		t,
		func(t *testing.T, kept *fake.Store, serve func(string, CommandStore) (*RemoteCommands, *commandCarrier)) {
			_, owner := serve("owner", kept)
			owner.has.Store(true)
			owner.fails.Store(1 << 20) // it hears, and cannot store what it decides
			r, other := serve("asked", kept)
			for range 2 { // a user who asks again is heard again
				err := r.Request(t.Context(), "r", store.CommandStop, "ada")
				if !engine.HasCode(err, engine.CodeUnavailable) || other.takenOver.Load() > 0 {
					t.Errorf("taken over %d times: %v", other.takenOver.Load(), err)
				}
			}
		},
	)
}
