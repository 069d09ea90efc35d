package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/loadstone-db/loadstone/engine/control"
)

// Part is a finished part of a record, with the node that keeps it until it is acknowledged.
type Part struct {
	control.WorkReady
	Node Node
}

// Acknowledge tells the node that the part is safe, and that it may delete its own.
func (p Part) Acknowledge() {
	a := p.Artifact
	_ = p.Node.Send(control.ArtifactAck{RunID: a.RunID, WorkerID: a.WorkerID, Name: a.Name, SHA256: a.SHA256})
}

// Fetch gets a copy of the part, which the caller may move or delete: a second name of
// the node's own file where both share a disk, or else a file in the folder scratch.
func (p Part) Fetch(ctx context.Context, scratch string) (path string, err error) {
	if own, ok := strings.CutPrefix(p.ArtifactURL, "file://"); ok {
		// The node keeps its own until the part is acknowledged: after a kill in between it
		// is announced again. A node sweeps this name.
		path = own + ".tmp"
		if err := os.Link(own, path); err != nil && !errors.Is(err, os.ErrExist) {
			return own, nil
		}
		return path, nil
	}
	n, ok := p.Node.(*node)
	if !ok {
		return "", fmt.Errorf("fetching %s: no node holds it", p.Artifact.Name)
	}
	n.mu.Lock()
	end := n.end
	n.mu.Unlock()
	remote, ok := end.(control.Remote)
	if !ok {
		return "", fmt.Errorf("fetching %s: there is no stream to the node that holds it", p.Artifact.Name)
	}
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return "", fmt.Errorf("fetching %s: %w", p.Artifact.Name, err)
	}
	f, err := os.CreateTemp(scratch, "part-*.parquet.tmp")
	if err != nil {
		return "", fmt.Errorf("fetching %s: %w", p.Artifact.Name, err)
	}
	if err = remote.FetchPart(ctx, p.WorkReady, f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}
