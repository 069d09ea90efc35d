package cost_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/results/cost"
	"github.com/loadstone-db/loadstone/engine/store"
)

// frozen is a store that stands still while it is told to.
type frozen struct {
	store.Settings
	still atomic.Bool
	asked atomic.Int64
}

func (f *frozen) Setting(ctx context.Context, name string) (store.Setting, error) {
	f.asked.Add(1)
	if f.still.Load() {
		<-ctx.Done()
		return store.Setting{}, ctx.Err()
	}
	return store.Setting{Name: name, Version: 1, Value: []byte(`{"text": ""}`)}, nil
}

// TestAStoreThatStandsStillBlocksNobodyElse: one caller in five seconds waits two for it, whatever its context allows,
// and the others have the last list at once.
func TestAStoreThatStandsStillBlocksNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := cost.Open("", t.TempDir(), zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		kept := &frozen{}
		s.UseStore(kept)
		if l := s.Current(t.Context()); l.Version != 1 {
			t.Fatalf("the first look: %+v", l)
		}
		kept.still.Store(true)
		kept.asked.Store(0)
		waits := func() time.Duration {
			began := time.Now()
			if l := s.Current(context.Background()); l.Version != 1 {
				t.Errorf("the last list is gone: version %d", l.Version)
			}
			return time.Since(began)
		}
		time.Sleep(6 * time.Second)
		first := make(chan time.Duration)
		go func() { first <- waits() }()
		synctest.Wait()
		for range 8 {
			if w := waits(); w != 0 {
				t.Errorf("somebody else waits %v", w)
			}
		}
		if w := <-first; w != 2*time.Second {
			t.Errorf("who asks the store waits %v, want 2 s", w)
		}
		if w := waits(); w != 0 || kept.asked.Load() != 1 {
			t.Errorf("just after it the next waits %v, and the store was asked %d times", w, kept.asked.Load())
		}
		time.Sleep(6 * time.Second)
		if w := waits(); w != 2*time.Second || kept.asked.Load() != 2 {
			t.Errorf("later one waits %v, and the store was asked %d times", w, kept.asked.Load())
		}
	})
}

// TestBeforeTheFirstAnswerEverybodyWaits: a run that ends as a server begins is not reckoned with another list.
func TestBeforeTheFirstAnswerEverybodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := cost.Open("", t.TempDir(), zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		slow := slowly{answer: make(chan struct{})}
		s.UseStore(slow)
		versions := make(chan int64, 3)
		for range 3 {
			go func() { versions <- s.Current(context.Background()).Version }()
		}
		synctest.Wait()
		close(slow.answer)
		for range 3 {
			if v := <-versions; v != 7 {
				t.Errorf("a list of version %d, want 7", v)
			}
		}
	})
}

// slowly answers once it is let.
type slowly struct {
	store.Settings
	answer chan struct{}
}

func (s slowly) Setting(ctx context.Context, name string) (store.Setting, error) {
	select {
	case <-s.answer:
		return store.Setting{Name: name, Version: 7}, nil
	case <-ctx.Done():
		return store.Setting{}, errors.New("too late")
	}
}
