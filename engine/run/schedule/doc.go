// Package schedule starts runs of templates at the times of cron expressions.
//
// One server at a time does so: the one that has the lease "schedules" in the control store. The clock is the store's,
// so that servers whose clocks differ agree. A start that is due goes through these outcomes:
//
//	due ─▶ STARTING ─the run has started─▶ STARTED
//	 │         └──────the run was refused─▶ FAILED
//	 ├─a scheduled run of the template goes on─▶ SKIPPED
//	 └─no server started it within startGrace─▶ MISSED
//
// STARTING is stored in the transaction that moves the schedule to its next time, before anything is created: a server
// that dies never has a run start twice. Another server then reads from the run what became of the start.
package schedule
