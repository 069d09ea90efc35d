package system

import (
	"cmp"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// batchRows is how many executions are given out at once, if so many come.
const batchRows = 4096

// The columns of executions, in the order of Sources.
const (
	atTimestamp = iota
	atRunID
	atWorkerID
	atNodeID
	atConnection
	atSeq
	atStep
	atPhase
	atWarmup
	atKind
	atStatement
	atDueAt
	atStartedAt
	atLatency
	atScheduleLag
	atPoolWait
	atDecode
	atRows
	atSuccess
	atErrorClass
	atErrorCode
	atErrorMessage
	atRetries
	atRolledBack
	atQueryID
)

// follower turns the executions of a run worker into rows.
type follower struct {
	hub    *Hub
	stream executions.Stream
	kinds  [engine.NumKinds][]byte
	// statements and transactions are names by the number of a statement: its own, and that of a transaction that it
	// begins.
	statements, transactions [][]byte

	mu sync.Mutex
	// filling is the batch that is not full, made when readers were of this generation.
	filling    *queuedBatch
	generation int64
	failures   map[uint32]failure
	statistics map[statistic]*figures
	// mark is how far it has come, in microseconds; the pump has it.
	mark int64
}

type failure struct{ class, code, message []byte }

var phases = [2][]byte{[]byte(engine.PhaseMeasurement), []byte(engine.PhaseWarmup)}

// follow begins with a run worker.
func (h *Hub) follow(of executions.Stream) *follower {
	f := &follower{hub: h, stream: of, failures: map[uint32]failure{}, statistics: map[statistic]*figures{}}
	for k := range f.kinds {
		f.kinds[k] = []byte(engine.Kind(k).String())
	}
	for _, s := range of.Statements {
		f.statements = append(f.statements, []byte(s.ID))
		f.transactions = append(f.transactions, []byte(cmp.Or(s.Transaction, s.ID)))
	}
	f.mark = of.Now().Add(-recordDelay).UnixMicro()
	return f
}

// Observers are told what run workers of this process record.
func (h *Hub) Observers() executions.Observers { return hubObservers{h} }

type hubObservers struct{ hub *Hub }

// Open implements executions.Observers.
func (t hubObservers) Open(of executions.Stream) executions.Observer {
	f := t.hub.follow(of)
	t.hub.rows.join(f)
	return f
}

// Write implements executions.Observer.
func (f *follower) Write(recs []engine.Execution) {
	rows, statistics := f.hub.HasReaders(connector.Executions), f.hub.HasReaders(connector.StatementStatistics)
	if !rows && !statistics {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if statistics {
		f.count(recs)
	}
	if !rows {
		f.filling = nil
		return
	}
	f.begin(f.hub.rows.generation.Load())
	for i := range recs {
		if recs[i].Position != 0 {
			continue // of a transaction, which is the execution
		}
		if f.filling == nil {
			f.filling = f.hub.rows.depot.get()
		}
		if f.add(f.filling, &recs[i]); f.filling.N == batchRows {
			f.publishPending()
		}
	}
}

// begin forgets what was meant for those who have read before. It needs mu.
func (f *follower) begin(generation int64) {
	if f.generation == generation {
		return
	}
	f.generation, f.filling = generation, nil
	clear(f.statistics)
}

// publishPending gives out what there is. It needs mu.
func (f *follower) publishPending() {
	if t := f.seal(); t != nil {
		f.hub.rows.broadcast(f.hub, t, f.hub.rows.mark.Load())
	}
}

// seal ends the batch that is being filled, nil where there is none. It needs mu.
func (f *follower) seal() *queuedBatch {
	t := f.filling
	if t == nil {
		return nil
	}
	f.filling = nil
	for c := range t.Cols {
		v := &t.Cols[c]
		switch {
		case c == atRunID:
			v.SetSame([]byte(f.stream.RunID), t.N)
		case c == atWorkerID:
			v.SetSame([]byte(f.stream.WorkerID), t.N)
		case c == atNodeID:
			v.SetSame([]byte(f.stream.NodeID), t.N)
		case v.Type.Kind == column.Text:
		case v.Type.Kind == column.Float:
			v.Floats, v.Null = v.Floats[:t.N], v.Null[:t.N]
		case v.Type.Kind == column.Boolean:
			v.Bools, v.Null = v.Bools[:t.N], v.Null[:t.N]
		default:
			v.Ints, v.Null = v.Ints[:t.N], v.Null[:t.N]
		}
	}
	return t
}

// add sets the next row.
func (f *follower) add(t *queuedBatch, r *engine.Execution) {
	n, cols := t.N, t.Cols
	t.N++
	cols[atTimestamp].Ints[n] = micros(r.DueAt + r.Elapsed)
	cols[atConnection].Ints[n] = int64(r.ConnectionID)
	cols[atSeq].Ints[n] = int64(r.Seq)
	cols[atStep].Ints[n] = int64(r.Step)
	warm := 0
	if r.Warmup {
		warm = 1
	}
	cols[atPhase].AppendText(phases[warm])
	cols[atWarmup].Bools[n] = r.Warmup
	cols[atKind].AppendText(f.kinds[min(r.Kind, engine.NumKinds-1)])
	cols[atStatement].AppendText(f.name(r))
	cols[atDueAt].Ints[n] = micros(r.DueAt)
	cols[atStartedAt].Ints[n] = micros(r.StartedAt)
	cols[atLatency].Floats[n] = milliseconds(r.Elapsed)
	cols[atScheduleLag].Floats[n] = milliseconds(r.ScheduleLag)
	cols[atPoolWait].Floats[n] = milliseconds(r.PoolWait)
	cols[atDecode].Floats[n] = milliseconds(r.Decode)
	cols[atRows].Ints[n] = int64(r.Rows)
	cols[atSuccess].Bools[n] = r.Success
	if r.Success || r.ErrorID == 0 {
		cols[atErrorClass].AppendNull()
		cols[atErrorCode].AppendNull()
		cols[atErrorMessage].AppendNull()
	} else {
		why := f.failure(r.ErrorID)
		cols[atErrorClass].AppendText(why.class)
		cols[atErrorCode].AppendText(why.code)
		cols[atErrorMessage].AppendText(why.message)
	}
	cols[atRetries].Ints[n] = int64(r.Retries)
	cols[atRolledBack].Bools[n] = r.RolledBack
	if r.QueryID == (engine.QueryID{}) {
		cols[atQueryID].AppendNull()
	} else {
		var text [36]byte
		id, _ := r.QueryID.AppendText(text[:0]) // never fails
		cols[atQueryID].AppendText(id)
	}
}

// micros cuts parts of a microsecond off.
func micros(ns int64) int64 { return ns / int64(time.Microsecond) }

func milliseconds(ns int64) float64 { return float64(ns) / float64(time.Millisecond) }

// name is what a statement is called in the record of the run.
func (f *follower) name(r *engine.Execution) []byte {
	switch {
	case int(r.Statement) >= len(f.statements):
		return []byte(engine.ControlName(r.Statement))
	case r.Kind == engine.KindTransaction:
		return f.transactions[r.Statement]
	}
	return f.statements[r.Statement]
}

// failure is an error without the values that its message holds: what queries give out is shown to all who may read.
func (f *follower) failure(id uint32) failure {
	known, is := f.failures[id]
	if !is {
		e := f.stream.Error(id)
		known = failure{[]byte(e.Class), []byte(e.Code), []byte(executions.Mask(e.Message))}
		f.failures[id] = known
	}
	return known
}

// Close implements executions.Observer.
func (f *follower) Close() {
	f.mu.Lock()
	if f.generation == f.hub.rows.generation.Load() && f.hub.HasReaders(connector.Executions) {
		f.publishPending()
	}
	f.hub.publishStatistics(f)
	f.mu.Unlock()
	f.hub.rows.leave(f) // not before: the time would pass its rows
}

// batchPool keeps batches of executions that nobody reads any more.
type batchPool struct {
	mu   sync.Mutex
	free []*queuedBatch
}

// maxIdle bounds how many are kept.
const maxIdle = 16

func (d *batchPool) put(t *queuedBatch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.free) < maxIdle {
		d.free = append(d.free, t)
	}
}

// get returns an empty batch with room for aBatch rows.
func (d *batchPool) get() *queuedBatch {
	d.mu.Lock()
	var t *queuedBatch
	if n := len(d.free); n > 0 {
		t = d.free[n-1]
		d.free = d.free[:n-1]
	}
	d.mu.Unlock()
	if t == nil {
		t = &queuedBatch{home: d}
	}
	columns := schemas()[connector.Executions]
	t.Reset(columns)
	for c := range t.Cols {
		t.Cols[c].ResetSized(columns[c].Type, batchRows)
	}
	return t
}
