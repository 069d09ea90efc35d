//go:build !linux

package host

import "errors"

// Elsewhere pages that are given back need not be zero afterwards.
func reserveAddresses(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func openPages([]byte) error { return errors.ErrUnsupported }

func shutPages([]byte) error { return errors.ErrUnsupported }

func unmapPages([]byte) {}
