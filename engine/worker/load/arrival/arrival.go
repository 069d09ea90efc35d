package arrival

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Share is a run worker's part of a run's load: the Index-th of Of, counted from 0.
type Share struct{ Index, Of int }

// Valid reports whether there is such a share.
func (s Share) Valid() bool { return s.Of > 0 && s.Index >= 0 && s.Index < s.Of }

// Part returns the share's part of a total.
func (s Share) Part(total int) int { return engine.Spread(total, s.Of)[s.Index] }

// Leg is a stretch of a curve: from the level where the last one ended (or at
// once, for a step) to level, over length.
type Leg struct {
	Level  float64
	Length time.Duration
	step   bool
}

// Curve is a level over time, made of straight pieces: a rate in arrivals for
// each second, or a number of connections. The area under a rate is how many
// arrivals are due; a curve therefore answers when the area reaches x, and
// answers without a sum of rounded gaps, so that nothing drifts. It reads no clock.
type Curve struct {
	pieces []piece // in order; the last one is endless and level
	cursor int     // where due was last found; arrivals only go forward
}

// piece is part of a curve; times in seconds since the curve's origin.
type piece struct {
	begin, length float64 // length is +Inf for the last
	from, to      float64
	before        float64 // area of all pieces before it
}

// NewCurve returns a curve that stays at a level.
func NewCurve(level float64) *Curve {
	return &Curve{pieces: []piece{{length: math.Inf(1), from: level, to: level}}}
}

func (p *piece) level(t float64) float64 {
	if math.IsInf(p.length, 1) || p.length <= 0 {
		return p.to
	}
	return p.from + (p.to-p.from)*min(max((t-p.begin)/p.length, 0), 1)
}

// area is the arrivals due in the piece's first t seconds.
func (p *piece) area(t float64) float64 {
	if math.IsInf(p.length, 1) {
		return p.to * t
	}
	return p.from*t + (p.to-p.from)*t*t/(2*p.length)
}

// reach is how many seconds into the piece its area is y.
func (p *piece) reach(y float64) float64 {
	slope := 0.0
	if !math.IsInf(p.length, 1) {
		slope = (p.to - p.from) / p.length
	}
	if slope == 0 {
		return y / p.to
	}
	// The form of the quadratic's root that subtracts nothing.
	return 2 * y / (p.from + math.Sqrt(max(p.from*p.from+2*slope*y, 0)))
}

// Level returns the curve's value at a time since its origin.
func (c *Curve) Level(at time.Duration) float64 {
	t := at.Seconds()
	for i := len(c.pieces) - 1; i > 0; i-- {
		if t >= c.pieces[i].begin {
			return c.pieces[i].level(t)
		}
	}
	return c.pieces[0].level(t)
}

// due returns when the area reaches x, which must not fall from call to call
// unless the curve was changed in between. It reports false when that never happens.
func (c *Curve) due(x float64) (time.Duration, bool) {
	for c.cursor < len(c.pieces)-1 && x >= c.pieces[c.cursor+1].before {
		c.cursor++
	}
	p := &c.pieces[c.cursor]
	y := max(x-p.before, 0)
	if math.IsInf(p.length, 1) && p.to <= 0 {
		return 0, false
	}
	seconds := 0.0
	if y > 0 && p.length > 0 {
		seconds = p.reach(y)
	}
	if !math.IsInf(p.length, 1) {
		seconds = min(seconds, p.length)
	}
	if math.IsNaN(seconds) {
		return 0, false
	}
	ns := math.Round((p.begin + seconds) * 1e9)
	if ns >= math.MaxInt64/2 {
		return 0, false
	}
	return time.Duration(ns), true
}

// Over returns the area at a time since the origin.
func (c *Curve) over(at time.Duration) float64 {
	t := at.Seconds()
	i := len(c.pieces) - 1
	for i > 0 && t < c.pieces[i].begin {
		i--
	}
	return c.pieces[i].before + c.pieces[i].area(t-c.pieces[i].begin)
}

// replace takes the pieces of another curve, which shares the past with this one.
func (c *Curve) replace(pieces []piece) { c.pieces, c.cursor = pieces, 0 }

// Change replaces what follows after a time by legs; after the last leg its level stays.
func (c *Curve) Change(at time.Duration, legs []Leg) { c.changeAfter(at, -1, legs) }

// changeAfter is change where what is due at an area of taken has come already:
// it stays in the past, whatever rounding says of it.
func (c *Curve) changeAfter(at time.Duration, taken float64, legs []Leg) {
	t := at.Seconds()
	keep := 0
	for keep < len(c.pieces)-1 && c.pieces[keep+1].begin <= t {
		keep++
	}
	last := c.pieces[keep]
	level := last.level(t)
	area := max(last.before+last.area(t-last.begin), math.Nextafter(taken, math.Inf(1)))
	last.length, last.to = t-last.begin, level
	c.pieces = append(c.pieces[:keep:keep], last)
	for _, l := range legs {
		if l.step || l.Length <= 0 {
			level = l.Level
		}
		if length := l.Length.Seconds(); length > 0 {
			p := piece{begin: t, length: length, from: level, to: l.Level, before: area}
			c.pieces = append(c.pieces, p)
			t += length
			area += p.area(length)
		}
		level = l.Level
	}
	c.pieces = append(c.pieces, piece{begin: t, length: math.Inf(1), from: level, to: level, before: area})
	c.cursor = min(c.cursor, keep)
}

// Legs turns stages into legs of a curve.
func Legs(stages []engine.Stage) []Leg {
	out := make([]Leg, len(stages))
	for i, s := range stages {
		out[i] = Leg{Level: s.Level(), Length: s.Duration(), step: s.Ramp == engine.RampStep}
	}
	return out
}

// Schedule says when a run worker's arrivals are due, as a pure function of what
// was configured: it reads no clock, and completions do not move it. One
// goroutine uses it.
//
// The curve is the whole run's. With constant arrivals the workers take turns:
// worker i of n has the arrivals i, i + n, i + 2n … of the run. With poisson each has a
// process of its own at its share of the rate, and their sum is a poisson process again.
type Schedule struct {
	curve  *Curve
	share  Share
	random *rand.Rand // nil for constant arrivals
	x      float64    // the area at which the next arrival is due
	taken  float64    // that of the last one taken, negative before
	n      int64      // arrivals taken
}

// New returns the schedule of a share of a rate; seed decides about arrivals by chance.
func New(rate float64, arrival engine.Arrival, share Share, seed uint64) *Schedule {
	s := &Schedule{curve: NewCurve(rate), share: share, taken: -1}
	if arrival == engine.ArrivalPoisson {
		s.random = rand.New(rand.NewPCG(seed, uint64(share.Index)))
		s.x = s.random.ExpFloat64() * float64(share.Of)
	} else {
		s.x = float64(share.Index)
	}
	return s
}

// Next returns when the next arrival is due, since the schedule's origin. It
// reports false when none is due any more.
func (s *Schedule) Next() (time.Duration, bool) { return s.curve.due(s.x) }

// Take goes on to the arrival after the next.
func (s *Schedule) Take() {
	s.n++
	s.taken = s.x
	if s.random != nil {
		s.x += s.random.ExpFloat64() * float64(s.share.Of)
		return
	}
	s.x = float64(s.share.Index) + float64(s.n)*float64(s.share.Of)
}

// unsure is how much area before a time is looked at arrival by arrival: more
// than the rounding of a time to nanoseconds can move.
const unsure = 2

// pass takes all arrivals that are due at a time or before, and returns how many
// were taken in all. Times must not fall from call to call.
func (s *Schedule) pass(at time.Duration) int64 {
	if at < 0 {
		return s.n
	}
	sure := s.curve.over(at) - unsure
	if s.random == nil {
		if n := int64((sure - float64(s.share.Index)) / float64(s.share.Of)); n > s.n+1 {
			s.n = n - 1
			s.Take()
		}
	}
	for s.x < sure {
		s.Take()
	}
	for due, ok := s.Next(); ok && due <= at; due, ok = s.Next() {
		s.Take()
	}
	return s.n
}

// Rate is the worker's own rate at a time, in arrivals for each second.
func (s *Schedule) Rate(at time.Duration) float64 {
	return s.curve.Level(at) / float64(s.share.Of)
}
