package store

import (
	"github.com/loadstone-db/loadstone/engine"
)

// RunCommandKind is what is wanted of a run.
type RunCommandKind string

// What can be wanted of a run.
const (
	CommandStop           RunCommandKind = "STOP"
	CommandStopEnrichment RunCommandKind = "STOP_ENRICHMENT"
)

// RunCommand is what somebody wants of a run, asked at a server that does not carry it.
type RunCommand struct {
	// Seq rises with each command that is noted.
	Seq   int64
	RunID string
	Kind  RunCommandKind
	// By is who asked, and Server where.
	By, Server string
	EnqueuedAt engine.Time
	// HeardBy is the server that does it: the one that carries the run, or one that takes it over. It is empty while none
	// has said so since the command was enqueued last.
	HeardBy string
	// AckedBy is the server that has done it, or has seen that there is nothing to do;
	// empty until then.
	AckedBy string
}
