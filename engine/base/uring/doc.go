// Package uring is what an event loop needs of Linux' io_uring: bytes of many sockets come and go with one system
// call for each round of the loop, which hands over the requests, waits, and finds what was received.
//
// A Ring belongs to the thread that made it: the kernel is told so (SINGLE_ISSUER), and defers all its work for the
// ring to the moments in which that thread enters it (DEFER_TASKRUN). So who makes one has locked its goroutine to the
// thread, and unlocks it after Close. Only Wake may be called by others.
//
//	Send      at most one completion, and none when the socket took everything: it is tried once, without waiting,
//	          while the ring is entered. A socket without room completes with what it took.
//	Receive   a completion for whatever arrives, until one says that there are no More. The end of the stream is one
//	          without bytes.
//	Writable  a completion when there is room in the socket.
//	Cancel    ends a Receive or a Writable, which completes a last time.
//
// Memory. What is sent may lie in Room or anywhere else on the heap; it must stay as it is, and reachable, until the
// next Wait has returned and its completions were taken. What was received lies in buffers of the ring, and is valid
// until the next call of Next. Both are mapped beside the Go heap and given back when the kernel owns none of it: Close
// cancels what is under way and waits for its last completions.
//
// Failure. New says why there can be no ring, as a *RefusedError: io_uring is off, a sandbox forbids it, the kernel is
// too old. A ring may be refused later too, when a filter of system calls is tightened: Wait or Submit then fail, what
// has been received can still be taken, and TakeBack takes back, and names, what was not sent. Other errors may pass,
// and the ring would work again: nothing of it goes on behind its user's back, as what was taken back is not sent, and
// Close hands over what is received until the last Receive has ended. Completions that find no room in the queue are
// kept by the kernel, and end the Receives they belong to; those of a ring that may not be entered any more are lost.
package uring
