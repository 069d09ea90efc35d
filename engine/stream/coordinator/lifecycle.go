// This part decides what becomes of a continuous query: what it is now, what is wanted of it, what its fragments are
// known to be and which workers are there go in; its next state, and what fragments are told, come out. It is pure, and
// level-triggered: it may be asked at any time, as often as one likes, by whoever owns the query, after any crash.
//
//	PENDING ─▶ DEPLOYING ─▶ RUNNING ─▶ TERMINATED          all sources ended
//	   │         │   ▲          │
//	   │         │   └──────────┤                          a fragment was lost
//	   │         ├──────────────┴▶ TERMINATING ─▶ FAILED   an error that another attempt does not cure
//	   ▼         ▼              ▼
//	  STOPPED ◀─ STOPPING ◀──▶ STOPPING_STUCK              not wanted any more; a worker does not answer
//
//	TERMINATING ─▶ SUSPENDED ─▶ PENDING                   its creator has no right to it any more; it is resumed
//
// A query runs on all its workers or on none: one that cannot be started stops the others. Its name is taken until each
// fragment is known to be gone.

package coordinator

import (
	"cmp"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
)

// The bounds of a query's life.
const (
	// DeployTimeout is how long a query may be DEPLOYING on workers that are there; then it fails.
	DeployTimeout = 2 * time.Minute
	// StuckAfter is how long a query may be STOPPING until it is called stuck.
	StuckAfter = 30 * time.Second
	// ReleaseAfter is from when on what a query that ends has on a worker that is not there counts as gone, unless the
	// options say otherwise: a worker that is lost for good never says so.
	ReleaseAfter = 2 * time.Minute
	// MinReleaseAfter is that of a worker that an operator has removed, and the least that options may say: a fragment
	// ends by itself 15 s after its server has fallen silent.
	MinReleaseAfter = 20 * time.Second
	// maxReplacedDrain is how long rows of a query that was replaced may be on their way to its sink; then it is ended.
	maxReplacedDrain = 2 * time.Minute
	// tellReplacedAfter is from when on a query says that it waits for the end of what ran before.
	tellReplacedAfter = 2 * time.Second
	// minRetryDelay and longestWait are between attempts to start a fragment.
	minRetryDelay = 500 * time.Millisecond
	maxRetryDelay = 15 * time.Second
)

// Verb is what a fragment is told. Telling it twice is harmless.
type Verb string

// What fragments are told. Drain has sources stop, and rows on their way reach the sink.
const (
	Start Verb = "START"
	Stop  Verb = "STOP"
	Drain Verb = "DRAIN"
)

// Action is a word to the fragment on a host.
type Action struct {
	Host string
	Do   Verb
}

// Workers is what is known of the workers of queries.
type Workers struct {
	// Active says whether a worker is there.
	Active func(host string) bool
	// Removed says whether an operator has taken a worker out that is not there; nil where none was.
	Removed func(host string) bool
	// AwaySince says since when a worker has not been there; nil where that is not known.
	AwaySince func(host string) time.Time
	// ReleaseAfter is from when on what a query that ends has on a worker that is not there counts as gone; 0 is
	// ReleaseAfter.
	ReleaseAfter time.Duration
}

func (w Workers) removed(host string) bool {
	return w.Removed != nil && w.Removed(host) && !w.Active(host)
}

// releaseAfter is from when on what is on a worker that is not there counts as gone.
func (w Workers) releaseAfter(host string) time.Duration {
	after := cmp.Or(w.ReleaseAfter, ReleaseAfter)
	if w.removed(host) {
		return min(after, MinReleaseAfter)
	}
	return after
}

// away is for how long a worker has not been there, counted from a time at the earliest.
func (w Workers) away(host string, since, now time.Time) time.Duration {
	if w.AwaySince != nil {
		if at := w.AwaySince(host); at.After(since) {
			since = at
		}
	}
	return now.Sub(since)
}

// released reports whether what was on a worker counts as gone: it has not been there for long enough, and somebody has
// wanted the end of it for as long.
func (w Workers) released(host string, since, now time.Time) bool {
	return !w.Active(host) && w.away(host, since, now) > w.releaseAfter(host)
}

// Decide returns the query as it is next, and what its fragments are told then. What it returns for the same query a
// second time is the same query, and at most the same words. Since, of the query, is by the clock of who asks.
func Decide(q catalog.Query, w Workers, now time.Time) (catalog.Query, []Action) {
	q.Fragments = slices.Clone(q.Fragments)
	if q.Desired == catalog.Stopped {
		return stopped(q, w, now)
	}
	if q.Desired == catalog.Suspended {
		return suspended(q, w, now)
	}
	if host := removedHost(q, w, now); host != "" && !q.State.Final() && q.State != catalog.Terminating {
		return fail(q, "the worker "+host+", which it reads or writes on, was removed", now), nil
	}
	switch q.State {
	case catalog.Pending:
		q.Failure = "" // what it has waited for is over
		return setState(q, catalog.Deploying, now), nil
	case catalog.Deploying:
		return beginDeployment(q, w.Active, now)
	case catalog.Running:
		return watch(q, now), nil
	case catalog.Terminating:
		unsent(&q)
		release(&q, w, now)
		if all(q, catalog.FragmentState.Final) {
			return setState(q, catalog.Failed, now), nil
		}
		return sendAll(q, w.Active, Stop)
	}
	return q, nil
}

// removedHost is a worker of the query that an operator has taken out, "" where there is none. One that is added again
// soon, maybe with another address, was not.
func removedHost(q catalog.Query, w Workers, now time.Time) string {
	for _, f := range q.Fragments {
		if w.removed(f.Host) && w.away(f.Host, time.Time{}, now) > MinReleaseAfter {
			return f.Host
		}
	}
	return ""
}

// release notes that what a query that ends has on workers that are not there is gone, where both are so for long
// enough.
func release(q *catalog.Query, w Workers, now time.Time) {
	for i := range q.Fragments {
		if f := &q.Fragments[i]; !f.State.Final() && w.released(f.Host, q.Since, now) {
			f.State = catalog.FragmentStopped
		}
	}
}

// leftovers are the workers on which something may run of an attempt that another query has taken the place of: those
// that can be asked whether it has ended, and all of them. since is when its end was wanted.
func leftovers(parts []catalog.Fragment, w Workers, since, now time.Time) (ask, all []string) {
	for _, f := range parts {
		if f.State.Final() || w.released(f.Host, since, now) {
			continue
		}
		if all = append(all, f.Host); w.Active(f.Host) {
			ask = append(ask, f.Host)
		}
	}
	return ask, all
}

// setState changes the state, unless it is that.
func setState(q catalog.Query, s catalog.State, now time.Time) catalog.Query {
	if q.State != s {
		q.State, q.Since = s, now
	}
	return q
}

func all(q catalog.Query, is func(catalog.FragmentState) bool) bool {
	return !slices.ContainsFunc(q.Fragments, func(f catalog.Fragment) bool { return !is(f.State) })
}

// fail ends the query for good.
func fail(q catalog.Query, why string, now time.Time) catalog.Query {
	q.Failure = why
	return setState(q, catalog.Terminating, now)
}

// permanentFailure is the error of a fragment that another attempt does not cure.
func permanentFailure(q catalog.Query) (why string, is bool) {
	for _, f := range q.Fragments {
		if f.State == catalog.FragmentFailed && f.Terminal {
			return f.Failure, true
		}
	}
	return "", false
}

// beginDeployment starts what does not run, until all do.
func beginDeployment(q catalog.Query, active func(string) bool, now time.Time) (catalog.Query, []Action) {
	if why, is := permanentFailure(q); is {
		return fail(q, why, now), nil
	}
	// One whose sources have ended already has run.
	runs := func(s catalog.FragmentState) bool {
		return s == catalog.FragmentRunning || s == catalog.FragmentTerminated
	}
	if all(q, runs) {
		q.Failure = ""
		return setState(q, catalog.Running, now), nil
	}
	// All of them begin, or none.
	there, due := true, true
	for _, f := range q.Fragments {
		if f.State == catalog.FragmentFailed && f.Failure != "" && there {
			q.Failure = "it is tried again on " + f.Host + ": " + f.Failure
		}
		if !active(f.Host) {
			there = false // the membership of the cluster sorts that out first
			q.Failure = "the worker " + f.Host + " is UNREACHABLE"
		}
		// Of one that was told already it is not known whether the word came. Nobody waits longer than the longest wait:
		// who has said until when had another clock.
		due = due && (runs(f.State) || f.State == catalog.FragmentStarted || !now.Before(f.RetryAt) ||
			f.RetryAt.Sub(now) > maxRetryDelay)
	}
	var do []Action
	for i := range q.Fragments {
		f := &q.Fragments[i]
		if runs(f.State) || !there || !due {
			continue
		}
		do = append(do, Action{f.Host, Start})
		if f.State != catalog.FragmentStarted {
			f.State, f.RetryAt = catalog.FragmentStarted, now.Add(RetryDelay(f.Attempts))
			f.Attempts++
		}
	}
	switch {
	case !there:
		// The time in which nobody can be started is not the query's. It need not be written at every look.
		if now.Sub(q.Since) > DeployTimeout/2 {
			q.Since = now
		}
	case now.Sub(q.Since) > DeployTimeout:
		why := "it was not deployed within " + DeployTimeout.String()
		for _, f := range q.Fragments {
			if f.Failure != "" {
				why += ": " + f.Failure
				break
			}
		}
		return fail(q, why, now), nil
	}
	return q, do
}

// RetryDelay is how long after its n-th failure a fragment is started again.
func RetryDelay(n int64) time.Duration {
	if n > 10 {
		return maxRetryDelay
	}
	return min(minRetryDelay<<n, maxRetryDelay)
}

// watch looks whether all fragments run on.
func watch(q catalog.Query, now time.Time) catalog.Query {
	if why, is := permanentFailure(q); is {
		return fail(q, why, now)
	}
	if all(q, func(s catalog.FragmentState) bool { return s == catalog.FragmentTerminated }) {
		return setState(q, catalog.Terminated, now)
	}
	if !all(q, func(s catalog.FragmentState) bool {
		return s == catalog.FragmentRunning || s == catalog.FragmentTerminated
	}) {
		return setState(q, catalog.Deploying, now)
	}
	return q
}

// stopped brings a query to its end that is not wanted any more.
func stopped(q catalog.Query, w Workers, now time.Time) (catalog.Query, []Action) {
	unsent(&q)
	away := slices.ContainsFunc(q.Fragments, func(f catalog.Fragment) bool {
		return !f.State.Final() && !w.Active(f.Host)
	})
	if q.State == catalog.StoppingStuck {
		release(&q, w, now)
	}
	if q.State.Final() || all(q, catalog.FragmentState.Final) {
		return setState(q, catalog.Stopped, now), nil
	}
	verb := Stop
	if q.Graceful {
		verb = Drain
	}
	switch q.State {
	case catalog.Stopping:
		// Rows that are on their way may take longer.
		if away || !q.Graceful && now.Sub(q.Since) > StuckAfter {
			q = setState(q, catalog.StoppingStuck, now)
		}
	case catalog.StoppingStuck:
		if !away && now.Sub(q.Since) > StuckAfter {
			q = setState(q, catalog.Stopping, now)
		}
	default:
		q = setState(q, catalog.Stopping, now)
	}
	return sendAll(q, w.Active, verb)
}

// suspended ends the fragments of a query that its creator has no right to any more. Its failure says why.
func suspended(q catalog.Query, w Workers, now time.Time) (catalog.Query, []Action) {
	if q.State.Final() {
		return q, nil
	}
	unsent(&q)
	if q.State == catalog.Terminating {
		release(&q, w, now)
	}
	if all(q, catalog.FragmentState.Final) {
		return setState(q, catalog.Suspended, now), nil
	}
	return sendAll(setState(q, catalog.Terminating, now), w.Active, Stop)
}

// unsent notes that fragments which were never sent are nowhere. Of one that was, in an earlier attempt, that is not
// known until its worker has said so.
func unsent(q *catalog.Query) {
	for i := range q.Fragments {
		switch f := &q.Fragments[i]; {
		case f.State != catalog.FragmentRegistered:
		case f.Attempts > 0:
			f.State = catalog.FragmentStarted
		default:
			f.State = catalog.FragmentStopped
		}
	}
}

// sendAll tells the same to all fragments that are not gone and whose workers are there.
func sendAll(q catalog.Query, active func(string) bool, verb Verb) (catalog.Query, []Action) {
	var do []Action
	for _, f := range q.Fragments {
		if !f.State.Final() && active(f.Host) {
			do = append(do, Action{f.Host, verb})
		}
	}
	return q, do
}
