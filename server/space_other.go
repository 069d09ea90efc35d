//go:build !unix

package server

func freeBytes(string) *int64 { return nil }
