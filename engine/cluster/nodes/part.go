package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// Part is a finished part of a record, with the node that keeps it until it is
// acknowledged. It is the source that the part is stored from.
type Part struct {
	protocol.WorkReady
	Node Node
}

// Acknowledge tells the node that the part is safe, and that it may delete its own.
func (p Part) Acknowledge() {
	a := p.Artifact
	if n, ok := p.Node.(*handle); ok {
		n.acknowledge(p.WorkID)
	}
	_ = p.Node.Send(protocol.ArtifactAck{RunID: a.RunID, WorkerID: a.WorkerID, Name: a.Name, SHA256: a.SHA256})
}

// Open begins to read the part from the node that announced it, over the stream that
// there is to it now.
func (p Part) Open(ctx context.Context) (io.ReadCloser, error) {
	n, ok := p.Node.(*handle)
	if !ok {
		return nil, fmt.Errorf("fetching %s: no node holds it", p.Artifact.Name)
	}
	at, known := n.announced(p.WorkID)
	end := n.stream()
	if end == nil {
		return nil, fmt.Errorf("fetching %s: there is no stream to the node that holds it: %w", p.Artifact.Name,
			protocol.ErrClosed)
	}
	meter := n.fleet.opts.Meter
	about := Work{NodeID: n.ID()}
	if k, ok := protocol.ArtifactWork(p.Artifact); ok {
		about.QueryID, about.LeafID, about.WorkID = k.QueryID, k.LeafID, k.WorkID
	} else {
		about.RunID, about.WorkerID, about.WorkID = p.Artifact.RunID, p.Artifact.WorkerID, p.WorkID
	}
	if known {
		meter.FetchStarted(about, time.Since(at))
	}
	begin := time.Now()
	r, err := end.OpenPart(ctx, p.WorkReady)
	if err != nil {
		meter.Fetched(about, 0, time.Since(begin), true, errors.Is(err, protocol.ErrAnnounced))
		return nil, err
	}
	if f, ok := r.(*os.File); ok {
		return f, nil // of this machine: it is read where it lies, and nothing is fetched
	}
	return &meteredPart{ReadCloser: r, meter: meter, about: about, begin: begin}, nil
}
