package lifecycle

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
	// retryFirst is how long nobody joins after all who did were refused. It doubles up to retryLast.
	retryFirst = 15 * time.Second
	retryLast  = 8 * time.Minute
	// busyPercent of the generator's CPU leave nothing to further run workers on its machine.
	busyPercent = 90
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
	missed  int
	sum     float64   // achieved in the seconds that missed
	pause   time.Time // nothing is decided before
	before  float64   // what was achieved before the last ones joined
	had     int       // how many there were then
	stopped string    // why no more are added
	waits   string    // what was said last that may pass
	refused int       // how often in a row none of those who were added was taken
}

// Stopped is why no more are added, empty while some may be.
func (r *Growth) Stopped() string { return r.stopped }

// Seen is what a second, or the step of a search, shows.
type Seen struct {
	Wanted, Achieved float64
	// Short: operations wait for a connection, or are dropped.
	Short      bool
	CPUPercent float64
}

// Misses reports whether the rate is missed for want of connections.
func (s Seen) Misses() bool {
	return s.Wanted > 0 && s.Short && s.Achieved < rateMissed*s.Wanted
}

// Room is how many run workers may still join, and what bounds them. Passing: that may change while the run goes on.
type Room struct {
	Workers int
	Why     string
	Passing bool
}

// Second judges one second. It returns how many run workers to add, or a
// sentence when it has just decided to add no more.
func (r *Growth) Second(now time.Time, s Seen, have int, room Room) (add int, why string) {
	if r.stopped != "" || now.Before(r.pause) {
		return 0, ""
	}
	if !s.Misses() {
		r.missed, r.sum = 0, 0
		return 0, ""
	}
	r.missed++
	r.sum += s.Achieved
	if r.missed < missedFor {
		return 0, ""
	}
	s.Achieved = r.sum / float64(r.missed)
	r.missed, r.sum = 0, 0
	return r.Judge(s, have, room)
}

// Judge decides about a rate that is missed.
func (r *Growth) Judge(s Seen, have int, room Room) (add int, why string) {
	against := func(format string, args ...any) string {
		return fmt.Sprintf("The rate of %.6g/s is missed (%.6g/s) and no run worker is added to the %d: ", s.Wanted,
			s.Achieved, have) + fmt.Sprintf(format, args...)
	}
	stop := func(format string, args ...any) (int, string) {
		r.stopped = against(format, args...)
		return 0, r.stopped
	}
	if r.had > 0 && have > r.had {
		gain, grown := s.Achieved/max(r.before, 1e-9)-1, float64(have)/float64(r.had)-1
		if gain < worthwhile*grown {
			return stop("%d did not serve more than %d had (%.6g/s), so the limit is the target's or the generator's, not "+
				"the number of connections.", have, r.had, r.before)
		}
	}
	switch {
	case s.CPUPercent >= busyPercent:
		return stop("the generator uses %.0f %% of its CPU, and would share it with them.", s.CPUPercent)
	case room.Workers <= 0 && room.Passing:
		if r.waits != "" {
			return 0, "" // it was said
		}
		r.waits = against("%s; it is tried again.", room.Why)
		return 0, r.waits
	case room.Workers <= 0:
		return stop("%s.", room.Why)
	}
	need := int(math.Ceil(float64(have)*s.Wanted/max(s.Achieved, 1e-9))) - have
	add = min(max(need, 1), have, room.Workers)
	r.before, r.had = s.Achieved, have
	return add, ""
}

// Joined notes that run workers have joined, or refused: that none of those who were added was taken. The next
// are tried later each time then: each is a row of the results and a key slot. It returns a sentence to be said.
func (r *Growth) Joined(now time.Time, refused bool) (why string) {
	r.pause, r.missed, r.sum = now.Add(settleFor), 0, 0
	if !refused {
		r.refused, r.waits = 0, ""
		return ""
	}
	r.pause = now.Add(min(retryFirst<<min(r.refused, 10), retryLast))
	if r.refused++; r.refused == 1 {
		r.waits = "The rate is missed, and no run worker that was added could join; it is tried again."
		return r.waits
	}
	return ""
}
