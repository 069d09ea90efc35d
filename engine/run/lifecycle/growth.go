package lifecycle

import (
	"fmt"
	"math"
	"time"
)

// The decision to add run workers to a run over the rate.
const (
	// missedRateShare of the wanted rate, or less, is a rate that is missed while operations wait or are dropped.
	missedRateShare = 0.97
	// missedSeconds seconds in a row make a decision, settleFor after run workers have joined none is made.
	missedSeconds = 3
	settleDelay   = 4 * time.Second
	// minGainShare is the least part of the gain in run workers that the rate must gain.
	minGainShare = 0.2
	// minRetryDelay is how long nobody joins after all who did were refused. It doubles up to retryLast.
	minRetryDelay = 15 * time.Second
	maxRetryDelay = 8 * time.Minute
	// maxCPUPercent of the generator's CPU leave nothing to further run workers on its machine.
	maxCPUPercent = 90
)

// Growth decides whether a run over the rate gets further run workers: when
// those there are miss the rate, while there is room, and while the ones before
// have helped. Once it has decided against it, it stays with that, unless what was
// against it may pass: other runs end, nodes come. It reads no clock.
//
//	the rate is missed 3 s in a row, there is room    add
//	the rate is missed again, 4 s after they joined   add, or stop when they brought nothing
//	the run may have no more                          stop
//	the nodes have no room, or refused who joined     look again, later each time they refuse
type Growth struct {
	missed         int
	sum            float64   // achieved in the seconds that missed
	pause          time.Time // nothing is decided before
	achievedBefore float64   // what was achieved before the last ones joined
	workersBefore  int       // how many there were then
	stopped        string    // why no more are added
	lastNote       string    // what was said last that may pass
	refusals       int       // how often in a row none of those who were added was taken
}

// StopReason is why no more are added, empty while some may be.
func (r *Growth) StopReason() string { return r.stopped }

// RateSample is what a second, or the step of a search, shows.
type RateSample struct {
	Target, Achieved float64
	// Saturated: operations wait for a connection, or are dropped.
	Saturated  bool
	CPUPercent float64
}

// MissesRate reports whether the rate is missed for want of connections.
func (s RateSample) MissesRate() bool {
	return s.Target > 0 && s.Saturated && s.Achieved < missedRateShare*s.Target
}

// Headroom is how many run workers may still join, and what bounds them. Passing: that may change while the run goes
// on.
type Headroom struct {
	Workers   int
	Reason    string
	Temporary bool
}

// ObserveSecond judges one second. It returns how many run workers to add, or a
// sentence when it has just decided to add no more.
func (r *Growth) ObserveSecond(now time.Time, s RateSample, have int, room Headroom) (add int, why string) {
	if r.stopped != "" || now.Before(r.pause) {
		return 0, ""
	}
	if !s.MissesRate() {
		r.missed, r.sum = 0, 0
		return 0, ""
	}
	r.missed++
	r.sum += s.Achieved
	if r.missed < missedSeconds {
		return 0, ""
	}
	s.Achieved = r.sum / float64(r.missed)
	r.missed, r.sum = 0, 0
	return r.Decide(s, have, room)
}

// Decide decides about a rate that is missed.
func (r *Growth) Decide(s RateSample, have int, room Headroom) (add int, why string) {
	against := func(format string, args ...any) string {
		return fmt.Sprintf("The rate of %.6g/s is missed (%.6g/s) and no run worker is added to the %d: ", s.Target,
			s.Achieved, have) + fmt.Sprintf(format, args...)
	}
	stop := func(format string, args ...any) (int, string) {
		r.stopped = against(format, args...)
		return 0, r.stopped
	}
	if r.workersBefore > 0 && have > r.workersBefore {
		gain, grown := s.Achieved/max(r.achievedBefore, 1e-9)-1, float64(have)/float64(r.workersBefore)-1
		if gain < minGainShare*grown {
			return stop("%d did not serve more than %d had (%.6g/s), so the limit is the target's or the generator's, not "+
				"the number of connections.", have, r.workersBefore, r.achievedBefore)
		}
	}
	switch {
	case s.CPUPercent >= maxCPUPercent:
		return stop("the generator uses %.0f %% of its CPU, and would share it with them.", s.CPUPercent)
	case room.Workers <= 0 && room.Temporary:
		if r.lastNote != "" {
			return 0, "" // it was said
		}
		r.lastNote = against("%s; it is tried again.", room.Reason)
		return 0, r.lastNote
	case room.Workers <= 0:
		return stop("%s.", room.Reason)
	}
	need := int(math.Ceil(float64(have)*s.Target/max(s.Achieved, 1e-9))) - have
	add = min(max(need, 1), have, room.Workers)
	r.achievedBefore, r.workersBefore = s.Achieved, have
	return add, ""
}

// RecordJoin notes that run workers have joined, or refused: that none of those who were added was taken. The next
// are tried later each time then: each is a row of the results and a key slot. It returns a sentence to be said.
func (r *Growth) RecordJoin(now time.Time, refused bool) (why string) {
	r.pause, r.missed, r.sum = now.Add(settleDelay), 0, 0
	if !refused {
		r.refusals, r.lastNote = 0, ""
		return ""
	}
	r.pause = now.Add(min(minRetryDelay<<min(r.refusals, 10), maxRetryDelay))
	if r.refusals++; r.refusals == 1 {
		r.lastNote = "The rate is missed, and no run worker that was added could join; it is tried again."
		return r.lastNote
	}
	return ""
}
