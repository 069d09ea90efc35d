// This part evaluates leaves over segments, of which it keeps what was read last in memory.

package promql

import (
	"container/list"
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"golang.org/x/sync/errgroup"

	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
)

// Segment says where the series of a run are.
type Segment struct {
	RunID string `json:"run_id"`
	// Name is another one when the content is.
	Name string `json:"name"`
	// Live: there is no file yet; the seconds are in the roll-ups.
	Live   bool   `json:"live,omitempty"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"size_bytes"`
	// Labels are those that all series of the run get.
	Labels labels.Labels `json:"labels"`
	// From and To are when its first and last samples are, in milliseconds since the epoch of Unix.
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// SegmentReader reads the series of a segment. fetched is how many bytes of it came from the server for that, 0 where
// it was at hand.
type SegmentReader func(context.Context, Segment) (set *series.Set, fetched int64, err error)

// ReadError is the failure of a Read: on another node it may work.
type ReadError struct{ err error }

func (e *ReadError) Error() string { return e.err.Error() }
func (e *ReadError) Unwrap() error { return e.err }

// Evaluator evaluates leaves. It is safe for concurrent use.
type Evaluator struct {
	read   SegmentReader
	engine *promql.Engine
	parser parser.Parser
	slots  chan struct{}

	mu sync.Mutex
	// flights are the reads that go on, by name, labels and content.
	flights map[string]*flight
	// sets are the sets in memory, by name and labels; recent has them in the order of their use.
	sets     map[string]*list.Element
	recent   *list.List
	bytes    int64
	maxBytes int64
}

// entry is a set in memory. That of a live run takes the place of the one before, under another name.
type entry struct {
	key, name string
	set       *series.Set
}

// NewEvaluator returns a node that keeps up to most bytes of series. It evaluates as many leaves at once as there are
// processors.
func NewEvaluator(read SegmentReader, o EngineOptions, most int64) *Evaluator {
	return &Evaluator{read: read, engine: o.Engine(0), parser: o.Parser, maxBytes: most,
		slots: make(chan struct{}, runtime.GOMAXPROCS(0)), flights: map[string]*flight{},
		sets: map[string]*list.Element{}, recent: list.New()}
}

// Evaluate evaluates a task over segments and writes the answer, of count series. What it returns of that has none.
func (n *Evaluator) Evaluate(ctx context.Context, t Task, segments []Segment, to io.Writer) (a LeafResult,
	count int, err error) {
	sets := make(series.Sets, len(segments))
	st := nodes.WorkCost{Segments: len(segments)}
	begin := time.Now()
	var hits sync.Mutex
	g, reading := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, s := range segments {
		g.Go(func() error {
			set, fetched, hit, err := n.set(reading, s)
			sets[i] = set
			hits.Lock()
			defer hits.Unlock()
			switch {
			case hit:
				st.Hits++
			case fetched > 0:
				st.Fetched, st.FetchedBytes = st.Fetched+1, st.FetchedBytes+fetched
			default:
				st.DiskHits++
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return a, count, err
	}
	st.ReadNs = time.Since(begin)
	begin = time.Now()
	select {
	case n.slots <- struct{}{}:
		defer func() { <-n.slots }()
	case <-ctx.Done():
		return a, count, ctx.Err()
	}
	st.WaitNs = time.Since(begin)
	begin = time.Now()
	var q storage.Queryable = sets
	if e, ok := t.Edges(n.parser); ok {
		q = sets.At(e)
	}
	err = Evaluate(ctx, n.engine, q, t, func(found LeafResult) error {
		st.EvaluateNs = time.Since(begin)
		found.Cost = st
		a = LeafResult{Samples: found.Samples, Cost: st}
		count = len(found.Series)
		return Write(to, found)
	})
	return a, count, err
}

// Series has the sets of segments, for those who ask for labels.
func (n *Evaluator) Series(ctx context.Context, segments []Segment) (series.Sets, error) {
	sets := make(series.Sets, len(segments))
	for i, s := range segments {
		set, _, _, err := n.set(ctx, s)
		if err != nil {
			return nil, err
		}
		sets[i] = set
	}
	return sets, nil
}

// set is that of a segment: from memory, or read now. Several who want the same one read it once.
func (n *Evaluator) set(ctx context.Context, s Segment) (set *series.Set, fetched int64, hit bool, err error) {
	key := s.RunID + "\xff" + s.Labels.String()
	if set := n.lookup(key, s.Name); set != nil {
		return set, 0, true, nil
	}
	f := n.join(ctx, s, key)
	select {
	case <-f.done:
		return f.set, f.fetched, false, f.err
	case <-ctx.Done():
		n.leave(f)
		return nil, 0, false, ctx.Err()
	}
}

// flight is a read that goes on, for waiters who want its set.
type flight struct {
	name    string
	waiters int
	cancel  context.CancelFunc
	// done is closed when what follows is known.
	done    chan struct{}
	set     *series.Set
	fetched int64
	err     error
}

// join reads a segment, or waits with those for whom it is read already. Who gives up leaves the reading to the others;
// when all have, it is cancelled.
func (n *Evaluator) join(ctx context.Context, s Segment, key string) *flight {
	name := key + "\xff" + s.Name
	n.mu.Lock()
	defer n.mu.Unlock()
	if f := n.flights[name]; f != nil {
		f.waiters++
		return f
	}
	reading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{name: name, waiters: 1, cancel: cancel, done: make(chan struct{})}
	n.flights[name] = f
	go func() {
		defer cancel()
		set, fetched, err := n.read(reading, s)
		if err != nil {
			err = &ReadError{fmt.Errorf("the segment of the run %s: %w", s.RunID, err)}
		} else {
			n.insert(entry{key, s.Name, set})
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.flights[name] == f {
			delete(n.flights, name)
		}
		f.set, f.fetched, f.err = set, fetched, err
		close(f.done)
	}()
	return f
}

func (n *Evaluator) leave(f *flight) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if f.waiters--; f.waiters > 0 {
		return
	}
	f.cancel()
	if n.flights[f.name] == f {
		delete(n.flights, f.name) // who comes now reads it anew
	}
}

func (n *Evaluator) lookup(key, name string) *series.Set {
	n.mu.Lock()
	defer n.mu.Unlock()
	e, ok := n.sets[key]
	if !ok || e.Value.(entry).name != name {
		return nil
	}
	n.recent.MoveToFront(e)
	return e.Value.(entry).set
}

func (n *Evaluator) insert(e entry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old, ok := n.sets[e.key]; ok {
		n.forget(old)
	}
	n.sets[e.key] = n.recent.PushFront(e)
	n.bytes += e.set.Bytes()
	for n.bytes > n.maxBytes && n.recent.Len() > 1 {
		n.forget(n.recent.Back())
	}
}

func (n *Evaluator) forget(at *list.Element) {
	e := n.recent.Remove(at).(entry)
	delete(n.sets, e.key)
	n.bytes -= e.set.Bytes()
}
