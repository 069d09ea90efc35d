package findmax

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// target is a database in virtual time whose limit is known. Its operations wait in one queue for its slots; what they
// take depends on how many there are, and on what the target went through before: its state outlives a step.
type target struct {
	slots int
	mean  float64 // seconds
	// random service times are exponential; noise spreads those of each operation, and those of each second, by so much
	// in both directions.
	random bool
	noise  float64
	// slower is by how many times operations take longer with so many in the system.
	slower func(t *target, inside int) float64
	// overloaded is of a target with hysteresis.
	overloaded bool
	rng        *rand.Rand
	// inFlight are the operations of an open loop that a step leaves behind.
	inFlight jobs
	// clock is the target's time, speed that of the second it is in.
	clock, second, speed float64
}

func (t *target) service(now float64, inside int) float64 {
	if second := math.Floor(now); second != t.second || t.speed == 0 {
		t.second, t.speed = second, 1+t.noise*(2*t.rng.Float64()-1)
	}
	took := t.mean * t.speed * (1 + t.noise*(2*t.rng.Float64()-1))
	if t.random {
		took = t.mean * t.rng.ExpFloat64()
	}
	if t.slower != nil {
		took *= t.slower(t, inside)
	}
	return took
}

// seen collects what a step's operations took, and how many ended in each second.
type seen struct {
	from, to  float64
	took      []float64
	perSecond []float64
	dropped   int64
	due       int64
}

func newSeen(from, to float64) *seen {
	return &seen{from: from, to: to, perSecond: make([]float64, int(math.Ceil(to-from)))}
}

func (s *seen) add(begun, ended float64) {
	if ended >= s.from && ended < s.to {
		s.took = append(s.took, (ended-begun)*1000)
		s.perSecond[int(ended-s.from)]++
	}
}

func (s *seen) observation() Observation {
	slices.Sort(s.took)
	n := len(s.took)
	o := Observation{Operations: int64(n), QPS: float64(n) / (s.to - s.from), Dropped: s.dropped, Due: s.due,
		QPSError: StandardError(s.perSecond)}
	if n > 0 {
		at := func(q float64) *float64 { return &s.took[min(int(q*float64(n)), n-1)] }
		o.P50, o.P95, o.P99 = at(0.5), at(0.95), at(0.99)
	}
	return o
}

const settling = 2

// closed keeps so many connections busy for a step.
func (t *target) closed(connections int, length float64) Observation {
	s := newSeen(t.clock+settling, t.clock+settling+length)
	var busy jobs
	waiting := make([]float64, 0, connections)
	for i := range connections {
		if i < t.slots {
			// They begin apart, as connections that open do.
			begin := t.clock + t.mean*float64(i)/float64(connections)
			busy = append(busy, job{begin + t.service(begin, connections), begin})
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
		busy[0] = job{now + t.service(now, connections), next}
		busy.down()
	}
	t.clock = s.to
	return s.observation()
}

// open offers a rate for a step, over at most so many operations at once; more are dropped, and so is what waits at its end.
func (t *target) open(rate float64, length float64, poisson bool) Observation {
	const most = 2000
	s := newSeen(t.clock+settling, t.clock+settling+length)
	busy := t.inFlight
	var waiting []float64
	head := 0
	due := t.clock
	for due < s.to {
		if len(busy) > 0 && busy[0].end <= due {
			now := busy[0].end
			s.add(busy[0].arrived, now)
			if head < len(waiting) {
				busy[0] = job{now + t.service(now, len(busy)+len(waiting)-head), waiting[head]}
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
			s.due++
		}
		switch inside := len(busy) + len(waiting) - head; {
		case inside >= most:
			if due >= s.from {
				s.dropped++
			}
		case len(busy) < t.slots:
			busy = append(busy, job{due + t.service(due, inside+1), due})
			for i := len(busy) - 1; i > 0 && busy[i].end < busy[(i-1)/2].end; i = (i - 1) / 2 {
				busy[i], busy[(i-1)/2] = busy[(i-1)/2], busy[i]
			}
		default:
			waiting = append(waiting, due)
		}
		if gap := 1 / rate; poisson {
			due += gap * t.rng.ExpFloat64()
		} else {
			due += gap
		}
	}
	t.clock, t.inFlight = s.to, busy
	return s.observation()
}

// The targets. Each serves 200/s at its limit.
const atLimit = 200.0

func slotted(size int, rng *rand.Rand) *target {
	return &target{slots: size, mean: float64(size) / atLimit, rng: rng}
}

var targets = map[string]func(size int, rng *rand.Rand) *target{
	"constant slots": slotted,
	"M/M/c": func(size int, rng *rand.Rand) *target {
		t := slotted(size, rng)
		t.random = true
		return t
	},
	"cliff": func(size int, rng *rand.Rand) *target {
		t := slotted(size, rng)
		t.slots = 10 * size
		t.slower = func(_ *target, inside int) float64 {
			if inside > size {
				return 6
			}
			return 1
		}
		return t
	},
	"falling after the peak": func(size int, rng *rand.Rand) *target {
		t := slotted(size, rng)
		t.slower = func(_ *target, inside int) float64 {
			return 1 / max(1-0.5*float64(max(inside-size, 0))/float64(size), 0.2)
		}
		return t
	},
	"hysteresis": func(size int, rng *rand.Rand) *target {
		t := slotted(size, rng)
		t.slots = 20 * size
		t.slower = func(t *target, inside int) float64 {
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
	"noise of 20 %": func(size int, rng *rand.Rand) *target {
		t := slotted(size, rng)
		t.noise = 0.2
		return t
	},
}

const stepSeconds = 30

// overConnections is a search of a target over connections.
func overConnections(t *target, slo *engine.SLO) *Search {
	s := New(Config{Unit: engine.FindMaxConnections, Start: 2, Increment: 8, Max: 200, QPSStabilityPct: 5,
		LatencyStabilityPct: 20, MaxErrorRatePct: 1, StepSeconds: stepSeconds, SLO: slo})
	for level, _, ok := s.Next(); ok; level, _, ok = s.Next() {
		s.Observe(t.closed(int(level), stepSeconds*s.Lengthening()))
	}
	return s
}

// overRate is a search of a target over the rate.
func overRate(t *target) *Search {
	s := New(Config{Unit: engine.FindMaxRate, Start: atLimit / 5, Increment: atLimit / 5, Max: 1e6, QPSStabilityPct: 5,
		LatencyStabilityPct: 20, MaxErrorRatePct: 1, StepSeconds: stepSeconds})
	for level, _, ok := s.Next(); ok; level, _, ok = s.Next() {
		s.Observe(t.open(level, stepSeconds*s.Lengthening(), t.random))
	}
	return s
}

// rateLimit is the highest rate whose P95 stays within the rule in more than a half of many steps.
func rateLimit(make func() *target) float64 {
	t := make()
	p95 := func(rate float64) float64 {
		var seen []float64
		for range 31 {
			t.inFlight, t.overloaded = nil, false
			o := t.open(rate, stepSeconds, t.random)
			seen = append(seen, *o.P95)
		}
		slices.Sort(seen)
		return seen[len(seen)/2]
	}
	limit := p95(atLimit/5) * 1.2
	lo, hi := atLimit/5, atLimit*1.1
	for hi-lo > atLimit*0.002 {
		if mid := (lo + hi) / 2; p95(mid) <= limit {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// seeds are 20, or LOADSTONE_SEEDS; a few in make test.
func seeds() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("LOADSTONE_SEEDS"), 10, 32); err == nil {
		return n
	}
	if testing.Short() {
		return 4
	}
	return 20
}

// TestTheSearchFindsTheLimit: 20 of 20 searches are within 5 % of the limit, for each kind of target and of search, and
// hysteresis is named where there is some.
func TestTheSearchFindsTheLimit(t *testing.T) {
	t.Parallel()
	for name, build := range targets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := map[int]float64{}
			for seed := range seeds() {
				rng := rand.New(rand.NewPCG(seed, 11))
				size := 8 + 4*rng.IntN(8)
				s := overConnections(build(size, rng), nil)
				check(t, fmt.Sprintf("seed %d, %d connections", seed, size), s, float64(size))
				checkHysteresis(t, name, s, name == "hysteresis")
				if build(size, rng).slower != nil {
					size += 40 // what a step leaves behind is in the next one for a moment, and may be too much
				}
				if limits[size] == 0 {
					limits[size] = rateLimit(func() *target { return build(size, rand.New(rand.NewPCG(1, 1))) })
				}
				s = overRate(build(size, rng))
				check(t, fmt.Sprintf("seed %d, %.1f/s on %d slots", seed, limits[size], size), s, limits[size])
				// Where operations take longer the more there are, a schedule that goes on keeps the overload alive.
				checkHysteresis(t, name, s, build(size, rng).slower != nil)
			}
		})
	}
}

func checkHysteresis(t *testing.T, name string, s *Search, may bool) {
	t.Helper()
	if has := s.Result().Hysteresis != nil; has && !may || !has && name == "hysteresis" {
		t.Errorf("hysteresis %+v: %s", s.Result().Hysteresis, s.Result().Reason)
	}
}

func check(t *testing.T, what string, s *Search, limit float64) {
	t.Helper()
	r := s.Result()
	level, ok := r.Level()
	if !ok || math.Abs(level-limit) > 0.05*limit || !r.Confirmed {
		t.Errorf("%s: found %v, confirmed %v in %d steps: %s", what, level, r.Confirmed, r.Steps, r.Reason)
		for _, x := range s.steps {
			t.Logf("  %s %v: %.1f/s P95 %.1f %s", x.Stage, x.Level(), x.QPS, *x.P95LatencyMs, x.Outcome)
		}
	}
	t.Logf("%s: found %.4g in %d steps", what, level, r.Steps)
}
