package simtest

import (
	"context"
	"io"
	"path/filepath"
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/store"
)

// boots gives a server a node in its own process: it lives and ends with it, and its disk is that of the server's
// machine, which the next server of the same owner finds.
func (s *simulation) boots(srv *server) {
	n := &node{w: s.w, sim: s, name: protocol.OwnNode, folder: "own-" + srv.name, capacity: s.ownCapacity,
		clock: srv.clock, own: srv, disk: s.ownDisks[srv.owner]}
	if n.disk == "" {
		n.disk = filepath.Join(s.dir, n.folder+"-0")
	}
	n.start()
	srv.own = n
	srv.wires = append(srv.wires, &wire{w: s.w, srv: srv, node: n})
}

// ownEnd is the server's end of a stream to its own node, which is no protocol.PluginReceiver.
type ownEnd struct{ e serverEnd }

func (o ownEnd) Send(ctx context.Context, m protocol.ToNode) error { return o.e.Send(ctx, m) }

func (o ownEnd) Receive(ctx context.Context) (protocol.FromNode, error) { return o.e.Receive(ctx) }

func (o ownEnd) Close() error { return o.e.Close() }

func (o ownEnd) OpenPart(ctx context.Context, p protocol.WorkReady) (io.ReadCloser, error) {
	return o.e.OpenPart(ctx, p)
}

// strands reports whether a load goes on because its server reaches nothing and nobody else is given its part: one on the
// own node of a server that is stopped, of a FIXED run, or of a run that another server has stopped before the lease of
// this one had run out. It hears of what others have decided once it goes on.
func (l *played) strands(touched time.Time) bool {
	own := l.p.node.own
	return own != nil && (own.paused || time.Since(own.wentOn) < promptly) &&
		(!l.p.node.sim.runs[l.run].Scaling.Elastic() || touched.Sub(own.stoodStill) < store.LeaseDuration+time.Second)
}
