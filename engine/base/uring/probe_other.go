//go:build !linux

package uring

import "errors"

// Probe says why there are no rings on this system.
func Probe() error { return errors.New("only Linux has io_uring") }
