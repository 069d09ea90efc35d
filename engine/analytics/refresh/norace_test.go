//go:build !race

package refresh_test

const raceEnabled = false
