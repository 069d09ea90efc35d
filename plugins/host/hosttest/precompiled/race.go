//go:build race

package precompiled

// Race reports that the race detector watches.
const Race = true
