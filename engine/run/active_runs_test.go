package run_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
)

type run struct{}

func (*run) Current() engine.Run                   { return engine.Run{} }
func (*run) LiveState() *engine.LiveState          { return nil }
func (*run) StartedBy() string                     { return "ada" }
func (*run) OwnedEpoch(bool) (epoch int64, _ bool) { return 0, false }

// TestWhoAsksForARunThatIsBeingStartedWaits until it is live here or will not be, or the limit has passed.
func TestWhoAsksForARunThatIsBeingStartedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := enginerun.NewActiveRuns[*run]()
		begin := func() (end func()) {
			end, err := r.BeginStart("a", "ada", 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			return end
		}
		after := func(what func(end func())) (l *run, busy bool, waited time.Duration) {
			end, began := begin(), time.Now()
			go func() {
				time.Sleep(time.Second)
				what(end)
			}()
			l, busy = r.AwaitStarted(t.Context(), "a", time.Minute)
			return l, busy, time.Since(began)
		}
		if l, busy, waited := after(func(end func()) { end() }); l != nil || busy || waited != time.Second {
			t.Errorf("a start that failed: %v, %v after %s", l, busy, waited)
		}
		if l, busy, waited := after(func(end func()) { r.Add("a", &run{}); end() }); l == nil || busy ||
			waited != time.Second {
			t.Errorf("a start that succeeded: %v, %v after %s", l, busy, waited)
		}
		if l, busy := r.AwaitStarted(t.Context(), "a", time.Minute); l == nil || busy {
			t.Errorf("a run that is live: %v, %v", l, busy)
		}
		r.Remove("a")
		end, began := begin(), time.Now()
		if l, busy := r.AwaitStarted(t.Context(), "a", time.Minute); l != nil || !busy || time.Since(began) != time.Minute {
			t.Errorf("a start that goes on: %v, %v after %s", l, busy, time.Since(began))
		}
		end()
	})
}
