package run

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// remoteWorker is a run worker where it is: what it bears, and what is on its way to it and from it.
type remoteWorker struct {
	*Worker
	connections, rate slope
	epoch, sequence   int64
	stateEpoch        int64 // the epoch of the last absolute state
	to                []delivery[serverMessage]
	from              []delivery[ackMessage]
	cutAt             time.Time // from when nothing arrives, zero before
}

// serverMessage is what a server says: a target, or how everything stands; atMost as protocol.RunState says.
type serverMessage struct {
	epoch, sequence   int64
	connections, rate float64
	ramp              time.Duration
	state, atMost     bool
}

// ackMessage is what a run worker says.
type ackMessage struct{ epoch, sequence int64 }

// storedState is what the store knows.
type storedState struct {
	sequence    int64
	connections map[string]int
	rates       map[string]float64
}

type delivery[T any] struct {
	at      time.Time
	message T
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
// at once and now slowly; another server takes over, which knows what is stored, and not what else the one before
// has told; and yet all together never bear more than the highest load that any of them can still follow. When nothing
// changes any more, each has its part.
func TestALoadIsNeverBorneTwice(t *testing.T) {
	for seed := range uint64(60) {
		loadSimulation{t: t, seed: seed, chance: rand.New(rand.NewPCG(seed, 7))}.live()
	}
}

type loadSimulation struct {
	t           *testing.T
	seed        uint64
	chance      *rand.Rand
	now         time.Time
	workerTable *WorkerTable
	all         []*remoteWorker
	// epoch is that of the server; known is what the store knew lately, the oldest first.
	epoch        int64
	storedStates []storedState
	sequence     int64
	connections  int
	rate         float64
	// changed is when the load last became less.
	changed          time.Time
	increasesPending bool
}

const (
	detectAfter = 60 * time.Second // until a run worker that is cut off is given up
	stopAfter   = 5 * time.Second  // from then until it must have stopped
)

func (b loadSimulation) live() {
	b.now, b.workerTable, b.connections, b.rate = time.Unix(1_000_000, 0), &WorkerTable{}, 24, 120
	b.join(24, 120)
	for range 3000 {
		b.now = b.now.Add(50 * time.Millisecond)
		b.step()
		connections, rate := b.totalLoad()
		if b.now.Sub(b.changed) > detectAfter+stopAfter+20*time.Second &&
			(connections > float64(b.connections)+1e-6 || rate > b.rate+1e-6) {
			b.t.Fatalf(
				"seed %d: %d run workers bear %v of %d connections and %v/s of %v/s",
				b.seed,
				len(b.workerTable.ActiveWorkers()),
				connections,
				b.connections,
				rate,
				b.rate,
			)
		}
	}
	for range 2000 { // nothing happens any more
		b.now = b.now.Add(50 * time.Millisecond)
		b.repeat()
		b.deliver()
		b.lose()
		b.divide()
	}
	carrying := b.workerTable.ActiveWorkers()
	shares := engine.Spread(b.connections, max(len(carrying), 1))
	for i, w := range carrying {
		f := b.nodeOf(w)
		if part := b.rate / float64(len(carrying)); math.Abs(f.rate.to-part) > 1e-6 || int(f.connections.to) != shares[i] ||
			w.Connections != shares[i] {
			b.t.Fatalf("seed %d: one of %d bears %v/s and %v connections, not %v/s and %d", b.seed, len(carrying), f.rate.to,
				f.connections.to, part, shares[i])
		}
	}
}

func (b *loadSimulation) nodeOf(w *Worker) *remoteWorker {
	return b.all[slices.IndexFunc(b.all, func(f *remoteWorker) bool { return f.Worker == w })]
}

// totalLoad is what all bear that have not stopped.
func (b *loadSimulation) totalLoad() (connections, rate float64) {
	for _, f := range b.all {
		if gone := !f.cutAt.IsZero() &&
			b.now.Sub(f.cutAt) >= detectAfter+stopAfter; gone ||
			f.cutAt.IsZero() && f.State.Status.Ended() {
			continue
		}
		connections += f.connections.at(b.now)
		rate += f.rate.at(b.now)
	}
	return connections, rate
}

func (b *loadSimulation) step() {
	carrying := b.workerTable.ActiveWorkers()
	some := carrying[b.chance.IntN(len(carrying))]
	switch n := b.chance.IntN(400); {
	case n < 4 && len(carrying) < 6:
		b.join(min(b.chance.IntN(8), b.workerTable.SpareConnections(b.now, b.connections)), 0)
	case n < 6 && len(carrying) > 1: // it is not needed any more
		some.Retiring, some.Connections, some.Rate = true, 0, new(float64)
		b.sendTargets(0, some)
		b.storedStates = nil
	case n < 7 && len(carrying) > 1:
		if f := b.nodeOf(some); f.cutAt.IsZero() {
			f.cutAt = b.now
		}
	case n < 8 && b.now.Sub(b.changed) > 3*detectAfter: // long after the last one, so that both can be judged
		b.connections, b.rate, b.changed = 12+b.chance.IntN(24), 60+60*b.chance.Float64(), b.now
	case n < 9: // another server goes on: it knows what is stored, and not who has heard it
		old, knows := b.workerTable, b.stored()
		if b.storedStates = append(b.storedStates, knows); len(b.storedStates) > 0 {
			knows = b.storedStates[b.chance.IntN(len(b.storedStates))]
		}
		b.workerTable, b.storedStates, b.sequence = &WorkerTable{}, nil, knows.sequence
		b.epoch++
		for _, w := range old.Workers {
			rate := knows.rates[w.ID]
			again := &Worker{ID: w.ID, Connections: knows.connections[w.ID], Rate: &rate, Retiring: w.Retiring, State: w.State,
				Dead: w.Dead, LastSeen: w.LastSeen}
			b.nodeOf(w).Worker = again
			b.workerTable.Register(again)
		}
		b.workerTable.MarkUnknown(b.epoch, b.sequence)
		b.workerTable.RestoreAfterTakeover(b.now, true)
		b.state()
	}
	b.repeat()
	b.deliver()
	b.lose()
	if b.chance.IntN(4) == 0 {
		b.divide()
	}
}

func (b *loadSimulation) join(connections int, rate float64) {
	w := &Worker{ID: fmt.Sprint(len(b.all)), Connections: connections, Rate: &rate}
	w.State.Status = engine.WorkerRunning
	b.workerTable.Register(w)
	b.all = append(b.all, &remoteWorker{Worker: w, connections: slope{to: float64(connections)}, rate: slope{to: rate},
		epoch: b.epoch, stateEpoch: b.epoch})
	b.storedStates = nil // it is stored before it joins, and what was told before it too
}

// stored is what has been told.
func (b *loadSimulation) stored() storedState {
	s := storedState{b.sequence, map[string]int{}, map[string]float64{}}
	for _, w := range b.workerTable.Workers {
		s.connections[w.ID], s.rates[w.ID] = w.Connections, *w.Rate
	}
	return s
}

// state tells all how everything stands, and repeat does so each 5 s.
func (b *loadSimulation) state() {
	for _, w := range b.workerTable.Workers {
		f := b.nodeOf(w)
		f.to = append(
			f.to,
			delivery[serverMessage]{b.deliveryTime(), serverMessage{epoch: b.epoch, sequence: b.sequence, state: true,
				connections: float64(w.Connections), rate: *w.Rate, atMost: b.workerTable.HasUnknownLoad()}},
		)
	}
}

func (b *loadSimulation) repeat() {
	if b.now.UnixMilli()%5000 == 0 {
		b.state()
	}
}

// lose gives up who has been cut off for long, and forgets its load when it must have stopped.
func (b *loadSimulation) lose() {
	for _, f := range b.all {
		if !f.cutAt.IsZero() && b.now.Sub(f.cutAt) >= detectAfter && !f.State.Status.Ended() {
			f.Dead, f.LastSeen = true, f.cutAt
			if f.State.Status = engine.WorkerDead; len(b.workerTable.ActiveWorkers()) == 0 {
				b.join(0, 0)
			}
			b.workerTable.LostWorkers.MarkLost(f.ID, b.now.Add(stopAfter))
			b.storedStates = nil
		}
		if retired := f.Retiring && f.cutAt.IsZero() && f.epoch == b.epoch && f.sequence >= b.sequence; retired {
			f.State.Status = engine.WorkerCompleted
		}
	}
	b.workerTable.ReleaseExpired(b.now)
}

func (b *loadSimulation) divide() {
	before := b.stored()
	changed, owed := b.workerTable.Distribute(
		b.now,
		b.workerTable.ActiveWorkers(),
		SharedLoad{Connections: b.connections, Rate: &b.rate},
	)
	if b.storedStates = append(b.storedStates, before); len(b.storedStates) > 3 {
		b.storedStates = b.storedStates[1:]
	}
	ramp := time.Duration(b.chance.IntN(2)) * time.Second
	b.sendTargets(ramp, changed...)
	b.increasesPending = owed
}

func (b *loadSimulation) sendTargets(ramp time.Duration, workers ...*Worker) {
	for _, w := range workers {
		f, n, own := b.nodeOf(w), w.Connections, *w.Rate
		b.sequence++
		e := engine.Event{Type: engine.EventSetWorkerTarget, SequenceID: b.sequence, CreatedAt: engine.At(b.now),
			Data: engine.EventData{TargetConnections: &n, TargetQPS: &own, RampSeconds: ramp.Seconds()}}
		w.RecordSent(e)
		f.to = append(
			f.to,
			delivery[serverMessage]{b.deliveryTime(), serverMessage{epoch: b.epoch, sequence: b.sequence, ramp: ramp,
				connections: float64(n), rate: own, atMost: b.workerTable.HasUnknownLoad()}},
		)
	}
}

// deliveryTime is when something arrives: soon, or after some seconds.
func (b *loadSimulation) deliveryTime() time.Time {
	d := time.Duration(b.chance.IntN(200)) * time.Millisecond
	if b.chance.IntN(10) == 0 {
		d = time.Duration(b.chance.IntN(15)) * time.Second
	}
	return b.now.Add(d)
}

func (b *loadSimulation) deliver() {
	for _, f := range b.all {
		if !f.cutAt.IsZero() {
			continue
		}
		for len(f.to) > 0 && !f.to[0].at.After(b.now) {
			m := f.to[0].message
			if f.to = f.to[1:]; f.receive(m, b.now) {
				b.report(f)
			}
		}
		if len(f.from) == 0 && b.chance.IntN(20) == 0 { // each second it says what it has followed
			b.report(f)
		}
		for len(f.from) > 0 && !f.from[0].at.After(b.now) {
			f.Acknowledge(f.from[0].message.epoch, f.from[0].message.sequence, b.now)
			f.from = f.from[1:]
		}
	}
}

// receive follows what a server says, as package worker does.
func (f *remoteWorker) receive(m serverMessage, now time.Time) bool {
	if m.epoch > f.epoch {
		f.epoch, f.sequence = m.epoch, 0
	}
	if m.epoch < f.epoch || m.sequence < f.sequence || !m.state && m.sequence == f.sequence {
		return false
	}
	if f.sequence = m.sequence; m.state {
		f.stateEpoch = m.epoch
	}
	if m.atMost { // at once, also if it is on its way there
		f.connections = slope{to: min(m.connections, f.connections.to)}
		f.rate = slope{to: min(m.rate, f.rate.to)}
		return true
	}
	if m.connections != f.connections.to {
		f.connections = slope{f.connections.at(now), m.connections, now, m.ramp}
	}
	if m.rate != f.rate.to {
		f.rate = slope{f.rate.at(now), m.rate, now, m.ramp}
	}
	return true
}

// report has it say what it has followed: nothing of an owner of which it has not heard how everything stands.
func (b *loadSimulation) report(f *remoteWorker) {
	m := ackMessage{f.stateEpoch, f.sequence}
	if f.stateEpoch < f.epoch {
		m.sequence = 0
	}
	f.from = append(f.from, delivery[ackMessage]{b.deliveryTime(), m})
}

// TestARampThatIsCutShortGoesOnFromWhereItIs: what it was told first it has reached when it has reached the last.
func TestARampThatIsCutShortGoesOnFromWhereItIs(t *testing.T) {
	begin := time.Unix(1_000_000, 0)
	after := func(d time.Duration) time.Time { return begin.Add(d) }
	var b possibleLoad
	b.addTarget(sentTarget{load: 8})
	b.addTarget(sentTarget{load: 5, sequence: 1, sentAt: begin, ramp: time.Second})
	b.acknowledge(1, begin)
	b.addTarget(sentTarget{load: 4, sequence: 2, sentAt: after(900 * time.Millisecond), ramp: time.Second})
	b.acknowledge(2, after(900*time.Millisecond)) // at 5.3
	for _, tc := range []struct {
		after time.Duration
		most  float64
	}{{time.Second, 8}, {1800 * time.Millisecond, 8}, {1900 * time.Millisecond, 4}} {
		if most := b.upperBound(after(tc.after)); most != tc.most {
			t.Errorf("%v after the first it may bear %v, not %v", tc.after, most, tc.most)
		}
	}
}

// TestWhoIsApartKeepsWhatItBears: one of three does not share, as one that has not said yet that it runs. The
// others have what it leaves them, and more once it has said that it follows less.
func TestWhoIsApartKeepsWhatItBears(t *testing.T) {
	now, rate := time.Unix(1_000_000, 0), 70.0
	load := SharedLoad{Connections: 7, Rate: &rate}
	third := func(id string, connections int, own float64) *Worker {
		w := &Worker{ID: id, Connections: connections, Rate: &own}
		w.State.Status = engine.WorkerRunning
		return w
	}
	a, b, apart := third("a", 3, 25), third("b", 2, 25), third("c", 2, 20)
	apart.State.Status = engine.WorkerReady
	var c WorkerTable
	for _, w := range []*Worker{a, b, apart} {
		c.Register(w)
	}
	has := func(when string, connections int, rate float64) {
		t.Helper()
		c.Distribute(now, []*Worker{a, b}, load)
		if a.Connections+b.Connections != connections || math.Abs(*a.Rate+*b.Rate-rate) > 1e-6 {
			t.Errorf("%s: %d and %d connections, %v/s and %v/s, not %d and %v/s", when, a.Connections, b.Connections, *a.Rate,
				*b.Rate, connections, rate)
		}
	}
	has("while it bears its part", 5, 50)
	apart.Connections, apart.Rate = 0, new(float64)
	apart.RecordSent(engine.Event{Type: engine.EventSetWorkerTarget, SequenceID: 1, CreatedAt: engine.At(now),
		Data: engine.EventData{TargetConnections: &apart.Connections, TargetQPS: apart.Rate}})
	has("before it has heard", 5, 50)
	apart.Acknowledge(1, 1, now)
	for _, w := range []*Worker{a, b} { // who bears more than its new part says so before the other has more
		w.Acknowledge(1, 1, now)
	}
	has("when it bears nothing", 7, 70)
}

// TestWhoAnswersAnotherServerHasNotAnsweredThisOne: events of the server before have higher numbers than the last one
// that is stored, and a run worker that follows them may bear what nobody here knows. A node of an earlier version does
// not say whose events it follows, and is believed.
func TestWhoAnswersAnotherServerHasNotAnsweredThisOne(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for name, tc := range map[string]struct {
		epoch, sequence int64
		doubted         bool
	}{
		"another server's":      {1, 12, true},
		"none of this one yet":  {2, 0, true},
		"this server's":         {2, 10, false},
		"of an earlier version": {0, 10, false},
	} {
		w := &Worker{ID: "a", Connections: 3}
		w.State.Status = engine.WorkerRunning
		var c WorkerTable
		c.Register(w)
		c.MarkUnknown(2, 10)
		if less := w.Acknowledge(tc.epoch, tc.sequence, now); c.HasUnknownLoad() != tc.doubted || less == tc.doubted {
			t.Errorf("%s: doubted %t, may bear less %t", name, c.HasUnknownLoad(), less)
		}
		if w.State.Status = engine.WorkerDead; c.HasUnknownLoad() {
			t.Errorf("%s: it is gone, and bears nothing", name)
		}
		c.LostWorkers.MarkLost(w.ID, now.Add(time.Minute))
		if c.HasUnknownLoad() != tc.doubted {
			t.Errorf("%s: it is gone, and may bear something for a minute", name)
		}
	}
}
