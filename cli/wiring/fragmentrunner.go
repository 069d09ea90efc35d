package wiring

import (
	"context"
	"fmt"
	"sync"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
)

// FragmentNodes leads to the nodes that run fragments.
type FragmentNodes func(id string) protocol.FragmentRunner

// fragmentRunner implements coordinator.Runner over the streams to nodes.
type fragmentRunner struct {
	nodes FragmentNodes

	mu    sync.Mutex
	lists map[string]*fragmentList
}

// fragmentList is what a node was last known to run.
type fragmentList struct {
	process  string
	sequence int64
	running  map[fragment.Key]bool
}

var _ coordinator.Runner = (*fragmentRunner)(nil)

func (r *fragmentRunner) node(host string) (protocol.FragmentRunner, error) {
	if n := r.nodes(host); n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("there is no stream to the node %s", host)
}

// Start implements coordinator.Runner.
func (r *fragmentRunner) Start(ctx context.Context, host string, s fragment.Spec) (fragment.Link, error) {
	n, err := r.node(host)
	if err != nil {
		return nil, err
	}
	text, err := s.Marshal()
	if err != nil {
		return nil, err
	}
	return n.RunFragment(ctx, s.Key, text)
}

// Stop implements coordinator.Runner.
func (r *fragmentRunner) Stop(ctx context.Context, host string, k fragment.Key) error {
	n, err := r.node(host)
	if err != nil {
		return err
	}
	return n.StopFragment(ctx, k)
}

// Status implements coordinator.Runner. The node says what has changed since it was last asked.
func (r *fragmentRunner) Status(ctx context.Context, host string) ([]fragment.Key, error) {
	n, err := r.node(host)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	known := r.lists[host]
	r.mu.Unlock()
	if known == nil {
		known = &fragmentList{}
	}
	l, err := n.ListFragments(ctx, known.process, known.sequence)
	if err != nil {
		return nil, err
	}
	next := &fragmentList{process: l.Process, sequence: l.Sequence, running: map[fragment.Key]bool{}}
	if !l.All {
		for k := range known.running {
			next.running[k] = true
		}
	}
	for _, k := range l.Running {
		next.running[k] = true
	}
	for _, k := range l.Gone {
		delete(next.running, k)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lists == nil {
		r.lists = map[string]*fragmentList{}
	}
	r.lists[host] = next
	var all []fragment.Key
	for k := range next.running {
		all = append(all, k)
	}
	return all, nil
}
