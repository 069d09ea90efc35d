package protocol

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// KindLeaf is the kind of the artifact that a work of a query makes. Its run is the query, its worker the leaf, and its
// name that of the work.
const KindLeaf = "leaf"

// WorkKey names a work of a query.
type WorkKey struct{ QueryID, LeafID, WorkID string }

// Artifact is what the work makes, as far as its key says it.
func (k WorkKey) Artifact() engine.Artifact {
	return engine.Artifact{Kind: KindLeaf, RunID: k.QueryID, WorkerID: k.LeafID, Name: k.WorkID + ".parquet"}
}

// ArtifactWork is the work that has made an artifact, where that is one of a query.
func ArtifactWork(a engine.Artifact) (k WorkKey, ok bool) {
	return WorkKey{a.RunID, a.WorkerID, strings.TrimSuffix(a.Name, ".parquet")}, a.Kind == KindLeaf
}

// AssignWork gives the node a work of a query. The node answers WorkAccepted or WorkRejected, then WorkReady or
// WorkFailed. It belongs to its stream: when that ends, so does the work, and its artifact goes.
type AssignWork struct {
	WorkKey
	// Attempt counts from 1.
	Attempt int
	// Task is what is evaluated, Segments over which series; both are for who evaluates, and documents on their way.
	Task, Segments []byte
	// TraceParent is what the node's spans are part of; empty where none are made.
	TraceParent string
}

// CancelWork ends a work, or lets go of what it has made.
type CancelWork struct{ WorkKey }

// WorkAccepted answers AssignWork.
type WorkAccepted struct{ WorkKey }

// WorkRejected answers AssignWork when the node takes no work.
type WorkRejected struct {
	WorkKey
	Reason string
}

// WorkFailed says that a work has come to nothing.
type WorkFailed struct {
	WorkKey
	Reason string
	// Code says what kind of failure it is, to who evaluates. Final: it would fail on any node.
	Code  string
	Final bool
	// Cancelled: it answers CancelWork.
	Cancelled bool
}

// SegmentRequest asks for a segment that a work needs and the node does not have. The server answers by a call beside
// the stream.
type SegmentRequest struct{ RunID, Name, SHA256 string }

// ErrNotWanted says that a node does not want a segment (any more): it has it, another server brings it, or nobody
// waits for it.
var ErrNotWanted = errors.New("the segment is not wanted")

// ErrAborted says that a node did not take a segment to its end, and that those who waited for it there know.
var ErrAborted = errors.New("the node gave the segment up")

// SegmentTaker is a ServerEnd whose node takes segments, by calls that the server makes.
type SegmentTaker interface {
	ServerEnd
	// PutSegment gives the node a segment that it wanted, or is ErrNotWanted or ErrAborted.
	PutSegment(ctx context.Context, sha256 string, bytes int64, content io.Reader) error
	// RefuseSegment tells it why there is none.
	RefuseSegment(ctx context.Context, sha256, reason string) error
}

func (AssignWork) toNode() {}
func (CancelWork) toNode() {}

func (WorkAccepted) fromNode()   {}
func (WorkRejected) fromNode()   {}
func (WorkFailed) fromNode()     {}
func (SegmentRequest) fromNode() {}

// IsQueryMessage reports whether a message to a node is about a query: it counts on the stream that it was meant for,
// and on no later one.
func IsQueryMessage(m ToNode) bool {
	switch m.(type) {
	case AssignWork, CancelWork:
		return true
	}
	return false
}
