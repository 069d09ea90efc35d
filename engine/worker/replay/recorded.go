package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/jsonx"
	"github.com/loadstone-db/loadstone/engine/base/schema"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/store"
)

const runField = "workload.feed.run"

// maxRecorded bounds the executions of a run that is replayed: their times are
// held in memory, 24 bytes each, once for each run worker.
const maxRecorded = 5_000_000

// maxAhead is how far a stream may run ahead of what was executed: operations
// that a run took and did not begin are few.
const maxAhead = 100_000

// maxAheadBytes bounds the values of those operations, of all streams of a feed.
const maxAheadBytes = 256 << 20

// fillSize is how many operations the load engine asks for at once. A generator
// may let its rows depend on it, so it is asked in the same way again.
const fillSize = 64

// Execution is a recorded execution: an operation, or a whole transaction.
type Execution struct {
	Worker string
	// Statement is its id, or the transaction's name.
	Statement       string
	Transaction     bool
	Due             int64 // ns since the Unix epoch
	Connection, Seq uint32
}

// Executions reads what a run has recorded, in any order.
type Executions interface {
	Executions(ctx context.Context, runID string, fn func(Execution) error) error
}

// Recordings turns recorded runs into feeds. Executions hold times and statements
// but no values. A workload's stream depends on its document alone, so the
// values are made again: the workload is opened as it was, by its SHA-256, with the
// run's parameters, tables and seed, once for each of its run workers; and the k-th
// execution of a statement that a worker recorded gets the values of the k-th operation of
// that statement in its stream. Statements, times and the values issued are then
// those of the run; which of the operations that were under way at the same time had which time
// is exact up to the batches that connections had taken.
type Recordings struct {
	Store      Runs
	Executions Executions
	Plugins    plugin.Host
}

// Runs is what Recordings needs of the control store.
type Runs interface {
	Run(ctx context.Context, runID string) (engine.Run, error)
	Results(ctx context.Context, runID string) ([]engine.RunResult, error)
}

// Recorded returns the plan of a run that can be replayed.
func (r *Recordings) Recorded(ctx context.Context, runID string) (*engine.Plan, error) {
	_, plan, _, err := r.open(ctx, runID)
	return plan, err
}

// open reads the run, its plan, and the key slot of each worker.
func (r *Recordings) open(ctx context.Context, runID string) (run engine.Run, plan *engine.Plan, slots map[string]int,
	err error) {
	run, err = r.Store.Run(ctx, runID)
	if errors.Is(err, store.ErrNotFound) {
		return run, nil, nil, engine.InvalidField(runField, "there is no run "+runID,
			"its id is on the run's page and in GET /api/runs")
	}
	if err != nil {
		return run, nil, nil, fmt.Errorf("reading the run to replay: %w", err)
	}
	if !run.Status.Terminal() {
		return run, nil, nil, engine.InvalidField(runField, "the run is "+string(run.Status),
			"a run is replayed when it has ended")
	}
	if gone := executions.DeletedNotice(run); gone != "" {
		return run, nil, nil, engine.InvalidField(runField, gone, "choose another one")
	}
	results, err := r.Store.Results(ctx, runID)
	if err != nil {
		return run, nil, nil, fmt.Errorf("reading the run to replay: %w", err)
	}
	slots = map[string]int{}
	for _, result := range results {
		if result.Plan != nil && plan == nil {
			plan = result.Plan
		}
		if result.WorkerID != "" && result.WorkerGroupID != nil {
			slots[result.WorkerID] = *result.WorkerGroupID
		}
	}
	switch {
	case plan == nil:
		return run, nil, nil, engine.InvalidField(runField, "the run ended before it had a plan", "choose another one")
	case plan.PoolsUnreadable != "":
		return run, nil, nil, engine.InvalidField(runField, "the sampled rows of the run "+plan.PoolsUnreadable,
			"give the server the key that they were sealed under, or choose another run")
	case run.Scenario.Workload.Feed != nil:
		return run, nil, nil, engine.InvalidField(runField, "the run is a replay itself", "name the run that it replayed")
	}
	for _, s := range plan.Statements {
		if s.BindOrder != nil {
			return run, nil, nil, engine.InvalidField(runField, "the values of its statement "+s.ID+
				" are in another order than its binds, which a replay cannot do", "")
		}
	}
	return run, plan, slots, nil
}

// recorded is an execution in the form that is held in memory.
type recorded struct {
	due     int64
	worker  int32
	key     int32
	connSeq uint64
}

// key is what executions and operations are paired by.
type key struct {
	statement   string
	transaction bool
}

// Feed opens share share of of of a run, as operations of the statements of plan.
func (r *Recordings) Feed(ctx context.Context, runID string, plan *engine.Plan, share, of int) (plugin.Feed, error) {
	run, old, slots, err := r.open(ctx, runID)
	if err != nil {
		return nil, err
	}
	f := &recordedFeed{share: share, of: max(of, 1), room: maxAheadBytes, keys: map[key]int32{}}
	now := map[string]uint16{}
	for i, s := range plan.Statements {
		now[s.ID] = uint16(i)
	}
	for _, s := range old.Statements {
		n, ok := now[s.ID]
		if !ok {
			return nil, engine.InvalidField(runField, "this run has no statement "+s.ID+", which the recorded one has",
				"leave params.statements out")
		}
		f.statements = append(f.statements, n)
		f.single = append(f.single, f.key(key{s.ID, false}))
		f.group = append(f.group, f.key(key{cmp.Or(s.Transaction, s.ID), true}))
	}
	workers := map[string]int32{}
	err = r.Executions.Executions(ctx, runID, func(e Execution) error {
		w, ok := workers[e.Worker]
		if !ok {
			w = int32(len(workers))
			workers[e.Worker] = w
		}
		if len(f.list) == maxRecorded {
			return engine.InvalidField(runField,
				fmt.Sprintf("the run has more than the %d executions that a replay takes", maxRecorded), "replay a shorter run")
		}
		f.list = append(f.list, recorded{due: e.Due, worker: w, key: f.key(key{e.Statement, e.Transaction}),
			connSeq: uint64(e.Connection)<<32 | uint64(e.Seq)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the executions of run %s: %w", runID, err)
	}
	if len(f.list) == 0 {
		return nil, engine.InvalidField(runField, "the run has no recorded executions", "choose another one")
	}
	slices.SortFunc(f.list, func(a, b recorded) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.worker, b.worker), cmp.Compare(a.connSeq, b.connSeq))
	})
	f.begin, f.dealt = f.list[0].due, f.list[0].due
	params, err := r.params(ctx, old, run.Scenario.Workload.Params)
	if err != nil {
		return nil, err
	}
	f.streams = make([]*original, len(workers))
	for id, w := range workers {
		slot, ok := slots[id]
		if !ok {
			f.closeQuietly()
			return nil, fmt.Errorf("opening run %s: its worker %s is not known", runID, id)
		}
		if f.streams[w], err = r.stream(ctx, old, run.Scenario.Workload.Seed, slot, params); err != nil {
			f.closeQuietly()
			return nil, err
		}
	}
	return f, nil
}

// params completes the run's parameters as its preparation did.
func (r *Recordings) params(ctx context.Context, plan *engine.Plan, raw json.RawMessage) (json.RawMessage, error) {
	w, err := r.workload(ctx, plan)
	if err != nil {
		return nil, err
	}
	doc := map[string]any{}
	if len(raw) > 0 {
		if err := jsonx.Read(raw, &doc); err != nil {
			return nil, fmt.Errorf("reading the parameters of the recorded run: %w", err)
		}
	}
	if text := w.Info().Manifest.Parameters; len(text) > 0 {
		compiled, err := schema.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("reading the schema of plugin %s: %w", plan.Workload.Name, err)
		}
		compiled.Complete(doc)
	}
	return json.Marshal(doc)
}

func (r *Recordings) workload(ctx context.Context, plan *engine.Plan) (plugin.Workload, error) {
	w, err := r.Plugins.Workload(ctx, plan.Workload.SHA256)
	if err != nil {
		return nil, &engine.Error{Code: engine.CodePlugin, Cause: err,
			Message: fmt.Sprintf("The run cannot be replayed: its workload plugin %s %s (%.12s) is not here any more.",
				plan.Workload.Name, plan.Workload.Version, plan.Workload.SHA256),
			Hint: "a replay makes the values again with the very plugin that made them"}
	}
	return w, nil
}

func (r *Recordings) stream(ctx context.Context, plan *engine.Plan, seed int64, slot int,
	params json.RawMessage) (*original, error) {
	w, err := r.workload(ctx, plan)
	if err != nil {
		return nil, err
	}
	s, err := w.Open(ctx, plugin.OpenRequest{Seed: plugin.StreamSeed(seed, slot), KeySlot: slot, KeySlots: plan.KeySlots,
		Params: params, Tables: plan.Tables, Pools: plan.Pools}, plan.Statements)
	if err != nil {
		return nil, fmt.Errorf("opening the workload of the recorded run: %w", err)
	}
	return &original{stream: s, waiting: map[int32][]operations{}}, nil
}

// recordedFeed pairs recorded executions with the operations that they were.
type recordedFeed struct {
	share, of  int
	keys       map[key]int32
	statements []uint16 // the index in the new plan of each old statement
	single     []int32  // the key of each old statement alone
	group      []int32  // and of a transaction that begins with it
	list       []recorded
	streams    []*original
	room       int // for the values of operations whose turn is not yet
	next       int
	begin      int64
	dealt      int64
}

func (f *recordedFeed) key(k key) int32 {
	n, ok := f.keys[k]
	if !ok {
		n = int32(len(f.keys))
		f.keys[k] = n
	}
	return n
}

// Next implements plugin.Feed.
func (f *recordedFeed) Next(b *plugin.Batch) error {
	b.Reset()
	for f.next < len(f.list) && len(b.Ops) < chunkOps && len(b.Data) < chunkBytes {
		e := f.list[f.next]
		g, err := f.streams[e.worker].take(f, e.key)
		if err != nil {
			return err
		}
		mine := f.next%f.of == f.share
		f.next++
		if !mine {
			continue
		}
		appendPause(b, time.Duration(e.due-f.dealt))
		f.dealt = e.due
		f.append(b, &g)
	}
	if len(b.Ops) == 0 {
		return plugin.ErrEnded
	}
	return nil
}

func (f *recordedFeed) append(b *plugin.Batch, g *operations) {
	data := uint32(len(b.Data))
	b.Data = append(b.Data, g.data...)
	for _, op := range g.ops {
		args := g.args[op.FirstArg : op.FirstArg+uint32(op.NArgs)]
		op.FirstArg = uint32(len(b.Args))
		if op.Statement < plugin.StatementBegin {
			op.Statement = f.statements[op.Statement]
		}
		b.Ops = append(b.Ops, op)
		for _, v := range args {
			v.Off += data
			b.Args = append(b.Args, v)
		}
	}
}

// Close ends the streams.
func (f *recordedFeed) Close() error {
	var errs []error
	for _, s := range f.streams {
		if s != nil {
			errs = append(errs, s.stream.Close())
		}
	}
	return errors.Join(errs...)
}

// closeQuietly is for a feed that failed to open, whose error says more.
func (f *recordedFeed) closeQuietly() { _ = f.Close() }

// operations are one operation, or a transaction, with their values.
type operations struct {
	ops  []plugin.Op
	args []plugin.Value
	data []byte
}

// original is the stream of one worker of the recorded run.
type original struct {
	stream plugin.Stream
	batch  plugin.Batch
	// waiting are operations that the stream gave before their turn, by key.
	waiting map[int32][]operations
	ahead   int
}

// take returns the next operation of a key.
func (o *original) take(f *recordedFeed, k int32) (operations, error) {
	for len(o.waiting[k]) == 0 {
		if o.ahead > maxAhead || f.room < 0 {
			return operations{}, &engine.Error{Code: engine.CodePlugin,
				Message: "The recorded run cannot be replayed: its workload gives other operations than the run executed.",
				Hint:    "a run that dropped operations, or whose plugin is not repeatable, cannot be paired with its recording"}
		}
		if err := o.pull(f); err != nil {
			return operations{}, err
		}
	}
	g := o.waiting[k][0]
	o.waiting[k] = o.waiting[k][1:]
	o.ahead--
	f.room += len(g.data)
	return g, nil
}

// pull reads a batch of the stream.
func (o *original) pull(f *recordedFeed) error {
	err := o.stream.Fill(&o.batch, fillSize)
	if errors.Is(err, plugin.ErrEnded) {
		return &engine.Error{Code: engine.CodePlugin,
			Message: "The recorded run cannot be replayed: its workload gives fewer operations than the run executed."}
	}
	if err != nil {
		return fmt.Errorf("making the operations of the recorded run: %w", err)
	}
	b := &o.batch
	for i := 0; i < len(b.Ops); i++ {
		op := b.Ops[i]
		if op.Statement == plugin.StatementDelay {
			continue
		}
		last := i
		var k int32
		if op.Statement == plugin.StatementBegin {
			for b.Ops[last].Statement != plugin.StatementCommit && b.Ops[last].Statement != plugin.StatementRollback {
				last++
			}
			k = f.group[b.Ops[i+1].Statement]
		} else {
			k = f.single[op.Statement]
		}
		g := cut(b, i, last+1)
		f.room -= len(g.data)
		o.waiting[k] = append(o.waiting[k], g)
		o.ahead++
		i = last
	}
	return nil
}

// cut copies operations out of a batch.
func cut(b *plugin.Batch, from, to int) operations {
	var g operations
	for _, op := range b.Ops[from:to] {
		args := b.Args[op.FirstArg : op.FirstArg+uint32(op.NArgs)]
		op.FirstArg = uint32(len(g.args))
		g.ops = append(g.ops, op)
		for _, v := range args {
			if v.Len > 0 {
				text := b.Bytes(v)
				v.Off = uint32(len(g.data))
				g.data = append(g.data, text...)
			} else {
				v.Off = 0
			}
			g.args = append(g.args, v)
		}
	}
	return g
}
