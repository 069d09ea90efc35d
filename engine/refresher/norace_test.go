//go:build !race

package refresher_test

const raceEnabled = false
