package record

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

const (
	// ChunkSize is the number of records in a chunk (24 KB). Many recorders get
	// smaller ones: together those being filled hold fillingRecords, or smallChunk for each.
	ChunkSize      = 256
	smallChunk     = 32
	fillingRecords = 64 * ChunkSize
	// spareRecords is how many may wait for the Sink beyond a chunk for each
	// recorder: 25 MB, some seconds of a full speed run.
	spareRecords = 1024 * ChunkSize
)

// chunkSizeFor is the size of chunks for so many recorders.
func chunkSizeFor(recorders int) int {
	return min(max(fillingRecords/max(recorders, 1), smallChunk), ChunkSize)
}

// Chunk is a block of records with one writer (a recorder's) and one reader (the
// collector). records[:length] are published and do not change any more.
type Chunk struct {
	records []engine.Execution
	length  atomic.Uint32
	// read is the collector's own position, uses how often it has made the chunk free.
	read, uses uint32
}

// Pool hands chunks to slots and takes them back from the collector. There are
// never more than its limit; when none is free the slot waits. A slot comes
// here once in a chunk's operations.
type Pool struct {
	Mu      sync.Mutex
	freed   sync.Cond
	Free    []*Chunk
	full    []*Chunk
	Made    int
	Limit   int
	size    int // of the chunks to be made
	stalled time.Duration
	// ready holds a token when there are full chunks.
	ready chan struct{}
}

// NewPool returns a pool without chunks; Resize makes some.
func NewPool() *Pool {
	p := &Pool{ready: make(chan struct{}, 1)}
	p.freed.L = &p.Mu
	return p
}

// Resize sets the limit for a number of recorders and makes a first supply.
// The limit never falls: chunks that exist stay.
func (p *Pool) Resize(recorders int) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if size := chunkSizeFor(recorders); p.size == 0 || size < p.size {
		p.size = size
	}
	p.Limit = max(p.Limit, 2*recorders+spareRecords/p.size)
	p.topUpLocked(recorders + 16)
	p.freed.Broadcast()
}

// topUp makes chunks until want are free or the limit is reached, so that
// slots do not have to.
func (p *Pool) topUp(want int) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.topUpLocked(want)
}

func (p *Pool) topUpLocked(want int) {
	for len(p.Free) < want && p.Made < p.Limit {
		p.Made++
		p.Free = append(p.Free, &Chunk{records: make([]engine.Execution, p.size)})
	}
}

// Get takes a free chunk, waiting for one when there is none.
func (p *Pool) get() *Chunk {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if len(p.Free) == 0 {
		p.topUpLocked(1)
	}
	if len(p.Free) == 0 {
		begin := time.Now()
		for len(p.Free) == 0 {
			p.freed.Wait()
		}
		p.stalled += time.Since(begin)
	}
	c := p.Free[len(p.Free)-1]
	p.Free = p.Free[:len(p.Free)-1]
	return c
}

// hand gives a chunk to the collector.
func (p *Pool) hand(c *Chunk) {
	p.Mu.Lock()
	p.full = append(p.full, c)
	p.Mu.Unlock()
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

// takeFull returns the oldest full chunk, or nil.
func (p *Pool) takeFull() *Chunk {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if len(p.full) == 0 {
		return nil
	}
	c := p.full[0]
	p.full = append(p.full[:0], p.full[1:]...)
	return c
}

// recycle makes a chunk that has been read free again.
func (p *Pool) recycle(c *Chunk) {
	c.read = 0
	c.uses++
	c.length.Store(0)
	p.Mu.Lock()
	p.Free = append(p.Free, c)
	p.Mu.Unlock()
	p.freed.Signal()
}

// TakeStalled returns how long slots have waited since the last call.
func (p *Pool) TakeStalled() time.Duration {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	d := p.stalled
	p.stalled = 0
	return d
}

// Recorder is the writing end of a slot, or of an event loop for all of its slots.
type Recorder struct {
	Pool *Pool
	// current is read by the collector to see records of a chunk that is not full yet.
	current atomic.Pointer[Chunk]
}

// Next returns the place for the next record. It may wait for a chunk.
func (r *Recorder) Next() (*Chunk, *engine.Execution) {
	c := r.current.Load()
	if c == nil {
		c = r.Pool.get()
		r.current.Store(c)
	}
	return c, &c.records[c.length.Load()]
}

// Publish makes the record that place gave visible to the collector.
func (r *Recorder) Publish(c *Chunk) {
	n := c.length.Load() + 1
	c.length.Store(n)
	if int(n) == len(c.records) {
		r.current.Store(nil)
		r.Pool.hand(c)
	}
}

// Flush hands over a chunk that is not full; the writer is leaving.
func (r *Recorder) Flush() {
	if c := r.current.Swap(nil); c != nil {
		r.Pool.hand(c)
	}
}
