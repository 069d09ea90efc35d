//go:build unix

package wiring

import (
	"fmt"
	"syscall"
	"time"
)

// ProcessCPU returns the user and system time that this process has taken.
func ProcessCPU() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("reading the process's CPU time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
