//go:build race

package results

// raced: looking at every execution of a run is work that the race detector makes ten times as long. It gets a part;
// make test does the whole without it.
const raceEnabled = true
