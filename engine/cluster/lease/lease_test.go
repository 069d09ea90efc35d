package lease

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// world is a store of leases with one thing in it, whose owner is somebody else.
type world struct {
	mu      sync.Mutex
	expired []string
	down    error
	renewed int
	taken   []string
	refuses error
}

func (w *world) Renew(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.renewed++
	return w.down
}

func (w *world) Expired(context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.expired, w.down
}

func (w *world) ID(id string) string { return id }

func (w *world) TakeOver(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken = append(w.taken, id)
	return w.refuses
}

func (w *world) watch() Manager[string] {
	return Manager[string]{Leases: w, Kind: "things", Lease: 15 * time.Second, Log: zerolog.Nop()}
}

// pollTimes lets that many looks happen, and stops the watch.
func pollTimes(t *testing.T, w Manager[string], change func(look int), n int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		for i := range n {
			change(i)
			time.Sleep(w.Interval())
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
	})
}

// TestAnExpiredLeaseIsSeenTwiceBeforeItIsTakenOver: what is seen once only may be an outage's.
func TestAnExpiredLeaseIsSeenTwiceBeforeItIsTakenOver(t *testing.T) {
	for name, c := range map[string]struct {
		seen  []bool  // expired, in each look
		down  []error // the store, in each look
		taken int
	}{
		"seen once":                      {[]bool{true, false, false}, nil, 0},
		"seen twice":                     {[]bool{true, true}, nil, 1},
		"renewed in between":             {[]bool{true, false, true}, nil, 0},
		"an outage in between":           {[]bool{true, true, true}, []error{nil, errors.New("no answer"), nil}, 0},
		"twice after an outage":          {[]bool{true, true, true}, []error{errors.New("no answer"), nil, nil}, 0},
		"an outage at the end, and once": {[]bool{true, true, true}, []error{nil, nil, errors.New("no answer")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			pollTimes(t, w.watch(), func(i int) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.expired, w.down = nil, nil
				if c.seen[i] {
					w.expired = []string{"x"}
				}
				if c.down != nil {
					w.down = c.down[i]
				}
			}, len(c.seen))
			if len(w.taken) != c.taken || w.renewed != len(c.seen) {
				t.Errorf("taken over %v, renewed %d times", w.taken, w.renewed)
			}
		})
	}
}

// TestAWatchWithoutHeirsOnlyRenews: a process that ends after a run of its own takes nothing over.
func TestAWatchWithoutHeirsOnlyRenews(t *testing.T) {
	w := &world{expired: []string{"x"}}
	watch := w.watch()
	watch.RenewsOnly = true
	pollTimes(t, watch, func(int) {}, 5)
	if w.renewed != 5 || len(w.taken) != 0 {
		t.Errorf("renewed %d times, taken over %v", w.renewed, w.taken)
	}
}

// TestOneThatCannotBeTakenOverHoldsUpNoOther.
func TestOneThatCannotBeTakenOverHoldsUpNoOther(t *testing.T) {
	w := &world{expired: []string{"x", "y"}, refuses: errors.New("it cannot be read")}
	pollTimes(t, w.watch(), func(int) {}, 2)
	if !slices.Equal(w.taken, []string{"x", "y"}) {
		t.Errorf("tried %v", w.taken)
	}
}

// TestATakeOverThatFailsIsTriedAgain, once it is seen expired in two looks again.
func TestATakeOverThatFailsIsTriedAgain(t *testing.T) {
	w := &world{expired: []string{"x"}, refuses: errors.New("no answer")}
	pollTimes(t, w.watch(), func(int) {}, 4)
	if !slices.Equal(w.taken, []string{"x", "x"}) {
		t.Errorf("tried %v", w.taken)
	}
}

// TestOwnersComeFirstAfterAnOutage: until their own looks, which may have hung, are over nobody takes over, and
// then somebody does.
func TestOwnersComeFirstAfterAnOutage(t *testing.T) {
	w := &world{expired: []string{"x"}}
	watch := w.watch()
	pollTimes(t, watch, func(i int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.down = nil
		if i == 0 {
			w.down = errors.New("no answer")
		}
		if after := time.Duration(i) * watch.Interval(); len(w.taken) > 0 && after <= watch.takeoverGrace() {
			t.Errorf("taken over %s after the outage", after)
		}
	}, int(watch.takeoverGrace()/watch.Interval())+3)
	if !slices.Equal(w.taken, []string{"x"}) && len(w.taken) == 0 {
		t.Errorf("taken over %v", w.taken)
	}
}
