package run

import (
	"sync"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

func state(elapsed float64) *engine.LiveState { return &engine.LiveState{Elapsed: elapsed} }

func begin(p *engine.LiveState) func() (*engine.LiveState, bool) {
	return func() (*engine.LiveState, bool) { return p, false }
}

// TestASlowReaderSkipsStates: it gets the newest, also the last one, and delays nobody.
func TestASlowReaderSkipsStates(t *testing.T) {
	var b Hub
	slow, _ := b.Subscribe("a", begin(state(0)))
	other, cancel := b.Subscribe("b", begin(nil))
	defer cancel()
	for i := range 10 {
		b.Publish("a", state(float64(i+1)), false)
		if len(slow) != 1 {
			t.Fatalf("after state %d nothing is there to read", i+1)
		}
	}
	b.Publish("a", state(11), true)
	if p := <-slow; p.Elapsed != 11 {
		t.Errorf("the reader gets state %v of 11", p.Elapsed)
	}
	if _, open := <-slow; open {
		t.Error("the channel is open after the last state")
	}
	select {
	case p, open := <-other:
		t.Errorf("the watcher of another run gets %+v, %v", p, open)
	default:
	}
}

// TestNothingFollowsTheEnd: a run that is over is shown once, and who cancels gets no more.
func TestNothingFollowsTheEnd(t *testing.T) {
	var b Hub
	over, cancel := b.Subscribe("a", func() (*engine.LiveState, bool) { return state(7), true })
	if p := <-over; p.Elapsed != 7 {
		t.Errorf("state %v", p.Elapsed)
	}
	if _, open := <-over; open {
		t.Error("the channel of a run that is over is open")
	}
	cancel()
	left, cancel := b.Subscribe("a", begin(nil))
	cancel()
	cancel() // twice is safe
	b.Publish("a", state(8), false)
	if p, open := <-left; open {
		t.Errorf("after cancel: %v", p)
	}
	one, _ := b.Subscribe("a", begin(nil))
	two, _ := b.Subscribe("b", begin(nil))
	b.End("a")
	if _, open := <-one; open {
		t.Error("after End the channel is open")
	}
	b.Close()
	if _, open := <-two; open {
		t.Error("after Close the channel is open")
	}
	if len(b.subscribers) != 0 {
		t.Errorf("left over: %v", b.subscribers)
	}
}

// TestWatchersComeAndGoWhileStatesAreShown is for the race detector; nobody gets an older
// state after a newer one.
func TestWatchersComeAndGoWhileStatesAreShown(t *testing.T) {
	var b Hub
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				updates, cancel := b.Subscribe("a", begin(state(0)))
				last := -1.0
				for p := range updates {
					if p.Elapsed < last {
						t.Errorf("state %v after %v", p.Elapsed, last)
					}
					if last = p.Elapsed; last > 0 {
						break
					}
				}
				cancel()
			}
		})
	}
	stop := make(chan struct{})
	var shower sync.WaitGroup
	shower.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			default:
				b.Publish("a", state(float64(i)), false)
			}
		}
	})
	wg.Wait()
	close(stop)
	shower.Wait()
}
