// Package replay makes the feeds of runs that issue recorded operations again:
// those of a text (CSV or JSON lines), and those of a run that Loadstone recorded.
//
// A feed is in the order of time and is dealt out: of the operations and whole
// transactions, number i goes to run worker i modulo their number. Each worker's
// share keeps its times, so together they arrive as they were recorded.
package replay
