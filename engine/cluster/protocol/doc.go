// Package protocol is the stream between the server and its nodes: the messages
// that travel on it, the two ends, and the transport in memory.
//
// # Who speaks
//
// The server dials; one stream exists for each (server, node). The node speaks
// first, with Hello. From then on each side sends when it has something to say:
// AssignRun, RunEvent, RunState, StatusAck, ArtifactAck, Drain and Ping go to the node;
// Status, RunAccepted, RunRejected, WorkerState, Snapshot, Log, WorkReady and
// Pong come back. AssignWork and CancelWork are about queries; WorkAccepted, WorkRejected,
// WorkFailed and WorkReady answer them, and SegmentRequest asks for what they need.
//
// # Order
//
// Messages of one direction arrive in the order in which they were sent, or not
// at all. Nothing is assumed of a successful send: the receiver acknowledges
// what matters (RunAccepted, ArtifactAck). A message may be repeated after a
// reconnect, so every handler is idempotent: events carry a sequence id,
// snapshots a tick, artifacts a checksum.
//
// # Failure
//
// The stream has no queue. What waits for it waits in the sender's Mailbox, which
// outlives sessions: PolicyToNode and PolicyFromNode say of each kind of message
// whether it must arrive, is replaced by a later one, or may be dropped and counted.
// Each send has a deadline, so that a receiver that has stopped reading delays
// neither the other direction nor any other node; the message stays the first. A node
// that has heard nothing for 60 s ends its load by itself.
// RunState is absolute: sent on connect and every 5 s, it heals whatever an
// event lost on the way would have said.
package protocol
