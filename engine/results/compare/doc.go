// Package compare says whether one run was better or worse than another, and
// how sure that is. It is pure: the same samples give the same comparison.
//
// Executions of one run are not independent: a checkpoint or a garbage
// collection slows thousands of neighbours at once, so a test over single
// executions calls any two runs different. What the seconds of runs tell therefore rests on a block
// bootstrap (bootstrap.go): each measurement is cut into blocks of seconds, blocks are drawn
// with replacement a thousand times, each metric is computed from the merged distributions of the draw, and the middle
// 99 % of the differences are the interval. Runs of one system differ by more than that: how much is learned
// from the runs of each side, beginning with what is usual (between.go), and widens the interval.
//
// A metric is better or worse when the interval excludes
// "no difference" and the difference is at least the tolerance; it is the same
// when the whole interval lies within the tolerance; else it is unclear. How small a difference the runs can show, and
// how many more would show the tolerance, is told beside it. Sides that differ in their workload, load or tables
// are not judged (unlike.go).
//
// The Mann–Whitney statistic over all executions is shown beside it as an
// effect size: the probability that an execution of B was slower than one of A.
package compare
