package crew

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// far is a run worker where it is: what it bears, and what is on its way to it and from it.
type far struct {
	*Worker
	connections, rate slope
	sequence          int64
	to                []arriving[engine.Event]
	from              []arriving[int64]
	cut               time.Time // from when nothing arrives, zero before
}

type arriving[T any] struct {
	at time.Time
	m  T
}

// slope is a load that goes from one value to another.
type slope struct {
	from, to float64
	since    time.Time
	ramp     time.Duration
}

func (s slope) at(now time.Time) float64 {
	if part := float64(now.Sub(s.since)) / float64(s.ramp); s.ramp > 0 && part < 1 {
		return s.from + (s.to-s.from)*part
	}
	return s.to
}

// TestALoadIsNeverBorneTwice: run workers join, retire, are lost and come late to hear; the load changes, now
// at once and now slowly; another server takes over; and yet all together never bear more than the highest
// load that any of them can still follow. When nothing changes any more, each has its part.
func TestALoadIsNeverBorneTwice(t *testing.T) {
	for seed := range uint64(60) {
		borne{t: t, seed: seed, chance: rand.New(rand.NewPCG(seed, 7))}.live()
	}
}

type borne struct {
	t           *testing.T
	seed        uint64
	chance      *rand.Rand
	now         time.Time
	crew        *Crew
	all         []*far
	sequence    int64
	connections int
	rate        float64
	// changed is when the load last became less.
	changed time.Time
	owed    bool
}

const (
	noticed = 60 * time.Second // until a run worker that is cut off is given up
	stopped = 5 * time.Second  // from then until it must have stopped
)

func (b borne) live() {
	b.now, b.crew, b.connections, b.rate = time.Unix(1_000_000, 0), &Crew{}, 24, 120
	b.join(24, 120)
	for range 3000 {
		b.now = b.now.Add(50 * time.Millisecond)
		b.step()
		connections, rate := b.borne()
		if b.now.Sub(b.changed) > noticed+stopped+20*time.Second &&
			(connections > float64(b.connections)+1e-6 || rate > b.rate+1e-6) {
			b.t.Fatalf("seed %d: %d run workers bear %v of %d connections and %v/s of %v/s", b.seed, len(b.crew.Carrying()),
				connections, b.connections, rate, b.rate)
		}
	}
	for range 2000 { // nothing happens any more
		b.now = b.now.Add(50 * time.Millisecond)
		b.deliver()
		b.lose()
		b.divide()
	}
	carrying := b.crew.Carrying()
	shares := engine.Spread(b.connections, max(len(carrying), 1))
	for i, w := range carrying {
		f := b.of(w)
		if part := b.rate / float64(len(carrying)); math.Abs(f.rate.to-part) > 1e-6 || int(f.connections.to) != shares[i] ||
			w.Connections != shares[i] {
			b.t.Fatalf("seed %d: one of %d bears %v/s and %v connections, not %v/s and %d", b.seed, len(carrying), f.rate.to,
				f.connections.to, part, shares[i])
		}
	}
}

func (b *borne) of(w *Worker) *far {
	return b.all[slices.IndexFunc(b.all, func(f *far) bool { return f.Worker == w })]
}

// borne is what all bear that have not stopped.
func (b *borne) borne() (connections, rate float64) {
	for _, f := range b.all {
		if gone := !f.cut.IsZero() && b.now.Sub(f.cut) >= noticed+stopped; gone || f.cut.IsZero() && f.State.Status.Ended() {
			continue
		}
		connections += f.connections.at(b.now)
		rate += f.rate.at(b.now)
	}
	return connections, rate
}

func (b *borne) step() {
	carrying := b.crew.Carrying()
	some := carrying[b.chance.IntN(len(carrying))]
	switch n := b.chance.IntN(400); {
	case n < 4 && len(carrying) < 6:
		b.join(min(b.chance.IntN(8), b.crew.Spare(b.now, b.connections)), 0)
	case n < 6 && len(carrying) > 1: // it is not needed any more
		some.Retiring, some.Connections, some.Rate = true, 0, new(float64)
		b.tell(0, some)
	case n < 7 && len(carrying) > 1:
		if f := b.of(some); f.cut.IsZero() {
			f.cut = b.now
		}
	case n < 8 && b.now.Sub(b.changed) > 3*noticed: // long after the last one, so that both can be judged
		b.connections, b.rate, b.changed = 12+b.chance.IntN(24), 60+60*b.chance.Float64(), b.now
	case n < 9: // another server goes on: it knows what was told, and not who has heard it
		old := b.crew
		b.crew = &Crew{Losses: old.Losses}
		for _, w := range old.Workers {
			again := &Worker{ID: w.ID, Connections: w.Connections, Rate: w.Rate, Retiring: w.Retiring, State: w.State}
			b.of(w).Worker = again
			b.crew.Enlist(again)
		}
		b.crew.TakenOver(b.sequence)
	}
	b.deliver()
	b.lose()
	if b.chance.IntN(4) == 0 {
		b.divide()
	}
}

func (b *borne) join(connections int, rate float64) {
	w := &Worker{ID: fmt.Sprint(len(b.all)), Connections: connections, Rate: &rate}
	w.State.Status = engine.WorkerRunning
	b.crew.Enlist(w)
	b.all = append(b.all, &far{Worker: w, connections: slope{to: float64(connections)}, rate: slope{to: rate}})
}

// lose gives up who has been cut off for long, and forgets its load when it must have stopped.
func (b *borne) lose() {
	for _, f := range b.all {
		if !f.cut.IsZero() && b.now.Sub(f.cut) >= noticed && !f.State.Status.Ended() {
			if f.State.Status = engine.WorkerDead; len(b.crew.Carrying()) == 0 {
				b.join(0, 0)
			}
			b.crew.Losses.Lost(f.ID, b.now.Add(stopped))
		}
		if retired := f.Retiring && f.cut.IsZero() && f.sequence >= b.sequence; retired {
			f.State.Status = engine.WorkerCompleted
		}
	}
	b.crew.Losses.Freed(b.now)
}

func (b *borne) divide() {
	changed, owed := b.crew.Divide(b.now, b.crew.Carrying(), Load{Connections: b.connections, Rate: &b.rate})
	ramp := time.Duration(b.chance.IntN(2)) * time.Second
	b.tell(ramp, changed...)
	b.owed = owed
}

func (b *borne) tell(ramp time.Duration, workers ...*Worker) {
	for _, w := range workers {
		f, n, own := b.of(w), w.Connections, *w.Rate
		b.sequence++
		e := engine.Event{Type: engine.EventSetWorkerTarget, SequenceID: b.sequence, CreatedAt: engine.At(b.now),
			Data: engine.EventData{TargetConnections: &n, TargetQPS: &own, RampSeconds: ramp.Seconds()}}
		w.Sent(e)
		f.to = append(f.to, arriving[engine.Event]{b.later(), e})
	}
}

// later is when something arrives: soon, or after some seconds.
func (b *borne) later() time.Time {
	d := time.Duration(b.chance.IntN(200)) * time.Millisecond
	if b.chance.IntN(10) == 0 {
		d = time.Duration(b.chance.IntN(15)) * time.Second
	}
	return b.now.Add(d)
}

func (b *borne) deliver() {
	for _, f := range b.all {
		if !f.cut.IsZero() {
			continue
		}
		for len(f.to) > 0 && !f.to[0].at.After(b.now) {
			e := f.to[0].m
			f.to, f.sequence = f.to[1:], e.SequenceID
			ramp := time.Duration(e.Data.RampSeconds * float64(time.Second))
			f.connections = slope{f.connections.at(b.now), float64(*e.Data.TargetConnections), b.now, ramp}
			f.rate = slope{f.rate.at(b.now), *e.Data.TargetQPS, b.now, ramp}
			f.from = append(f.from, arriving[int64]{b.later(), f.sequence})
		}
		if len(f.to) == 0 && f.sequence < b.sequence { // the absolute state says no more than it knows
			f.sequence = b.sequence
			f.from = append(f.from, arriving[int64]{b.later(), f.sequence})
		}
		if len(f.from) == 0 && b.chance.IntN(20) == 0 { // each second it says what it has followed
			f.from = append(f.from, arriving[int64]{b.later(), f.sequence})
		}
		for len(f.from) > 0 && !f.from[0].at.After(b.now) {
			f.Follows(f.from[0].m, b.now)
			f.from = f.from[1:]
		}
	}
}

// TestARampThatIsCutShortGoesOnFromWhereItIs: what it was told first it has reached when it has reached the last.
func TestARampThatIsCutShortGoesOnFromWhereItIs(t *testing.T) {
	begin := time.Unix(1_000_000, 0)
	after := func(d time.Duration) time.Time { return begin.Add(d) }
	var b bearing
	b.tell(telling{load: 8})
	b.tell(telling{load: 5, sequence: 1, at: begin, ramp: time.Second})
	b.follows(1, begin)
	b.tell(telling{load: 4, sequence: 2, at: after(900 * time.Millisecond), ramp: time.Second})
	b.follows(2, after(900*time.Millisecond)) // at 5.3
	for _, tc := range []struct {
		after time.Duration
		most  float64
	}{{time.Second, 8}, {1800 * time.Millisecond, 8}, {1900 * time.Millisecond, 4}} {
		if most := b.most(after(tc.after)); most != tc.most {
			t.Errorf("%v after the first it may bear %v, not %v", tc.after, most, tc.most)
		}
	}
}

// TestWhoIsApartKeepsWhatItBears: one of three does not share, as one that has not said yet that it runs. The
// others have what it leaves them, and more once it has said that it follows less.
func TestWhoIsApartKeepsWhatItBears(t *testing.T) {
	now, rate := time.Unix(1_000_000, 0), 70.0
	load := Load{Connections: 7, Rate: &rate}
	third := func(id string, connections int, own float64) *Worker {
		w := &Worker{ID: id, Connections: connections, Rate: &own}
		w.State.Status = engine.WorkerRunning
		return w
	}
	a, b, apart := third("a", 3, 25), third("b", 2, 25), third("c", 2, 20)
	apart.State.Status = engine.WorkerReady
	var c Crew
	for _, w := range []*Worker{a, b, apart} {
		c.Enlist(w)
	}
	has := func(when string, connections int, rate float64) {
		t.Helper()
		c.Divide(now, []*Worker{a, b}, load)
		if a.Connections+b.Connections != connections || math.Abs(*a.Rate+*b.Rate-rate) > 1e-6 {
			t.Errorf("%s: %d and %d connections, %v/s and %v/s, not %d and %v/s", when, a.Connections, b.Connections, *a.Rate,
				*b.Rate, connections, rate)
		}
	}
	has("while it bears its part", 5, 50)
	apart.Connections, apart.Rate = 0, new(float64)
	apart.Sent(engine.Event{Type: engine.EventSetWorkerTarget, SequenceID: 1, CreatedAt: engine.At(now),
		Data: engine.EventData{TargetConnections: &apart.Connections, TargetQPS: apart.Rate}})
	has("before it has heard", 5, 50)
	apart.Follows(1, now)
	for _, w := range []*Worker{a, b} { // who bears more than its new part says so before the other has more
		w.Follows(1, now)
	}
	has("when it bears nothing", 7, 70)
}
