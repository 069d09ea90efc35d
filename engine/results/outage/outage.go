package outage

import (
	"math"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// What makes a pause between two successes an outage.
const (
	// In it so many operations should have succeeded at the usual pace: a shorter one is chance.
	minMissed = 8
	minGap    = int64(20 * time.Millisecond)
	// Operations failed in it, or so little before: some connections are lost before the last success on others.
	nearby = int64(100 * time.Millisecond)
	// A failure alone makes no shorter one: it and a short pause may meet by chance.
	minAlone = int64(200 * time.Millisecond)
	// Without a failure an operation was under way in it for so long: a load that asks for less is no outage.
	minSilence = int64(time.Second)
	// Two pauses with less between them are one outage, and failures belong to the outage that they are so near to.
	joined = int64(time.Second)
	// The pace before is taken over so much time, if there is as much.
	paceWindow = int64(10 * time.Second)
	minPace    = int64(time.Second)
	// Where the rate of before is not seen again the outage has no failures after so much time.
	maxRecovery = int64(time.Minute)
)

// Full rate is so much of the rate before, for so long. A second counts with fullRateCap of that at most: what had
// waited is executed at once when the target is back, and makes up for nothing.
const (
	fullRateShare = 0.95
	fullRateHold  = int64(5 * time.Second)
	fullRateCap   = 1.5
)

// Courses are those of a run, by kind.
type Courses [engine.NumKinds]*Course

// Add takes in an operation.
func (c *Courses) Add(from int64, op Operation) {
	if c[op.Kind] == nil {
		c[op.Kind] = NewCourse(from)
	}
	c[op.Kind].Add(op)
}

// Merge takes in the courses of other operations of the run, which are not used any more.
func (c *Courses) Merge(o *Courses) {
	for k := range o {
		switch {
		case o[k] == nil:
		case c[k] == nil:
			c[k] = o[k]
		default:
			c[k].Merge(o[k])
		}
	}
}

// all is the course of all kinds together.
func (c *Courses) all() *Course {
	var sum *Course
	for _, one := range c {
		if one == nil {
			continue
		}
		if sum == nil {
			sum = NewCourse(one.from)
		}
		sum.Merge(&Course{from: one.from, length: one.length, bins: slices.Clone(one.bins)})
	}
	return sum
}

// Counts reports whether a failure may be of an outage. Others are of what was asked for, of other sessions, or of the
// load itself.
func Counts(class engine.ErrorClass) bool {
	switch class {
	case engine.ErrClassConstraint, engine.ErrClassSerialization, engine.ErrClassDeadlock, engine.ErrClassData,
		engine.ErrClassCancelled, engine.ErrClassPlugin, engine.ErrClassDropped:
		return false
	}
	return true
}

// gap is a time without a success; open is one without a success after it.
type gap struct {
	from, to int64
	open     bool
	// Successes and failures in a second before it.
	pace, errors float64
}

// Find returns the outages of a load that was measured from a time and ended at another, both in ns since the epoch;
// without an end that is when its last operation ended. Their counts are left to Count.
func Find(c *Courses, measured, end int64) []engine.Outage {
	all := c.all()
	if all == nil {
		return nil
	}
	if end <= 0 {
		end = all.last()
	}
	gaps := all.gaps(end, true)
	var out []engine.Outage
	for i, g := range gaps {
		o := all.describe(g, gaps, i, end)
		for k := range c {
			if c[k] != nil {
				if of, ok := c[k].within(engine.Kind(k), g, end); ok {
					o.ByKind = append(o.ByKind, of)
				}
			}
		}
		out = append(out, o)
	}
	for k := range c {
		if c[k] == nil {
			continue
		}
		own := c[k].gaps(end, false)
		for i, g := range own {
			if slices.ContainsFunc(gaps, func(of gap) bool { return of.covers(g) }) {
				continue
			}
			o := c[k].describe(g, own, i, end)
			o.Kind = new(engine.Kind(k))
			out = append(out, o)
		}
	}
	slices.SortStableFunc(out, func(a, b engine.Outage) int { return a.LastSuccess.Compare(b.LastSuccess.Time) })
	for i := range out {
		o := &out[i]
		o.Number, o.Warmup = i+1, o.LastSuccess.UnixNano() < measured
		o.Errors = map[engine.OutagePhase]map[engine.ErrorClass]int64{}
	}
	return out
}

// covers reports whether the gap of a kind is that of all operations, as seen by operations that come less often.
func (g gap) covers(kind gap) bool {
	slack := joined
	if kind.pace > 0 {
		slack = max(slack, int64(minMissed/kind.pace*float64(time.Second)))
	}
	return kind.from <= g.to && kind.to >= g.from && kind.from >= g.from-slack && (g.open || kind.to <= g.to+slack)
}

// gaps are the times without a success that are outages, in order. silent ones count too: without a failure.
func (c *Course) gaps(end int64, silent bool) (out []gap) {
	last, have := int64(0), false
	var waiting []int64
	if silent {
		waiting = c.waiting()
	}
	for i := range c.bins {
		b := &c.bins[i]
		if b.ok == 0 {
			continue
		}
		if b.firstOK > end {
			break
		}
		if have {
			out = c.judge(out, gap{from: last, to: b.firstOK}, waiting)
		}
		last, have = b.lastOK, true
	}
	if have && last < end {
		out = c.judge(out, gap{from: last, to: end, open: true}, waiting)
	}
	return out
}

// judge adds a time without a success to those before it, where it is an outage, or goes on with the one before.
// Without waiting only failures make one.
func (c *Course) judge(before []gap, g gap, waiting []int64) []gap {
	length := g.to - g.from
	if length < max(minGap, 2*c.length) {
		return before
	}
	since, n := c.from, len(before)
	if n > 0 {
		since = before[n-1].to
		// What follows an outage shortly has its pace.
		if g.from-since < minPace {
			g.pace = before[n-1].pace
		}
	}
	if g.pace == 0 {
		g.pace = c.pace(since, g.from)
	}
	if g.pace*time.Duration(length).Seconds() < minMissed {
		return before
	}
	g.errors = c.background(before, g.from-nearby)
	begin := g.from - nearby
	failed := c.failed(begin, g.to)
	if failed < 2 && length < minAlone {
		failed = 0
	}
	switch {
	case !exceeds(failed, g.errors, g.to-begin) && c.underWay(g, waiting) < minSilence:
	case n > 0 && g.from-before[n-1].to < joined:
		before[n-1].to, before[n-1].open = g.to, g.open
	default:
		before = append(before, g)
	}
	return before
}

// underWay is for how long at the end of a gap an operation was.
func (c *Course) underWay(g gap, waiting []int64) int64 {
	i := c.at(g.to)
	if i >= len(waiting) || waiting[i] >= g.to {
		return 0
	}
	return g.to - max(g.from, waiting[i])
}

// exceeds reports whether so many failures in a time are more than those that always come, at so many a second.
func exceeds(n, perSecond float64, length int64) bool {
	if perSecond == 0 {
		return n > 0
	}
	usual := perSecond * time.Duration(length).Seconds()
	return n > 1+usual+5*math.Sqrt(usual)
}

// background is how many operations failed in a second before a time, as they always do. A second in which far more
// failed than in the middle one of them is of an outage, and what follows one shortly has the background of before it.
func (c *Course) background(before []gap, to int64) float64 {
	since := c.from
	if n := len(before); n > 0 {
		if since = before[n-1].to + joined; to-since < minPace {
			return before[n-1].errors
		}
	}
	second := int64(time.Second)
	var counts []float64
	for at := to; at-second >= max(since, to-paceWindow); at -= second {
		counts = append(counts, c.failed(at-second, at-1))
	}
	if len(counts) == 0 { // the load has just begun
		if to <= since {
			return 0
		}
		return c.failed(since, to-1) / time.Duration(to-since).Seconds()
	}
	slices.Sort(counts)
	limit, sum := 1+2*counts[len(counts)/2], 0.0
	for _, n := range counts {
		sum += min(n, limit)
	}
	return sum / float64(len(counts))
}

// pace is how many operations succeeded in a second before a time, but not before since.
func (c *Course) pace(since, to int64) float64 {
	from := max(since, to-paceWindow)
	if first, ok := c.firstSuccess(c.from); ok {
		from = max(from, first)
	}
	if to <= from {
		return 0
	}
	return c.successes(from, to) / time.Duration(to-from).Seconds()
}

// describe is a gap as an outage.
func (c *Course) describe(g gap, all []gap, i int, end int64) engine.Outage {
	before, after := c.from, end
	if i > 0 {
		before = all[i-1].to
	}
	if i+1 < len(all) {
		after = all[i+1].from
	}
	o := engine.Outage{LastSuccess: instant(g.from), DownSeconds: time.Duration(g.to - g.from).Seconds(), ToTheEnd: g.open,
		RateBefore: g.pace}
	if !g.open {
		o.FirstSuccess = instant(g.to)
		if at, ok := c.fullRate(g, after); ok {
			took := time.Duration(at - g.from).Seconds()
			o.FullRateAt, o.FullRateSeconds = instant(at), &took
		}
	}
	from, until := max(before, g.from-joined), min(after, g.to+joined)
	if g.errors > 0 {
		from, until = max(before, g.from-nearby), g.to // the others need not be of it
	}
	first, last, failed := c.failures(from, until)
	if !failed {
		return o
	}
	o.FirstFailure, o.LastFailure = instant(first), instant(c.recovery(g, &o, last, after))
	return o
}

// recovery is when the last operation failed because of an outage. As long as connections come back others may still
// fail: until no more do than before it, and not much longer than until the rate is full again.
func (c *Course) recovery(g gap, o *engine.Outage, last, after int64) int64 {
	latest := g.to + maxRecovery
	if !o.FullRateAt.IsZero() {
		latest = o.FullRateAt.UnixNano() + fullRateHold
	}
	latest = min(latest, after)
	for !g.open && last < latest {
		until := min(latest, last+joined)
		_, more, ok := c.failures(last+1, until)
		if !ok || !exceeds(c.failed(last+1, until), g.errors, until-last) {
			break
		}
		last = more
	}
	return last
}

// fullRate is from when on the rate was that of before again.
func (c *Course) fullRate(g gap, end int64) (at int64, ok bool) {
	if g.pace <= 0 {
		return 0, false
	}
	second := int64(time.Second)
	for at = g.to; at+fullRateHold <= end; at += c.length {
		sum := 0.0
		for s := at; s < at+fullRateHold; s += second {
			sum += min(c.successes(s, s+second), fullRateCap*g.pace)
		}
		if sum >= fullRateShare*g.pace*time.Duration(fullRateHold).Seconds() {
			return at, true
		}
	}
	return 0, false
}

// within is a gap of all operations as this kind met it; false of a kind that did not come shortly before it.
func (c *Course) within(kind engine.Kind, g gap, end int64) (engine.OutageKind, bool) {
	last, ok := c.lastSuccess(g.from)
	if !ok || last < g.from-paceWindow {
		return engine.OutageKind{}, false
	}
	o := engine.OutageKind{Kind: kind, LastSuccess: instant(last)}
	until, back := c.firstSuccess(g.to)
	if g.open || !back || until > end {
		until, back = end, false
	}
	if o.ToTheEnd = !back; back {
		o.FirstSuccess = instant(until)
	}
	o.DownSeconds = time.Duration(until - last).Seconds()
	return o, true
}

func instant(ns int64) engine.Time { return engine.At(time.Unix(0, ns)) }

// Operation is one that was recorded; Class and Code are of one that failed.
type Operation struct {
	Kind       engine.Kind
	Due, Ended int64
	OK         bool
	Class      engine.ErrorClass
	Code       string
}

// Span is what Count looks at, in ns since the epoch: operations that ended from a time on, and were due up to another.
func Span(outages []engine.Outage) (ended, due int64) {
	for i := range outages {
		o := &outages[i]
		if at := o.Begin().UnixNano(); i == 0 || at < ended {
			ended = at
		}
		due = max(due, o.Until().UnixNano())
	}
	return ended, due
}

// Count counts an operation in the outages that it was part of. Those of an outage of one kind are of that kind.
func Count(outages []engine.Outage, op Operation) {
	for i := range outages {
		o := &outages[i]
		if o.Kind != nil && *o.Kind != op.Kind {
			continue
		}
		var of engine.OutageKind
		switch {
		case op.OK:
			if o.FirstSuccess.IsZero() {
				continue
			}
			if back := o.FirstSuccess.UnixNano(); op.Ended < back || op.Due >= back {
				continue
			}
			of.Delayed = 1
		case !Counts(op.Class) || op.Ended < o.Begin().UnixNano() || op.Ended > o.Until().UnixNano():
			continue
		default:
			of.Failed = 1
			if op.Code == engine.CodeUnknownOutcome {
				of.Unknown = 1
			}
			phase := phaseOf(o, op.Ended)
			if o.Errors[phase] == nil {
				o.Errors[phase] = map[engine.ErrorClass]int64{}
			}
			o.Errors[phase][op.Class]++
		}
		o.Failed, o.Unknown, o.Delayed = o.Failed+of.Failed, o.Unknown+of.Unknown, o.Delayed+of.Delayed
		for k := range o.ByKind {
			if one := &o.ByKind[k]; one.Kind == op.Kind {
				one.Failed, one.Unknown, one.Delayed = one.Failed+of.Failed, one.Unknown+of.Unknown, one.Delayed+of.Delayed
			}
		}
	}
}

// phaseOf is the part of an outage in which an operation ended.
func phaseOf(o *engine.Outage, ended int64) engine.OutagePhase {
	switch {
	case ended < o.LastSuccess.UnixNano():
		return engine.OutageOnset
	case !o.FirstSuccess.IsZero() && ended > o.FirstSuccess.UnixNano():
		return engine.OutageRecovery
	}
	return engine.OutageDown
}
