package orchestrator

import (
	"fmt"
	"math"
	"time"
)

// The decision to add run workers to a run over the rate.
const (
	// rateMissed of the wanted rate, or less, is a rate that is missed while operations wait or are dropped.
	rateMissed = 0.97
	// missedFor seconds in a row make a decision, settleFor after run workers have joined none is made.
	missedFor = 3
	settleFor = 4 * time.Second
	// worthwhile is the least part of the gain in run workers that the rate must gain.
	worthwhile = 0.2
	// busyPercent of the generator's CPU leave nothing to further run workers on its machine.
	busyPercent = 90
)

// rateScaling decides whether a run over the rate gets further run workers: when
// those there are miss the rate, while there is room, and while the ones before
// have helped. Once it has decided against it, it stays with that. It reads no clock.
//
//	the rate is missed 3 s in a row, there is room    add
//	the rate is missed again, 4 s after they joined   add, or stop when they brought nothing
//	there is no room                                  stop
type rateScaling struct {
	missed  int
	sum     float64   // achieved in the seconds that missed
	pause   time.Time // nothing is decided before
	before  float64   // what was achieved before the last ones joined
	had     int       // how many there were then
	stopped string    // why no more are added
}

// rateSeen is what a second, or the step of a search, shows.
type rateSeen struct {
	wanted, achieved float64
	// short: operations wait for a connection, or are dropped.
	short      bool
	cpuPercent float64
}

// misses reports whether the rate is missed for want of connections.
func (s rateSeen) misses() bool {
	return s.wanted > 0 && s.short && s.achieved < rateMissed*s.wanted
}

// rateRoom is how many run workers may still join, and what bounds them.
type rateRoom struct {
	workers int
	why     string
}

// second judges one second. It returns how many run workers to add, or a
// sentence when it has just decided to add no more.
func (r *rateScaling) second(now time.Time, s rateSeen, have int, room rateRoom) (add int, why string) {
	if r.stopped != "" || now.Before(r.pause) {
		return 0, ""
	}
	if !s.misses() {
		r.missed, r.sum = 0, 0
		return 0, ""
	}
	r.missed++
	r.sum += s.achieved
	if r.missed < missedFor {
		return 0, ""
	}
	s.achieved = r.sum / float64(r.missed)
	r.missed, r.sum = 0, 0
	return r.judge(s, have, room)
}

// judge decides about a rate that is missed.
func (r *rateScaling) judge(s rateSeen, have int, room rateRoom) (add int, why string) {
	stop := func(format string, args ...any) (int, string) {
		r.stopped = fmt.Sprintf("The rate of %.6g/s is missed (%.6g/s) and no run worker is added to the %d: ", s.wanted, s.achieved, have) + fmt.Sprintf(format, args...)
		return 0, r.stopped
	}
	if r.had > 0 && have > r.had {
		gain, grown := s.achieved/max(r.before, 1e-9)-1, float64(have)/float64(r.had)-1
		if gain < worthwhile*grown {
			return stop("%d did not serve more than %d had (%.6g/s), so the limit is the target's or the generator's, not the number of connections.", have, r.had, r.before)
		}
	}
	switch {
	case s.cpuPercent >= busyPercent:
		return stop("the generator uses %.0f %% of its CPU, and would share it with them.", s.cpuPercent)
	case room.workers <= 0:
		return stop("%s.", room.why)
	}
	need := int(math.Ceil(float64(have)*s.wanted/max(s.achieved, 1e-9))) - have
	add = min(max(need, 1), have, room.workers)
	r.before, r.had = s.achieved, have
	return add, ""
}

// joined notes that the run workers that were added carry load now.
func (r *rateScaling) joined(now time.Time) {
	r.pause, r.missed, r.sum = now.Add(settleFor), 0, 0
}
