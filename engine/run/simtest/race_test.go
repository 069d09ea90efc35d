//go:build race

package simtest

// raced: the race detector makes a seed several times as long, and runs few of them.
const raced = true
