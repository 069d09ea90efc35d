package simtest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	wired "github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	resultsexecutions "github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
	"github.com/loadstone-db/loadstone/engine/stream/rules"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// Rules of runs over what run workers record, on all nodes of a run.

// The rules of a run: two that nothing breaks, and one that stops it.
const (
	ruleNever, ruleSums, ruleFires = "never", "sums", "fires"

	everyExecution = "SELECT runId FROM executions WHERE latencyMs < 0"
	eachSecond     = "SELECT SUM(recordsProcessed) AS n FROM statement_statistics " +
		"WINDOW TUMBLING(timestamp, SIZE 1 SEC) HAVING n < 0"
	sequence = "SELECT workerId, seq FROM executions WHERE phase = 'MEASUREMENT' AND seq >= %d"
)

// firesWithin is within what a rule fires once nothing fails any more.
const firesWithin = time.Minute

// ruled gives a third of the runs rules. What they do is decided apart, so that runs without live as ever.
func (s *simulation) ruled(id string, sc *engine.Scenario) {
	chance := s.chanceOf("rules of " + id)
	if chance.IntN(3) != 0 && s.without != withoutHeirs {
		return
	}
	sc.Rules = []engine.Rule{{Name: ruleNever, When: everyExecution, Do: engine.RuleStop},
		{Name: ruleSums, When: eachSecond, Do: engine.RuleStop}}
	if chance.IntN(2) == 0 || s.without == withoutHeirs {
		from := uint32(20 + chance.IntN(300))
		sc.Rules = append(sc.Rules, engine.Rule{Name: ruleFires, When: fmt.Sprintf(sequence, from), Do: engine.RuleStop})
		s.model.mu.Lock()
		s.model.fires[id] = from
		s.model.mu.Unlock()
	}
}

// rules are those of a server's runs, over what its own node records and the ways to the others.
func (srv *server) rules() rules.StartFunc {
	begin := wired.OpenRules(wired.RuleOptions{Executions: srv.recorded, Account: &system.Account{},
		Fragments: srv.fragments, Log: zerolog.Nop()})
	return func(run engine.Run) *rules.Set {
		if srv.sim.without == withoutHeirs && run.OwnerEpoch > 1 {
			return nil
		}
		return begin(run)
	}
}

// fragments leads to a node, whether it is there or not.
func (srv *server) fragments(id string) protocol.FragmentRunner {
	for _, l := range srv.wires {
		if l.node.name == id && l.node.own == nil {
			return ruleWay{wire: l}
		}
	}
	return nil
}

// ruleWay gives a node its part of a rule.
type ruleWay struct {
	protocol.ServerEnd // which nobody asks for
	wire               *wire
}

// wordTakes is how long a word between a rule and a node takes. It is not by chance: how many there are depends on the
// scheduler.
const wordTakes = 3 * time.Millisecond

// RunFragment implements protocol.FragmentRunner.
func (r ruleWay) RunFragment(ctx context.Context, k protocol.FragmentKey, text []byte) (protocol.FragmentLink, error) {
	l, w := r.wire, r.wire.w
	spec, err := fragment.Unmarshal(text)
	if err != nil {
		return nil, err
	}
	about := fmt.Sprintf("rule %s %d", spec.Query.Name, k.Attempt)
	type answer struct {
		link protocol.FragmentLink
		err  error
	}
	replies := make(chan answer, 1)
	w.hand("fragment "+l.name()+" "+about, func() {
		w.after(wordTakes, func() {
			p := l.node.process
			passes := func() bool {
				return !l.srv.dead.Load() && !l.cut() && !l.node.frozen.Load() && l.node.process == p && l.stream != nil
			}
			switch {
			case ctx.Err() != nil:
			case l.srv.dead.Load():
				replies <- answer{err: errGone}
			case p == nil:
				replies <- answer{err: errRefused}
			case !passes():
				w.after(silence, func() { replies <- answer{err: errGone} })
			default:
				link := openWay(w, l.srv.name, l.node.name, about)
				link.passes, link.delay = passes, func() time.Duration { return wordTakes }
				l.node.sim.ruling.Add(1)
				go func() {
					defer l.node.sim.ruling.Add(-1)
					p.streams.Host.Run(p.streaming, k, text, link.worker)
					_ = link.worker.Close()
				}()
				replies <- answer{link: link.owner}
			}
		})
	})
	select {
	case a := <-replies:
		return a.link, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// StopFragment and ListFragments are a catalog's.
func (ruleWay) StopFragment(context.Context, protocol.FragmentKey) error { return nil }
func (ruleWay) ListFragments(context.Context, string, int64) (protocol.FragmentList, error) {
	return protocol.FragmentList{}, nil
}

// streamsOf is the part of a node's process that works out what rules read there; those of a server's own node are told
// in its process.
func (p *process) streamsOf(n *node) resultsexecutions.Observers {
	if n.own != nil {
		return n.own.recorded
	}
	var err error
	p.streams, err = wired.OpenStreamNode(
		wired.StreamNodeOptions{ID: n.name, DataDir: filepath.Join(n.sim.dir, n.name+"-streams"),
			Log: zerolog.Nop()},
	)
	if err != nil {
		panic(err)
	}
	p.streaming, p.endStreams = context.WithCancel(context.Background())
	return p.streams.Executions
}

// killsStreams ends them with the process.
func (p *process) killsStreams() {
	if p.streams == nil {
		return
	}
	p.endStreams()
	p.node.sim.ruling.Add(1)
	go func() {
		defer p.node.sim.ruling.Add(-1)
		p.streams.Close("the process ends")
	}()
}

// CatchUp records what has ended until now.
func (l *played) CatchUp() bool {
	if l.p.node.frozen.Load() || l.p.dead.Load() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.complete(time.Now(), false); err != nil {
		l.fail(err)
		return false
	}
	return true
}

// reaches takes note that a rule has to fire for something that is recorded.
func (m *model) reaches(run string, e engine.Execution) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if from, fires := m.fires[run]; fires && e.Seq >= from && !e.Warmup && m.reached[run].IsZero() {
		m.reached[run] = time.Now()
	}
}

// ruled holds how rules stand against how they stood: what has triggered stays so, and counts go on (invariant 11).
func (m *model) ruled(t store.Tick) {
	if t.Rules == nil {
		return
	}
	for i, was := range m.rules[t.RunID] {
		is := t.Rules[i]
		if is.In < was.In || is.Out < was.Out || was.Status == engine.RuleTriggered && is.Status != was.Status {
			m.sim.w.violated(11, "the rule %s of %s was %+v, and is %+v", was.Name, t.RunID, was, is)
		}
	}
	m.rules[t.RunID] = t.Rules
}

// fired holds what rules of a run that is over have come to against what was recorded (invariant 11).
func (m *model) fired(run engine.Run) {
	if len(m.sim.runs[run.RunID].Rules) == 0 || len(run.Rules) == 0 {
		return
	}
	recorded := int64(0)
	for _, l := range m.of(run.RunID) {
		l.mu.Lock()
		recorded += l.account.Recorded
		l.mu.Unlock()
	}
	reason := ""
	if run.CancellationReason != nil {
		reason = *run.CancellationReason
	}
	for _, r := range run.Rules {
		m.sim.w.note("the rule %s of %s is %s: %d in, %d out %s", r.Name, run.RunID, r.Status, r.In, r.Out, r.Failure)
		m.sim.rulesSeen[r.Status]++
		switch {
		case r.Name == ruleNever && r.In > recorded:
			m.sim.w.violated(11, "the rule %s of %s has read %d of %d executions", r.Name, run.RunID, r.In, recorded)
		case r.Name != ruleFires && r.Out > 0:
			m.sim.w.violated(11, "the rule %s of %s gave %d rows: %s", r.Name, run.RunID, r.Out, r.Row)
		case r.Status == engine.RuleFailed && !strings.HasPrefix(r.Failure, "PlacementError: ") &&
			!strings.HasPrefix(r.Failure, "what carried the run was gone") && !strings.HasPrefix(r.Failure, rules.Unread):
			m.sim.w.violated(11, "the rule %s of %s failed: %s", r.Name, run.RunID, r.Failure)
		case r.Status == engine.RuleTriggered && run.Status == engine.StatusCompleted:
			m.sim.w.violated(11, "the rule %s of %s triggered, and the run is COMPLETED", r.Name, run.RunID)
		case r.Status == engine.RuleRunning:
			m.sim.w.violated(11, "the rule %s of %s is still %s, and the run is over", r.Name, run.RunID, r.Status)
		case strings.HasPrefix(reason, "Rule '"+r.Name+"'") && r.Status != engine.RuleTriggered:
			m.sim.w.violated(11, "%s was stopped by the rule %s, which is %s", run.RunID, r.Name, r.Status)
		case r.Name != ruleFires || r.Status != engine.RuleEnded || run.Status != engine.StatusCompleted:
		default:
			m.mu.Lock()
			since, until := m.reached[run.RunID], m.stops[run.RunID]
			m.mu.Unlock()
			if since.IsZero() || until.IsZero() {
				continue
			}
			if healed := m.sim.healed; healed.After(since) {
				since = healed
			}
			if late := until.Sub(since); late > firesWithin {
				m.sim.w.violated(11, "the rule %s of %s did not fire in %v", r.Name, run.RunID, late)
			}
		}
	}
}
