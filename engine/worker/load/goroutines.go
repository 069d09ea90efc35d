package load

import "github.com/loadstone-db/loadstone/engine"

// goroutines drives each slot with a goroutine of its own.
type goroutines struct{ g *Group }

func (e goroutines) name() string { return string(engine.IOGoroutines) }

func (e goroutines) reason() string {
	if e.g.cfg.Workload.IOEngine == engine.IOGoroutines {
		return askedFor
	}
	return "this system has no event loops"
}

func (e goroutines) books() []*counters { return nil }

func (e goroutines) recorders(connections int) int { return connections }

// nudge has nothing to do: every wait looks at the slot's retire channel too.
func (e goroutines) nudge(*slot) {}

func (e goroutines) add(s *slot) { go e.drive(s) }

func (e goroutines) drive(s *slot) {
	g := e.g
	defer g.left(s)
	select {
	case <-g.begun:
	case <-g.stopping:
		return
	case <-s.retire:
		return
	}
	if g.queue != nil {
		e.serve(s)
		return
	}
	s.ended = g.clock.now()
	for !s.leaving(g) && s.next(g) {
		if due := g.thinkTimes.due(s.ended, s.work.Delay); due > s.ended && !s.wait(g, due) {
			s.batch.Next -= len(s.work.Ops) // not begun: another slot may have it
			s.books.drawn.Add(-1)
			return
		}
		if !s.execute(g) {
			s.refuse(g)
			return
		}
		switch {
		case s.lost():
			s.drop()
			g.connectionLost(s)
			if !s.connect(g, true) {
				return
			}
		case s.worn(g):
			if !s.renew(g) {
				return
			}
		}
	}
}

// serve executes what an open loop hands to the slot. Operations that are due
// when the group stops are still handed out.
func (e goroutines) serve(s *slot) {
	g := e.g
	own := s.batch
	for finished := false; ; {
		if !g.queue.next(s, finished) {
			if !s.stale.Swap(false) || s.leaving(g) {
				return
			}
			s.drop()
			if g.lostOne(s, errIdleLost); !s.connect(g, true) {
				return
			}
			finished = false
			continue
		}
		s.batch, s.work = s.arrival.batch, s.arrival.work
		begun := s.execute(g)
		s.batch = own
		if !begun {
			s.refuse(g)
			return
		}
		s.arrival.batch.Release()
		broken := s.lost()
		finished = !broken && !s.worn(g)
		if finished {
			continue
		}
		g.queue.finish()
		if broken {
			s.drop()
			g.connectionLost(s)
			if !s.connect(g, true) {
				return
			}
		} else if !s.renew(g) {
			return
		}
	}
}
