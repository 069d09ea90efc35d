package run

import (
	"math"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

const (
	// patience is how long others wait for one that is to bear less. Then they share what it leaves them.
	patience = 5 * time.Second
	// same is within what two rates are the same.
	same = 1e-9
)

// bearing is what a run worker may bear of one kind of load: it follows one of the things that it was
// told, and nobody knows which until it says so.
type bearing struct {
	// told begins with the most that it may bear; each further one is less, and later. Empty is no load.
	told []telling
}

// telling is a load that a run worker was told.
type telling struct {
	load     float64
	sequence int64
	at       time.Time
	ramp     time.Duration
	// until is when it is in force, zero before the run worker has said that it follows it.
	until time.Time
}

// tell takes what the run worker is told. It makes what was less, and not in force yet, no matter.
func (b *bearing) tell(t telling) {
	b.settle(t.at)
	for len(b.told) > 0 && b.told[len(b.told)-1].load <= t.load {
		b.told = b.told[:len(b.told)-1]
	}
	b.told = append(b.told, t)
}

// follows takes that the run worker has followed all events up to one.
func (b *bearing) follows(sequence int64, now time.Time) {
	b.settle(now)
	until := now
	for i := range b.told {
		t := &b.told[i]
		if t.sequence <= sequence && t.until.IsZero() {
			t.until = now.Add(t.ramp)
			until = t.until
		}
	}
	// What is not in force yet is cut short by what follows it, and goes on from where it is.
	for i := range b.told {
		if t := &b.told[i]; t.until.After(now) && t.until.Before(until) {
			t.until = until
		}
	}
	b.settle(now)
}

// settle forgets what the run worker bears no longer.
func (b *bearing) settle(now time.Time) {
	for i := len(b.told) - 1; i > 0; i-- {
		if t := b.told[i]; !t.until.IsZero() && !now.Before(t.until) {
			b.told = b.told[i:]
			return
		}
	}
}

// most is the most that it may bear now.
func (b *bearing) most(now time.Time) float64 {
	b.settle(now)
	if len(b.told) == 0 {
		return 0
	}
	return b.told[0].load
}

// late reports whether it should have followed by now, and has not.
func (b *bearing) late(now time.Time) bool {
	b.settle(now)
	return len(b.told) > 1 && now.Sub(b.told[1].at) > patience+b.told[1].ramp
}

// Sent takes an event for the run worker that is about to be stored and sent.
func (w *Worker) Sent(e engine.Event) {
	if e.Type != engine.EventSetWorkerTarget {
		return
	}
	t := telling{sequence: e.SequenceID, at: e.CreatedAt.Time,
		ramp: time.Duration(e.Data.RampSeconds * float64(time.Second))}
	if n := e.Data.TargetConnections; n != nil {
		t.load = float64(*n)
		w.bears.connections.tell(t)
	}
	if rate := e.Data.TargetQPS; rate != nil {
		t.load = *rate
		w.bears.rate.tell(t)
	}
}

// Follows takes that the run worker has followed all events up to one of the owner in an epoch, 0 where its node does
// not say whose they are. It reports whether it may bear less than before.
func (w *Worker) Follows(epoch, sequence int64, now time.Time) (less bool) {
	if epoch != 0 && epoch < w.bears.epoch {
		return false // events of another server have these numbers too
	}
	connections, rate, doubt := w.bears.connections.most(now), w.bears.rate.most(now), w.bears.doubt()
	w.bears.followed = max(w.bears.followed, sequence)
	w.bears.connections.follows(sequence, now)
	w.bears.rate.follows(sequence, now)
	return w.bears.connections.most(now) < connections || w.bears.rate.most(now) < rate || doubt && !w.bears.doubt()
}

// bears is what a run worker may bear.
type bears struct {
	connections, rate bearing
	// followed is the last event that it has said to follow. Before it follows the one that another server has stored
	// last, and says so in the epoch of this one, it may bear what nobody knows here.
	followed, unknown, epoch int64
}

// doubt reports whether nobody knows what it bears.
func (b *bears) doubt() bool { return b.followed < b.unknown }

// begin takes what a run worker has from the start.
func (w *Worker) begin() {
	w.bears.connections.tell(telling{load: float64(w.Connections)})
	if w.Rate != nil {
		w.bears.rate.tell(telling{load: *w.Rate})
	}
}

// TakenOver says that another server has told the run workers up to that event, as far as is stored, and who of them
// follows is not known. This one speaks in an epoch of its own.
func (c *Crew) TakenOver(epoch, sequence int64) {
	for _, w := range c.Workers {
		w.bears.epoch, w.bears.unknown, w.bears.followed = epoch, sequence, -1
	}
}

// Doubted reports whether somebody may bear what nobody knows. Until that is over nobody may take more than it has: the
// server before may have told more than it has stored.
func (c *Crew) Doubted() bool {
	for _, w := range c.Workers {
		if w.bears.doubt() && (!w.State.Status.Ended() || c.Losses.Holds(w.ID)) {
			return true
		}
	}
	return false
}

// Load is what run workers share.
type Load struct {
	// Connections are those of all, at most Each on one of them. Few is how many share so many: the first
	// ones, and the others have none; nil is all.
	Connections, Each int
	Few               func(connections int) int
	// Rate is that of all; nil is none.
	Rate *float64
	// Fall lets nobody have more than before.
	Fall bool
}

// Divide gives run workers equal parts of a load, so that all never bear more than it together, however
// late one of them hears of it: who has too much is told so first, and who has too little has more
// when those have said that they follow. What lost ones may still bear belongs to nobody, nor does what
// others of the crew keep, or what one bears that does not follow for a while. It says whose part has
// changed, and whether somebody is to have more later.
func (c *Crew) Divide(now time.Time, workers []*Worker, load Load) (changed []*Worker, owed bool) {
	connections, rate := c.Held(now)
	apart := c.apart(workers)
	for _, w := range apart {
		connections += int(w.bears.connections.most(now))
		rate += w.bears.rate.most(now)
	}
	rooms, rates := make([]bearer, len(workers)), make([]bearer, len(workers))
	for i, w := range workers {
		rooms[i] = bearerOf(float64(w.Connections), &w.bears.connections, w, now)
		told := 0.0
		if w.Rate != nil {
			told = *w.Rate
		}
		rates[i] = bearerOf(told, &w.bears.rate, w, now)
	}
	for _, w := range c.Workers {
		switch {
		case w.Retiring && !w.State.Status.Ended():
			rooms = append(rooms, bearerOf(0, &w.bears.connections, w, now))
			rates = append(rates, bearerOf(0, &w.bears.rate, w, now))
		case c.Losses.Holds(w.ID), slices.Contains(apart, w):
			gone := bearer{leaves: true, doubt: w.bears.doubt()} // what it bears is held
			rooms, rates = append(rooms, gone), append(rates, gone)
		}
	}
	own, owed := divide(float64(load.Connections), float64(connections), rooms, load.Fall, load.spread)
	ownRates := make([]float64, len(own))
	if load.Rate != nil {
		var more bool
		ownRates, more = divide(*load.Rate, rate, rates, load.Fall, evenly)
		owed = owed || more
	}
	for i, w := range workers {
		n, r := int(own[i]), ownRates[i]
		other := load.Rate != nil && (w.Rate == nil || math.Abs(r-*w.Rate) > same*max(r, *w.Rate))
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

// apart are those that neither share a load nor leave, and keep what they bear.
func (c *Crew) apart(sharing []*Worker) []*Worker {
	var out []*Worker
	for _, w := range c.Carrying() {
		if !slices.Contains(sharing, w) {
			out = append(out, w)
		}
	}
	return out
}

// Spare is what of a number of connections nobody can bear now; none while that is not known.
func (c *Crew) Spare(now time.Time, connections int) int {
	if c.Doubted() {
		return 0
	}
	held, _ := c.Held(now)
	for _, w := range c.Workers {
		if !w.State.Status.Ended() {
			held += int(w.bears.connections.most(now))
		}
	}
	return max(connections-held, 0)
}

// spread gives the connections to as few as the load says.
func (l Load) spread(free float64, n int) []float64 {
	shares, few := make([]float64, n), n
	if l.Few != nil {
		few = min(l.Few(int(free)), n)
	}
	if l.Each > 0 {
		free = min(free, float64(few*l.Each))
	}
	if few > 0 {
		for i, own := range engine.Spread(int(free), few) {
			shares[i] = float64(own)
		}
	}
	return shares
}

func evenly(free float64, n int) []float64 {
	shares := make([]float64, n)
	for i := range shares {
		shares[i] = free / float64(n)
	}
	return shares
}

// bearer is a run worker as a load is divided: what it was told, and the most that it may bear.
type bearer struct {
	told, most float64
	// late is one that does not follow, doubt one of which nobody knows; who leaves has no part.
	late, doubt, leaves bool
}

func bearerOf(told float64, b *bearing, w *Worker, now time.Time) bearer {
	return bearer{told: told, most: b.most(now), late: b.late(now), doubt: w.bears.doubt(), leaves: w.Retiring}
}

// divide says what each has of a total, of which so much is held by others; owed is that somebody is to
// have more later. even makes so many parts of what is free.
func divide(total, held float64, all []bearer, fall bool, even func(free float64, n int) []float64) (own []float64,
	owed bool) {
	sharing, carrying := 0, 0
	for _, b := range all {
		switch {
		case b.late:
			held += b.most
			owed = true
		case !b.leaves:
			sharing++
		}
		if !b.leaves {
			carrying++
		}
	}
	shares, parts := even(max(total-held, 0), sharing), even(total, carrying)
	own = make([]float64, len(all))
	wait, next, part := fall, 0, 0
	for i, b := range all {
		switch {
		case b.leaves:
		case b.late:
			own[i] = min(b.told, parts[part])
		default:
			own[i] = shares[next]
			next++
		}
		if !b.leaves {
			part++
		}
		wait = wait || b.doubt || !b.late && b.most > own[i]*(1+same)
	}
	for i, b := range all {
		if wait && !b.late && !b.leaves && own[i] > b.told {
			own[i], owed = b.told, true
		}
	}
	return own, owed
}

// Share gives run workers that follow their load by themselves equal parts of it: what they are told is a
// record of what they do.
func Share(workers []*Worker, load Load) {
	for i, n := range load.spread(float64(load.Connections), len(workers)) {
		workers[i].Connections = int(n)
		if load.Rate != nil {
			own := *load.Rate / float64(len(workers))
			workers[i].Rate = &own
		}
	}
}
