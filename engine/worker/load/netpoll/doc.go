// Package netpoll waits as cheaply, or as exactly, as the system can: a Poller for the sockets
// of an event loop, which may keep a processor that was lent to it, and a Waiter for
// the short times between the arrivals of an open loop. It knows nothing of operations.
package netpoll
