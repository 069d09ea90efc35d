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
	Apply(h diskbudget.Happening) (refused bool)
}

// GatherMeter takes measurements, and returns at once.
type GatherMeter interface {
	// Answered is a work that has ended, so long after it was given; failed says why it came to nothing, "" when it did
	// not.
	Answered(w nodes.Work, traceParent string, took time.Duration, s nodes.Spent, failed string)
}

// Options are what a node answers with.
type Options struct {
	NodeID   string
	Evaluate *Node
	// Cache has segments that servers bring; nil where they are at hand.
	Cache *Cache
	Disk  Disk
	Meter GatherMeter
	Log   zerolog.Logger
}

// Answers carries out the work of queries. Its methods are safe for concurrent use.
type Answers struct {
	o Options

	mu sync.Mutex
	// made are the files of what works came to, by their work ids; keys the other way round.
	made map[string]string
	keys map[string]string
	held int
}

// New returns answers without work. What works of an earlier process came to nobody wants.
func New(o Options) *Answers {
	if left, err := filepath.Glob(filepath.Join(o.Disk.Dir(), leafPrefix+"*")); err == nil {
		for _, path := range left {
			_ = os.Remove(path)
		}
	}
	return &Answers{o: o, made: map[string]string{}, keys: map[string]string{}}
}

// Held is how many works are carried out, or wait until their server has what they came to.
func (a *Answers) Held() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}

func (a *Answers) hold(n int) {
	a.mu.Lock()
	a.held += n
	a.mu.Unlock()
}

// Open opens what a work came to, by its work id; what is not there is os.ErrNotExist.
func (a *Answers) Open(workID string) (*os.File, error) {
	a.mu.Lock()
	key, ok := a.made[workID]
	a.mu.Unlock()
	if !ok {
		return nil, os.ErrNotExist
	}
	return os.Open(filepath.Join(a.o.Disk.Dir(), key))
}

// Gone takes note of files that are not on the disk any more.
func (a *Answers) Gone(keys []string) {
	a.mu.Lock()
	for _, key := range keys {
		if id, ok := a.keys[key]; ok {
			delete(a.keys, key)
			if a.made[id] == key {
				delete(a.made, id)
			}
		}
	}
	a.mu.Unlock()
	if a.o.Cache != nil {
		a.o.Cache.gone(keys)
	}
}

// Session is the work that one stream has given.
type Session struct {
	a      *Answers
	say    func(protocol.FromNode)
	ctx    context.Context //nolint:containedctx // of the stream
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu    sync.Mutex
	works map[protocol.WorkKey]*gatherWork
	// ending are works that were cancelled, and have not ended, by how often.
	ending map[protocol.WorkKey]int
}

// gatherWork is one work of a session, until the server has what it came to.
type gatherWork struct {
	cancel context.CancelFunc
	// id is of what it came to, and file its key; empty before. done: nobody works on it any more.
	id, file string
	done     bool
}

// Serve implements worker.Queries. say gives its server a message, and never waits.
func (a *Answers) Serve(say func(protocol.FromNode)) worker.QuerySession {
	s := &Session{a: a, say: say, works: map[protocol.WorkKey]*gatherWork{}, ending: map[protocol.WorkKey]int{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if a.o.Cache != nil {
		a.o.Cache.join(s)
	}
	return s
}

// Close ends all work of the session, and returns when it has ended.
func (s *Session) Close() {
	s.cancel()
	if s.a.o.Cache != nil {
		s.a.o.Cache.leave(s)
	}
	s.all.Wait()
	s.mu.Lock()
	works := s.works
	s.works = nil
	s.mu.Unlock()
	for _, w := range works {
		s.a.drop(w)
		s.a.hold(-1)
	}
	if len(works) > 0 {
		s.a.o.Log.Debug().Int("works", len(works)).Msg("the work of queries ended with its stream")
	}
}

// Hear takes what the server says about the work of queries, and reports whether it is about that.
func (s *Session) Hear(m protocol.ToNode) bool {
	switch m := m.(type) {
	case protocol.AssignWork:
		s.begin(m)
	case protocol.CancelWork:
		s.cancelled(m.WorkKey)
	case protocol.ArtifactAck:
		k := protocol.WorkKey{QueryID: m.RunID, LeafID: m.WorkerID, WorkID: strings.TrimSuffix(m.Name, ".parquet")}
		w := s.take(k)
		if w == nil {
			return false
		}
		// It stays on the disk for a while, for a server that asks again, or goes now.
		s.a.o.Disk.Apply(diskbudget.Acknowledged{Key: w.file})
		s.a.hold(-1)
	default:
		return false
	}
	return true
}

func (s *Session) take(k protocol.WorkKey) *gatherWork {
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
		s.say(protocol.WorkFailed{WorkKey: k, Cancelled: true, Reason: "cancelled"})
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
		s.a.drop(w)
		s.a.hold(-1)
	}
}

// drop deletes what a work came to.
func (a *Answers) drop(w *gatherWork) {
	if w.file == "" {
		return
	}
	a.mu.Lock()
	if a.made[w.id] == w.file {
		delete(a.made, w.id)
	}
	delete(a.keys, w.file)
	a.mu.Unlock()
	_ = os.Remove(filepath.Join(a.o.Disk.Dir(), w.file)) // what stays goes with the next process
	a.o.Disk.Apply(diskbudget.Gone{Key: w.file})
}

// begin accepts a work, and carries it out beside others.
func (s *Session) begin(m protocol.AssignWork) {
	s.end(m.WorkKey) // an earlier attempt of the same
	ctx, cancel := context.WithCancel(s.ctx)
	w := &gatherWork{cancel: cancel}
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
	s.a.hold(1)
	s.say(protocol.WorkAccepted{WorkKey: m.WorkKey})
	begun := time.Now()
	go func() {
		defer s.all.Done()
		defer cancel()
		s.carryOut(ctx, w, m, begun)
	}()
}

// carryOut does a work, and tells the server what came of it.
func (s *Session) carryOut(ctx context.Context, w *gatherWork, m protocol.AssignWork, begun time.Time) {
	log := s.a.o.Log.With().Str("query_id", m.QueryID).Str("work_id", m.WorkID).Int("attempt", m.Attempt).Logger()
	spent, ready, err := s.answer(ctx, w, m)
	about := nodes.Work{QueryID: m.QueryID, LeafID: m.LeafID, WorkID: m.WorkID, NodeID: s.a.o.NodeID}
	took := time.Since(begun)
	if err == nil {
		s.mu.Lock()
		wanted := s.works[m.WorkKey] == w
		w.done = wanted
		s.mu.Unlock()
		if !wanted { // cancelled at the last moment
			s.a.drop(w)
			err = context.Canceled
		}
	}
	failed := ""
	if err != nil {
		failed = err.Error()
		if ctx.Err() != nil {
			failed = "cancelled"
		}
	}
	if s.a.o.Meter != nil {
		s.a.o.Meter.Answered(about, m.TraceParent, took, spent, failed)
	}
	if err == nil {
		log.Debug().Int("segments", spent.Segments).Int("fetched", spent.Fetched).Int64("bytes", ready.Artifact.SizeBytes).
			Dur("took_ms", took).Msg("a work of a query is done")
		s.say(ready)
		s.a.o.Disk.Apply(diskbudget.Announced{Key: w.file})
		return
	}
	s.mu.Lock()
	if s.works[m.WorkKey] == w {
		delete(s.works, m.WorkKey)
	} else if s.ending[m.WorkKey]--; s.ending[m.WorkKey] <= 0 {
		delete(s.ending, m.WorkKey)
	}
	s.mu.Unlock()
	s.a.hold(-1)
	if ctx.Err() != nil {
		log.Debug().Dur("took_ms", took).Msg("a work of a query was cancelled")
		s.say(protocol.WorkFailed{WorkKey: m.WorkKey, Cancelled: true, Reason: "cancelled"})
		return
	}
	log.Warn().Err(err).Dur("took_ms", took).Msg("a work of a query has failed")
	s.say(gatherFailureOf(m.WorkKey, err))
}

// gatherFailureOf tells what would fail on any node from what may work on another.
func gatherFailureOf(k protocol.WorkKey, err error) protocol.WorkFailed {
	f := protocol.WorkFailed{WorkKey: k, Reason: err.Error(), Code: "execution", Final: true}
	var (
		read    *ReadError
		room    roomError
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

// roomError says that the node's disk has no room for what a work came to.
type roomError struct{ error }

var errRoom = roomError{errors.New("the node's disk has no room within its budget")}

// answer evaluates, and keeps what that came to.
func (s *Session) answer(ctx context.Context, w *gatherWork, m protocol.AssignWork) (nodes.Spent, protocol.WorkReady, error) {
	var task Task
	var segments []Segment
	var ready protocol.WorkReady
	if err := errors.Join(json.Unmarshal(m.Task, &task), json.Unmarshal(m.Segments, &segments)); err != nil {
		return nodes.Spent{}, ready, err
	}
	var file bytes.Buffer
	a, count, err := s.a.o.Evaluate.Evaluate(context.WithValue(ctx, sessionKey{}, s), task, segments, &file)
	if err != nil {
		return a.Spent, ready, err
	}
	sum := sha256.Sum256(file.Bytes())
	made := m.Artifact()
	made.ArtifactID, made.SizeBytes, made.SHA256 = uuid.NewString(), int64(file.Len()), hex.EncodeToString(sum[:])
	made.RowCount, made.SchemaVersion, made.CreatedAt = int64(count), Version, engine.At(time.Now())
	made.MinTime, made.MaxTime = engine.At(time.UnixMilli(task.Grid.Start)), engine.At(time.UnixMilli(task.Grid.End))
	id := protocol.WorkIDOf(made)
	key := leafFile(made.ArtifactID)
	if err := s.a.keep(key, id, file.Bytes()); err != nil {
		return a.Spent, ready, err
	}
	s.mu.Lock()
	w.id, w.file = id, key
	s.mu.Unlock()
	return a.Spent, protocol.WorkReady{WorkID: id, NodeID: s.a.o.NodeID, Artifact: made,
		ArtifactURL: protocol.PartsPath + id}, nil
}

func leafFile(id string) string { return leafPrefix + id + suffix }

const (
	leafPrefix    = "leaf-"
	segmentPrefix = "segment-"
	suffix        = ".parquet"
)

// keep writes a file. It need not survive a crash of the machine.
func (a *Answers) keep(key, id string, content []byte) error {
	d := a.o.Disk
	if d.Apply(diskbudget.Grow{Key: key, Kind: diskbudget.Work, Bytes: int64(len(content))}) {
		return errRoom
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
		return roomError{err}
	}
	a.mu.Lock()
	a.made[id], a.keys[key] = key, id
	a.mu.Unlock()
	d.Apply(diskbudget.Finished{Key: key, Bytes: int64(len(content))})
	return nil
}
