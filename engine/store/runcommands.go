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
	// AckedBy is the server that has done it, or has seen that there is nothing to do;
	// empty until then.
	AckedBy string
}
