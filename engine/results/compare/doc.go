// Package compare says whether one run was better or worse than another, and
// how sure that is. It is pure: the same samples give the same comparison.
//
// Executions of one run are not independent: a checkpoint or a garbage
// collection slows thousands of neighbours at once, so a test over single
// executions calls any two runs different. The verdict therefore rests on a block
// bootstrap: the measurement is cut into blocks of seconds, blocks are drawn
// with replacement a thousand times (with several runs on a side, runs first), each
// metric is computed from the merged distributions of the draw, and the middle
// 99 % of the ratios are the interval. A metric is better or worse when that interval excludes
// "no difference" and the difference is at least the tolerance; it is the same
// when the whole interval lies within the tolerance; else it is unclear, and
// longer or more runs would tell.
//
// The Mann–Whitney statistic over all executions is shown beside it as an
// effect size: the probability that an execution of B was slower than one of A.
package compare
