package load

// goroutines drives each slot with a goroutine of its own.
type goroutines struct{ g *Group }

func (e goroutines) name() string { return "goroutines" }

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
	reconnect := g.cfg.Workload.ReconnectEvery
	for !s.leaving(g) && s.next(g) {
		if due := g.pacer.due(s.ended, s.work.delay); due > s.ended && !s.wait(g, due) {
			s.batch.next -= len(s.work.ops) // not begun: another slot may have it
			return
		}
		s.execute(g)
		switch {
		case s.conn.Broken() || s.progress.unclean:
			s.drop()
			g.connectionLost(s)
			if !s.connect(g, firstBackoff) {
				return
			}
		case reconnect > 0 && int64(s.seq)%reconnect == 0:
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
	reconnect := g.cfg.Workload.ReconnectEvery
	own := s.batch
	for finished := false; g.queue.next(s, finished); {
		s.batch, s.work = s.arrival.batch, s.arrival.work
		s.execute(g)
		s.batch = own
		s.arrival.batch.release()
		broken := s.conn.Broken() || s.progress.unclean
		finished = !broken && (reconnect <= 0 || int64(s.seq)%reconnect != 0)
		if finished {
			continue
		}
		g.queue.finish()
		if broken {
			s.drop()
			g.connectionLost(s)
			if !s.connect(g, firstBackoff) {
				return
			}
		} else if !s.renew(g) {
			return
		}
	}
}
