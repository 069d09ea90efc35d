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

// groups is into how many the segments of a leaf are divided at most.
const groups = 16

// How long a work may take before another node is to do it, too: a second, or lateBy times as long as the longest of
// the query that is done. How long a query waits for a node that takes work.
const (
	lateAfter = time.Second
	lateBy    = 4
	nodeLimit = 3 * time.Second
	lookEvery = 100 * time.Millisecond
)

// Nodes does the work. *nodes.Fleet implements it.
type Nodes interface {
	Query(queryID string, a nodes.Asker, works ...nodes.QueryWork)
	Fetched(k protocol.WorkKey, checksum string) (counts bool)
	FetchFailed(k protocol.WorkKey, checksum, reason string, gone bool)
	Late(k protocol.WorkKey)
	Forget(queryID string)
	// Stranded reports whether some work of the query waits while no node takes any.
	Stranded(queryID string) bool
}

// Meter takes measurements, and returns at once.
type Meter interface {
	// Begun is a query whose work is handed out; ended is called when it is over.
	Begun(queryID string) (ended func(err error, first time.Duration))
}

// Leaves implements PromQLLeaves.
type Leaves struct {
	Catalog Catalog
	Nodes   Nodes
	// Own evaluates over runs that go on: their seconds are in a database that other processes do not reach.
	Own   *Node
	Meter Meter
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
	answer    *Answer
	bytes     int
	err       error
	// gaveUp: there will be nothing.
	gaveUp *protocol.WorkFailed
}

// query is one that goes on.
type query struct {
	Leaves
	r      *Request
	log    zerolog.Logger
	events *protocol.Mailbox[event]
	works  map[protocol.WorkKey]*work
	// own are those that this process does.
	own  []ownWork
	left int
	// longest is how long the work took that took longest, of those that are done.
	longest time.Duration
	// fetching is what goes on beside; what reads answers of a node takes one of the fetches of that node, lest one that
	// does not answer keep those of others waiting; what does work here takes one of the evaluations.
	fetching    sync.WaitGroup
	fetches     map[string]slots
	evaluations slots
	// announced is how much the works come to that are done, in bytes.
	announced int64
	// stranded is since when a work has no node that takes it; zero while none is so.
	stranded time.Time
}

// work is what is known of one.
type work struct {
	leaf      int
	attempts  []attempt
	own, done bool
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

// Assigned implements nodes.Asker.
func (q *query) Assigned(k protocol.WorkKey, nodeID string, attempt int, preferred bool) {
	q.events.Put(event{key: k, node: nodeID, attempt: attempt, preferred: preferred, at: time.Now()})
}

// Ready implements nodes.Asker.
func (q *query) Ready(k protocol.WorkKey, p nodes.Part) {
	q.events.Put(event{key: k, part: &p, at: time.Now()})
}

// GaveUp implements nodes.Asker.
func (q *query) GaveUp(k protocol.WorkKey, f protocol.WorkFailed) {
	q.events.Put(event{key: k, gaveUp: &f, at: time.Now()})
}

// Evaluate implements PromQLLeaves.
func (l Leaves) Evaluate(ctx context.Context, r *Request, fn func(Piece, Answer) error) (
	err error) {
	q := &query{Leaves: l, r: r, works: map[protocol.WorkKey]*work{},
		log:     l.Log.With().Str("query_id", r.QueryID).Logger(),
		fetches: map[string]slots{}, evaluations: make(slots, atOnce),
		events: protocol.NewMailbox(func(event) (protocol.Policy, protocol.Subject) {
			return protocol.MustArrive, protocol.Subject{}
		}, nil)}
	var first time.Duration
	if l.Meter != nil {
		ended := l.Meter.Begun(r.QueryID)
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
	defer l.Nodes.Forget(r.QueryID)
	for _, w := range q.own {
		q.fetching.Go(func() { q.evaluate(ctx, w) })
	}
	err = q.follow(ctx, func(p Piece, a Answer) error {
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
func (q *query) divide(ctx context.Context) ([]nodes.QueryWork, error) {
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
		for _, g := range grouped(Matching(segments, l)) {
			key := protocol.WorkKey{QueryID: q.r.QueryID, LeafID: strconv.Itoa(i), WorkID: strconv.Itoa(i) + "-" + g.name}
			q.works[key] = &work{leaf: i, own: g.live}
			if g.live {
				q.own = append(q.own, ownWork{key, q.r.Tasks[i], g.segments})
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

// grouped divides segments by their runs.
func grouped(segments []Segment) []group {
	var all [2 * groups]group
	for _, s := range segments {
		h := fnv.New32a()
		_, _ = h.Write([]byte(s.RunID))
		i := int(h.Sum32() % groups)
		g := &all[i]
		g.name = strconv.Itoa(i)
		if s.Live {
			g = &all[groups+i]
			g.name, g.live = "live-"+strconv.Itoa(i), true
		}
		g.affinity = "segments " + strconv.Itoa(i)
		g.segments = append(g.segments, s)
	}
	return slices.DeleteFunc(all[:], func(g group) bool { return len(g.segments) == 0 })
}

// follow takes in what becomes of the works, until all are done.
func (q *query) follow(ctx context.Context, fn func(Piece, Answer) error) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		for {
			e, ok := q.events.Take()
			if !ok {
				break
			}
			if err := q.heard(ctx, e, fn); err != nil || q.left == 0 {
				return err
			}
		}
		select {
		case <-q.events.Ready():
		case now := <-look.C:
			if err := q.look(now); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// heard takes one event in.
func (q *query) heard(ctx context.Context, e event, fn func(Piece, Answer) error) error {
	w := q.works[e.key]
	if w == nil || w.done {
		return nil // an answer that comes after another one
	}
	switch {
	case e.gaveUp != nil:
		return failureOf(*e.gaveUp)
	case e.fetched:
		return q.fetched(w, e, fn)
	case e.part != nil:
		if err := q.comesTo(w, e.part.Artifact.SizeBytes); err != nil {
			return err
		}
		from := q.fetches[e.part.NodeID]
		if from == nil {
			from = make(slots, atOnce)
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

// fetched takes in what a work came to, or that it could not be read.
func (q *query) fetched(w *work, e event, fn func(Piece, Answer) error) error {
	if e.part == nil {
		if e.err != nil {
			return e.err
		}
		if err := q.comesTo(w, int64(e.bytes)); err != nil {
			return err
		}
		return q.done(w, e, protocol.OwnNode, fn)
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
	return q.done(w, e, e.part.NodeID, fn)
}

// done hands on what a work came to.
func (q *query) done(w *work, e event, nodeID string, fn func(Piece, Answer) error) error {
	w.done = true
	q.left--
	now := time.Now()
	by := w.by(nodeID)
	took := now.Sub(by.at)
	q.longest = max(q.longest, took)
	spent := e.answer.Spent
	q.log.Debug().Str("work_id", e.key.WorkID).Str("node_id", nodeID).Int("segments", spent.Segments).
		Int("hits", spent.Hits).Int("bytes", e.bytes).Dur("took_ms", took).Msg("a work of a query is done")
	ms := Milliseconds
	return fn(Piece{Leaf: w.leaf, Of: len(q.works), WorkID: e.key.WorkID, NodeID: by.node, Attempt: by.number,
		Preferred: by.preferred, Segments: spent.Segments, Hits: spent.Hits, DiskHits: spent.DiskHits,
		Fetched: spent.Fetched, FetchedBytes: spent.FetchedBytes, Samples: e.answer.Samples,
		Series: len(e.answer.Series), Bytes: e.bytes, BeginMs: ms(by.at.Sub(q.r.Begin)), WaitMs: ms(spent.WaitNs),
		ReadMs: ms(spent.ReadNs), EvaluateMs: ms(spent.EvaluateNs), TransferMs: ms(e.at.Sub(e.announced)),
		TookMs: ms(took)}, *e.answer)
}

// by is the attempt of a node: of several the last.
func (w *work) by(nodeID string) attempt {
	for _, a := range slices.Backward(w.attempts) {
		if a.node == nodeID {
			return a
		}
	}
	return attempt{node: nodeID}
}

// fetch reads what a work came to from its node, in one of the node's slots.
func (q *query) fetch(ctx context.Context, from slots, e event) {
	if !from.take(ctx) {
		return
	}
	defer from.free()
	done := event{key: e.key, part: e.part, fetched: true, announced: e.at}
	a, n, err := read(ctx, e.part)
	done.answer, done.bytes, done.err, done.at = &a, n, err, time.Now()
	if ctx.Err() == nil {
		q.events.Put(done)
	}
}

func read(ctx context.Context, p *nodes.Part) (a Answer, n int, err error) {
	size := p.Artifact.SizeBytes
	if size < 0 || size > mostAnswer {
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

// look finds works that are late, and a query of which nobody takes the work.
func (q *query) look(now time.Time) error {
	limit := max(lateAfter, lateBy*q.longest)
	for k, w := range q.works {
		if w.done || w.own || len(w.attempts) == 0 {
			continue
		}
		last := w.attempts[len(w.attempts)-1]
		if now.Sub(last.at) <= limit || now.Sub(w.late) < lateAfter {
			continue
		}
		if w.late.IsZero() {
			q.log.Info().Str("work_id", k.WorkID).Str("node_id", last.node).Dur("after_ms", now.Sub(last.at)).
				Msg("a work of a query is late; another node begins it, too, if there is one")
		}
		// Said again: another node may come.
		w.late = now
		q.Nodes.Late(k)
	}
	// A node that drains, and takes no more work, finishes what it has.
	if !q.Nodes.Stranded(q.r.QueryID) {
		q.stranded = time.Time{}
		return nil
	}
	if q.stranded.IsZero() {
		q.stranded = now
	}
	if now.Sub(q.stranded) > nodeLimit {
		return &engine.Error{Code: engine.CodeUnavailable, Message: "No node takes the work of queries now.",
			Hint: "`loadstone node list` and the page Nodes say why."}
	}
	return nil
}

// failureOf is what a node says of a work that has failed for good, as an error of the query.
func failureOf(f protocol.WorkFailed) error {
	switch f.Code {
	case "timeout":
		return promql.ErrQueryTimeout(f.Reason)
	case "unavailable":
		return &engine.Error{Code: engine.CodeUnavailable,
			Message: "A part of the query could not be evaluated: " + f.Reason}
	}
	return errors.New(f.Reason)
}
