// Package findmax decides the steps of a search for the highest load that a
// target sustains, and judges each of them. It reads no clock and waits for
// nothing: its caller runs the level that Next names, measures it, and tells
// Observe; what comes next follows from what was observed alone.
//
//	STEPPING ──a step is not stable──▶ BISECTING ──limit enclosed──▶ CONFIRMING ──stable again──▶ DONE
//	    │                                  ▲                            │
//	    └──upper bound reached─────────────┼────────────────────────────┤
//	                                       └──not stable this time──────┘
//
// The climb adds one increment a step. Step 1 is the baseline. A step is not
// stable when operations fail too often, the warehouse queues, the P95 of the slowest
// run worker leaves the baseline (or the latency objectives, which replace that
// rule), or throughput has stopped growing: a gain below QPSStabilityPct that is
// also below a fifth of the gain in load, in two steps running.
//
// After a plateau the answer is the lowest level that reaches it, because more
// connections bring nothing but latency; after everything else it is the highest
// level that was stable. Either is measured once more before it is believed.
package findmax
