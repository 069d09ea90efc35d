// Package findmaxtest has targets whose limit is known, for tests of the search for it: in virtual time, and as the
// service times of a real one.
package findmaxtest

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Target is a database in virtual time whose limit is known. Its operations wait in one queue for its slots; what they
// take depends on how many there are, and on what the target went through before: its state outlives a step.
type Target struct {
	Slots int
	// Mean is in seconds. Random service times are exponential.
	Mean   float64
	Random bool
	// Slower is by how many times operations take longer with so many in the system; nil for never.
	Slower func(t *Target, inside int) float64
	RNG    *rand.Rand
	// Begins is when the generator begins an operation of an open loop that is due at a time; nil for at once.
	Begins func(due float64) float64
	// noise spreads the times of each operation, and those of each second, by so much in both directions.
	noise float64
	// overloaded is of a target with hysteresis.
	overloaded bool
	// inFlight are the operations of an open loop that a step leaves behind.
	inFlight jobs
	// clock is the target's time, speed that of the second it is in.
	clock, second, speed float64
}

// Kinds are the targets by name. Each has so many slots' worth of work in it at its limit, and serves so many
// operations a second there.
func Kinds() map[string]func(size int, perSecond float64, rng *rand.Rand) *Target {
	slotted := func(size int, perSecond float64, rng *rand.Rand) *Target {
		return &Target{Slots: size, Mean: float64(size) / perSecond, RNG: rng}
	}
	return map[string]func(int, float64, *rand.Rand) *Target{
		"constant slots": slotted,
		"M/M/c": func(size int, perSecond float64, rng *rand.Rand) *Target {
			t := slotted(size, perSecond, rng)
			t.Random = true
			return t
		},
		"cliff": func(size int, perSecond float64, rng *rand.Rand) *Target {
			t := slotted(size, perSecond, rng)
			t.Slots = 10 * size
			t.Slower = func(_ *Target, inside int) float64 {
				if inside > size {
					return 6
				}
				return 1
			}
			return t
		},
		"falling after the peak": func(size int, perSecond float64, rng *rand.Rand) *Target {
			t := slotted(size, perSecond, rng)
			t.Slower = func(_ *Target, inside int) float64 {
				return 1 / max(1-0.5*float64(max(inside-size, 0))/float64(size), 0.2)
			}
			return t
		},
		"hysteresis": func(size int, perSecond float64, rng *rand.Rand) *Target {
			t := slotted(size, perSecond, rng)
			t.Slots = 20 * size
			t.Slower = func(t *Target, inside int) float64 {
				if inside > size {
					t.overloaded = true
				} else if inside < size/2 {
					t.overloaded = false
				}
				if t.overloaded {
					return 3
				}
				return 1
			}
			return t
		},
		"noise of 20 %": func(size int, perSecond float64, rng *rand.Rand) *Target {
			t := slotted(size, perSecond, rng)
			t.noise = 0.2
			return t
		},
	}
}

// Recover forgets what the target went through.
func (t *Target) Recover() { t.inFlight, t.overloaded = nil, false }

// Service is how long an operation takes, in seconds, that is begun at a time with so many in the system.
func (t *Target) Service(now float64, inside int) float64 {
	if second := math.Floor(now); second != t.second || t.speed == 0 {
		t.second, t.speed = second, 1+t.noise*(2*t.RNG.Float64()-1)
	}
	took := t.Mean * t.speed * (1 + t.noise*(2*t.RNG.Float64()-1))
	if t.Random {
		took = t.Mean * t.RNG.ExpFloat64()
	}
	if t.Slower != nil {
		took *= t.Slower(t, inside)
	}
	return took
}

// Seen is what a step's operations took, in milliseconds, and how many ended in each second.
type Seen struct {
	Took         []float64
	PerSecond    []float64
	Dropped, Due int64
	from, to     float64
}

func newSeen(from, to float64) *Seen {
	return &Seen{from: from, to: to, PerSecond: make([]float64, int(math.Ceil(to-from)))}
}

func (s *Seen) add(begun, ended float64) {
	if ended >= s.from && ended < s.to {
		s.Took = append(s.Took, (ended-begun)*1000)
		s.PerSecond[int(ended-s.from)]++
	}
}

// Seconds is how long the step was measured.
func (s *Seen) Seconds() float64 { return s.to - s.from }

// At is a quantile of what operations took, nil without any.
func (s *Seen) At(q float64) *float64 {
	n := len(s.Took)
	if n == 0 {
		return nil
	}
	return &s.Took[min(int(q*float64(n)), n-1)]
}

const settling = 2

// Closed keeps so many connections busy for a step.
func (t *Target) Closed(connections int, length float64) *Seen {
	s := newSeen(t.clock+settling, t.clock+settling+length)
	var busy jobs
	waiting := make([]float64, 0, connections)
	for i := range connections {
		if i < t.Slots {
			// They begin apart, as connections that open do.
			begin := t.clock + t.Mean*float64(i)/float64(connections)
			busy = append(busy, job{begin + t.Service(begin, connections), begin})
		} else {
			waiting = append(waiting, t.clock)
		}
	}
	slices.SortFunc(busy, func(a, b job) int { return int(math.Copysign(1, a.end-b.end)) })
	for head := 0; ; head++ {
		now := busy[0].end
		if now >= s.to {
			break
		}
		s.add(busy[0].arrived, now)
		next := now
		if len(waiting) > 0 {
			waiting = append(waiting, now)
			next = waiting[head]
		}
		busy[0] = job{now + t.Service(now, connections), next}
		busy.down()
	}
	t.clock = s.to
	slices.Sort(s.Took)
	return s
}

// Open offers a rate for a step, over at most 2000 operations at once; more are dropped, and so is what waits at its
// end.
func (t *Target) Open(rate float64, length float64, poisson bool) *Seen {
	const most = 2000
	s := newSeen(t.clock+settling, t.clock+settling+length)
	busy := t.inFlight
	var waiting []float64
	head := 0
	due := t.clock
	for due < s.to {
		begun := due
		if t.Begins != nil {
			begun = t.Begins(due)
		}
		if len(busy) > 0 && busy[0].end <= begun {
			now := busy[0].end
			s.add(busy[0].arrived, now)
			if head < len(waiting) {
				busy[0] = job{now + t.Service(now, len(busy)+len(waiting)-head), waiting[head]}
				head++
			} else {
				last := len(busy) - 1
				busy[0] = busy[last]
				busy = busy[:last]
			}
			busy.down()
			continue
		}
		if due >= s.from {
			s.Due++
		}
		switch inside := len(busy) + len(waiting) - head; {
		case inside >= most:
			if due >= s.from {
				s.Dropped++
			}
		case len(busy) < t.Slots:
			busy = append(busy, job{begun + t.Service(begun, inside+1), due})
			for i := len(busy) - 1; i > 0 && busy[i].end < busy[(i-1)/2].end; i = (i - 1) / 2 {
				busy[i], busy[(i-1)/2] = busy[(i-1)/2], busy[i]
			}
		default:
			waiting = append(waiting, due)
		}
		if gap := 1 / rate; poisson {
			due += gap * t.RNG.ExpFloat64()
		} else {
			due += gap
		}
	}
	t.clock, t.inFlight = s.to, busy
	slices.Sort(s.Took)
	return s
}

// RateLimit is the highest rate whose P95 is at most a fifth above that of the lowest one, in more than a half of many
// steps of so many seconds.
func RateLimit(t *Target, perSecond, stepSeconds float64) float64 {
	p95 := func(rate float64) float64 {
		var seen []float64
		for range 31 {
			t.Recover()
			seen = append(seen, *t.Open(rate, stepSeconds, t.Random).At(0.95))
		}
		slices.Sort(seen)
		return seen[len(seen)/2]
	}
	limit := p95(perSecond/5) * 1.2
	lo, hi := perSecond/5, perSecond*1.1
	for hi-lo > perSecond*0.002 {
		if mid := (lo + hi) / 2; p95(mid) <= limit {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// job is an operation in service.
type job struct{ end, arrived float64 }

// jobs is a heap by the end of service.
type jobs []job

// down lets the first sink to its place.
//
//go:norace
func (h jobs) down() {
	for i := 0; ; {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < len(h) && h[c].end < h[least].end {
				least = c
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
