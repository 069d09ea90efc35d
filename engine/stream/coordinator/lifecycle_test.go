package coordinator_test

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// world is workers with what runs on them, and a catalog with one query. Whoever reconciles may be ended at any step;
// words to workers that are not there are lost.
type world struct {
	q      catalog.Query
	gone   bool // taken out of the catalog
	now    time.Time
	away   map[string]bool
	runs   map[string]catalog.FragmentState // by host, what its worker knows
	broken map[string]bool                  // cannot be started, ever
	flaky  map[string]int                   // cannot be started so many times
	writes int
}

func (w *world) active(host string) bool { return !w.away[host] }

// observe is what the owner knows: what workers that are there tell.
func (w *world) observe(q catalog.Query) catalog.Query {
	q.Fragments = append([]catalog.Fragment(nil), q.Fragments...)
	for i := range q.Fragments {
		f := &q.Fragments[i]
		if f.State == catalog.FragmentRegistered || w.away[f.Host] || f.State.Final() && w.runs[f.Host] == "" {
			continue
		}
		switch state := w.runs[f.Host]; {
		case state != "":
			f.State, f.Terminal = state, state == catalog.FragmentFailed && w.broken[f.Host]
			if f.Failure = ""; state == catalog.FragmentFailed {
				f.Failure = "it is broken"
			}
		case q.Desired == catalog.Running && q.State != catalog.Terminating:
			f.State = catalog.FragmentRegistered
		default:
			f.State = catalog.FragmentStopped
		}
	}
	return q
}

// step reconciles once; it ends after so many of its effects, as a crash would.
func (w *world) step(effects int) {
	if w.gone {
		return
	}
	q := w.observe(w.q)
	var do []coordinator.Action
	for {
		next, actions := coordinator.Decide(q, coordinator.Workers{Active: w.active}, w.now)
		same := reflect.DeepEqual(next, q)
		if q = next; same || len(actions) > 0 || q.State == catalog.Stopped {
			do = actions
			break
		}
	}
	if !reflect.DeepEqual(q, w.q) {
		if effects--; effects < 0 {
			return
		}
		w.writes++
		if w.q = q; q.State == catalog.Stopped {
			w.gone = true
			return
		}
	}
	for _, a := range do {
		if effects--; effects < 0 {
			return
		}
		w.tell(a)
	}
}

func (w *world) tell(a coordinator.Action) {
	if w.away[a.Host] {
		return
	}
	state := w.runs[a.Host]
	switch {
	case a.Do == coordinator.Start && (state == "" || state.Final() && state != catalog.FragmentTerminated):
		switch {
		case w.broken[a.Host]:
			w.runs[a.Host] = catalog.FragmentFailed
		case w.flaky[a.Host] > 0:
			w.flaky[a.Host]--
			w.runs[a.Host] = catalog.FragmentFailed
		default:
			w.runs[a.Host] = catalog.FragmentRunning
		}
	case a.Do != coordinator.Start && !state.Final() && state != "":
		w.runs[a.Host] = catalog.FragmentStopped
	}
}

// TestLife: whatever happens to workers and to whoever reconciles, once it is quiet a query runs everywhere or nowhere,
// as it is wanted; what was dropped leaves nothing behind; and then nothing is written any more.
func TestLife(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hosts := []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "hosts")]
		w := &world{now: epoch, away: map[string]bool{}, runs: map[string]catalog.FragmentState{}, broken: map[string]bool{},
			flaky: map[string]int{}, q: catalog.Query{State: catalog.Pending, Desired: catalog.Running, Since: epoch}}
		for _, h := range hosts {
			w.q.Fragments = append(w.q.Fragments, catalog.Fragment{Host: h, State: catalog.FragmentRegistered})
			w.broken[h] = rapid.IntRange(0, 9).Draw(t, "broken") == 0
			w.flaky[h] = rapid.IntRange(0, 2).Draw(t, "flaky")
		}
		host := rapid.SampledFrom(hosts)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			switch h := host.Draw(t, "host"); rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				w.away[h] = true
			case 1:
				w.away[h] = false
			case 2:
				delete(w.runs, h) // its process was restarted
			case 3:
				if w.runs[h] == catalog.FragmentRunning {
					w.runs[h] = catalog.FragmentTerminated
				}
			case 4:
				w.q.Desired, w.q.Graceful = catalog.Stopped, rapid.Bool().Draw(t, "graceful")
			default:
				before := w.q
				w.step(rapid.IntRange(0, 8).Draw(t, "effects"))
				safe(t, before, w)
			}
		}
		w.away = map[string]bool{}
		for range 400 {
			w.now = w.now.Add(time.Second)
			w.step(100)
		}
		settled(t, w)
	})
}

// safe holds after each step.
func safe(t *rapid.T, before catalog.Query, w *world) {
	if before.State.Final() && w.q.State != before.State && w.q.State != catalog.Stopped {
		t.Fatalf("%s became %s", before.State, w.q.State)
	}
	if w.q.State == catalog.Running && !w.gone {
		for _, f := range w.q.Fragments {
			if f.State != catalog.FragmentRunning && f.State != catalog.FragmentTerminated {
				t.Fatalf("it is RUNNING, its fragment on %s is %s", f.Host, f.State)
			}
		}
	}
	if w.gone || w.q.State == catalog.Failed {
		for h, s := range w.runs {
			if !s.Final() {
				t.Fatalf("it is %s, and its fragment on %s is %s", w.q.State, h, s)
			}
		}
	}
}

// settled holds once nothing happens any more.
func settled(t *rapid.T, w *world) {
	safe(t, w.q, w)
	switch {
	case w.q.Desired == catalog.Stopped:
		if !w.gone {
			t.Fatalf("it was dropped, and is %s: %+v", w.q.State, w.q.Fragments)
		}
	case w.q.State != catalog.Running && w.q.State != catalog.Terminated && w.q.State != catalog.Failed:
		t.Fatalf("it stays %s: %+v", w.q.State, w.q)
	}
	for _, f := range w.q.Fragments {
		if w.broken[f.Host] && w.q.State == catalog.Running && w.runs[f.Host] != catalog.FragmentTerminated {
			t.Fatalf("it is RUNNING, and cannot run on %s", f.Host)
		}
	}
	if w.q.State == catalog.Failed && w.q.Failure == "" {
		t.Fatalf("it FAILED without a word")
	}
	writes := w.writes
	for range 50 {
		w.now = w.now.Add(time.Minute)
		w.step(100)
	}
	if w.writes != writes {
		t.Fatalf("it is %s, and is written on and on", w.q.State)
	}
}

func query(state catalog.State, fragments ...catalog.FragmentState) catalog.Query {
	q := catalog.Query{State: state, Desired: catalog.Running, Since: epoch}
	for i, f := range fragments {
		q.Fragments = append(q.Fragments, catalog.Fragment{Host: string(rune('a' + i)), State: f})
	}
	return q
}

func everybody(string) bool { return true }

// TestTheWatchdog: nothing is DEPLOYING for ever on workers that are there; where they are not it waits.
func TestTheWatchdog(t *testing.T) {
	t.Parallel()
	q := query(catalog.Deploying, catalog.FragmentFailed)
	q.Fragments[0].Failure, q.Fragments[0].RetryAt = "connection refused", epoch.Add(time.Hour)
	q, _ = coordinator.Decide(q, coordinator.Workers{Active: everybody}, epoch.Add(coordinator.DeployTimeout))
	if q.State != catalog.Deploying {
		t.Fatalf("it is %s too early", q.State)
	}
	late := epoch.Add(coordinator.DeployTimeout + time.Millisecond)
	if q, _ := coordinator.Decide(
		q,
		coordinator.Workers{Active: func(string) bool { return false }},
		late,
	); q.State != catalog.Deploying {
		t.Errorf("without its worker it is %s", q.State)
	}
	q, _ = coordinator.Decide(q, coordinator.Workers{Active: everybody}, late)
	if q.State != catalog.Terminating || q.Failure != "it was not deployed within 2m0s: connection refused" {
		t.Errorf("it is %s: %s", q.State, q.Failure)
	}
}

// TestWhatHoldsAQueryUpIsTold: what a fragment that is tried again has failed with, and that its worker is not there;
// nothing any more once it runs.
func TestWhatHoldsAQueryUpIsTold(t *testing.T) {
	t.Parallel()
	q := query(catalog.Deploying, catalog.FragmentFailed, catalog.FragmentRunning)
	q.Fragments[0].Failure = "NetworkError: connection refused"
	for _, step := range []struct {
		state  catalog.FragmentState
		active func(string) bool
		want   string
	}{
		{catalog.FragmentFailed, everybody, "it is tried again on a: NetworkError: connection refused"},
		{catalog.FragmentFailed, func(string) bool { return false }, "the worker b is UNREACHABLE"},
		{catalog.FragmentFailed, everybody, "it is tried again on a: NetworkError: connection refused"},
		{catalog.FragmentRunning, everybody, ""},
	} {
		q.Fragments[0].State = step.state
		if q, _ = coordinator.Decide(q, coordinator.Workers{Active: step.active}, epoch); q.Failure != step.want {
			t.Errorf("%s: %q", q.State, q.Failure)
		}
	}
}

// TestAttemptsAreFurtherAndFurtherApart: a fragment that does not start is tried again, not at once.
func TestAttemptsAreFurtherAndFurtherApart(t *testing.T) {
	t.Parallel()
	q, now, starts := query(catalog.Deploying, catalog.FragmentRegistered), epoch, []time.Time{}
	for now.Sub(epoch) < time.Minute {
		var do []coordinator.Action
		if q, do = coordinator.Decide(q, coordinator.Workers{Active: everybody}, now); len(do) > 0 {
			starts = append(starts, now)
		}
		q.Fragments[0].State = catalog.FragmentFailed
		now = now.Add(100 * time.Millisecond)
	}
	if len(starts) < 6 || len(starts) > 9 {
		t.Errorf("it was started %d times in a minute", len(starts))
	}
	for i := 2; i < len(starts); i++ {
		if a, b := starts[i-1].Sub(starts[i-2]), starts[i].Sub(starts[i-1]); b < a {
			t.Errorf("attempts are %s apart, then %s", a, b)
		}
	}
}

// TestStuck: a worker that does not answer holds the name; when it is back the query goes.
func TestStuck(t *testing.T) {
	t.Parallel()
	q := query(catalog.Running, catalog.FragmentRunning, catalog.FragmentRunning)
	q.Desired = catalog.Stopped
	away := func(host string) bool { return host == "a" }
	q, do := coordinator.Decide(q, coordinator.Workers{Active: away}, epoch)
	if q.State != catalog.Stopping || !reflect.DeepEqual(do, []coordinator.Action{{Host: "a", Do: coordinator.Stop}}) {
		t.Fatalf("%s %v", q.State, do)
	}
	q.Fragments[0].State = catalog.FragmentStopped
	if q, _ = coordinator.Decide(
		q,
		coordinator.Workers{Active: away},
		epoch.Add(time.Second),
	); q.State != catalog.StoppingStuck {
		t.Fatalf("it is %s", q.State)
	}
	q, do = coordinator.Decide(q, coordinator.Workers{Active: everybody}, epoch.Add(time.Hour))
	if !reflect.DeepEqual(do, []coordinator.Action{{Host: "b", Do: coordinator.Stop}}) {
		t.Fatalf("%v", do)
	}
	q.Fragments[1].State = catalog.FragmentStopped
	if q, _ = coordinator.Decide(
		q,
		coordinator.Workers{Active: everybody},
		epoch.Add(time.Hour),
	); q.State != catalog.Stopped {
		t.Errorf("it is %s", q.State)
	}
}

// TestALostWorkerReleasesADroppedQuery: what it had counts as gone after ReleaseAfter, and what others have does not.
func TestALostWorkerReleasesADroppedQuery(t *testing.T) {
	t.Parallel()
	for others, want := range map[catalog.FragmentState]catalog.State{
		catalog.FragmentStopped: catalog.Stopped, catalog.FragmentRunning: catalog.StoppingStuck,
	} {
		q := query(catalog.StoppingStuck, others, catalog.FragmentStarted)
		q.Desired, q.Since = catalog.Stopped, epoch
		away := func(host string) bool { return host == "a" }
		if early, _ := coordinator.Decide(q, coordinator.Workers{Active: away},
			epoch.Add(coordinator.ReleaseAfter)); early.State != catalog.StoppingStuck {
			t.Errorf("it is %s before the time", early.State)
		}
		if got, _ := coordinator.Decide(
			q,
			coordinator.Workers{Active: away},
			epoch.Add(coordinator.ReleaseAfter+time.Second),
		); got.State != want {
			t.Errorf("it is %s, with the other fragment %s, want %s", got.State, others, want)
		}
		if q.Fragments[1].State != catalog.FragmentStarted {
			t.Error("the query before is another one now")
		}
	}
}

// TestARemovedWorkerHoldsNothing: what a query that ends has on a worker that is lost counts as gone after the time that
// the options say, and sooner where an operator has removed it; a query that is wanted has no use for a removed one.
func TestARemovedWorkerHoldsNothing(t *testing.T) {
	lost := coordinator.Workers{Active: func(host string) bool { return host != "b" }, ReleaseAfter: time.Hour}
	removed := lost
	removed.Removed = func(host string) bool { return host == "b" }
	back := removed
	back.Active = everybody
	soon, late := coordinator.MinReleaseAfter+time.Second, time.Hour+time.Second
	for _, c := range []struct {
		state, desired catalog.State
		workers        coordinator.Workers
		after          time.Duration
		want           catalog.State
	}{
		{catalog.StoppingStuck, catalog.Stopped, lost, soon, catalog.StoppingStuck},
		{catalog.StoppingStuck, catalog.Stopped, lost, late, catalog.Stopped},
		{catalog.StoppingStuck, catalog.Stopped, removed, coordinator.MinReleaseAfter, catalog.StoppingStuck},
		{catalog.StoppingStuck, catalog.Stopped, removed, soon, catalog.Stopped},
		{catalog.Terminating, catalog.Running, lost, soon, catalog.Terminating},
		{catalog.Terminating, catalog.Running, lost, late, catalog.Failed},
		{catalog.Terminating, catalog.Running, removed, soon, catalog.Failed},
		{catalog.Terminating, catalog.Suspended, lost, soon, catalog.Terminating},
		{catalog.Terminating, catalog.Suspended, lost, late, catalog.Suspended},
		{catalog.Terminating, catalog.Suspended, removed, soon, catalog.Suspended},
		{catalog.Deploying, catalog.Running, lost, late, catalog.Deploying},
		{catalog.Deploying, catalog.Running, removed, 0, catalog.Terminating},
		{catalog.Running, catalog.Running, removed, 0, catalog.Terminating},
		{catalog.Running, catalog.Running, back, late, catalog.Deploying},
		{catalog.Terminated, catalog.Running, removed, late, catalog.Terminated},
	} {
		q := query(c.state, catalog.FragmentStopped, catalog.FragmentStarted)
		q.Desired = c.desired
		got, _ := coordinator.Decide(q, c.workers, epoch.Add(c.after))
		if got.State != c.want {
			t.Errorf("%s, desired %s, after %v: it is %s, not %s", c.state, c.desired, c.after, got.State, c.want)
		}
		if again, _ := coordinator.Decide(got, c.workers, epoch.Add(c.after)); !reflect.DeepEqual(again, got) &&
			got.State.Final() {
			t.Errorf("%+v is not at rest: %+v", got, again)
		}
	}
}

// TestAWorkerIsReleasedForTheTimeItIsAway, and not for how long its query has been in a state: what hangs on a worker
// that is there runs on when that is lost for a moment. One that was removed and added again has kept its queries.
func TestAWorkerIsReleasedForTheTimeItIsAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state, desired catalog.State
		since, away    time.Duration
		removed        bool
		want           catalog.State
	}{
		{catalog.Terminating, catalog.Running, time.Hour, time.Second, false, catalog.Terminating},
		{catalog.Terminating, catalog.Running, time.Hour, coordinator.ReleaseAfter, false, catalog.Terminating},
		{catalog.Terminating, catalog.Running, time.Hour, coordinator.ReleaseAfter + 1, false, catalog.Failed},
		{catalog.Terminating, catalog.Running, time.Second, time.Hour, false, catalog.Terminating},
		{catalog.Terminating, catalog.Suspended, time.Hour, time.Second, false, catalog.Terminating},
		{catalog.Terminating, catalog.Suspended, time.Hour, time.Hour, false, catalog.Suspended},
		{catalog.StoppingStuck, catalog.Stopped, time.Hour, time.Second, false, catalog.StoppingStuck},
		{catalog.StoppingStuck, catalog.Stopped, time.Hour, time.Hour, false, catalog.Stopped},
		{catalog.StoppingStuck, catalog.Stopped, time.Hour, coordinator.MinReleaseAfter, true, catalog.StoppingStuck},
		{catalog.StoppingStuck, catalog.Stopped, time.Hour, coordinator.MinReleaseAfter + 1, true, catalog.Stopped},
		{catalog.Running, catalog.Running, time.Hour, 0, true, catalog.Deploying},
		{catalog.Deploying, catalog.Running, time.Hour, coordinator.MinReleaseAfter, true, catalog.Deploying},
		{catalog.Deploying, catalog.Running, time.Hour, coordinator.MinReleaseAfter + 1, true, catalog.Terminating},
	} {
		q := query(c.state, catalog.FragmentStopped, catalog.FragmentStarted)
		q.Desired = c.desired
		now := epoch.Add(c.since)
		w := coordinator.Workers{Active: func(host string) bool { return host != "b" },
			AwaySince: func(string) time.Time { return now.Add(-c.away) },
			Removed:   func(host string) bool { return c.removed && host == "b" }}
		if got, _ := coordinator.Decide(q, w, now); got.State != c.want {
			t.Errorf("%+v: it is %s", c, got.State)
		}
	}
}

// TestNobodyWaitsForAnotherClock: a next attempt that is further off than any wait was written down by another clock.
func TestNobodyWaitsForAnotherClock(t *testing.T) {
	t.Parallel()
	q := catalog.Query{State: catalog.Deploying, Desired: catalog.Running, Since: epoch,
		Fragments: []catalog.Fragment{{Host: "a", State: catalog.FragmentFailed, Attempts: 3}}}
	for after, due := range map[time.Duration]bool{0: true, 4 * time.Second: false, 15 * time.Second: false,
		16 * time.Second: true, time.Hour: true} {
		q.Fragments[0].RetryAt = epoch.Add(after)
		if _, do := coordinator.Decide(
			q,
			coordinator.Workers{Active: func(string) bool { return true }},
			epoch,
		); (len(do) == 1) != due {
			t.Errorf("it is told %v, %v before its next attempt", do, after)
		}
	}
}
