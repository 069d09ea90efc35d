// Package admission lets runs in where the nodes have room for them: it says what a run needs,
// refuses what can never fit, keeps those that must wait in their order, and starts them when
// room comes. Every server does so for all runs; who starts one is decided by the control store.
package admission

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	clusternodes "github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/placement"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/store"
)

const (
	// pollInterval is how soon a server sees that there is room for a run that waits. It falls
	// together with no other round of a server.
	pollInterval = 1009 * time.Millisecond
	// storeTimeout is how long the store may take for one call.
	storeTimeout = 10 * time.Second
	// joinTimeout is how long the ledger may take while a run waits to grow.
	joinTimeout = 2 * time.Second
	// ownNodeSeparator stands between the name of a server's own node and the server: all servers' own nodes
	// have the same name.
	ownNodeSeparator = "@"
)

// Nodes is what the controller needs of engine/cluster/nodes.
type Nodes interface {
	Nodes() []clusternodes.NodeInfo
	Capacity() clusternodes.Capacity
}

// Store is what runs hold on the nodes that servers share, and the queue of those that wait
// for it. The change of a run to RUNNING takes its room (Transition.Admission), and the change to a
// terminal status gives it back, whoever writes it. Those of a pool start in their order, but
// for runs that are unfit for placement.BypassAfter: these hold back nobody.
type Store interface {
	// Enqueue lets a PREPARED run wait, behind those that wait already; else it is ErrConflict.
	// A run that waits keeps its place.
	Enqueue(ctx context.Context, w store.QueuedRun) error
	Ledger(ctx context.Context) (store.Ledger, error)
	// MarkFeasible says that there are nodes that could carry these runs, were they free. Those that do not wait are left
	// out.
	MarkFeasible(ctx context.Context, runIDs []string) error
	// Reserve takes room for run workers that join a live run or move, for all of them or none:
	// ErrNoCapacity. What they held before is given back.
	Reserve(ctx context.Context, runID string, epoch int64, a *store.Admission) error
	// SetReservations writes what run workers of a run hold, whether or not there is room for it; one
	// without a node holds nothing any more. Repeating it is harmless.
	SetReservations(ctx context.Context, runID string, epoch int64, held []engine.Reservation) error
}

// Options are what a controller is made of.
type Options struct {
	Store Store
	Nodes Nodes
	// Owner names this server.
	Owner string
	Runs  Runs
	// Authorizer is asked before a run begins that has waited; nil lets all begin.
	Authorizer Authorizer
	// WaitForNodes is how long a run may wait that is larger than all nodes together, because
	// nodes come when they are wanted; 0 refuses such runs.
	WaitForNodes time.Duration
	// Standalone: the process has its own node only and ends after runs of its own. These wait for nobody else's, and it
	// starts nobody else's.
	Standalone bool
	Log        zerolog.Logger
}

// Runs are the runs that wait.
type Runs interface {
	// StartWaiting starts a run that waits, by who asked for it.
	StartWaiting(ctx context.Context, runID, by string) error
	// Cancel ends a run that waits, with the reason: it has for too long, or may not begin.
	Cancel(ctx context.Context, runID string, stop engine.StopReason, why string) error
}

// Authorizer says whether runs are still for those who have started them.
type Authorizer interface {
	// Authorize is an error with CodeForbidden when a run that has waited is not for whoever asked for it any more; it is
	// ended then. Another error leaves it waiting.
	Authorize(ctx context.Context, runID string) error
}

// Controller lets runs in. Its methods are safe for concurrent use.
type Controller struct {
	opts Options
	// wake has it look before its time.
	wake chan struct{}

	mu     sync.Mutex
	ledger store.Ledger // as last read
	// dialDeadline is when the nodes had had their first time to introduce themselves. hopes are the runs that were let
	// wait since then for nodes that are being dialled, and until when.
	dialDeadline time.Time
	pending      map[string]time.Time
	// graceGiven: what was waiting when this server came has been given its time anew. Keep's alone.
	graceGiven bool
}

// New makes a controller; nothing is started before Keep.
func New(opts Options) *Controller {
	return &Controller{opts: opts, wake: make(chan struct{}, 1), pending: map[string]time.Time{}}
}

// ledgerName is that of a node in the ledger.
func (d *Controller) ledgerName(node string) string {
	if node == protocol.OwnNode {
		return node + ownNodeSeparator + d.opts.Owner
	}
	return node
}

// ledgerNodes are those that take run workers now, by their names in the ledger.
func (d *Controller) ledgerNodes() (all []engine.NodeCapacity) {
	for _, n := range d.opts.Nodes.Nodes() {
		if n.AcceptingWork && n.NodeID != "" {
			all = append(all, engine.NodeCapacity{ID: d.ledgerName(n.NodeID), Capacity: n.Capacity})
		}
	}
	return all
}

// Demand is what the run workers of a run need at first, and where they may be. only is the
// node that alone can carry them, empty where any can.
func (d *Controller) Demand(sc engine.Scenario, shares []int, only string) *store.Admission {
	if d.opts.Standalone {
		only = protocol.OwnNode
	}
	if only != "" {
		only = d.ledgerName(only)
	}
	if !sc.Scaling.Elastic() && !sc.Workload.IsSearch() {
		// Its stages are followed by the run workers that it begins with.
		shares = engine.Spread(max(placement.Total(workerDemands(shares, "")), sc.PeakConnections(0)), len(shares))
	}
	return &store.Admission{Nodes: d.ledgerNodes(), Demands: workerDemands(shares, only)}
}

func workerDemands(shares []int, only string) []engine.WorkerDemand {
	all := make([]engine.WorkerDemand, len(shares))
	for i, n := range shares {
		all[i] = engine.WorkerDemand{ID: scaling.WorkerID(i), Connections: n, Only: only}
	}
	return all
}

// ReserveJoin reserves room for a run worker that joins a live run, and says on which node it is.
func (d *Controller) ReserveJoin(ctx context.Context, runID string, epoch int64, workerID string, connections int,
	only string) (on map[string]string, err error) {
	if only != "" {
		only = d.ledgerName(only)
	}
	a := &store.Admission{
		Nodes:   d.ledgerNodes(),
		Demands: []engine.WorkerDemand{{ID: workerID, Connections: connections, Only: only}},
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if err := d.opts.Store.Reserve(ctx, runID, epoch, a); err != nil {
		return nil, err
	}
	return d.Assignments(a), nil
}

// Assignments are the nodes of an admission, by run worker, as the fleet names them.
func (d *Controller) Assignments(a *store.Admission) map[string]string {
	on := make(map[string]string, len(a.On))
	for id, node := range a.On {
		if node == d.ledgerName(protocol.OwnNode) {
			node = protocol.OwnNode
		}
		on[id] = node
	}
	return on
}

// Reserved is what a run worker holds, as the ledger has it.
func (d *Controller) Reserved(workerID, node string, connections int) engine.Reservation {
	return engine.Reservation{WorkerID: workerID, NodeID: d.ledgerName(node), Connections: connections}
}

// CheckCapacity refuses a scenario that the nodes could not carry if they had nothing else, unless
// nodes come when they are wanted. only is the node that alone can carry it, empty where any can.
func (d *Controller) CheckCapacity(sc engine.Scenario, only string) error {
	err := d.opts.Nodes.Capacity().Fits(sc)
	switch {
	case err == nil:
		err = d.checkTotalCapacity(sc, only)
	case engine.HasCode(err, engine.CodeUnsupported):
		return err
	}
	if d.opts.WaitForNodes > 0 && only == "" || d.nodesPending() {
		return nil
	}
	return err
}

// checkTotalCapacity refuses a scenario whose run workers no node can hold as they are cut.
func (d *Controller) checkTotalCapacity(sc engine.Scenario, only string) error {
	shares, err := scaling.Shares(sc)
	if err != nil {
		return err
	}
	a := d.Demand(sc, shares, only)
	if placement.FitsWhenEmpty(a.Nodes, "", a.Demands) {
		return nil
	}
	room := placement.Free(a.Nodes, placement.Pool(a.Demands))
	if only != "" {
		return engine.InvalidField("workload.concurrent_connections",
			fmt.Sprintf("%d connections do not fit on the server's own node, which alone reaches what this run needs "+
				"and holds %d", placement.Total(a.Demands), room.Connections),
			"lower them, or let the node hold more (--local-capacity)")
	}
	largest := 0
	for _, n := range a.Nodes {
		largest = max(largest, n.Capacity)
	}
	return engine.InvalidField("workload.concurrent_connections",
		fmt.Sprintf("%d connections of %s do not fit on the nodes, which hold %d together and %d each at most",
			placement.Total(a.Demands), engine.Count(len(a.Demands), "run worker"), room.Connections, largest),
		"share them between more run workers (scaling.worker_count), lower them, or add a node")
}

// Enqueue lets a run wait for room.
func (d *Controller) Enqueue(ctx context.Context, runID, by string, a *store.Admission) error {
	d.addPending(runID, a)
	err := d.opts.Store.Enqueue(
		ctx,
		store.QueuedRun{RunID: runID, Pool: placement.Pool(a.Demands), Demands: a.Demands, By: by},
	)
	d.Wake()
	return err
}

// Wake has the controller look at once: room may have come.
func (d *Controller) Wake() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run starts runs that wait when there is room for them, until ctx ends.
func (d *Controller) Run(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	d.mu.Lock()
	d.dialDeadline = time.Now()
	d.mu.Unlock()
	silent := false
	for {
		err := d.admit(ctx)
		if err != nil && ctx.Err() == nil && !silent {
			d.opts.Log.Warn().Err(err).Msg("what runs hold on the nodes cannot be read; it is read again and again")
		}
		silent = err != nil
		select {
		case <-ticker.C:
		case <-d.wake:
		case <-ctx.Done():
			return
		}
	}
}

// admit starts those for which there is room, the first of each pool first.
func (d *Controller) admit(ctx context.Context) error {
	for {
		l, err := d.readLedger(ctx)
		if err != nil {
			return err
		}
		if d.opts.Standalone {
			l.Queued = slices.DeleteFunc(
				l.Queued,
				func(w store.QueuedRun) bool { return w.Pool != d.ledgerName(protocol.OwnNode) },
			)
		} else if !d.graceGiven {
			// The nodes of a server that has just begun are being dialled: it has not seen any go.
			if err := d.markFitting(ctx, waitingIDs(l.Queued)); err != nil {
				return err
			}
			for i := range l.Queued {
				l.Queued[i].Unfit = 0
			}
		}
		d.graceGiven = true
		if len(l.Queued) == 0 {
			return nil
		}
		nodes := placement.WithReservations(d.ledgerNodes(), l.Reserved, "")
		d.failOverdue(ctx, l, nodes)
		t := nextAdmissions(l.Queued, nodes)
		if err := d.markFitting(ctx, t.fit); err != nil {
			return err
		}
		started := false
		for _, w := range t.start {
			may, ended := d.authorize(ctx, w.RunID)
			if started = started || ended; !may {
				continue
			}
			if err := d.opts.Runs.StartWaiting(ctx, w.RunID, w.By); err != nil {
				// Another server was faster, or it is tried again.
				d.opts.Log.Debug().Err(err).Str("run_id", w.RunID).Msg("a run that waits was not started")
				continue
			}
			started = true
		}
		if !started {
			return nil
		}
	}
}

// failOverdue ends the runs that have waited long enough for nodes that did not come.
func (d *Controller) failOverdue(ctx context.Context, l store.Ledger, nodes []engine.NodeCapacity) {
	d.failExpired(ctx, l, nodes)
	if d.opts.WaitForNodes <= 0 {
		return
	}
	for _, w := range l.Queued {
		if w.Unfit < d.opts.WaitForNodes || placement.FitsWhenEmpty(nodes, w.RunID, w.Demands) {
			continue
		}
		why := fmt.Sprintf("No nodes came in %s: the run %s", d.opts.WaitForNodes,
			placement.WaitReason(nodes, w.Demands, 0))
		if err := d.opts.Runs.Cancel(ctx, w.RunID, engine.StopSetupFailure, why); err != nil {
			d.opts.Log.Warn().Err(err).Str("run_id", w.RunID).Msg("a run that waits for nodes could not be ended")
		}
	}
}

// authorize tells whether a run that has waited may begin still. ended tells that it may not, and is over.
func (d *Controller) authorize(ctx context.Context, runID string) (may, ended bool) {
	if d.opts.Authorizer == nil {
		return true, false
	}
	err := d.opts.Authorizer.Authorize(ctx, runID)
	switch {
	case err == nil:
		return true, false
	case !engine.HasCode(err, engine.CodeForbidden):
		d.opts.Log.Warn().Err(err).Str("run_id", runID).Msg("whether a run that waits may begin is not known; it waits on")
		return false, false
	}
	why := engine.AsError(err).Message
	if err := d.opts.Runs.Cancel(ctx, runID, engine.StopSetupFailure, why); err != nil {
		d.opts.Log.Warn().Err(err).Str("run_id", runID).Msg("a run that may not begin could not be ended")
		return false, false
	}
	d.opts.Log.Info().Str("run_id", runID).Str("reason", why).Msg("a run that waited may not begin any more")
	return false, true
}

// markFitting says that there are nodes for these runs.
func (d *Controller) markFitting(ctx context.Context, runIDs []string) error {
	if len(runIDs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return d.opts.Store.MarkFeasible(ctx, runIDs)
}

// readLedger reads the ledger.
func (d *Controller) readLedger(ctx context.Context) (store.Ledger, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	l, err := d.opts.Store.Ledger(ctx)
	if err != nil {
		return l, fmt.Errorf("reading what runs hold: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ledger = l
	return l, nil
}

// snapshot is the ledger as last read, and the nodes with what runs hold on them.
func (d *Controller) snapshot() (store.Ledger, []engine.NodeCapacity) {
	d.mu.Lock()
	l := d.ledger
	d.mu.Unlock()
	return l, placement.WithReservations(d.ledgerNodes(), l.Reserved, "")
}

// FreeConnections is what was free on the nodes when the ledger was last read.
func (d *Controller) FreeConnections() placement.FreeCapacity {
	_, nodes := d.snapshot()
	return placement.Free(nodes, "")
}

// CountWaiting counts the runs of a user that wait, one of them left out.
func (d *Controller) CountWaiting(by, but string) (n int) {
	l, _ := d.snapshot()
	for _, w := range l.Queued {
		if w.By == by && w.RunID != but {
			n++
		}
	}
	return n
}

// Waiting says what a run waits for, nil when it does not.
func (d *Controller) Waiting(ctx context.Context, runID string) (*engine.Waiting, error) {
	l, err := d.readLedger(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(l.Queued, func(w store.QueuedRun) bool { return w.RunID == runID })
	if i < 0 {
		return nil, nil
	}
	s := waitingAt(l.Queued, i, placement.WithReservations(d.ledgerNodes(), l.Reserved, ""))
	if d.isPending(runID) {
		s.Reason += dialingNote
	}
	return s, nil
}

// waitingAt is what the one at i waits for.
func waitingAt(all []store.QueuedRun, i int, nodes []engine.NodeCapacity) *engine.Waiting {
	w := all[i]
	ahead := 0
	for _, other := range all[:i] {
		if other.Pool == w.Pool && !isPassedOver(other) {
			ahead++
		}
	}
	free := placement.Free(nodes, w.Pool)
	s := &engine.Waiting{Since: w.Since, Position: ahead + 1, Connections: placement.Total(w.Demands),
		FreeConnections: free.Connections, Nodes: free.Nodes, Reason: placement.WaitReason(nodes, w.Demands, ahead)}
	if isPassedOver(w) && !placement.FitsWhenEmpty(nodes, w.RunID, w.Demands) {
		s.Reason += "; runs behind it are let by until nodes for it come"
	}
	return s
}
