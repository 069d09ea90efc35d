// Package lifecycle decides the life of one run. It is pure: what has happened,
// and when, goes in; what is to be done comes out. It has no clock, no
// goroutine and no I/O, and it knows neither stores nor nodes: the orchestrator
// carries out what is decided here.
//
//	Machine  the phases of a run, from its preparation to its end
//	Search   the part of it that looks for the limit, level by level
//	Meter    what the run workers measured in the step under way
//	Growth   whether a run over the rate gets further run workers
//
// A new stop reason or phase begins here: its rule in Machine, its line in the
// table there, and a case in TestTheCourseOfARun.
package lifecycle
