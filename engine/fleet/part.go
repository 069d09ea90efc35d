package fleet

import (
	"context"
	"fmt"
	"io"

	"github.com/loadstone-db/loadstone/engine/control"
)

// Part is a finished part of a record, with the node that keeps it until it is
// acknowledged. It is the source that the part is stored from.
type Part struct {
	control.WorkReady
	Node Node
}

// Acknowledge tells the node that the part is safe, and that it may delete its own.
func (p Part) Acknowledge() {
	a := p.Artifact
	_ = p.Node.Send(control.ArtifactAck{RunID: a.RunID, WorkerID: a.WorkerID, Name: a.Name, SHA256: a.SHA256})
}

// Open begins to read the part from the node that announced it, over the stream that
// there is to it now.
func (p Part) Open(ctx context.Context) (io.ReadCloser, error) {
	n, ok := p.Node.(*node)
	if !ok {
		return nil, fmt.Errorf("fetching %s: no node holds it", p.Artifact.Name)
	}
	n.mu.Lock()
	end := n.end
	n.mu.Unlock()
	if end == nil {
		return nil, fmt.Errorf("fetching %s: there is no stream to the node that holds it: %w", p.Artifact.Name,
			control.ErrClosed)
	}
	return end.OpenPart(ctx, p.WorkReady)
}
