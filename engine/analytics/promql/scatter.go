// This part has the leaves of a query evaluated by nodes. Its work is divided by segments, and each part goes to the
// node that has them at hand; what became of it is kept in memory, for as long as the query goes on.
//
// The segments of a leaf are divided into a fixed number of groups by their run, and each group has an affinity of its
// own: it is read by the same node in every query, and a node that comes or goes moves only its own groups.
// A group is evaluated over the whole time that is asked for: windows are never divided.

package promql

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// maxGroups is into how many the segments of a leaf are divided at most.
const maxGroups = 16

// How long a work may take before another node is to do it, too: a second, or lateBy times as long as the longest of
// the query that is done. How long a query waits for a node that takes work.
const (
	hedgeAfter    = time.Second
	hedgeFactor   = 4
	noNodeTimeout = 3 * time.Second
	pollInterval  = 100 * time.Millisecond
)

// Nodes does the work. *nodes.Fleet implements it.
type Nodes interface {
	Query(queryID string, a nodes.QueryListener, works ...nodes.QueryWork)
	Fetched(k protocol.WorkKey, checksum string) (counts bool)
	FetchFailed(k protocol.WorkKey, checksum, reason string, gone bool)
	Hedge(k protocol.WorkKey)
	ReleaseRun(queryID string)
	// HasStrandedWork reports whether some work of the query waits while no node takes any.
	HasStrandedWork(queryID string) bool
}

// QueryMeter takes measurements, and returns at once.
type QueryMeter interface {
	// QueryStarted is a query whose work is handed out; ended is called when it is over.
	QueryStarted(queryID string) (ended func(err error, first time.Duration))
}

// Dispatcher implements LeafEvaluator.
type Dispatcher struct {
	Catalog Catalog
	Nodes   Nodes
	// Own evaluates over runs that go on: their seconds are in a database that other processes do not reach.
	Own   *Evaluator
	Meter QueryMeter
	Log   zerolog.Logger
}

// event is something that became of a work.
type event struct {
	key protocol.WorkKey
	at  time.Time
	// Of an assignment.
	node      string
	attempt   int
	preferred bool
	// part is what the work came to, as its node announces it; nil where this process did it. fetched: answer was read
	// of that, or err says why not.
	part      *nodes.Part
	fetched   bool
	announced time.Time
	result    *LeafResult
	bytes     int
	err       error
	// failed: there will be nothing.
	failed *protocol.WorkFailed
}

// dispatch is one that goes on.
type dispatch struct {
	Dispatcher
	r      *Request
	log    zerolog.Logger
	events *protocol.Mailbox[event]
	works  map[protocol.WorkKey]*work
	// local are those that this process does.
	local []localWork
	left  int
	// maxDuration is how long the work took that took longest, of those that are done.
	maxDuration time.Duration
	// fetching is what goes on beside; what reads answers of a node takes one of the fetches of that node, lest one that
	// does not answer keep those of others waiting; what does work here takes one of the evaluations.
	fetching    sync.WaitGroup
	fetches     map[string]slots
	evaluations slots
	// announced is how much the works come to that are done, in bytes.
	announced int64
	// strandedSince is since when a work has no node that takes it; zero while none is so.
	strandedSince time.Time
}

// work is what is known of one.
type work struct {
	leaf        int
	attempts    []attempt
	local, done bool
	// late is when another node was last wanted for it since the last attempt.
	late time.Time
	size int64
}

// attempt is a node that was given a work.
type attempt struct {
	node      string
	number    int
	preferred bool
	at        time.Time
}

// Assigned implements nodes.QueryListener.
func (q *dispatch) Assigned(k protocol.WorkKey, nodeID string, attempt int, preferred bool) {
	q.events.Put(event{key: k, node: nodeID, attempt: attempt, preferred: preferred, at: time.Now()})
}

// Ready implements nodes.QueryListener.
func (q *dispatch) Ready(k protocol.WorkKey, p nodes.Part) {
	q.events.Put(event{key: k, part: &p, at: time.Now()})
}

// WorkFailed implements nodes.QueryListener.
func (q *dispatch) WorkFailed(k protocol.WorkKey, f protocol.WorkFailed) {
	q.events.Put(event{key: k, failed: &f, at: time.Now()})
}

// Evaluate implements LeafEvaluator.
func (l Dispatcher) Evaluate(ctx context.Context, r *Request, fn func(WorkStats, LeafResult) error) (
	err error) {
	q := &dispatch{Dispatcher: l, r: r, works: map[protocol.WorkKey]*work{},
		log:     l.Log.With().Str("query_id", r.QueryID).Logger(),
		fetches: map[string]slots{}, evaluations: make(slots, maxConcurrent),
		events: protocol.NewMailbox(func(event) (protocol.Policy, protocol.Subject) {
			return protocol.MustArrive, protocol.Subject{}
		}, nil)}
	var first time.Duration
	if l.Meter != nil {
		ended := l.Meter.QueryStarted(r.QueryID)
		defer func() { ended(err, first) }()
	}
	works, err := q.divide(ctx)
	r.Segmented = time.Now()
	if err != nil || len(q.works) == 0 {
		return err
	}
	q.left = len(q.works)
	ctx, cancel := context.WithCancel(ctx)
	l.Nodes.Query(r.QueryID, q, works...)
	// What nodes still have of it is cancelled at once; what is being fetched is not waited for before.
	defer q.fetching.Wait()
	defer cancel()
	defer l.Nodes.ReleaseRun(r.QueryID)
	for _, w := range q.local {
		q.fetching.Go(func() { q.evaluate(ctx, w) })
	}
	err = q.collect(ctx, func(p WorkStats, a LeafResult) error {
		if first == 0 {
			first = time.Since(r.Begin)
		}
		return fn(p, a)
	})
	q.log.Debug().Err(err).Int("works", len(q.works)).Dur("took_ms", time.Since(r.Begin)).
		Msg("the leaves of a query were evaluated")
	return err
}

// divide makes works of the leaves, and returns those for nodes.
func (q *dispatch) divide(ctx context.Context) ([]nodes.QueryWork, error) {
	plan := q.r.Plan
	if len(plan.Leaves) == 0 {
		return nil, nil
	}
	from, to := plan.Leaves[0].From, plan.Leaves[0].To
	for _, l := range plan.Leaves {
		from, to = min(from, l.From), max(to, l.To)
	}
	segments, err := q.Catalog.Segments(ctx, from, to)
	if err != nil {
		return nil, err
	}
	var works []nodes.QueryWork
	for i, l := range plan.Leaves {
		task, err := json.Marshal(q.r.Tasks[i])
		if err != nil {
			return nil, fmt.Errorf("writing a leaf: %w", err)
		}
		for _, g := range groupSegments(Matching(segments, l)) {
			key := protocol.WorkKey{QueryID: q.r.QueryID, LeafID: strconv.Itoa(i), WorkID: strconv.Itoa(i) + "-" + g.name}
			q.works[key] = &work{leaf: i, local: g.live}
			if g.live {
				q.local = append(q.local, localWork{key, q.r.Tasks[i], g.segments})
				continue
			}
			text, err := json.Marshal(g.segments)
			if err != nil {
				return nil, fmt.Errorf("writing segments: %w", err)
			}
			works = append(works, nodes.QueryWork{Affinity: g.affinity,
				AssignWork: protocol.AssignWork{WorkKey: key, Task: task, Segments: text}})
		}
	}
	return works, nil
}

// group is some segments of a leaf.
type group struct {
	name, affinity string
	// live: of runs that go on.
	live     bool
	segments []Segment
}

// groupSegments divides segments by their runs.
func groupSegments(segments []Segment) []group {
	var all [2 * maxGroups]group
	for _, s := range segments {
		h := fnv.New32a()
		_, _ = h.Write([]byte(s.RunID))
		i := int(h.Sum32() % maxGroups)
		g := &all[i]
		g.name = strconv.Itoa(i)
		if s.Live {
			g = &all[maxGroups+i]
			g.name, g.live = "live-"+strconv.Itoa(i), true
		}
		g.affinity = "segments " + strconv.Itoa(i)
		g.segments = append(g.segments, s)
	}
	return slices.DeleteFunc(all[:], func(g group) bool { return len(g.segments) == 0 })
}

// collect takes in what becomes of the works, until all are done.
func (q *dispatch) collect(ctx context.Context, fn func(WorkStats, LeafResult) error) error {
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	for {
		for {
			e, ok := q.events.Take()
			if !ok {
				break
			}
			if err := q.handle(ctx, e, fn); err != nil || q.left == 0 {
				return err
			}
		}
		select {
		case <-q.events.Ready():
		case now := <-look.C:
			if err := q.checkLate(now); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// handle takes one event in.
func (q *dispatch) handle(ctx context.Context, e event, fn func(WorkStats, LeafResult) error) error {
	w := q.works[e.key]
	if w == nil || w.done {
		return nil // an answer that comes after another one
	}
	switch {
	case e.failed != nil:
		return workError(*e.failed)
	case e.fetched:
		return q.handleFetched(w, e, fn)
	case e.part != nil:
		if err := q.checkSize(w, e.part.Artifact.SizeBytes); err != nil {
			return err
		}
		from := q.fetches[e.part.NodeID]
		if from == nil {
			from = make(slots, maxConcurrent)
			q.fetches[e.part.NodeID] = from
		}
		q.fetching.Go(func() { q.fetch(ctx, from, e) })
	default:
		w.late = time.Time{}
		if e.attempt > 1 {
			q.log.Info().Str("work_id", e.key.WorkID).Str("node_id", e.node).Int("attempt", e.attempt).
				Msg("a work of a query was given to another node")
		}
		w.attempts = append(w.attempts, attempt{e.node, e.attempt, e.preferred, e.at})
	}
	return nil
}

// handleFetched takes in what a work came to, or that it could not be read.
func (q *dispatch) handleFetched(w *work, e event, fn func(WorkStats, LeafResult) error) error {
	if e.part == nil {
		if e.err != nil {
			return e.err
		}
		if err := q.checkSize(w, int64(e.bytes)); err != nil {
			return err
		}
		return q.deliver(w, e, protocol.OwnNode, fn)
	}
	sum := e.part.Artifact.SHA256
	if e.err != nil {
		log := q.log.With().Str("work_id", e.key.WorkID).Str("node_id", e.part.NodeID).Logger()
		gone := errors.Is(e.err, os.ErrNotExist) || errors.Is(e.err, protocol.ErrAnnounced)
		log.Warn().Err(e.err).Bool("again", gone).Msg("what a work of a query came to could not be fetched")
		q.Nodes.FetchFailed(e.key, sum, e.err.Error(), gone)
		return nil
	}
	if !q.Nodes.Fetched(e.key, sum) {
		return nil // of several completions the first counts
	}
	return q.deliver(w, e, e.part.NodeID, fn)
}

// deliver hands on what a work came to.
func (q *dispatch) deliver(w *work, e event, nodeID string, fn func(WorkStats, LeafResult) error) error {
	w.done = true
	q.left--
	now := time.Now()
	by := w.attemptOn(nodeID)
	took := now.Sub(by.at)
	q.maxDuration = max(q.maxDuration, took)
	spent := e.result.Cost
	q.log.Debug().Str("work_id", e.key.WorkID).Str("node_id", nodeID).Int("segments", spent.Segments).
		Int("hits", spent.Hits).Int("bytes", e.bytes).Dur("took_ms", took).Msg("a work of a query is done")
	ms := Milliseconds
	return fn(WorkStats{Leaf: w.leaf, Total: len(q.works), WorkID: e.key.WorkID, NodeID: by.node, Attempt: by.number,
		Preferred: by.preferred, Segments: spent.Segments, Hits: spent.Hits, DiskHits: spent.DiskHits,
		Fetched: spent.Fetched, FetchedBytes: spent.FetchedBytes, Samples: e.result.Samples,
		Series: len(e.result.Series), Bytes: e.bytes, BeginMs: ms(by.at.Sub(q.r.Begin)), WaitMs: ms(spent.WaitNs),
		ReadMs: ms(spent.ReadNs), EvaluateMs: ms(spent.EvaluateNs), TransferMs: ms(e.at.Sub(e.announced)),
		TookMs: ms(took)}, *e.result)
}

// attemptOn is the attempt of a node: of several the last.
func (w *work) attemptOn(nodeID string) attempt {
	for _, a := range slices.Backward(w.attempts) {
		if a.node == nodeID {
			return a
		}
	}
	return attempt{node: nodeID}
}

// fetch reads what a work came to from its node, in one of the node's slots.
func (q *dispatch) fetch(ctx context.Context, from slots, e event) {
	if !from.acquire(ctx) {
		return
	}
	defer from.release()
	done := event{key: e.key, part: e.part, fetched: true, announced: e.at}
	a, n, err := fetchResult(ctx, e.part)
	done.result, done.bytes, done.err, done.at = &a, n, err, time.Now()
	if ctx.Err() == nil {
		q.events.Put(done)
	}
}

func fetchResult(ctx context.Context, p *nodes.Part) (a LeafResult, n int, err error) {
	size := p.Artifact.SizeBytes
	if size < 0 || size > maxResultBytes {
		return a, 0, fmt.Errorf("%w: %d bytes", protocol.ErrAnnounced, size)
	}
	content, err := p.Open(ctx)
	if err != nil {
		return a, 0, err
	}
	b := make([]byte, size, size+1)
	_, err = io.ReadFull(content, b)
	if err == nil {
		if n, _ := content.Read(b[size : size+1]); n > 0 {
			err = protocol.ErrAnnounced
		}
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: it ends before its end", protocol.ErrAnnounced)
	}
	if err = errors.Join(err, content.Close()); err != nil {
		return a, 0, err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != p.Artifact.SHA256 {
		return a, 0, fmt.Errorf("%w: another checksum", protocol.ErrAnnounced)
	}
	if a, err = Read(bytes.NewReader(b), size); err != nil {
		return a, 0, fmt.Errorf("%w: %w", protocol.ErrAnnounced, err)
	}
	return a, len(b), nil
}

// checkLate finds works that are late, and a query of which nobody takes the work.
func (q *dispatch) checkLate(now time.Time) error {
	limit := max(hedgeAfter, hedgeFactor*q.maxDuration)
	for k, w := range q.works {
		if w.done || w.local || len(w.attempts) == 0 {
			continue
		}
		last := w.attempts[len(w.attempts)-1]
		if now.Sub(last.at) <= limit || now.Sub(w.late) < hedgeAfter {
			continue
		}
		if w.late.IsZero() {
			q.log.Info().Str("work_id", k.WorkID).Str("node_id", last.node).Dur("after_ms", now.Sub(last.at)).
				Msg("a work of a query is late; another node begins it, too, if there is one")
		}
		// Said again: another node may come.
		w.late = now
		q.Nodes.Hedge(k)
	}
	// A node that drains, and takes no more work, finishes what it has.
	if !q.Nodes.HasStrandedWork(q.r.QueryID) {
		q.strandedSince = time.Time{}
		return nil
	}
	if q.strandedSince.IsZero() {
		q.strandedSince = now
	}
	if now.Sub(q.strandedSince) > noNodeTimeout {
		return &engine.Error{Code: engine.CodeUnavailable, Message: "No node takes the work of queries now.",
			Hint: "`loadstone node list` and the page Nodes say why."}
	}
	return nil
}

// workError is what a node says of a work that has failed for good, as an error of the query.
func workError(f protocol.WorkFailed) error {
	switch f.Code {
	case "timeout":
		return promql.ErrQueryTimeout(f.Reason)
	case "unavailable":
		return &engine.Error{Code: engine.CodeUnavailable,
			Message: "A part of the query could not be evaluated: " + f.Reason}
	}
	return errors.New(f.Reason)
}
