//go:build race

package refresher

const raceEnabled = true
