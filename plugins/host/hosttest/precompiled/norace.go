//go:build !race

package precompiled

const race = false
