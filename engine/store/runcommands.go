package store

import (
	"context"

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
	// Seq rises with each wish that is noted.
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

// RunCommands bring what is wanted of a run from the server that is asked to the one that carries
// it, or that takes it over.
type RunCommands interface {
	// EnqueueRunCommand notes a wish and returns its Seq; the same that is noted already and not
	// answered is that one. ErrNotFound: there is no such run.
	EnqueueRunCommand(ctx context.Context, w RunCommand) (seq int64, err error)
	// RunCommand reads one; ErrNotFound when its run is deleted.
	RunCommand(ctx context.Context, seq int64) (RunCommand, error)
	// PendingRunCommands returns those that nobody has answered, oldest first.
	PendingRunCommands(ctx context.Context) ([]RunCommand, error)
	// AckRunCommand notes that a wish is done. Repeating it is harmless; the first answer stays.
	AckRunCommand(ctx context.Context, seq int64, server string) error
	// WatchRunCommands calls heard as soon as it listens, and whenever a wish has been noted since.
	// It returns when ctx ends, or listening has failed.
	WatchRunCommands(ctx context.Context, heard func()) error
}
