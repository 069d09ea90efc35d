package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loadstone-db/loadstone/bench/measure"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
)

// lost: how soon a server knows of a node that was killed, of a stream that was reset, and of a link
// that swallows everything.
func lost(ctx context.Context, b *bench) error {
	nodes, rounds := b.or(b.nodes, 20), b.or(b.rounds, 5)
	s, err := b.server(ctx, "server", elsewhere...)
	if err != nil {
		return err
	}
	f, _, err := b.joined(ctx, s, simulated(nodes, true))
	if err != nil {
		return err
	}
	if err := pause(ctx, 3*time.Second); err != nil { // round trips are known
		return err
	}
	each := func(do func(*farmed)) ([]float64, error) {
		took := make([]float64, len(f.nodes))
		var all errgroup.Group
		for i, n := range f.nodes {
			all.Go(func() error {
				if err := pause(ctx, rand.N(2*time.Second)); err != nil {
					return err
				}
				at := time.Now()
				do(n)
				noticed, err := s.unreachable(ctx, n.id, at)
				took[i] = ms(noticed.Sub(at))
				return err
			})
		}
		return took, all.Wait()
	}
	reset, err := each(func(n *farmed) { n.way.reset() })
	if err != nil {
		return err
	}
	tell(fmt.Sprintf("a stream that was reset is noticed (%d nodes)", nodes), measure.Spread("%.1f", reset)+" ms",
		"≤ 100 ms")
	if err := s.active(ctx, nodes); err != nil {
		return err
	}
	if err := pause(ctx, 3*time.Second); err != nil {
		return err
	}
	swallowed, err := each(func(n *farmed) { n.way.swallow(true) })
	for _, n := range f.nodes {
		n.way.swallow(false)
	}
	if err != nil {
		return err
	}
	tell(fmt.Sprintf("a link that swallows everything is noticed (%d nodes)", nodes),
		measure.Spread("%.0f", swallowed)+" ms", "≤ 4000 ms")
	token, err := s.token(ctx, rounds)
	if err != nil {
		return err
	}
	var killed []float64
	for round := range rounds {
		took, err := b.killed(ctx, s, token, round)
		if err != nil {
			return err
		}
		killed = append(killed, took)
	}
	tell(fmt.Sprintf("a process that was killed is noticed (%d)", rounds), measure.Spread("%.1f", killed)+" ms",
		"≤ 4000 ms")
	return nil
}

// unreachable waits until the server has noticed that a node is gone, and says when it did.
func (s *server) unreachable(ctx context.Context, id string, after time.Time) (at time.Time, err error) {
	err = s.await(ctx, "that "+id+" is unreachable", func() (bool, error) {
		var page struct{ Events []nodes.NodeEvent }
		if err := s.get(ctx, "/api/v1/node-events?limit=20&node_id="+id, &page); err != nil {
			return false, err
		}
		for _, e := range page.Events {
			// Times of the store are of whole microseconds, or less exact.
			gone := e.To == nodes.NodeUnreachable || e.To == nodes.NodeProbing // a stream that stands is probed
			if gone && !e.At.Before(after.Truncate(time.Millisecond)) {
				at = e.At.Time
				return true, nil
			}
		}
		return false, nil
	})
	return at, err
}

// killed starts a node as a process of its own, kills it, and says how soon the server knew.
func (b *bench) killed(ctx context.Context, s *server, token string, round int) (float64, error) {
	n, err := b.worker(ctx, s, fmt.Sprintf("killed-%d", round), token)
	if err != nil {
		return 0, err
	}
	at := time.Now()
	n.kill()
	noticed, err := s.unreachable(ctx, n.id, at)
	return ms(noticed.Sub(at)), err
}

// remote is a node in a process of its own.
type remote struct {
	*process
	id, address string
}

// worker starts a node as a process of its own, and waits until the server has a stream to it.
func (b *bench) worker(ctx context.Context, s *server, name, token string) (*remote, error) {
	dir, err := b.folder(name)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		return nil, err
	}
	p, err := b.start(dir, "worker", "worker", "--listen", "127.0.0.1:0", "--data-dir", dir, "--join-file", file)
	if err != nil {
		return nil, err
	}
	n := &remote{process: p}
	err = s.await(ctx, "the address of "+name, func() (bool, error) {
		log, err := os.Open(p.log)
		if err != nil {
			return false, err
		}
		defer func() { _ = log.Close() }()
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if id, address, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "The node "), " listens on "); ok {
				n.id, n.address = id, address
			}
		}
		return n.address != "", nil
	})
	if err != nil {
		return nil, errors.Join(err, fmt.Errorf("the node says: %s", p.said()))
	}
	if _, err := s.addNodes(ctx, []string{n.address}); err != nil {
		return nil, err
	}
	return n, s.await(ctx, n.id+" as a node", func() (bool, error) {
		all, err := s.nodes(ctx)
		for _, v := range all {
			if v.NodeID == n.id && v.State == nodes.NodeActive && v.RTTMs != nil {
				return true, nil
			}
		}
		return false, err
	})
}

// reconnect: all streams break at once in a run.
func reconnect(ctx context.Context, b *bench) error {
	nodes, rounds := b.or(b.nodes, 500), b.or(b.rounds, 3)
	s, err := b.server(ctx, "server", elsewhere...)
	if err != nil {
		return err
	}
	f, _, err := b.joined(ctx, s, simulated(nodes, true))
	if err != nil {
		return err
	}
	t, err := b.on(ctx, template("reconnect", nodes, 10, 600))
	if err != nil {
		return err
	}
	run, err := s.run(ctx, t)
	if err != nil {
		return err
	}
	if err := s.measuring(ctx, run.RunID); err != nil {
		return err
	}
	var back []float64
	for range rounds {
		if err := pause(ctx, 5*time.Second); err != nil {
			return err
		}
		before, err := s.metrics(ctx)
		if err != nil {
			return err
		}
		begin := time.Now()
		for _, n := range f.nodes {
			n.way.reset()
		}
		const broken, streams = "loadstone_control_disconnects_total", "loadstone_control_streams"
		if err := s.await(ctx, "that all nodes are back", func() (bool, error) {
			m, err := s.metrics(ctx)
			return err == nil && m.value(broken) >= before.value(broken)+float64(nodes) &&
				int(m.value(streams)) >= nodes, err
		}); err != nil {
			return err
		}
		back = append(back, time.Since(begin).Seconds())
	}
	tell(fmt.Sprintf("%d streams that break at once are all back", nodes), measure.Spread("%.1f", back)+" s", "≤ 30 s")
	d, err := s.stopped(ctx, run.RunID)
	if err != nil {
		return err
	}
	causes := map[string]int{}
	for _, c := range d.Summary.ValidityDetail.Causes {
		causes[c.Cause]++
	}
	tell("the run that they carried", fmt.Sprintf("%s; what its verdict names: %v", account(d), causes),
		"no run worker lost")
	return nil
}
