// Package findings says why operations were slow. It takes what the server was seen to do (looks at its sessions, its
// counters) and the client's own time, second by second, and finds causes: who made whom wait, for how much of the
// client's time. It is pure: no clock, no goroutine, no I/O.
//
// Each moment of a session of the run that is in the server has one cause, so that a wait is graded once, and the shares
// of all causes are at most the whole. Evidence of counters (tables that are read from end to end, temporary files)
// names the cause of a part of the time that sessions spent with the processor or with reading.
//
// A cause is a finding when the lower bound of its share is above 5 %, in seconds that were slow, and above its share
// in the run's own healthy seconds by as much. A run without healthy seconds is judged as a whole, by the least share of
// each rule.
package findings
