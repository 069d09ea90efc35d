package params

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// What of parameters is kept, as templates say (workload.binds). Empty, as runs before there were any, is None.
const (
	Masked = "masked"
	Plain  = "plain"
	None   = "none"
)

// The bounds of what is kept.
const (
	// MaxSlowest is how many of the slowest executions of a statement are kept. Executions, statements inside
	// transactions and transactions are told apart.
	MaxSlowest = 20
	// MaxPerError is how many executions of each error of a statement are kept, MaxWarmupPerError how many of them are of
	// the warm-up.
	MaxPerError       = 10
	MaxWarmupPerError = 3
	// MaxErrors is how many errors of statements a run worker tells apart.
	MaxErrors = 400
	// MaxBytes is what all run workers of a run keep together, and leastBytes what one may keep whatever their number.
	MaxBytes = 8 << 20
	minBytes = 64 << 10
	// MaxTextBytes is how many bytes of a text are kept, MaxValues how many parameters of an execution, and MaxCalls
	// how many statements of a transaction.
	MaxTextBytes = 1 << 10
	MaxValues    = 200
	MaxCalls     = 100
	// entryBytes is what an entry takes beside its values, and valueBytes one of these without its text.
	entryBytes = 320
	valueBytes = 48
	callBytes  = 32
)

// timingClass tells apart what is timed in different ways under one statement.
type timingClass uint8

const (
	single timingClass = iota
	inside
	transaction
	numTimingClasses
)

func timingClassOf(r *engine.Execution) timingClass {
	switch {
	case r.Position > 0:
		return inside
	case r.Kind == engine.KindTransaction:
		return transaction
	}
	return single
}

// Sampler keeps parameters of the executions of one run worker. Its methods are safe for concurrent use, also on a nil
// Keeper, which keeps nothing.
type Sampler struct {
	plain      bool
	statements []engine.Statement
	// floors are the service times (ns) that an execution has to exceed to be among the slowest, by statement and
	// place.
	floors []atomic.Int64
	// full has, by statement and place, a bit for each error (by its id, as far as it fits) of which enough are kept.
	full []atomic.Uint64

	mu sync.Mutex
	// Bytes that are left, for executions that failed and for slow ones: a flood of errors leaves these their room.
	bytesForFailed, bytesForSlow int64

	slow    []slowest
	errors  map[errorKey]*errorSamples
	changed bool
	leftOut int64
}

type slowest struct {
	entries []*entry
	// full: no further one is kept beside these, for their number or for the bytes.
	full bool
}

type errorKey struct {
	statement   uint16
	timing      timingClass
	warm        bool
	class, code string
}

// errorSamples are the executions of an error that are kept.
type errorSamples struct{ entries []*entry }

// entry is an execution that is kept.
type entry struct {
	record  engine.Execution
	err     engine.ExecutionError
	calls   []call
	data    []byte
	leftOut int // calls
	bytes   int64
}

type call struct {
	statement uint16
	position  uint16
	values    []plugin.Value
	// lengths are those of texts that were cut, and of all that are masked.
	lengths []uint32
	leftOut int // values
}

// New returns a keeper for one of so many run workers (0 is one), or nil where nothing is to be kept.
func New(mode string, statements []engine.Statement, workers int) *Sampler {
	if mode != Masked && mode != Plain || len(statements) == 0 {
		return nil
	}
	n := len(statements) * int(numTimingClasses)
	k := &Sampler{plain: mode == Plain, statements: statements, floors: make([]atomic.Int64, n),
		full: make([]atomic.Uint64, n), slow: make([]slowest, n), errors: map[errorKey]*errorSamples{}}
	k.bytesForFailed = max(MaxBytes/int64(max(workers, 1)), minBytes) / 2
	k.bytesForSlow = k.bytesForFailed
	for i := range k.floors {
		k.floors[i].Store(-1)
	}
	return k
}

// serviceTime is how long the database took: what an execution has waited before is not of its parameters.
func serviceTime(r *engine.Execution) int64 { return r.Elapsed - r.ScheduleLag - r.PoolWait }

// Wants reports whether Keep is to be called with an execution that has ended: it failed, or is slower than all but
// the slowest. It takes no lock and allocates nothing.
func (k *Sampler) Wants(r *engine.Execution) bool {
	if k == nil {
		return false
	}
	at := int(r.Statement)*int(numTimingClasses) + int(timingClassOf(r))
	switch {
	case at >= len(k.floors):
		return false // COMMIT and the like have no parameters
	case !r.Success:
		return r.Warmup || r.ErrorID >= fullBits || k.full[at].Load()&(1<<r.ErrorID) == 0
	}
	return serviceTime(r) > k.floors[at].Load() && !r.Warmup
}

// fullBits is how many errors full tells apart: of those that are met first there may be a flood.
const fullBits = 64

// Record takes an execution that Wants asked for, if it still is one: with its error, if it has one, and with the
// operations that were sent for it, those of a transaction in their order. Nothing of the batch is held on to.
func (k *Sampler) Record(r *engine.Execution, err engine.ExecutionError, b *plugin.Batch, ops []plugin.Op) {
	at := int(r.Statement)*int(numTimingClasses) + int(timingClassOf(r))
	if k == nil || at >= len(k.floors) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.Success {
		k.recordSlow(at, r, b, ops)
	} else {
		k.recordFailed(at, r, err, b, ops)
	}
}

func (k *Sampler) recordFailed(at int, r *engine.Execution, err engine.ExecutionError, b *plugin.Batch,
	ops []plugin.Op) {
	key := errorKey{r.Statement, timingClassOf(r), r.Warmup, string(err.Class), err.Code}
	m := k.errors[key]
	most := MaxPerError
	if r.Warmup {
		most = MaxWarmupPerError
	}
	switch {
	case m == nil && len(k.errors) >= MaxErrors:
		k.leftOut++
		return
	case m == nil:
		m = &errorSamples{}
		k.errors[key] = m
	case len(m.entries) >= most:
		if !r.Warmup && r.ErrorID < fullBits {
			k.full[at].Or(1 << r.ErrorID)
		}
		return
	}
	if e := k.copyExecution(r, err, b, ops, k.bytesForFailed); e != nil {
		m.entries = append(m.entries, e)
		k.bytesForFailed -= e.bytes
		k.changed = true
	}
}

func (k *Sampler) recordSlow(at int, r *engine.Execution, b *plugin.Batch, ops []plugin.Op) {
	s, took := &k.slow[at], serviceTime(r)
	if took <= k.floors[at].Load() || r.Warmup {
		return // others were faster to come here
	}
	// The fastest gives way where there is no room, by number or by bytes.
	out, free := -1, k.bytesForSlow
	if s.full {
		out = s.fastest()
		free += s.entries[out].bytes
	}
	e := k.copyExecution(r, engine.ExecutionError{}, b, ops, free)
	switch {
	case e == nil && len(s.entries) == 0:
		k.floors[at].Store(math.MaxInt64) // nothing will ever fit
		return
	case e == nil:
		s.full = true
	case out >= 0:
		k.bytesForSlow += s.entries[out].bytes
		s.entries[out] = e
	default:
		s.entries = append(s.entries, e)
		s.full = len(s.entries) == MaxSlowest
	}
	if e != nil {
		k.bytesForSlow -= e.bytes
		k.changed = true
	}
	if s.full {
		k.floors[at].Store(serviceTime(&s.entries[s.fastest()].record))
	}
}

func (s *slowest) fastest() int {
	at := 0
	for i, e := range s.entries {
		if serviceTime(&e.record) < serviceTime(&s.entries[at].record) {
			at = i
		}
	}
	return at
}

// copyExecution copies an execution with what fits of its parameters into so many bytes; nil where it does not fit at
// all.
func (k *Sampler) copyExecution(r *engine.Execution, err engine.ExecutionError, b *plugin.Batch, ops []plugin.Op,
	free int64) *entry {
	const longestMessage = 2 << 10
	err.Message = truncate(err.Message, longestMessage)
	e := &entry{record: *r, err: err, bytes: entryBytes + int64(len(err.Message))}
	if e.bytes > free {
		k.leftOut++
		return nil
	}
	values := 0
	for i, op := range ops {
		if op.Statement >= engine.FirstControl || int(op.Statement) >= len(k.statements) {
			continue
		}
		if len(e.calls) == MaxCalls || e.bytes+callBytes > free {
			e.leftOut++
			continue
		}
		c := call{statement: op.Statement, position: r.Position}
		if len(ops) > 1 {
			c.position = uint16(i + 1)
		}
		args := b.Args[op.FirstArg : int(op.FirstArg)+int(op.NArgs)]
		e.bytes += callBytes
		for j, v := range args {
			if values == MaxValues || !k.copyValue(e, &c, b, v, free) {
				c.leftOut = len(args) - j
				break
			}
			values++
		}
		e.calls = append(e.calls, c)
	}
	e.calls, e.data = slices.Clip(e.calls), slices.Clip(e.data)
	return e
}

// copyValue copies a value; false where it does not fit.
func (k *Sampler) copyValue(e *entry, c *call, b *plugin.Batch, v plugin.Value, free int64) bool {
	length := uint32(0)
	var text []byte
	if v.Type == engine.TypeText || v.Type == engine.TypeBytes {
		length = v.Len
		if k.plain {
			text = b.Bytes(v)[:min(int(v.Len), MaxTextBytes)]
		}
	}
	if e.bytes+valueBytes+int64(len(text)) > free {
		return false
	}
	e.bytes += valueBytes + int64(len(text))
	v.Off, v.Len = uint32(len(e.data)), uint32(len(text))
	e.data = append(e.data, text...)
	if !k.plain && v.Type != plugin.TypeRef {
		v.I, v.F = 0, 0
	}
	c.values, c.lengths = append(c.values, v), append(c.lengths, length)
	return true
}

// truncate bounds a text, at a whole character.
func truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && end > most-4 && text[end]&0xC0 == 0x80 {
		end--
	}
	return text[:end] + "…"
}
