//go:build !race

package results

const raced = false
