//go:build !linux

package linear

import "errors"

// Elsewhere pages that are given back need not be zero afterwards.
func reserve(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func makeAccessible([]byte) error { return errors.ErrUnsupported }

func releaseAndProtect([]byte) error { return errors.ErrUnsupported }

func unmap([]byte) {}
