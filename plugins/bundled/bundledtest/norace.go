//go:build !race

package bundledtest

// Race reports that the race detector watches.
const Race = false
