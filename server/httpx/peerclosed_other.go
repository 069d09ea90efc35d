//go:build !unix

package httpx

// look sees nothing here: a query whose client is gone goes on to its end.
func peerClosed(uintptr) (closed, waits bool) { return false, false }
