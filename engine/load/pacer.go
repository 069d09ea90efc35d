package load

import "time"

// pacer decides when the next operation of a slot is due, as a pure function of
// what has happened; it reads no clock and never waits. It is for a closed loop;
// an open loop has a schedule.
type pacer interface {
	// due returns when the operation is due, in ns on the group's time line,
	// given the end of the slot's last operation (or the slot's start) and the
	// think time that the workload asked for on top.
	due(ended int64, extra time.Duration) int64
}

// closedLoop makes an operation due when the last has ended and the think time has passed.
type closedLoop struct{ think time.Duration }

func (p closedLoop) due(ended int64, extra time.Duration) int64 {
	return ended + int64(p.think) + int64(max(extra, 0))
}
