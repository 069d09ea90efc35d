// Package matrix runs one workload on several targets, one after another, and
// compares them.
//
//	PREPARED ─start→ RUNNING ─every run has ended─▶ COMPLETED | FAILED
//	    │               └─stop─▶ CANCELLING ─the run under way has left─▶ CANCELLED
//	    └─stop─▶ CANCELLED
//
// Its runs are ordinary ones, made before the first of them starts, so that what
// is wrong with a target is said at once. They name the matrix; the matrix keeps
// nothing that they know. A target whose run fails does not stop the others,
// unless the template asks for that.
//
// A process that ends leaves a matrix RUNNING; the next one goes on with the runs
// that have not been started. The run that was under way is what the orchestrator makes of it.
package matrix
