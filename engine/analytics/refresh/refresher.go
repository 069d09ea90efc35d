// This part keeps derived tables fresh: it looks what is due, puts it into the queue of the
// control store, and has workers that claim entries and refresh them. Every server has one, and none of them leads.
//
// A worker holds a claim while it refreshes. A heartbeat prolongs it; when none has succeeded for SelfStop, or
// the store says that the claim is lost, the work is cancelled. That alone would not do: a process that
// stood still may go on with a write that it had begun. So every write carries the epoch of the claim to where the
// table is kept, and is refused there when a higher one has begun.

package refresh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Store is the queue as the refresher needs it.
type Store interface {
	RefreshState(ctx context.Context, runs int) (State, error)
	ScheduleRefreshes(ctx context.Context, s Schedule) error
	ClaimRefreshes(ctx context.Context, worker string, life time.Duration, most int, kinds ...Kind) (
		[]Claim, error)
	RenewRefresh(ctx context.Context, c Claim, life time.Duration) error
	ReleaseRefresh(ctx context.Context, c Claim, r Result) error
	ReleaseRefreshes(ctx context.Context, ended []Completion) (lost []Claim, err error)
	AbandonRefresh(ctx context.Context, c Claim, after time.Duration) error
	SweepRefreshes(ctx context.Context) (int, error)
	PruneRefreshHistory(ctx context.Context, keep int) error
	AwaitRefreshes(ctx context.Context, told func()) error
	NoteRefreshWorker(ctx context.Context, w Worker) error
	ForgetRefreshWorker(ctx context.Context, name string) error
}

// Work refreshes what a claim is about. It ends early with ctx, and writes nothing once the epoch of
// the claim is not the highest any more. prove asks whether the claim is still held; who is about to commit calls it.
type Work func(ctx context.Context, c Claim, prove func(context.Context) error) (Result, error)

// Options say how a refresher works.
type Options struct {
	Store Store
	Work  Work
	// Workers is how many refreshes this process carries out at a time; with 0 it only looks what is due.
	Workers int
	// Kinds are the kinds of tables that it refreshes; none are all.
	Kinds []Kind
	// Busy says why nothing should be refreshed here now, "" when nothing is in the way; nil is never. Then nothing is
	// claimed, and what is under way is given back, but for what has waited for StarvationLimit: see yield.
	Busy func() string
	// ClaimTTL is how long a claim lives without a heartbeat; 0 is 2 minutes.
	ClaimTTL time.Duration
	// Name is that of the process in its claims; Role and Host are for people to know it by.
	Name string
	Role Role
	Host string
	Log  zerolog.Logger
}

// The times of a refresher. Poll is how often it looks when nobody tells it to: what has expired is found so.
const (
	PollInterval = 5 * time.Second
	// minPassInterval is how long at least one look comes after another, and times the time that it takes: what many
	// releases tell is looked at once.
	minPassInterval, passCostFactor = 200 * time.Millisecond, 5
	// maxRunsPerPass bounds the runs that are put into the queue in one look.
	maxRunsPerPass = 200
	// historyLimit is how many lines of history each table has.
	historyLimit  = 500
	pruneInterval = 10 * time.Minute
	// callTimeout bounds a call of the store.
	callTimeout = 10 * time.Second
)

// Refresher is the part of a server that keeps derived tables fresh.
type Refresher struct {
	opts   Options
	cancel context.CancelFunc
	group  sync.WaitGroup
	// Idle workers say so, and are given what was claimed.
	idle     chan struct{}
	jobs     chan job
	releases releaseBatcher
	mu       sync.Mutex
	// changed is closed, and made anew, when there may be something to do.
	changed chan struct{}
	// first is when this process saw each entry waiting for the first time; starved is whether one has waited too long.
	first   map[Task]time.Time
	starved bool
	// claimed is how many claims are in the hands of workers; giving is how many of them, and of calls that ask for some,
	// end when something is in the way.
	claimed, yielding int
	// running are the claims that are worked on here, by epoch, with what ends the work.
	running map[int64]context.CancelCauseFunc
	// unavailable is what the last refresh said that could not be done for no fault of its table, "" when it could; aways
	// are the tasks of which that was the last word here, and when.
	unavailable      string
	unavailableTasks map[Task]time.Time
}

// job is a claim, when it was asked for, and whether it was although something was in the way.
type job struct {
	claim       Claim
	requestedAt time.Time
	forced      bool
}

// Start begins to work until Close.
func Start(o Options) *Refresher {
	o.ClaimTTL = cmp.Or(o.ClaimTTL, ClaimTTL)
	ctx, cancel := context.WithCancel(context.Background())
	r := &Refresher{opts: o, cancel: cancel, changed: make(chan struct{}), idle: make(chan struct{}, o.Workers),
		jobs: make(chan job, o.Workers), releases: releaseBatcher{store: o.Store}, first: map[Task]time.Time{},
		unavailableTasks: map[Task]time.Time{}, running: map[int64]context.CancelCauseFunc{}}
	r.group.Go(func() { r.listen(ctx) })
	r.group.Go(func() { r.schedule(ctx) })
	r.group.Go(func() { r.dispatch(ctx) })
	for range o.Workers {
		r.group.Go(func() { r.work(ctx) })
	}
	if o.Workers > 0 {
		r.group.Go(func() { r.announce(ctx) })
	}
	return r
}

// Close ends the work that is under way, gives its claims back and returns when that is done.
func (r *Refresher) Close() {
	r.cancel()
	r.group.Wait()
}

// wake makes everybody look at once.
func (r *Refresher) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Refresher) wakeChan() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// pause waits until there may be something to do, and at most as long as told. It is false at the end.
func pause(ctx context.Context, woken <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-woken:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// listen hears from the store that a run has ended, or that something was put into the queue.
func (r *Refresher) listen(ctx context.Context) {
	for {
		err := r.opts.Store.AwaitRefreshes(ctx, r.wake)
		if ctx.Err() != nil {
			return
		}
		r.opts.Log.Debug().Err(err).Msg("notifications of pending refreshes failed")
		if !pause(ctx, nil, PollInterval) {
			return
		}
	}
}

// schedule looks what is due, again and again.
func (r *Refresher) schedule(ctx context.Context) {
	var pruned time.Time
	for {
		woken, began := r.wakeChan(), time.Now()
		next, err := r.runPass(ctx)
		took := time.Since(began)
		if err == nil && time.Since(pruned) > pruneInterval {
			err = r.prune(ctx)
			pruned = time.Now()
		}
		if err != nil && ctx.Err() == nil {
			r.opts.Log.Warn().Err(err).Msg("pending refreshes could not be read")
		}
		if !pause(ctx, nil, max(minPassInterval, passCostFactor*took)) || !pause(ctx, woken, min(next, PollInterval)) {
			return
		}
	}
}

func (r *Refresher) prune(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.opts.Store.PruneRefreshHistory(ctx, historyLimit)
}

// runPass takes expired claims away, puts what is due into the queue, and returns how long it is to the next
// table that will be.
func (r *Refresher) runPass(ctx context.Context) (next time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	next = PollInterval
	swept, err := r.opts.Store.SweepRefreshes(ctx)
	if err != nil {
		return next, err
	}
	if swept > 0 {
		r.opts.Log.Warn().Int("claims", swept).Msg("claims on refreshes had expired: their workers are gone or stood still")
		r.wake()
	}
	working := r.runningClaims()
	state, err := r.opts.Store.RefreshState(ctx, maxRunsPerPass)
	if err != nil {
		return next, err
	}
	stopLost(working, state.Claims)
	r.noteWaiting(state)
	plan := Plan(state)
	if err := r.opts.Store.ScheduleRefreshes(ctx, plan); err != nil {
		return next, err
	}
	if len(plan.Enqueue) > 0 {
		r.wake()
	}
	soon := func(due time.Time) {
		if wait := due.Sub(state.Now.Time); wait > 0 {
			next = min(next, wait)
		}
	}
	for _, due := range DueTimes(state.Tables) {
		soon(due)
	}
	for _, p := range state.Pending {
		soon(p.Due.Time)
	}
	for _, c := range state.Claims {
		soon(c.ExpiresAt.Time)
	}
	return next, nil
}

// dispatch claims as much as there are idle workers, in one call, and gives it to them.
func (r *Refresher) dispatch(ctx context.Context) {
	defer close(r.jobs)
	for waiting := 0; ; {
		if waiting == 0 {
			select {
			case <-ctx.Done():
				return
			case <-r.idle:
				waiting++
				continue
			}
		}
		select {
		case <-r.idle:
			waiting++
			continue
		default:
		}
		woken, asked := r.wakeChan(), time.Now()
		claims, anyway, err := r.claim(ctx, waiting)
		if err != nil && ctx.Err() == nil {
			r.opts.Log.Warn().Err(err).Msg("nothing could be claimed")
		}
		for _, c := range claims {
			r.jobs <- job{c, asked, anyway} // room: one for each worker, and only idle ones are counted
		}
		waiting -= len(claims)
		if waiting > 0 && !pause(ctx, woken, r.idleWait(err)) || ctx.Err() != nil {
			return
		}
	}
}

// work refreshes what it is given, one after another. What is left at the end is given back, claim by claim.
func (r *Refresher) work(ctx context.Context) {
	for {
		r.idle <- struct{}{} // room: one for each worker
		job, ok := <-r.jobs
		if !ok {
			return
		}
		r.runClaim(ctx, job)
	}
}

// idleWait is how long an idle worker waits when nobody wakes it: entries become due by the clock.
func (r *Refresher) idleWait(err error) time.Duration {
	if err != nil {
		return PollInterval
	}
	return time.Second
}

// claim claims so many entries at most; anyway is whether something was in the way of it.
func (r *Refresher) claim(ctx context.Context, most int) (claims []Claim, anyway bool, err error) {
	// Counted first and asked afterwards: GiveWay, which asks first, sees what is about to be claimed, or this sees what
	// is in the way.
	r.count(0, 1)
	if most, anyway = r.claimable(most); most == 0 || anyway {
		r.count(0, -1)
	}
	if most == 0 {
		return nil, anyway, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	claims, err = r.opts.Store.ClaimRefreshes(ctx, r.opts.Name, r.opts.ClaimTTL, most, r.opts.Kinds...)
	if anyway {
		r.count(len(claims), 0)
	} else {
		r.count(len(claims), len(claims)-1)
	}
	return claims, anyway, err
}

// errHeartbeatLost ends a refresh whose holder has heard nothing for too long.
var errHeartbeatLost = errors.New("no heartbeat has succeeded for too long")

// runClaim refreshes what was claimed, and ends the claim.
func (r *Refresher) runClaim(ctx context.Context, j job) {
	defer r.finishJob(j)
	c := j.claim
	log := r.opts.Log.With().Str("dynamic_table", c.Table).Str("subtask", c.Subtask).Int64("epoch", c.Epoch).Logger()
	working, stop := context.WithCancelCause(ctx)
	r.setRunning(c.Epoch, stop)
	defer r.setRunning(c.Epoch, nil)
	beating := make(chan struct{})
	hold := &heartbeat{r: r, claim: c, lease: NewClaimLease(j.requestedAt, r.opts.ClaimTTL)}
	go func() {
		defer close(beating)
		hold.beat(working, stop)
	}()
	if !j.forced && r.opts.Busy != nil {
		go r.yield(working, stop)
	}
	began := time.Now()
	result, err := r.execute(working, c, hold.prove)
	stop(nil)
	<-beating
	// What is said of the claim is said also while the process ends.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	switch {
	case err != nil && (ctx.Err() != nil || errors.Is(context.Cause(working), errPreempted)):
		if err := r.opts.Store.AbandonRefresh(ending, c, 0); err != nil {
			log.Warn().Err(err).Msg("the claim could not be released; it expires")
		}
		return
	case err != nil && (errors.Is(err, store.ErrClaimLost) || errors.Is(context.Cause(working), errHeartbeatLost) ||
		errors.Is(context.Cause(working), store.ErrClaimLost)):
		log.Warn().Err(err).Msg("the claim is lost: what was begun is left to whoever has it now")
		return
	case errors.Is(err, store.ErrUnavailable) || engine.HasCode(err, engine.CodeUnavailable):
		// Nothing is wrong with the table. What else is waiting may not need what is away.
		after := r.noteUnavailable(c.Task, engine.ErrorText(err), time.Since(began))
		log.Warn().Err(err).Dur("again_after_ms", after).Msg("what the refresh needs is away: it is tried again")
		if err := r.opts.Store.AbandonRefresh(ending, c, after); err != nil {
			log.Warn().Err(err).Msg("the claim could not be released; it expires")
		}
		pause(ctx, nil, unavailablePause)
		return
	case err != nil:
		log.Warn().Err(err).Msg("the refresh failed")
		result = Result{Error: engine.ErrorText(err)}
	}
	r.noteUnavailable(c.Task, "", 0)
	if err := r.release(ending, c, result); err != nil {
		// The entry is in the queue, and is refreshed once more when the claim has expired.
		log.Warn().Err(err).Msg("the end of a refresh could not be written")
		return
	}
	r.wake()
}

// setRunning notes what ends the work on a claim; nil says that the work has ended.
func (r *Refresher) setRunning(epoch int64, stop context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stop == nil {
		delete(r.running, epoch)
		return
	}
	r.running[epoch] = stop
}

func (r *Refresher) runningClaims() map[int64]context.CancelCauseFunc {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.running)
}

// stopLost ends work whose claim is gone, as it is of a table that was suspended because its owner has lost the right
// to it: the next heartbeat would notice only after HeartbeatInterval. The claims are read after the work was noted.
func stopLost(working map[int64]context.CancelCauseFunc, held []Claim) {
	for _, c := range held {
		delete(working, c.Epoch)
	}
	for _, stop := range working {
		stop(store.ErrClaimLost)
	}
}

// release ends a claim; a store that is away for a moment is asked again.
func (r *Refresher) release(ctx context.Context, c Claim, result Result) error {
	for {
		err := r.releases.release(ctx, c, result)
		if err == nil || errors.Is(err, store.ErrClaimLost) || !pause(ctx, nil, time.Second) {
			return err
		}
	}
}

// execute refreshes; a panic of one table is the failure of that table.
func (r *Refresher) execute(ctx context.Context, c Claim, prove func(context.Context) error) (_ Result,
	err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("refreshing %s panicked: %v", c.Table, p)
		}
	}()
	return r.opts.Work(ctx, c, prove)
}

// heartbeat keeps a claim while its work lasts.
type heartbeat struct {
	r     *Refresher
	claim Claim
	mu    sync.Mutex
	lease *ClaimLease
}

func (h *heartbeat) expires() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease.Expires()
}

// prove renews the claim now. It fails when the claim is lost, and when it has not been heard of for too long.
func (h *heartbeat) prove(ctx context.Context) error {
	sent := time.Now()
	if !sent.Before(h.expires()) {
		return errHeartbeatLost
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := h.r.opts.Store.RenewRefresh(ctx, h.claim, h.r.opts.ClaimTTL); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lease.Confirm(sent)
	return nil
}

// beat renews the claim until ctx ends, and stops the work when the claim is lost or silent.
func (h *heartbeat) beat(ctx context.Context, stop context.CancelCauseFunc) {
	wait := HeartbeatInterval(h.r.opts.ClaimTTL)
	for {
		// One heartbeat that takes long must not make the holder stop late.
		if !pause(ctx, nil, min(wait, max(time.Until(h.expires()), 0))) {
			return
		}
		if !time.Now().Before(h.expires()) {
			stop(errHeartbeatLost)
			return
		}
		wait = HeartbeatInterval(h.r.opts.ClaimTTL)
		beating, cancel := context.WithDeadline(ctx, h.expires())
		err := h.prove(beating)
		cancel()
		switch {
		case errors.Is(err, store.ErrClaimLost), errors.Is(err, errHeartbeatLost):
			stop(err)
			return
		case err != nil:
			wait = time.Second
		}
	}
}
