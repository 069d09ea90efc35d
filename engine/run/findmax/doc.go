// Package findmax decides the steps of a search for the highest load that a
// target sustains, and judges each of them. It reads no clock and waits for
// nothing: its caller runs the level that Next names, for as long as Lengthening
// says, and tells Observe; what comes next follows from what was observed alone.
//
//	STEPPING ──a level fails, or no gain──▶ BISECTING ──limit enclosed──▶ CONFIRMING ──held again──▶ DONE
//	    │                                       ▲                            │
//	    └──upper bound reached──────────────────┴───────not held this time───┘
//
// The climb adds one increment a step. Step 1 is the baseline. A level fails when
// operations fail too often, the warehouse queues, the P95 of the slowest run
// worker leaves the baseline (or the latency objectives, which replace that rule), or
// a rate is not reached; it does so more than once before that counts, and the target recovers in between
// (RECOVERING). The climb ends as well when throughput has stopped growing: a gain below QPSStabilityPct that is
// also below a fifth of the gain in load, in two steps running.
//
// Everything behind the climb follows from the table of levels (levels.go). In a search over connections
// the answer is the lowest level that reaches the highest throughput of those that hold, because more
// connections bring nothing but latency; in one over the rate it is the highest that holds. Either is measured
// once more before it is believed.
//
// A step in which the generator was late, or too few operations ended, is not judged. Where an overload seems to
// outlast its cause, the search looks at the end (OVERLOADING), and names the hysteresis.
package findmax
