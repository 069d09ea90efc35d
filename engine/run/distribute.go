package run

import (
	"math"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

const (
	// reduceTimeout is how long others wait for one that is to bear less. Then they share what it leaves them.
	reduceTimeout = 5 * time.Second
	// rateEpsilon is within what two rates are the same.
	rateEpsilon = 1e-9
)

// possibleLoad is what a run worker may bear of one kind of load: it follows one of the things that it was
// told, and nobody knows which until it says so.
type possibleLoad struct {
	// targets begins with the most that it may bear; each further one is less, and later. Empty is no load.
	targets []sentTarget
}

// sentTarget is a load that a run worker was told.
type sentTarget struct {
	load     float64
	sequence int64
	sentAt   time.Time
	ramp     time.Duration
	// effectiveAt is when it is in force, zero before the run worker has said that it follows it.
	effectiveAt time.Time
}

// addTarget takes what the run worker is told. It makes what was less, and not in force yet, no matter.
func (b *possibleLoad) addTarget(t sentTarget) {
	b.prune(t.sentAt)
	for len(b.targets) > 0 && b.targets[len(b.targets)-1].load <= t.load {
		b.targets = b.targets[:len(b.targets)-1]
	}
	b.targets = append(b.targets, t)
}

// acknowledge takes that the run worker has followed all events up to one.
func (b *possibleLoad) acknowledge(sequence int64, now time.Time) {
	b.prune(now)
	until := now
	for i := range b.targets {
		t := &b.targets[i]
		if t.sequence <= sequence && t.effectiveAt.IsZero() {
			t.effectiveAt = now.Add(t.ramp)
			until = t.effectiveAt
		}
	}
	// What is not in force yet is cut short by what follows it, and goes on from where it is.
	for i := range b.targets {
		if t := &b.targets[i]; t.effectiveAt.After(now) && t.effectiveAt.Before(until) {
			t.effectiveAt = until
		}
	}
	b.prune(now)
}

// prune forgets what the run worker bears no longer.
func (b *possibleLoad) prune(now time.Time) {
	for i := len(b.targets) - 1; i > 0; i-- {
		if t := b.targets[i]; !t.effectiveAt.IsZero() && !now.Before(t.effectiveAt) {
			b.targets = b.targets[i:]
			return
		}
	}
}

// upperBound is the most that it may bear now.
func (b *possibleLoad) upperBound(now time.Time) float64 {
	b.prune(now)
	if len(b.targets) == 0 {
		return 0
	}
	return b.targets[0].load
}

// overdue reports whether it should have followed by now, and has not.
func (b *possibleLoad) overdue(now time.Time) bool {
	b.prune(now)
	return len(b.targets) > 1 && now.Sub(b.targets[1].sentAt) > reduceTimeout+b.targets[1].ramp
}

// RecordSent takes an event for the run worker that is about to be stored and sent.
func (w *Worker) RecordSent(e engine.Event) {
	if e.Type != engine.EventSetWorkerTarget {
		return
	}
	t := sentTarget{sequence: e.SequenceID, sentAt: e.CreatedAt.Time,
		ramp: time.Duration(e.Data.RampSeconds * float64(time.Second))}
	if n := e.Data.TargetConnections; n != nil {
		t.load = float64(*n)
		w.assigned.connections.addTarget(t)
	}
	if rate := e.Data.TargetQPS; rate != nil {
		t.load = *rate
		w.assigned.rate.addTarget(t)
	}
}

// Acknowledge takes that the run worker has followed all events up to one of the owner in an epoch, 0 where its node
// does not say whose they are. It reports whether it may bear less than before.
func (w *Worker) Acknowledge(epoch, sequence int64, now time.Time) (less bool) {
	if epoch != 0 && epoch < w.assigned.epoch {
		return false // events of another server have these numbers too
	}
	connections, rate, doubt := w.assigned.connections.upperBound(
		now,
	), w.assigned.rate.upperBound(
		now,
	), w.assigned.isUnknown()
	w.assigned.acked = max(w.assigned.acked, sequence)
	w.assigned.connections.acknowledge(sequence, now)
	w.assigned.rate.acknowledge(sequence, now)
	return w.assigned.connections.upperBound(now) < connections || w.assigned.rate.upperBound(now) < rate ||
		doubt && !w.assigned.isUnknown()
}

// assignedLoad is what a run worker may bear.
type assignedLoad struct {
	connections, rate possibleLoad
	// acked is the last event that it has said to follow. Before it follows the one that another server has stored
	// last, and says so in the epoch of this one, it may bear what nobody knows here.
	acked, unknownBefore, epoch int64
}

// isUnknown reports whether nobody knows what it bears.
func (b *assignedLoad) isUnknown() bool { return b.acked < b.unknownBefore }

// initTargets takes what a run worker has from the start.
func (w *Worker) initTargets() {
	w.assigned.connections.addTarget(sentTarget{load: float64(w.Connections)})
	if w.Rate != nil {
		w.assigned.rate.addTarget(sentTarget{load: *w.Rate})
	}
}

// MarkUnknown says that another server has told the run workers up to that event, as far as is stored, and who of them
// follows is not known. This one speaks in an epoch of its own.
func (c *WorkerTable) MarkUnknown(epoch, sequence int64) {
	for _, w := range c.Workers {
		w.assigned.epoch, w.assigned.unknownBefore, w.assigned.acked = epoch, sequence, -1
	}
}

// HasUnknownLoad reports whether somebody may bear what nobody knows. Until that is over nobody may take more than it
// has: the server before may have told more than it has stored.
func (c *WorkerTable) HasUnknownLoad() bool {
	for _, w := range c.Workers {
		if w.assigned.isUnknown() && (!w.State.Status.Ended() || c.LostWorkers.HoldsLoad(w.ID)) {
			return true
		}
	}
	return false
}

// SharedLoad is what run workers share.
type SharedLoad struct {
	// Connections are those of all, at most Each on one of them. Few is how many share so many: the first
	// ones, and the others have none; nil is all.
	Connections, MaxPerWorker int
	Sharers                   func(connections int) int
	// Rate is that of all; nil is none.
	Rate *float64
	// NoIncrease lets nobody have more than before.
	NoIncrease bool
}

// Distribute gives run workers equal parts of a load, so that all never bear more than it together, however
// late one of them hears of it: who has too much is told so first, and who has too little has more
// when those have said that they follow. What lost ones may still bear belongs to nobody, nor does what
// other run workers keep, or what one bears that does not follow for a while. It says whose part has
// changed, and whether somebody is to have more later.
func (c *WorkerTable) Distribute(now time.Time, workers []*Worker, load SharedLoad) (changed []*Worker, owed bool) {
	connections, rate := c.HeldByLost(now)
	apart := c.excluded(workers)
	for _, w := range apart {
		connections += int(w.assigned.connections.upperBound(now))
		rate += w.assigned.rate.upperBound(now)
	}
	rooms, rates := make([]shareInput, len(workers)), make([]shareInput, len(workers))
	for i, w := range workers {
		rooms[i] = newShareInput(float64(w.Connections), &w.assigned.connections, w, now)
		told := 0.0
		if w.Rate != nil {
			told = *w.Rate
		}
		rates[i] = newShareInput(told, &w.assigned.rate, w, now)
	}
	for _, w := range c.Workers {
		switch {
		case w.Retiring && !w.State.Status.Ended():
			rooms = append(rooms, newShareInput(0, &w.assigned.connections, w, now))
			rates = append(rates, newShareInput(0, &w.assigned.rate, w, now))
		case c.LostWorkers.HoldsLoad(w.ID), slices.Contains(apart, w):
			gone := shareInput{leaving: true, unknown: w.assigned.isUnknown()} // what it bears is held
			rooms, rates = append(rooms, gone), append(rates, gone)
		}
	}
	own, owed := divide(float64(load.Connections), float64(connections), rooms, load.NoIncrease, load.spread)
	ownRates := make([]float64, len(own))
	if load.Rate != nil {
		var more bool
		ownRates, more = divide(*load.Rate, rate, rates, load.NoIncrease, splitEvenly)
		owed = owed || more
	}
	for i, w := range workers {
		n, r := int(own[i]), ownRates[i]
		other := load.Rate != nil && (w.Rate == nil || math.Abs(r-*w.Rate) > rateEpsilon*max(r, *w.Rate))
		if other || n != w.Connections {
			changed = append(changed, w)
		}
		w.Connections = n
		if other {
			w.Rate = &r
		}
	}
	return changed, owed
}

// excluded are those that neither share a load nor leave, and keep what they bear.
func (c *WorkerTable) excluded(sharing []*Worker) []*Worker {
	var out []*Worker
	for _, w := range c.ActiveWorkers() {
		if !slices.Contains(sharing, w) {
			out = append(out, w)
		}
	}
	return out
}

// SpareConnections is what of a number of connections nobody can bear now; none while that is not known.
func (c *WorkerTable) SpareConnections(now time.Time, connections int) int {
	if c.HasUnknownLoad() {
		return 0
	}
	held, _ := c.HeldByLost(now)
	for _, w := range c.Workers {
		if !w.State.Status.Ended() {
			held += int(w.assigned.connections.upperBound(now))
		}
	}
	return max(connections-held, 0)
}

// spread gives the connections to as few as the load says.
func (l SharedLoad) spread(free float64, n int) []float64 {
	shares, few := make([]float64, n), n
	if l.Sharers != nil {
		few = min(l.Sharers(int(free)), n)
	}
	if l.MaxPerWorker > 0 {
		free = min(free, float64(few*l.MaxPerWorker))
	}
	if few > 0 {
		for i, own := range engine.Spread(int(free), few) {
			shares[i] = float64(own)
		}
	}
	return shares
}

func splitEvenly(free float64, n int) []float64 {
	shares := make([]float64, n)
	for i := range shares {
		shares[i] = free / float64(n)
	}
	return shares
}

// shareInput is a run worker as a load is divided: what it was told, and the most that it may bear.
type shareInput struct {
	target, upperBound float64
	// overdue is one that does not follow, doubt one of which nobody knows; who leaves has no part.
	overdue, unknown, leaving bool
}

func newShareInput(told float64, b *possibleLoad, w *Worker, now time.Time) shareInput {
	return shareInput{
		target:     told,
		upperBound: b.upperBound(now),
		overdue:    b.overdue(now),
		unknown:    w.assigned.isUnknown(),
		leaving:    w.Retiring,
	}
}

// divide says what each has of a total, of which so much is held by others; owed is that somebody is to
// have more later. even makes so many parts of what is free.
func divide(total, held float64, all []shareInput, fall bool, even func(free float64, n int) []float64) (own []float64,
	owed bool) {
	sharing, carrying := 0, 0
	for _, b := range all {
		switch {
		case b.overdue:
			held += b.upperBound
			owed = true
		case !b.leaving:
			sharing++
		}
		if !b.leaving {
			carrying++
		}
	}
	shares, parts := even(max(total-held, 0), sharing), even(total, carrying)
	own = make([]float64, len(all))
	wait, next, part := fall, 0, 0
	for i, b := range all {
		switch {
		case b.leaving:
		case b.overdue:
			own[i] = min(b.target, parts[part])
		default:
			own[i] = shares[next]
			next++
		}
		if !b.leaving {
			part++
		}
		wait = wait || b.unknown || !b.overdue && b.upperBound > own[i]*(1+rateEpsilon)
	}
	for i, b := range all {
		if wait && !b.overdue && !b.leaving && own[i] > b.target {
			own[i], owed = b.target, true
		}
	}
	return own, owed
}

// ShareEqually gives run workers that follow their load by themselves equal parts of it: what they are told is a
// record of what they do.
func ShareEqually(workers []*Worker, load SharedLoad) {
	for i, n := range load.spread(float64(load.Connections), len(workers)) {
		workers[i].Connections = int(n)
		if load.Rate != nil {
			own := *load.Rate / float64(len(workers))
			workers[i].Rate = &own
		}
	}
}
