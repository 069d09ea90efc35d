package rules

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

const (
	// heartbeatTimeout is after how long without a heartbeat a run worker is taken for lost.
	heartbeatTimeout = 5 * time.Second
	// retryDelay is how long a rule waits that has lost a node, and lacksFor how long it may lack one.
	retryDelay     = 500 * time.Millisecond
	missingTimeout = 20 * time.Second
	// firstRuleID is where the numbers of rules begin, as those of queries: no catalog comes so far, and servers leave
	// alone what is later than theirs.
	firstRuleID = 1 << 62
)

// SetNodes says on which nodes the run has run workers at a time by the clock that their heartbeats are told by, which
// is the run's and may be another than this machine's. Nodes stay until they are lost.
func (s *Set) SetNodes(workers []store.WorkerRow, now time.Time) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := false
	for _, w := range workers {
		if w.NodeID != "" && w.NodeID != s.hub.Node && !w.Status.Ended() && now.Sub(w.LastHeartbeat) < heartbeatTimeout &&
			!slices.Contains(s.remoteNodes, w.NodeID) {
			s.remoteNodes, changed = append(slices.Clone(s.remoteNodes), w.NodeID), true
		}
	}
	if changed {
		close(s.moved)
		s.moved = make(chan struct{})
	}
}

// currentNodes are the nodes, and what is closed when there are others.
func (s *Set) currentNodes() (nodes []string, moved <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remoteNodes, s.moved
}

// lost takes a node out until it is heard of again.
func (s *Set) lost(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remoteNodes = slices.DeleteFunc(slices.Clone(s.remoteNodes), func(n string) bool { return n == node })
}

// attempt is a rule that reads what run workers record, here and on nodes: the head of each node is read by way of a
// link, and merged here. It begins anew when the run comes to other nodes, or one is lost.
type attempt struct {
	set   *Set
	index int
	rule  engine.Rule
	o     Options
	key   fragment.Key
	nodes []string
	heads []*head
	// began: all nodes were ready.
	began bool
	// frames come from heads; failed has the first that is lost.
	frames chan []byte
	failed chan *lostError
}

// head is the part of a rule that a node works out.
type head struct {
	node string
	link fragment.Link
	in   atomic.Int64
	// ended is closed when the head says nothing any more.
	ended chan struct{}
}

// lostError is a node whose part is not had any more.
type lostError struct {
	node, why string
	terminal  bool
}

func (e *lostError) Error() string { return "the node " + e.node + ": " + e.why }

// runOnNodes runs a rule until its sources have ended or ctx is done.
func (s *Set) runOnNodes(ctx context.Context, i int, r engine.Rule, was engine.RuleState, o Options) error {
	key := fragment.Key{QueryID: firstRuleID | rand.Int64N(firstRuleID), Epoch: 1}
	lacks := map[string]missingNode{}
	for !s.ends(ctx) {
		key.Attempt++
		nodes, moved := s.currentNodes()
		a := &attempt{set: s, index: i, rule: r, o: o, key: key, nodes: nodes, frames: make(chan []byte),
			failed: make(chan *lostError, 1)}
		began := time.Now()
		err := a.run(ctx, was, moved)
		was = s.States()[i]
		var lost *lostError
		switch {
		case ctx.Err() != nil, errors.Is(err, errMoved):
			continue
		case !errors.As(err, &lost):
			return err
		}
		one := lacks[lost.node].next(began, time.Now(), a.began)
		lacks[lost.node] = one
		if lost.terminal || one.until.Sub(one.since) >= missingTimeout {
			return sql.Errorf(sql.PlacementError, "", -1, "", "the rule does not have the executions of %v", lost)
		}
		s.lost(lost.node)
		select {
		case <-time.After(retryDelay):
		case <-ctx.Done():
		case <-s.drain:
		}
	}
	return ctx.Err()
}

// missingNode is since when, and until when, a rule does not have the executions of a node.
type missingNode struct{ since, until time.Time }

// next is the lack of a node that an attempt has lost, or did not get. A node that was had for a while, or that the
// run did not have meanwhile, is lacked from then on.
func (l missingNode) next(began, now time.Time, had bool) missingNode {
	switch {
	case had && now.Sub(began) > 4*retryDelay:
		l.since = now
	case l.since.IsZero() || began.Sub(l.until) > heartbeatTimeout:
		l.since = began
	}
	l.until = now
	return l
}

// ends reports whether rules have nothing to begin any more.
func (s *Set) ends(ctx context.Context) bool {
	select {
	case <-s.drain:
		return true
	default:
		return ctx.Err() != nil
	}
}

var errMoved = errors.New("the run has other nodes")

// run runs it once.
func (a *attempt) run(ctx context.Context, was engine.RuleState, moved <-chan struct{}) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var following sync.WaitGroup
	defer func() {
		cancel(nil)
		for _, h := range a.heads {
			_ = h.link.Close()
		}
		following.Wait()
	}()
	bound, err := a.plan()
	if err != nil {
		return err
	}
	job, err := a.set.job(ctx, a.index, a.rule, bound.Plan, was, a.o)
	if err != nil {
		return err
	}
	for scan := range job.Sources {
		p, is := job.Sources[scan][0].(connector.Partial)
		if !is || !connector.PerNode(system.StreamOf(job.Plan.Scans[scan].Source)) {
			continue
		}
		p.SetRemote(func(node string) bool { return slices.Contains(a.nodes, node) })
		for range a.nodes {
			job.Sources[scan] = append(job.Sources[scan], nil)
		}
	}
	closeSources := func() {
		for _, of := range job.Sources {
			_ = of[0].Close()
		}
	}
	for _, node := range a.nodes {
		h, err := a.begin(ctx, bound.On(node).Spec)
		if err != nil {
			closeSources()
			return err
		}
		a.heads = append(a.heads, h)
	}
	for _, h := range a.heads {
		if h.link.Send(ctx, fragment.Message{Kind: fragment.Go}) != nil {
			closeSources()
			return &lostError{node: h.node, why: "it was lost"}
		}
		following.Go(func() { a.follow(ctx, h) })
	}
	a.began = true
	report := job.Report
	job.Report = func(c exec.Counts) {
		for _, h := range a.heads {
			c.In += h.in.Load()
		}
		report(c)
	}
	job.Remote = a.next
	following.Go(func() {
		select {
		case <-moved:
			cancel(errMoved)
		case <-a.set.drain:
			for _, h := range a.heads {
				_ = h.link.Send(ctx, fragment.Message{Kind: fragment.Drain}) // one that has ended has nothing to drain
			}
		case <-ctx.Done():
		}
	})
	counts, err := exec.Run(ctx, job)
	if err == nil {
		a.awaitReports(ctx)
	}
	job.Report(counts)
	if errors.Is(context.Cause(ctx), errMoved) {
		return errMoved
	}
	return err
}

// awaitReports waits until the heads have said how many rows they read: that comes behind the last of what they came
// to.
func (a *attempt) awaitReports(ctx context.Context) {
	for _, h := range a.heads {
		for heard := false; !heard; {
			select {
			case <-a.frames: // nothing stands in it any more
			case <-h.ended:
				heard = true
			case <-ctx.Done():
				return
			}
		}
	}
}

// begin gives a node its part, and waits until it is ready.
func (a *attempt) begin(ctx context.Context, spec fragment.Spec) (*head, error) {
	ctx, cancel := context.WithTimeout(ctx, missingTimeout)
	defer cancel()
	node := spec.Host
	var runner protocol.FragmentRunner
	if runner = a.o.Nodes(node); runner == nil {
		return nil, &lostError{node: node, why: "there is no stream to it"}
	}
	text, err := spec.Marshal()
	if err != nil {
		return nil, err
	}
	link, err := runner.RunFragment(ctx, spec.Key, text)
	if err != nil {
		return nil, &lostError{node: node, why: err.Error()}
	}
	w, err := link.Receive(ctx)
	switch {
	case err == nil && w.Kind == fragment.Ready:
		return &head{node: node, link: link, ended: make(chan struct{})}, nil
	case err == nil && w.Kind == fragment.End:
		e, failed := fragment.ParseEnd(w)
		err = errors.Join(failed, link.Close())
		if err == nil {
			return nil, &lostError{node, e.Failure, e.Terminal}
		}
	}
	_ = link.Close()
	return nil, &lostError{node: node, why: fmt.Sprintf("it was not ready: %v", err)}
}

// plan is the rule with what nodes need to know of it: its statement, and the source that has this run's part of what
// each node records.
func (a *attempt) plan() (fragment.Bound, error) {
	const sink = "rule"
	text, err := into(a.rule.When, sink)
	if err != nil {
		return fragment.Bound{}, err
	}
	c := catalog.Contents{Sinks: []catalog.Sink{{Name: sink, Type: connector.Print, Config: connector.Config{}}}}
	q := catalog.Query{ID: a.key.QueryID, Epoch: a.key.Epoch, Name: a.rule.Name, CreatedByID: a.o.Owner,
		Statement: text, Sink: sink,
		Fragments: []catalog.Fragment{{Host: catalog.Server}}}
	for _, n := range a.nodes {
		q.Fragments = append(q.Fragments, catalog.Fragment{Host: n})
	}
	for i, stream := range connector.Streams {
		columns, _ := system.Schemas{}.Schema(stream)
		p := catalog.PhysicalSource{ID: int64(i + 1), Logical: stream, Type: connector.System,
			Config: connector.Config{"SOURCE.STREAM": stream}}
		if connector.PerNode(stream) {
			p.Config["SOURCE.RUN_ID"] = a.o.RunID
		}
		c.Logical = append(c.Logical, catalog.LogicalSource{Name: stream, Columns: columns})
		c.Physical, q.Sources = append(c.Physical, p), append(q.Sources, p.ID)
	}
	return fragment.Plan(c, q, a.key.Attempt)
}

// into is a SELECT with a sink, as a statement of its own.
func into(when, sink string) (text string, err error) {
	for rest := when; ; {
		text = rest + "\nINTO " + sink
		list, err := sql.Parse(text)
		if err == nil && len(list) == 1 {
			return text, nil
		}
		at := strings.LastIndexByte(rest, ';') // at the end, or in a remark
		if at < 0 {
			return "", errors.Join(err, errors.New("the statement of the rule cannot be sent to a node"))
		}
		rest = rest[:at]
	}
}

// follow takes what a head says until ctx or the link ends.
func (a *attempt) follow(ctx context.Context, h *head) {
	defer close(h.ended)
	for {
		w, err := h.link.Receive(ctx)
		if err != nil {
			a.fail(&lostError{node: h.node, why: "it was lost"})
			return
		}
		switch w.Kind {
		case fragment.Frame:
			select {
			case a.frames <- w.Body:
			case <-ctx.Done():
				return
			}
		case fragment.Report:
			if c, err := fragment.ParseCounts(w); err == nil {
				h.in.Store(c.In)
			}
		case fragment.End:
			e, err := fragment.ParseEnd(w)
			if h.in.Store(e.Counts.In); err != nil || e.Failure != "" {
				a.fail(&lostError{h.node, e.Failure, e.Terminal})
			}
			return
		}
	}
}

// fail has the attempt end.
func (a *attempt) fail(why *lostError) {
	select {
	case a.failed <- why:
	default:
	}
}

// next waits for what a head has come to.
func (a *attempt) next(ctx context.Context) ([]byte, error) {
	select {
	case f := <-a.frames:
		return f, nil
	case why := <-a.failed:
		return nil, why
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
