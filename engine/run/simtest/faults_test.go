package simtest

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/worker"
)

// plan decides by the seed what fails, and when: up to eight faults, some of them while
// others last.
func (s *simulation) plan() {
	s.storeSlow = []time.Duration{0, 0, 0, 50 * time.Millisecond, 700 * time.Millisecond}[s.w.chance.IntN(5)]
	s.ambiguous = []int{1_000_000, 60, 20, 8}[s.w.chance.IntN(4)]
	s.lateCommits = []int{1_000_000, 60, 20, 8}[s.w.chance.IntN(4)]
	s.abrupt = s.w.oneIn(6) || s.without == withoutBounds
	switch s.without {
	case withoutDurability:
		s.diskSlow.Store(int64(20 * time.Second))
	case withoutDeadline:
		s.w.after(s.w.between(5*time.Second, 20*time.Second), func() { s.stop(s.nodes[0], 100*time.Second) })
	case withoutBounds: // see shares
		s.storeSlow = 900 * time.Millisecond
		return
	case withoutLease: // a server is away for long, and another one takes over
		s.w.after(s.w.between(10*time.Second, 20*time.Second), func() {
			s.servers[0].pause(150 * time.Second)
			s.boot("b")
		})
		return
	case withoutLosses: // and that one is followed by its like
		s.w.after(s.w.between(10*time.Second, 20*time.Second), func() {
			s.servers[0].pause(150 * time.Second)
			s.boot("b")
			s.w.after(s.w.between(25*time.Second, 50*time.Second), func() { s.servers[1].kill(); s.boot("b") })
		})
		return
	}
	for range s.w.chance.IntN(9) {
		s.w.after(s.w.between(0, 2*time.Minute), s.fault)
	}
}

// succeeded: a server with an own node is stopped for long, and another one takes over.
func (s *simulation) succeeded() bool { return s.without == withoutLease || s.without == withoutLosses }

// long is how long a fault lasts: mostly seconds, at times longer than a limit of the product.
func (s *simulation) long() time.Duration {
	most := []time.Duration{3 * time.Second, 15 * time.Second, 65 * time.Second, 130 * time.Second}[s.w.chance.IntN(4)]
	return s.w.between(time.Millisecond, most)
}

// fault lets one thing fail.
func (s *simulation) fault() {
	if s.calm.Load() {
		return
	}
	n := s.nodes[s.w.chance.IntN(len(s.nodes))]
	srv := s.servers[len(s.servers)-1]
	long := s.long()
	switch s.w.chance.IntN(15) {
	case 14:
		s.sets(srv)
	case 13:
		n.clock.set(s, n.name)
	case 12:
		s.w.note("the results' disk is slow for %v", long)
		s.diskSlow.Store(int64(20 * time.Second))
		n.slow.Store(int64(2 * time.Second))
		s.w.note("so is that of %s", n.name)
		s.w.after(long, func() { s.diskSlow.Store(0); n.slow.Store(0) })
	case 0, 1:
		s.partition(srv, n, long)
	case 2:
		s.breaks(srv, n)
	case 3:
		s.w.note("%s freezes for %v", n.name, long)
		s.stop(n, long)
	case 4:
		if n.process != nil {
			s.w.note("%s is killed, and is back in %v", n.name, long)
			n.kill()
			s.w.after(long, n.revive)
		}
	case 5:
		s.w.note("the store is away for %v", long)
		s.storeAway = true
		s.w.after(long, func() { s.storeAway = false })
	case 6:
		s.w.note("the store is slow for %v", long)
		before := s.storeSlow
		s.storeSlow = 4 * time.Second
		s.w.after(long, func() { s.storeSlow = before })
	case 7:
		for _, l := range srv.wires {
			if l.node == n {
				s.w.note("%s is slow for %v", l.name(), long)
				l.slow = s.w.between(20*time.Millisecond, 3*time.Second)
				s.w.after(long, func() { l.slow = 0 })
			}
		}
	case 10:
		s.drain(n, long)
	case 11:
		if n.process != nil {
			s.w.note("%s leaves", n.name)
			n.kill() // and is back when everything is healed
		}
	case 8, 9:
		if srv.isOpen() && !srv.dead.Load() && !srv.paused {
			s.replace(srv, long)
		}
	}
}

// shares has a server end when it has told run workers of new shares, and the store go away meanwhile: who follows it
// knows of the old ones.
func (s *simulation) shares(srv *server, m any) {
	e, ok := m.(protocol.RunEvent)
	if !s.abrupt || s.storeAway || s.calm.Load() || !ok || e.Event.Data.Reason != engine.TargetRedistribute {
		return
	}
	s.w.note("the store is away until %s ends", srv.name)
	s.storeAway, s.abrupt = true, s.without == withoutBounds
	s.w.after(s.w.between(800*time.Millisecond, 3*time.Second), func() {
		s.storeAway = false
		if !srv.dead.Load() && !s.calm.Load() {
			srv.kill()
			s.boot(srv.owner)
		}
	})
}

// silent is when who keeps a stream alive gives it up.
func (s *simulation) silent() time.Duration { return s.w.between(8*time.Second, 25*time.Second) }

// partition lets nothing through in one direction, or in both.
func (s *simulation) partition(srv *server, n *node, long time.Duration) {
	for _, l := range srv.wires {
		if l.node != n {
			continue
		}
		which := s.w.chance.IntN(3)
		l.cutDown, l.cutUp = which != 1, which != 0
		s.w.note("%s is cut (down %t, up %t) for %v", l.name(), l.cutDown, l.cutUp, long)
		s.giveUp(l, l.cut)
		s.w.after(long, func() { s.join(l) })
	}
}

// giveUp closes each side of a stream that has been silent for too long.
func (s *simulation) giveUp(l *wire, still func() bool) {
	stream := l.stream
	if stream == nil {
		return
	}
	for _, end := range []*side{stream.server, stream.node} {
		s.w.after(s.silent(), func() {
			if still() && !l.node.frozen.Load() || end == stream.server && l.node.frozen.Load() {
				end.close()
			}
		})
	}
}

// join ends a partition.
func (s *simulation) join(l *wire) {
	l.cutDown, l.cutUp = false, false
	if l.stream != nil {
		if l.stream.server.closed() {
			l.stream.down.held = append(l.stream.down.held, l.stream.node.close)
		}
		if l.stream.node.closed() {
			l.stream.up.held = append(l.stream.up.held, l.stream.server.close)
		}
	}
	l.node.answer()
}

// breaks breaks a stream; what is under way is lost, and the ends hear of it one after the other.
func (s *simulation) breaks(srv *server, n *node) {
	for _, l := range srv.wires {
		if l.node == n && l.stream != nil {
			s.w.note("%s breaks", l.name())
			l.stream.broken(s.w.between(0, 300*time.Millisecond), s.w.between(0, 5*time.Second))
		}
	}
}

// stop stops a node's process for a while, with all of its streams.
func (s *simulation) stop(n *node, long time.Duration) {
	if n.frozen.Load() || n.process == nil {
		return
	}
	n.freeze()
	p := n.process
	for _, l := range n.wires() {
		s.giveUp(l, l.cut)
	}
	s.w.after(long, func() {
		if n.process == p {
			s.w.note("%s goes on", n.name)
			for _, l := range n.wires() {
				if st := l.stream; st != nil && st.server.closed() {
					st.down.held = append(st.down.held, st.node.close)
				}
			}
			n.unfreeze()
		}
	})
}

// drain has a node leave, as SIGTERM does: its process ends when it is idle, or has ended its run workers
// when the time is over and handed over what they did. The next one begins later.
func (s *simulation) drain(n *node, long time.Duration) {
	p := n.process
	if p == nil || n.frozen.Load() {
		return
	}
	s.w.note("%s drains, for %v at most", n.name, long)
	left := worker.Remainder{}
	end := func() {
		if n.process == p {
			s.w.note("%s has left, with %+v", n.name, left)
			n.kill()
			s.w.after(s.w.between(time.Millisecond, 20*time.Second), n.revive)
		}
	}
	s.asks(func(ctx context.Context) {
		left = p.worker.Leave(ctx, long)
		s.w.hand("idle "+n.name, end)
	})
}

// revive begins the node's next life, if it has none.
func (n *node) revive() {
	if n.process == nil && !n.sim.ending {
		n.w.note("%s is back", n.name)
		n.start()
		n.answer()
	}
}

// replace kills a server, or has it reach nothing for a while as if its process were stopped; the
// next one is of the same owner, as after a restart, or of another, which takes over.
func (s *simulation) replace(srv *server, long time.Duration) {
	owner := srv.owner
	if s.w.oneIn(2) {
		owner = string(rune('a' + len(s.servers)))
	}
	if owner != srv.owner && s.w.oneIn(2) {
		srv.pause(long + store.LeaseDuration) // so that another one has the time to take over
	} else {
		srv.kill()
	}
	s.w.after(s.w.between(10*time.Millisecond, 20*time.Second), func() {
		if last := s.servers[len(s.servers)-1]; last.dead.Load() || last.paused {
			s.boot(owner)
		}
	})
}

// pause has a server reach nothing but its own node for a while.
func (srv *server) pause(long time.Duration) {
	s := srv.sim
	s.w.note("the server %s is stopped for %v", srv.name, long)
	srv.paused, srv.stoodStill = true, time.Now()
	for _, l := range srv.wires {
		if l.node.own == nil {
			l.cutDown, l.cutUp = true, true
			s.giveUp(l, l.cut)
		}
	}
	s.w.after(long, srv.resume)
}

// resume lets a stopped server go on: it may have been followed by another, and does not know.
func (srv *server) resume() {
	if !srv.paused {
		return
	}
	srv.sim.w.note("the server %s goes on", srv.name)
	srv.paused, srv.wentOn = false, time.Now()
	waiting := srv.resumed
	srv.resumed = nil
	for _, hear := range waiting {
		hear()
	}
	for _, l := range srv.wires {
		srv.sim.join(l)
	}
}

// heal ends all faults.
func (s *simulation) heal() {
	s.w.note("everything is healed")
	s.calm.Store(true)
	s.healed = time.Now()
	s.storeAway, s.storeSlow = false, 0
	s.diskSlow.Store(0)
	for _, n := range s.nodes {
		n.slow.Store(0)
		n.revive()
		n.unfreeze()
	}
	for _, srv := range s.servers {
		srv.resume()
		for _, l := range srv.wires {
			l.slow = 0
			s.join(l)
		}
	}
	if last := s.servers[len(s.servers)-1]; last.dead.Load() {
		s.boot(last.owner)
	}
}
