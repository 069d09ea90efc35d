//go:build !unix

package server

func freeBytes(string) *int64 { return nil }

func openFiles() uint64 { return 2 * maxConnections }
