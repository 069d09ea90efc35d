//go:build !linux

package exec

import "time"

// spent is how long f takes.
func cpuTime(f func() error) (time.Duration, error) {
	began := time.Now()
	err := f()
	return time.Since(began), err
}
