package simtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// What runs hold on the nodes, and what is wanted of them, as one server reaches it.

func (s controlStore) Enqueue(ctx context.Context, w store.QueuedRun) error {
	_, err := call(s, ctx, "Enqueue "+w.RunID, w.RunID, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Store.Enqueue(ctx, w)
	})
	return err
}

func (s controlStore) Ledger(ctx context.Context) (store.Ledger, error) {
	return asked(s, ctx, "Ledger", s.Store.Ledger)
}

func (s controlStore) MarkFeasible(ctx context.Context, runIDs []string) error {
	_, err := call(s, ctx, "MarkFeasible", anyRun, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Store.MarkFeasible(ctx, runIDs)
	})
	return err
}

func (s controlStore) Reserve(ctx context.Context, runID string, epoch int64, a *store.Admission) error {
	var on map[string]string
	_, err := call(s, ctx, "Reserve "+runID, runID, func(ctx context.Context) (struct{}, error) {
		one := *a // who gives up goes on with what it has
		err := s.Store.Reserve(ctx, runID, epoch, s.roomy(&one))
		if on = one.On; err == nil {
			s.srv.sim.admitted(runID, one.On)
		}
		return struct{}{}, err
	})
	if err == nil {
		a.On = on
	}
	return err
}

func (s controlStore) SetReservations(ctx context.Context, runID string, epoch int64, held []engine.Reservation) error {
	held = slices.Clone(held)
	_, err := call(s, ctx, "Hold "+runID, runID, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Store.SetReservations(ctx, runID, epoch, held)
	})
	return err
}

func (s controlStore) EnqueueRunCommand(ctx context.Context, w store.RunCommand) (int64, error) {
	return call(s, ctx, "AskOfRun "+w.RunID, anyRun, func(ctx context.Context) (int64, error) {
		return s.Store.EnqueueRunCommand(ctx, w)
	})
}

func (s controlStore) RunCommand(ctx context.Context, seq int64) (store.RunCommand, error) {
	return asked(
		s,
		ctx,
		"RunCommand",
		func(ctx context.Context) (store.RunCommand, error) { return s.Store.RunCommand(ctx, seq) },
	)
}

func (s controlStore) PendingRunCommands(ctx context.Context) ([]store.RunCommand, error) {
	return asked(s, ctx, "PendingRunCommands", s.Store.PendingRunCommands)
}

func (s controlStore) HearRunCommand(ctx context.Context, seq int64, server string) (string, error) {
	return call(s, ctx, "HearRunCommand", anyRun, func(ctx context.Context) (string, error) {
		return s.Store.HearRunCommand(ctx, seq, server)
	})
}

func (s controlStore) AckRunCommand(ctx context.Context, seq int64, server string) error {
	_, err := call(s, ctx, "AckRunCommand", anyRun, func(ctx context.Context) (struct{}, error) {
		if s.srv.sim.without == withoutAnswers {
			return struct{}{}, nil
		}
		return struct{}{}, s.Store.AckRunCommand(ctx, seq, server)
	})
	return err
}

// roomy is what a run asks for, of nodes without bounds where bounds are left out.
func (s controlStore) roomy(a *store.Admission) *store.Admission {
	if a != nil && s.srv.sim.without == withoutRooms {
		a.Nodes = slices.Clone(a.Nodes)
		for i := range a.Nodes {
			a.Nodes[i].Capacity *= 10
		}
	}
	return a
}

// admitted holds what is held on the nodes on which a run was given room against what these have (invariant 1: what
// one run holds no other one does).
func (s *simulation) admitted(runID string, on map[string]string) {
	s.admissions++
	l, _ := s.store.Ledger(context.Background())
	for _, n := range s.nodes {
		took := false
		for _, node := range on {
			took = took || node == n.name
		}
		if !took {
			continue
		}
		sum, of := 0, ""
		for _, h := range l.Reserved {
			if h.NodeID == n.name {
				sum += h.Connections
				of += fmt.Sprintf(" %s/%s=%d", h.RunID, h.WorkerID, h.Connections)
			}
		}
		if sum > n.capacity {
			s.w.violated(1, "%s was let in on %s, which holds %d: %d are held,%s", runID, n.name, n.capacity, sum, of)
		}
	}
}

// alive are the nodes that are there in the end.
func (s *simulation) alive() []*node {
	all := slices.Clone(s.nodes)
	for _, srv := range s.servers {
		if srv.own != nil && !srv.dead.Load() {
			all = append(all, srv.own)
		}
	}
	return all
}

// quiet reports whether nothing is held, nor wanted, nor kept for a server.
func (s *simulation) quiet() bool {
	l, _ := s.store.Ledger(context.Background())
	open, _ := s.store.PendingRunCommands(context.Background())
	for _, n := range s.alive() {
		if len(n.process.unacknowledged()) > 0 {
			return false
		}
	}
	return len(l.Reserved)+len(l.Queued)+len(open) == 0
}

// converges lets time pass after everything is over: by then nobody writes anything any more, nothing is held and
// nothing is wanted (invariant 8).
func (s *simulation) converges() {
	const still = 30 * time.Second
	soon := 20 * time.Minute // parts that are damaged on their way are tried again for a quarter of an hour
	if s.without != withoutNothing {
		soon = 2 * time.Minute
	}
	s.wroteLast, s.wrote = time.Now(), nil
	if s.w.run(soon, func() bool { return time.Since(s.wroteLast) > still && s.quiet() }) {
		return
	}
	if time.Since(s.wroteLast) <= still {
		s.w.violated(8, "%v after everything is over things are still written, the last of %d are %s", soon, len(s.wrote),
			s.wrote[max(len(s.wrote)-5, 0):])
	}
	l, _ := s.store.Ledger(context.Background())
	if len(l.Reserved)+len(l.Queued) > 0 {
		s.w.violated(8, "after everything is over there are held %+v and wait %+v", l.Reserved, l.Queued)
	}
	if open, _ := s.store.PendingRunCommands(context.Background()); len(open) > 0 {
		s.w.violated(8, "after everything is over there are wanted %+v", open)
	}
	for _, n := range s.alive() {
		if left := n.process.unacknowledged(); len(left) > 0 {
			s.w.violated(8, "after everything is over %s has %v, which nobody has acknowledged", n.name, left)
		}
	}
}
