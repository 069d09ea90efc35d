// Package promql carries out the work of queries on a node: it evaluates leaves over segments, keeps what each came to
// as a Parquet file until the server has it, and keeps segments under the node's disk budget.
//
// A work belongs to the stream on which it was given: when that ends, the work is cancelled, and its file goes. A
// server that is gone leaves nothing behind.
package promql

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/prometheus/promql"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/worker"
	"github.com/loadstone-db/loadstone/engine/worker/diskbudget"
)

// Disk is where a node keeps files, under its budget. A file's key is its name in the folder.
type Disk interface {
	Dir() string
	// Apply tells the budget what happens to a file, and reports whether a write was refused.
	Apply(h diskbudget.Event) (refused bool)
}

// WorkMeter takes measurements, and returns at once.
type WorkMeter interface {
	// WorkFinished is a work that has ended, so long after it was given; err says why it came to nothing, and is
	// context.Canceled of one that was cancelled.
	WorkFinished(w nodes.Work, traceParent string, took time.Duration, s nodes.WorkCost, err error)
}

// ExecutorOptions are what a node answers with.
type ExecutorOptions struct {
	NodeID   string
	Evaluate *Evaluator
	// Cache has segments that servers bring; nil where they are at hand.
	Cache *Cache
	Disk  Disk
	Meter WorkMeter
	Log   zerolog.Logger
}

// Executor carries out the work of queries. Its methods are safe for concurrent use.
type Executor struct {
	o ExecutorOptions

	mu sync.Mutex
	// files are the files of what works came to, by their work ids; keys the other way round.
	files    map[string]string
	keys     map[string]string
	inFlight int
}

// NewExecutor returns answers without work. What works of an earlier process came to nobody wants.
func NewExecutor(o ExecutorOptions) *Executor {
	if left, err := filepath.Glob(filepath.Join(o.Disk.Dir(), leafPrefix+"*")); err == nil {
		for _, path := range left {
			_ = os.Remove(path)
		}
	}
	return &Executor{o: o, files: map[string]string{}, keys: map[string]string{}}
}

// Count is how many works are carried out, or wait until their server has what they came to.
func (a *Executor) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inFlight
}

func (a *Executor) addInFlight(n int) {
	a.mu.Lock()
	a.inFlight += n
	a.mu.Unlock()
}

// Open opens what a work came to, by its work id; what is not there is os.ErrNotExist.
func (a *Executor) Open(workID string) (*os.File, error) {
	a.mu.Lock()
	key, ok := a.files[workID]
	a.mu.Unlock()
	if !ok {
		return nil, os.ErrNotExist
	}
	return os.Open(filepath.Join(a.o.Disk.Dir(), key))
}

// FilesGone takes note of files that are not on the disk any more.
func (a *Executor) FilesGone(keys []string) {
	a.mu.Lock()
	for _, key := range keys {
		if id, ok := a.keys[key]; ok {
			delete(a.keys, key)
			if a.files[id] == key {
				delete(a.files, id)
			}
		}
	}
	a.mu.Unlock()
	if a.o.Cache != nil {
		a.o.Cache.evicted(keys)
	}
}

// Session is the work that one stream has given.
type Session struct {
	executor *Executor
	send     func(protocol.FromNode)
	ctx      context.Context //nolint:containedctx // of the stream
	cancel   context.CancelFunc
	all      sync.WaitGroup

	mu    sync.Mutex
	works map[protocol.WorkKey]*sessionWork
	// ending are works that were cancelled, and have not ended, by how often.
	ending map[protocol.WorkKey]int
}

// sessionWork is one work of a session, until the server has what it came to.
type sessionWork struct {
	cancel context.CancelFunc
	// id is of what it came to, and file its key; empty before. done: nobody works on it any more.
	id, file string
	done     bool
}

// Serve implements worker.Queries. say gives its server a message, and never waits.
func (a *Executor) Serve(say func(protocol.FromNode)) worker.QuerySession {
	s := &Session{executor: a, send: say, works: map[protocol.WorkKey]*sessionWork{}, ending: map[protocol.WorkKey]int{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if a.o.Cache != nil {
		a.o.Cache.join(s)
	}
	return s
}

// Close ends all work of the session, and returns when it has ended.
func (s *Session) Close() {
	s.cancel()
	if s.executor.o.Cache != nil {
		s.executor.o.Cache.leave(s)
	}
	s.all.Wait()
	s.mu.Lock()
	works := s.works
	s.works = nil
	s.mu.Unlock()
	for _, w := range works {
		s.executor.drop(w)
		s.executor.addInFlight(-1)
	}
	if len(works) > 0 {
		s.executor.o.Log.Debug().Int("works", len(works)).Msg("the work of queries ended with its stream")
	}
}

// Receive takes what the server says about the work of queries, and reports whether it is about that.
func (s *Session) Receive(m protocol.ToNode) bool {
	switch m := m.(type) {
	case protocol.AssignWork:
		s.start(m)
	case protocol.CancelWork:
		s.cancelled(m.WorkKey)
	case protocol.ArtifactAck:
		k := protocol.WorkKey{QueryID: m.RunID, LeafID: m.WorkerID, WorkID: strings.TrimSuffix(m.Name, ".parquet")}
		w := s.take(k)
		if w == nil {
			return false
		}
		// It stays on the disk for a while, for a server that asks again, or goes now.
		s.executor.o.Disk.Apply(diskbudget.Acknowledged{Key: w.file})
		s.executor.addInFlight(-1)
	default:
		return false
	}
	return true
}

func (s *Session) take(k protocol.WorkKey) *sessionWork {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.works[k]
	delete(s.works, k)
	if w != nil && !w.done {
		s.ending[k]++
	}
	return w
}

// cancelled answers that a work is cancelled, also of one that is not there (any more).
func (s *Session) cancelled(k protocol.WorkKey) {
	s.end(k)
	s.mu.Lock()
	ends := s.ending[k] > 0
	s.mu.Unlock()
	if !ends {
		s.send(protocol.WorkFailed{WorkKey: k, Cancelled: true, Reason: "cancelled"})
	} // else whoever carries it out says so when it has ended
}

// end ends a work that nobody waits for any more.
func (s *Session) end(k protocol.WorkKey) {
	w := s.take(k)
	if w == nil {
		return
	}
	w.cancel()
	s.mu.Lock()
	finished := w.done
	s.mu.Unlock()
	if finished {
		s.executor.drop(w)
		s.executor.addInFlight(-1)
	}
}

// drop deletes what a work came to.
func (a *Executor) drop(w *sessionWork) {
	if w.file == "" {
		return
	}
	a.mu.Lock()
	if a.files[w.id] == w.file {
		delete(a.files, w.id)
	}
	delete(a.keys, w.file)
	a.mu.Unlock()
	_ = os.Remove(filepath.Join(a.o.Disk.Dir(), w.file)) // what stays goes with the next process
	a.o.Disk.Apply(diskbudget.Gone{Key: w.file})
}

// start accepts a work, and carries it out beside others.
func (s *Session) start(m protocol.AssignWork) {
	s.end(m.WorkKey) // an earlier attempt of the same
	ctx, cancel := context.WithCancel(s.ctx)
	w := &sessionWork{cancel: cancel}
	s.mu.Lock()
	closed := s.works == nil
	if !closed {
		s.works[m.WorkKey] = w
		s.all.Add(1)
	}
	s.mu.Unlock()
	if closed {
		cancel()
		return
	}
	s.executor.addInFlight(1)
	s.send(protocol.WorkAccepted{WorkKey: m.WorkKey})
	begun := time.Now()
	go func() {
		defer s.all.Done()
		defer cancel()
		s.execute(ctx, w, m, begun)
	}()
}

// execute does a work, and tells the server what came of it.
func (s *Session) execute(ctx context.Context, w *sessionWork, m protocol.AssignWork, begun time.Time) {
	log := s.executor.o.Log.With().Str("query_id", m.QueryID).Str("work_id", m.WorkID).Int("attempt", m.Attempt).Logger()
	spent, ready, err := s.evaluate(ctx, w, m)
	about := nodes.Work{QueryID: m.QueryID, LeafID: m.LeafID, WorkID: m.WorkID, NodeID: s.executor.o.NodeID}
	took := time.Since(begun)
	if err == nil {
		s.mu.Lock()
		wanted := s.works[m.WorkKey] == w
		w.done = wanted
		s.mu.Unlock()
		if !wanted { // cancelled at the last moment
			s.executor.drop(w)
			err = context.Canceled
		}
	}
	if err != nil && ctx.Err() != nil {
		err = context.Canceled
	}
	if s.executor.o.Meter != nil {
		s.executor.o.Meter.WorkFinished(about, m.TraceParent, took, spent, err)
	}
	if err == nil {
		log.Debug().Int("segments", spent.Segments).Int("fetched", spent.Fetched).Int64("bytes", ready.Artifact.SizeBytes).
			Dur("took_ms", took).Msg("a work of a query is done")
		s.send(ready)
		s.executor.o.Disk.Apply(diskbudget.Announced{Key: w.file})
		return
	}
	s.mu.Lock()
	if s.works[m.WorkKey] == w {
		delete(s.works, m.WorkKey)
	} else if s.ending[m.WorkKey]--; s.ending[m.WorkKey] <= 0 {
		delete(s.ending, m.WorkKey)
	}
	s.mu.Unlock()
	s.executor.addInFlight(-1)
	if ctx.Err() != nil {
		log.Debug().Dur("took_ms", took).Msg("a work of a query was cancelled")
		s.send(protocol.WorkFailed{WorkKey: m.WorkKey, Cancelled: true, Reason: "cancelled"})
		return
	}
	log.Warn().Err(err).Dur("took_ms", took).Msg("a work of a query has failed")
	s.send(workFailureOf(m.WorkKey, err))
}

// workFailureOf tells what would fail on any node from what may work on another.
func workFailureOf(k protocol.WorkKey, err error) protocol.WorkFailed {
	f := protocol.WorkFailed{WorkKey: k, Reason: err.Error(), Code: "execution", Final: true}
	var (
		read    *ReadError
		room    diskFullError
		timeout promql.ErrQueryTimeout
	)
	switch {
	case errors.As(err, &read), errors.As(err, &room):
		f.Code, f.Final = "unavailable", false
	case errors.As(err, &timeout):
		f.Code = "timeout"
	}
	return f
}

// diskFullError says that the node's disk has no room for what a work came to.
type diskFullError struct{ error }

var errDiskFull = diskFullError{errors.New("the node's disk has no room within its budget")}

// evaluate evaluates, and keeps what that came to.
func (s *Session) evaluate(
	ctx context.Context,
	w *sessionWork,
	m protocol.AssignWork,
) (nodes.WorkCost, protocol.WorkReady, error) {
	var task Task
	var segments []Segment
	var ready protocol.WorkReady
	if err := errors.Join(json.Unmarshal(m.Task, &task), json.Unmarshal(m.Segments, &segments)); err != nil {
		return nodes.WorkCost{}, ready, err
	}
	var file bytes.Buffer
	a, count, err := s.executor.o.Evaluate.Evaluate(context.WithValue(ctx, sessionKey{}, s), task, segments, &file)
	if err != nil {
		return a.Cost, ready, err
	}
	sum := sha256.Sum256(file.Bytes())
	made := m.Artifact()
	made.ArtifactID, made.SizeBytes, made.SHA256 = uuid.NewString(), int64(file.Len()), hex.EncodeToString(sum[:])
	made.RowCount, made.SchemaVersion, made.CreatedAt = int64(count), Version, engine.At(time.Now())
	made.MinTime, made.MaxTime = engine.At(time.UnixMilli(task.Grid.Start)), engine.At(time.UnixMilli(task.Grid.End))
	id := protocol.PartWorkID(made)
	key := leafFile(made.ArtifactID)
	if err := s.executor.writeFile(key, id, file.Bytes()); err != nil {
		return a.Cost, ready, err
	}
	s.mu.Lock()
	w.id, w.file = id, key
	s.mu.Unlock()
	return a.Cost, protocol.WorkReady{WorkID: id, NodeID: s.executor.o.NodeID, Artifact: made,
		ArtifactURL: protocol.PartsPath + id}, nil
}

func leafFile(id string) string { return leafPrefix + id + suffix }

const (
	leafPrefix    = "leaf-"
	segmentPrefix = "segment-"
	suffix        = ".parquet"
)

// writeFile writes a file. It need not survive a crash of the machine.
func (a *Executor) writeFile(key, id string, content []byte) error {
	d := a.o.Disk
	if d.Apply(diskbudget.Grow{Key: key, Kind: diskbudget.Work, Bytes: int64(len(content))}) {
		return errDiskFull
	}
	path := filepath.Join(d.Dir(), key)
	err := os.WriteFile(path, content, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(d.Dir(), 0o700); err == nil {
			err = os.WriteFile(path, content, 0o600)
		}
	}
	if err != nil {
		_ = os.Remove(path)
		d.Apply(diskbudget.Gone{Key: key})
		return diskFullError{err}
	}
	a.mu.Lock()
	a.files[id], a.keys[key] = key, id
	a.mu.Unlock()
	d.Apply(diskbudget.Finished{Key: key, Bytes: int64(len(content))})
	return nil
}
