package run

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestARunElsewhereIsReadWhileSomebodyWatchesIt: once for however many watch, until nobody
// does, nothing follows, or somebody else shows it.
func TestARunElsewhereIsReadWhileSomebodyWatchesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Hub
		var following sync.WaitGroup
		var reads atomic.Int64
		var last, over atomic.Bool
		follow := func() {
			following.Go(func() {
				b.Poll(t.Context(), "r", time.Second, func(context.Context) (*engine.LiveState, bool, bool) {
					reads.Add(1)
					return &engine.LiveState{}, last.Load(), over.Load()
				})
			})
			synctest.Wait()
		}
		watch := func() (<-chan *engine.LiveState, func()) {
			return b.Subscribe("r", func() (*engine.LiveState, bool) { return nil, false })
		}
		_, leave := watch()
		_, leaveToo := watch()
		follow()
		follow()
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		if n := reads.Load(); n != 3 {
			t.Errorf("%d reads in three seconds", n)
		}
		leave()
		leaveToo()
		time.Sleep(time.Second)
		following.Wait()
		if n := reads.Load(); n != 3 {
			t.Errorf("%d reads, and nobody watched", n-3)
		}
		updates, _ := watch()
		follow()
		last.Store(true)
		following.Wait()
		<-updates
		if _, open := <-updates; open {
			t.Error("something follows the last state")
		}
		// Who begins to show it by itself is not disturbed.
		updates, leave = watch()
		last.Store(false)
		over.Store(true)
		follow()
		following.Wait()
		select {
		case <-updates:
			t.Error("a run that is shown by its own loop was shown as it is stored")
		default:
		}
		leave()
	})
}
