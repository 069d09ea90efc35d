package refresh

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// StarvationLimit is how long something may wait where something is always in the way. Then it is done in spite of
// that, one refresh at a time: tables that nobody refreshes for hours are worse than a measurement that is disturbed.
const StarvationLimit = 15 * time.Minute

// yieldCheckInterval is how soon a refresh under way gives way.
const yieldCheckInterval = 50 * time.Millisecond

// errPreempted ends a refresh where something else has to go on undisturbed.
var errPreempted = errors.New("something else must not be disturbed")

func (r *Refresher) busy() string {
	if r.opts.Busy == nil {
		return ""
	}
	return r.opts.Busy()
}

// claimable is how many entries may be claimed now, where so many workers are idle.
func (r *Refresher) claimable(idle int) (most int, anyway bool) {
	if r.busy() == "" {
		return idle, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.starved && r.claimed == 0 {
		return 1, true
	}
	return 0, true
}

// finishJob is the end of a claim in the hands of a worker.
func (r *Refresher) finishJob(j job) {
	if j.forced {
		r.count(-1, 0)
		return
	}
	r.count(-1, -1)
}

// count notes claims that came into the hands of workers or left them, and what gives way among it.
func (r *Refresher) count(held, giving int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claimed += held
	r.yielding += giving
}

// yieldPollInterval is how soon GiveWay sees that it is done.
const yieldPollInterval = 5 * time.Millisecond

// AwaitYield waits while something is in the way until every refresh that ends for it has ended, and its claim is given
// back: what is in the way need not begin beside them. It waits as long as the context at most, and never for a
// refresh that is done in spite of what is in the way.
func (r *Refresher) AwaitYield(ctx context.Context) {
	for r.busy() != "" {
		r.mu.Lock()
		done := r.yielding == 0
		r.mu.Unlock()
		if done || !pause(ctx, nil, yieldPollInterval) {
			return
		}
	}
}

// yield ends a refresh, whose claim is given back then, as soon as something is in the way.
func (r *Refresher) yield(working context.Context, stop context.CancelCauseFunc) {
	for why := r.busy(); ; why = r.busy() {
		if why != "" {
			r.opts.Log.Info().Str("why", why).Msg("a refresh gives way, and is done later or by another worker")
			stop(errPreempted)
			return
		}
		if !pause(working, nil, yieldCheckInterval) {
			return
		}
	}
}

// noteWaiting notes what waits for a worker of this kind, and since when it was seen to.
func (r *Refresher) noteWaiting(s State) {
	if r.opts.Busy == nil {
		return
	}
	kinds, claimed := map[string]Kind{}, map[Task]bool{}
	for _, t := range s.Tables {
		kinds[t.Name] = t.Kind
	}
	for _, c := range s.Claims {
		claimed[c.Task] = true
	}
	now, seen := time.Now(), map[Task]time.Time{}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starved = false
	for _, p := range s.Pending {
		since, known := r.first[p.Task]
		if !known {
			since = now
		}
		if p.Due.After(s.Now.Time) || len(r.opts.Kinds) > 0 && !slices.Contains(r.opts.Kinds, kinds[p.Table]) {
			continue
		}
		seen[p.Task] = since
		if !claimed[p.Task] && now.Sub(since) >= StarvationLimit {
			r.starved = true
		}
	}
	r.first = seen
}

// What could not be done because something is away is tried again after awayLeast at least, and later the more of it
// there is and the longer each takes: at most half of the time goes into it, and the rest into what can be done.
const (
	minUnavailableDelay, maxUnavailableDelay = 10 * time.Second, 10 * time.Minute
	unavailablePause                         = 200 * time.Millisecond
)

// noteUnavailable notes why a refresh could not be done that is no fault of its table, "" when it could, and returns
// when it is to be tried again. Whoever looks for the reason why tables are late finds it beside this worker.
func (r *Refresher) noteUnavailable(task Task, why string, took time.Duration) (after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unavailable = why
	if why == "" {
		delete(r.unavailableTasks, task)
		return 0
	}
	// What another worker has done meanwhile does not count for ever.
	now := time.Now()
	maps.DeleteFunc(r.unavailableTasks, func(_ Task, at time.Time) bool { return now.Sub(at) > 2*maxUnavailableDelay })
	r.unavailableTasks[task] = now
	others := float64(len(r.unavailableTasks) - 1)
	return min(
		max(minUnavailableDelay, time.Duration(2*others*float64(min(took, minUnavailableDelay)+unavailablePause))),
		maxUnavailableDelay,
	)
}

func (r *Refresher) unavailableReason() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unavailable
}

// announce says that the process is there, until it ends.
func (r *Refresher) announce(ctx context.Context) {
	w := Worker{Name: r.opts.Name, Role: r.opts.Role, Host: r.opts.Host, Kinds: r.opts.Kinds,
		Slots: r.opts.Workers}
	if len(w.Kinds) == 0 {
		w.Kinds = []Kind{SQL, Ingest}
	}
	for {
		w.Waits = cmp.Or(r.busy(), r.unavailableReason())
		calling, cancel := context.WithTimeout(ctx, callTimeout)
		err := r.opts.Store.NoteRefreshWorker(calling, w)
		cancel()
		if err != nil && ctx.Err() == nil {
			r.opts.Log.Debug().Err(err).Msg("the refresh worker could not be registered")
		}
		if !pause(ctx, nil, PollInterval) {
			break
		}
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if err := r.opts.Store.ForgetRefreshWorker(ending, w.Name); err != nil {
		r.opts.Log.Debug().Err(err).Msg("the end of the refresh worker could not be registered")
	}
}
