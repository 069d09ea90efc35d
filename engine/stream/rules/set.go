package rules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// Options say what rules reach.
type Options struct {
	// Webhook opens what posts rows of a rule; alerts are told of each attempt.
	Webhook func(ctx context.Context, r engine.Rule, columns []column.Column, tell connector.AlertFunc) (
		connector.Sink, error)
	// RunID names the run, Owner the id of the user who made it, or else the name, and Node the node of this process.
	RunID, Owner, Node string
	// Executions tells what run workers of this process record; without it rules read none of them. Account is what
	// queries over executions take in this process.
	Executions *executions.Fanout
	Account    *system.Account
	// Nodes leads to nodes that tell a rule what run workers record there; nil leads to none, and such a rule fails.
	Nodes func(id string) protocol.FragmentRunner
	// Memory is what rules may hold, with the other queries of the process.
	Memory memory.Limits
	// Now is the clock that tells quiet sources, and when a rule gave its rows; nil means time.Now.
	Now func() time.Time
	Log zerolog.Logger
}

// Message is what rules have to say to who carries the run.
type Message struct {
	Level engine.LogLevel
	Text  string
	// Stop is why the run has to stop; empty where it has not.
	Stop string
	// rule is the index of the one that asks for the stop.
	rule int
}

// maxLogRows is how many rows of a rule have a line in the log of the run; of the others their number is shown.
const maxLogRows = 20

// Set are the rules of one run while it goes on. Its methods are safe for concurrent use, and a nil Set has no rules.
type Set struct {
	hub    system.Hub
	ready  chan struct{}
	drain  chan struct{}
	drains sync.Once
	cancel context.CancelFunc
	work   sync.WaitGroup
	now    func() time.Time
	// leave ends what run workers tell.
	leave func()

	mu   sync.Mutex
	over bool
	// late: the run is over, and what has not brought away its rows until then does not any more.
	late bool
	// remoteNodes are the nodes with run workers, this one apart; moved is closed when there are others.
	remoteNodes []string
	moved       chan struct{}
	states      []engine.RuleState
	logged      []int
	// trying are rules whose rows the address does not take for the moment; fired are those that have asked for a stop.
	trying, fired []bool
	messages      []Message
	// kept are the states that were handed out last.
	kept []engine.RuleState
}

// Start begins the rules of a run; nil where it has none. before is how they stood when another process left the run:
// counts go on, and what has triggered is not evaluated again. That the run has to stop is said once more, though: the
// other process may have kept how its rules stood, and been killed before it kept that. They read from now on, so that
// no row is missed that is told afterwards. End ends them.
func Start(rules []engine.Rule, before []engine.RuleState, o Options) *Set {
	if len(rules) == 0 {
		return nil
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Set{now: o.Now, ready: make(chan struct{}, 1), drain: make(chan struct{}), cancel: cancel,
		logged: make([]int, len(rules)), trying: make([]bool, len(rules)), fired: make([]bool, len(rules)), leave: func() {},
		moved: make(chan struct{})}
	s.hub.Node, s.hub.Account = o.Node, o.Account
	recorded := false
	for i, r := range rules {
		state := engine.RuleState{Name: r.Name, Do: r.Do, Status: engine.RuleRunning}
		if at := slices.IndexFunc(before, func(b engine.RuleState) bool { return b.Name == r.Name }); at >= 0 {
			state = before[at]
			if state.Status != engine.RuleTriggered {
				state.Status, state.Failure = engine.RuleRunning, ""
			}
		}
		s.states = append(s.states, state)
		if state.Status == engine.RuleTriggered {
			s.mu.Lock()
			s.fired[i] = true
			s.addMessage(Message{Level: engine.LogInfo, Stop: stopping(r.Name, state.Row), rule: i,
				Text: fmt.Sprintf("The rule '%s' had triggered before another process went on with the run", r.Name)})
			s.mu.Unlock()
			continue
		}
		p, err := Bind(r.When)
		if err == nil && ofRecorders(p) && o.Nodes != nil {
			recorded = true
			s.work.Go(func() { s.finish(ctx, i, s.runOnNodes(ctx, i, r, state, o), o.Log) })
			continue
		}
		var job exec.Job
		if err == nil {
			job, err = s.job(ctx, i, r, p, state, o)
		}
		if err != nil {
			s.end(i, err)
			continue
		}
		recorded = recorded || ofRecorders(p)
		s.work.Go(func() { s.run(ctx, i, job, o.Log) })
	}
	if recorded && o.Executions != nil {
		s.leave = o.Executions.Listen(o.RunID, s.hub.Observers())
	}
	return s
}

// ofRecorders reports whether a rule reads what run workers record.
func ofRecorders(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Scans, func(s *plan.Scan) bool {
		return slices.ContainsFunc(connector.Streams[:], func(stream string) bool {
			return sql.SameName(stream, s.Source) && connector.PerNode(stream)
		})
	})
}

// job is a rule with its sources open, whose results go where the rule says.
func (s *Set) job(ctx context.Context, i int, r engine.Rule, p *plan.Plan, was engine.RuleState,
	o Options) (exec.Job, error) {
	j := exec.Job{Plan: p, Now: o.Now, Drain: s.drain, Owner: o.Owner, Limits: o.Memory}
	switch r.Do {
	case engine.RuleWebhook:
		sink, err := o.Webhook(ctx, r, p.Columns, func(a connector.Alert) { s.posted(i, a) })
		if err != nil {
			return j, err
		}
		context.AfterFunc(ctx, func() { _ = sink.Close() })
		j.Out, j.OnEvict = sink.Write, func() { go func() { _ = sink.Close() }() }
		j.Sink, _ = sink.(connector.Holding)
	default:
		j.Out = func(b *column.Batch) error { s.triggered(i, p.Columns, b); return nil }
	}
	for _, scan := range p.Scans {
		j.Sources = append(j.Sources, []connector.Source{s.hub.Open(scan.Source, scan.Columns)})
	}
	j.Report = func(c exec.Counts) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.states[i].In = was.In + c.In
	}
	return j, nil
}

// run runs a rule to its end.
func (s *Set) run(ctx context.Context, i int, job exec.Job, log zerolog.Logger) {
	counts, err := exec.Run(ctx, job)
	job.Report(counts)
	s.finish(ctx, i, err, log)
}

// finish notes what a rule has come to.
func (s *Set) finish(ctx context.Context, i int, err error, log zerolog.Logger) {
	if err != nil && ctx.Err() != nil {
		err = s.unreadError(i) // it was ended
	}
	if err != nil {
		log.Warn().Err(err).Msg("a rule of a run could not go on")
	}
	s.end(i, err)
}

// errLeft is how a rule ends whose rows were on their way for too long, errUnread one that had not read all there was.
var (
	errLeft = fmt.Errorf("not all of its rows were posted within %s of the end of the run; the others are lost",
		drainTimeout)
	errUnread = fmt.Errorf("%s %s of its end; what is in the rest is not known", Unread, drainTimeout)
)

// Unread begins the failure of a rule that had not read all that its run has told.
const Unread = "it had not read all that the run has told within"

// unreadError is why a rule that was ended has failed, nil where it has not.
func (s *Set) unreadError(i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.late:
		return nil
	case s.states[i].Do == engine.RuleWebhook:
		return errLeft
	}
	return errUnread
}

// end keeps how a rule has ended.
func (s *Set) end(i int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := &s.states[i]
	switch {
	case state.Status == engine.RuleTriggered: // what became of it afterwards is no matter
	case err != nil && !s.fired[i]: // of one that has asked for a stop neither
		state.Status, state.Failure = engine.RuleFailed, shortError(err)
		s.addMessage(
			Message{Level: engine.LogError, Text: fmt.Sprintf("The rule '%s' failed, and the run goes on without it: %s",
				state.Name, state.Failure)},
		)
	case state.Status == engine.RuleRunning:
		state.Status = engine.RuleEnded
	}
}

// otherNodesHint is what helps a rule whose run has run workers on other nodes.
const otherNodesHint = "; worker_statistics and kind_statistics tell a rule of all nodes, and a query of the server " +
	"(CREATE QUERY) reads executions of all"

// shortError is an error without the lines that show its place.
func shortError(err error) string {
	var e *sql.Error
	if errors.As(err, &e) {
		said := string(e.Kind) + ": " + e.Message
		if e.Kind == sql.PlacementError {
			said += otherNodesHint
		}
		return said
	}
	return err.Error()
}

// triggered takes rows of a rule that stops the run.
func (s *Set) triggered(i int, columns []column.Column, b *column.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := &s.states[i]
	if b.N == 0 || s.over {
		return // what windows hold when the run is over stops nothing
	}
	s.countRows(i, connector.RowText(columns, b, b.N-1), b.N)
	if state.Status != engine.RuleRunning || s.fired[i] {
		return
	}
	s.fired[i] = true
	s.addMessage(Message{Level: engine.LogWarning, Text: fmt.Sprintf("The rule '%s' stops the run", state.Name),
		Stop: stopping(state.Name, connector.RowText(columns, b, 0)), rule: i})
}

// stopping is the reason of a run that a rule stops.
func stopping(rule, row string) string { return fmt.Sprintf("Rule '%s' triggered: %s", rule, row) }

// posted takes what became of rows that were posted.
func (s *Set) posted(i int, a connector.Alert) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch again := s.trying[i]; {
	case a.Retrying && !again:
		s.trying[i] = true
		s.addLogLine(i, engine.LogWarning, "can not post its rows, and tries again: "+a.Failure)
	case a.Retrying, a.Failure != "":
	default:
		if again {
			s.trying[i] = false
			s.addLogLine(i, engine.LogInfo, "posts its rows again")
		}
		s.countRows(i, a.Row, a.Rows)
	}
}

// countRows counts rows; the set is locked.
func (s *Set) countRows(i int, row string, n int) {
	state := &s.states[i]
	state.Out, state.At, state.Row = state.Out+int64(n), engine.At(s.now()), row
	s.addLogLine(i, engine.LogInfo, "gave: "+row)
}

// addLogLine has a line written into the log of the run, unless the rule had as many as it may; the set is locked.
func (s *Set) addLogLine(i int, level engine.LogLevel, what string) {
	if s.logged[i]++; s.logged[i] > maxLogRows {
		return
	}
	if s.logged[i] == maxLogRows {
		what += "; what it gives from now on is counted only"
	}
	s.addMessage(Message{Level: level, Text: fmt.Sprintf("The rule '%s' %s", s.states[i].Name, what)})
}

// addMessage hands something to who carries the run; the set is locked.
func (s *Set) addMessage(what Message) {
	s.messages = append(s.messages, what)
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Hub takes what the run tells.
func (s *Set) Hub() *system.Hub {
	if s == nil {
		return nil
	}
	return &s.hub
}

// Tick tells a second of the run, at a time by its clock, and adds how its rules stand where that has changed.
func (s *Set) Tick(t *store.Tick, now time.Time) {
	if s == nil {
		return
	}
	t.Rules = s.Changed()
	s.SetNodes(t.Workers, now)
	s.hub.Tick(t)
}

// Ready has something when there is something to take.
func (s *Set) Ready() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.ready
}

// TakeMessages returns what rules have said since it was asked last. It is bounded by what rules say in their lives.
// ends: the run has been told to end. A rule has triggered when its stop is taken by a run that has not, and no sooner:
// of one that comes too late only the rows are told.
func (s *Set) TakeMessages(ends bool) []Message {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	said := s.messages
	s.messages = nil
	for i := range said {
		one := &said[i]
		switch state := &s.states[one.rule]; {
		case one.Stop == "":
		case ends && state.Status == engine.RuleTriggered: // as who carried the run before has kept
			one.Stop = ""
		case ends:
			one.Stop, one.Text = "", fmt.Sprintf("The rule '%s' stops nothing, since the run ends already", state.Name)
		default:
			state.Status, state.Failure, ends = engine.RuleTriggered, "", true
		}
	}
	return said
}

// States are the rules as they stand, in their order.
func (s *Set) States() []engine.RuleState {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.states)
}

// Dirty reports whether the rules stand otherwise than Changed has said last.
func (s *Set) Dirty() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.Equal(s.states, s.kept)
}

// Changed are the states to be kept, nil where they are as they were.
func (s *Set) Changed() []engine.RuleState {
	if !s.Dirty() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = slices.Clone(s.states)
	return s.kept
}

// Transition tells what happens to the run; one that ends it drains the rules.
func (s *Set) Transition(t store.Transition, now time.Time) {
	s.Hub().Transition(t, t.Events, now)
	if t.To.Terminal() {
		s.Drain()
	}
}

// Drain ends what rules read, since the run is over: what they hold goes where it has to, but stops nothing.
func (s *Set) Drain() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.drains.Do(func() { close(s.drain) })
}

// StartFunc begins the rules of a run; nil begins none.
type StartFunc func(engine.Run) *Set

// Start are the rules of a run, nil without any.
func (b StartFunc) Start(run engine.Run) *Set {
	if b == nil {
		return nil
	}
	return b(run)
}

// drainTimeout is how long rules have when their run is over to bring away what they hold.
const drainTimeout = 3 * time.Second

// End ends the rules; those of a run that is over may bring away what they hold before. It reports whether there is
// something to be kept. It may be called again.
func (s *Set) End(over bool) bool {
	if s == nil {
		return false
	}
	ended := make(chan struct{})
	go func() { s.work.Wait(); close(ended) }()
	if over {
		s.Drain()
		select {
		case <-ended:
		case <-time.After(drainTimeout):
			s.mu.Lock()
			s.late = true
			s.mu.Unlock()
		}
	}
	s.cancel()
	<-ended
	s.leave()
	return over && s.Dirty()
}
