package load

import "time"

// thinkTime decides when the next operation of a slot is due, as a pure function of
// what has happened: when the last has ended and the think time has passed. It reads
// no clock and never waits. An open loop has a schedule.
type thinkTime struct{ think time.Duration }

// due returns when the operation is due, in ns on the group's time line, given the
// end of the slot's last operation (or the slot's start) and the think time that the
// workload asked for on top.
func (p thinkTime) due(ended int64, extra time.Duration) int64 {
	return ended + int64(p.think) + int64(max(extra, 0))
}
