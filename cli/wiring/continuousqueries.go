package wiring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// RunStopper are what a rule can stop.
type RunStopper interface {
	StopAs(ctx context.Context, runID string, asked lifecycle.StopRequested) (engine.Run, error)
}

// StreamOptions are what the streams of a server are made of.
type StreamOptions struct {
	DataDir string
	Catalog catalog.Store
	// Owner names the server.
	Owner string
	// Hub is what the product tells.
	Hub    *system.Hub
	Egress *egress.Policy
	// ConnectionOpener are those that sinks name, and Reader reads their connection strings.
	Connections ConnectionOpener
	Reader      DSNReader
	// Memory is what queries may hold.
	Memory memory.Limits
	// ReleaseAfter is from when on what a query that ends has on a lost node counts as gone.
	ReleaseAfter time.Duration
	// Nodes are those of the cluster.
	Nodes func() []nodes.NodeInfo
	// Fragments leads to those that run fragments.
	Fragments FragmentNodes
	Runs      RunStopper
	Log       zerolog.Logger
}

// Streams are the continuous queries of a server.
type Streams struct {
	*coordinator.Coordinator
	feeds *Connectors
}

// OpenContinuousQueries starts the coordinator of continuous queries. Their files are in the folder streams of the data
// directory.
func OpenContinuousQueries(ctx context.Context, o StreamOptions) (*Streams, error) {
	folder, err := openFolder(o.DataDir)
	if err != nil {
		return nil, err
	}
	reached := tables{o.Connections, o.Reader}
	f := &Connectors{Folder: folder, Hub: o.Hub, Egress: o.Egress, StopRun: o.stop, tables: reached}
	c, err := coordinator.Open(
		ctx,
		coordinator.Options{Store: o.Catalog, Connectors: f, Memory: o.Memory, Runner: &fragmentRunner{nodes: o.Fragments},
			Tables: reached, Owner: o.Owner, Cluster: o, Sources: system.Sources, ReleaseAfter: o.ReleaseAfter,
			Log: o.Log},
	)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	o.Hub.OnMissingNode(c.Wake)
	return &Streams{c, f}, nil
}

// openFolder opens the folder of files, and makes it.
func openFolder(dataDir string) (*connector.Folder, error) {
	name := filepath.Join(dataDir, "streams")
	if err := os.MkdirAll(name, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of streams: %w", err)
	}
	return connector.OpenFolder(name)
}

// Metrics are what queries of this server tell as gauges.
func (s *Streams) Metrics() *connector.Metrics { return &s.feeds.Metrics }

// Output returns the last rows of a query whose sink is of the type PRINT.
func (s *Streams) Output(id int64) []string { return s.feeds.Printed.Rows(id) }

// Alerts are the last ones that queries of this server gave, the newest first.
func (s *Streams) Alerts() []connector.Alert { return s.feeds.Alerts.List() }

// Trouble is what the sink of a query of this server waits for, if anything.
func (s *Streams) Trouble(id int64) (connector.SinkProblem, bool) { return s.feeds.Failures.Get(id) }

// Close ends all queries; the catalog stays as it is.
func (s *Streams) Close(ctx context.Context) error {
	return errors.Join(s.Coordinator.Close(ctx), s.feeds.Folder.Close())
}

// defaultSlots is how many fragments a node is thought to take until somebody says otherwise.
const defaultSlots = 16

// Workers are the nodes of the cluster as workers of streams. The node in the process of a server is none: what it
// would run the server does.
func (o StreamOptions) Workers() []catalog.Worker {
	list := []catalog.Worker{}
	for _, n := range o.Nodes() {
		if n.NodeID == "" || n.NodeID == protocol.OwnNode {
			continue
		}
		w := catalog.Worker{Host: n.NodeID, Slots: defaultSlots, State: catalog.Unreachable}
		switch n.State {
		case nodes.NodeActive, nodes.NodeProbing:
			w.State = catalog.Active
		case nodes.NodeDraining:
			w.State = catalog.Draining
		}
		list = append(list, w)
	}
	return list
}

// HasLoad reports whether a node has a run worker of this server.
func (o StreamOptions) HasLoad(host string) bool {
	return slices.ContainsFunc(o.Nodes(), func(n nodes.NodeInfo) bool {
		return sql.SameName(n.NodeID, host) && len(n.Workers) > 0
	})
}

// Removed reports whether an operator has taken a node out: from what the servers dial, or by its name.
func (o StreamOptions) Removed(host string) bool {
	return slices.ContainsFunc(o.Nodes(), func(n nodes.NodeInfo) bool {
		return sql.SameName(n.NodeID, host) && (n.State == nodes.NodeRemoved || n.TakenOut)
	})
}

// stop stops a run as a guardrail does.
func (o StreamOptions) stop(ctx context.Context, runID, sentence string) error {
	_, err := o.Runs.StopAs(
		ctx,
		runID,
		lifecycle.StopRequested{Reason: engine.StopGuardrail, Message: sentence, By: "rule"},
	)
	if engine.HasCode(err, engine.CodeConflict) {
		return connector.ErrEnded
	}
	return err
}
