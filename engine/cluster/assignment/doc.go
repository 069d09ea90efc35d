// Package assignment decides which node carries which work, and which nodes can
// be relied upon. It is pure: what has happened, and when, goes in; what is to
// be done comes out. It has no clock, no goroutine and no I/O, so that every
// course of events can be played again. Runs give it their run workers, queries
// their leaves; it knows of neither more than a Work.
//
// # Nodes
//
//	        HelloReceived            3 misses, StreamLost
//	(none) ────────→ ACTIVE ─────────────────────────→ UNREACHABLE
//	                    ↑        PongReceived, HelloReceived          │
//	                    └───────────────────────────────────┘
//	           Removed from any state → REMOVED ── Added → UNREACHABLE
//	           DialStopped, of an UNREACHABLE one that carries nothing → (none)
//
// An ACTIVE node is pinged once a heartbeat. A ping is missed when no answer
// has come within the node's timeout, which follows its last round trip. An
// UNREACHABLE node is out of rotation and is probed less often; the first answer
// makes it ACTIVE. A node that drains, or takes no work, is out of
// rotation and keeps what it has accepted.
//
// # Work
//
//	WAITING → ASSIGNED → ACCEPTED → READY → DONE
//
// and FAILED, CANCELLED or LOST from any of these but DONE. What happens to it
// when its node becomes unreachable is the work's own: OnLoss says whether it is
// done again elsewhere at once, or stays where it is until the node must have
// stopped by itself.
//
// # Trust
//
// A message of a session that is over is ignored. The same completion may be
// announced twice, and two nodes may complete the same work, also because its owner
// found the first of them late: the first completion that is
// accepted wins, and the others are told to forget theirs. A node that holds
// what is over, or another's, is told to stop. What nobody here has given it is
// Unknown: it may be of another coordinator, which Adopted would tell of.
package assignment
