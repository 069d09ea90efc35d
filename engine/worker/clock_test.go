package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// TestTheServersClockIsKnownToWithinTheErrorThatIsStated, whatever the way there and back
// takes, however far apart the clocks are, and while they drift.
func TestTheServersClockIsKnownToWithinTheErrorThatIsStated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClockSync()
		begin := time.Unix(1_790_000_000, 0)
		ahead := time.Duration(rapid.Int64Range(-int64(2*time.Hour), int64(2*time.Hour)).Draw(t, "ahead"))
		drift := rapid.Float64Range(-150e-6, 150e-6).Draw(t, "drift")
		server := func(at time.Time) time.Time {
			return at.Add(ahead + time.Duration(drift*float64(at.Sub(begin))))
		}
		if _, wrong := c.estimate(begin); wrong != 0 {
			t.Fatal("an error is stated of what nobody has measured")
		}
		now := begin
		way := func(what string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(300*time.Millisecond)).Draw(t, what))
		}
		for range rapid.IntRange(1, 40).Draw(t, "heartbeats") {
			sent := now
			there := sent.Add(way("there"))
			left := there.Add(way("held"))
			back := left.Add(way("back"))
			c.addSample(sent, back, protocol.StatusAck{Received: server(there), Sent: server(left)})
			now = back.Add(way("until the next") * 10)
			got, wrong := c.estimate(now)
			if off := (got - server(now).Sub(now)).Abs(); wrong <= 0 || off > wrong+2 {
				t.Fatalf("the clock is wrong by %v, and %v is stated", off, wrong)
			}
		}
	})
}

// TestTimesThatCannotBeAreNone: an acknowledgement of a former version, and one that took less than no time.
func TestTimesThatCannotBeAreNone(t *testing.T) {
	c, at := newClockSync(), time.Unix(1_790_000_000, 0)
	c.addSample(at, at.Add(time.Millisecond), protocol.StatusAck{})
	c.addSample(at, at.Add(time.Millisecond), protocol.StatusAck{Received: at, Sent: at.Add(time.Second)})
	if ahead, wrong := c.estimate(at); ahead != 0 || wrong != 0 {
		t.Errorf("%v ahead, to within %v", ahead, wrong)
	}
}

// TestRecordsAreInTheTimeOfTheServer: the load of a run gets the server's time line, with the
// clock of the node an hour off, and the worker says how wrong it may be.
func TestRecordsAreInTheTimeOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var line *clock.Clock // once the load is open
		fake := newFakeLoad()
		open := func(_ context.Context, cfg load.Config, _ int, _ func(int, int)) (Load, error) {
			line, fake.sink = cfg.Clock, cfg.Sink
			return fake, nil
		}
		s := connectAhead(t, t.TempDir(), fake, open, time.Hour)
		synctest.Wait()
		a := assign()
		a.ClockAhead = 3 * time.Second // the server's clock was set since its process began
		s.send(a, start(1))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := time.Until(line.Now()); got != time.Hour+3*time.Second {
			t.Errorf("the run's time is %v ahead", got)
		}
		w := s.last()
		if off := time.Until(w.At) - time.Hour - 3*time.Second; off.Abs() > 2*time.Second {
			t.Errorf("the worker reports %v from the run's time", off)
		}
		if w.ClockError <= 0 || w.ClockError > time.Millisecond {
			t.Errorf("an error of %v is stated", w.ClockError)
		}
		if st := s.lastStatus(); st.ClockOffset != time.Hour || st.ClockError <= 0 {
			t.Errorf("the node states an offset of %v, to within %v", st.ClockOffset, st.ClockError)
		}
		// The server's clock steps: what is recorded does not, and the error says so.
		s.mu.Lock()
		s.ahead += 10 * time.Second
		s.mu.Unlock()
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		if got := time.Until(line.Now()); got != time.Hour+3*time.Second {
			t.Errorf("the run's time is %v ahead after a step", got)
		}
		if w := s.last(); w.ClockError < 10*time.Second {
			t.Errorf("an error of %v is stated after a step of 10 s", w.ClockError)
		}
		s.end()
	})
}

// TestEachServerIsToldItsOwnClock, and at once: that of another server, which was heard last, is
// not what the node's clock is to this one.
func TestEachServerIsToldItsOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := connectAhead(t, t.TempDir(), newFakeLoad(), nil, time.Hour)
		time.Sleep(1500 * time.Millisecond) // between two heartbeats
		b := a.another("b", 2)
		if st := b.lastStatus(); st.ClockOffset != 0 || st.ClockError <= 0 {
			t.Errorf("a server that has just come hears of %v, to within %v", st.ClockOffset, st.ClockError)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := a.lastStatus().ClockOffset; got != time.Hour {
			t.Errorf("the first server hears of %v", got)
		}
		if got := b.lastStatus().ClockOffset; got != 0 {
			t.Errorf("the second server hears of %v", got)
		}
		b.kill()
		a.end()
	})
}

// TestABrokenStreamMakesNoClockWrong: a run worker goes on knowing the time of the server that
// has given it to the node when that comes back.
func TestABrokenStreamMakesNoClockWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), newFakeLoad(), nil)
		owner := s.another("owner", 3)
		owner.send(assign(), start(1))
		time.Sleep(2 * time.Second)
		owner.kill()
		owner = s.another("owner", 3)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if w := owner.last(); w.Status != engine.WorkerRunning || w.ClockError <= 0 || w.ClockError > 2*time.Millisecond {
			t.Errorf("%s, %v wrong", w.Status, w.ClockError)
		}
		owner.kill()
		s.end()
	})
}
