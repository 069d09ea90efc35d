package load

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

const (
	// maxFailedKeys bounds the keys that are remembered for each table; the oldest go first.
	maxFailedKeys = 1 << 16
	// maxKnownKeys is how many keys of rows that are there are kept to take their place.
	maxKnownKeys = 64
	// sieveBits is a power of two, many times mostUnmade's usual fill.
	sieveBits = 1 << 20
)

// FailedInserts knows the keys whose INSERT has failed. A workload decides what to look for
// before it could know what became of its INSERTs, so an operation that looks for
// such a row gets the key of another one: a miss answers faster than a hit, and
// would make the target look faster than it is. Until an INSERT fails it costs one
// atomic load, and then a hash: the lock is taken for what probably is such a key.
//
// INSERTs inside transactions are not followed: what failed there was rolled back
// as a whole, and says nothing of a single row.
type FailedInserts struct {
	statements []keyUse
	some       atomic.Bool
	seed       maphash.Seed
	// sieve has a bit for each hash of a failed INSERT; made when the first one fails.
	sieve atomic.Pointer[sieve]

	mu       sync.Mutex
	tables   []tableKeys
	replaced int64
}

// keyUse is what a statement has to do with a table's key.
type keyUse struct {
	// table is an index into unmade.tables, -1 when the statement does not name a whole key.
	table   int
	inserts bool
	// places are those of the key's columns among its arguments, in the key's order.
	places []int
}

// tableKeys are the keys of a table: those that have no row, and some that have.
type tableKeys struct {
	gone map[uint64]struct{}
	// order is in which they came, as a ring from next on.
	order []uint64
	next  int
	// made are keys of rows that were inserted, found those of rows that were met.
	made, found newest
	// supplied: further rows that are met are not needed.
	supplied atomic.Bool
}

// sieve says of a hash that it was not put in, or that it may have been.
type sieve [sieveBits / 64]atomic.Uint64

func (s *sieve) put(h uint64)        { s[h%sieveBits/64].Or(1 << (h % 64)) }
func (s *sieve) holds(h uint64) bool { return s[h%sieveBits/64].Load()&(1<<(h%64)) != 0 }

// newest holds the newest keys.
type newest struct {
	keys []rowKey
	next int
}

// rowKey is a key with what its texts need.
type rowKey struct {
	values []plugin.Value
	data   []byte
}

// NewFailedInserts returns what is known before the first INSERT of a plan: nothing.
func NewFailedInserts(plan *engine.Plan) *FailedInserts {
	u := &FailedInserts{statements: make([]keyUse, len(plan.Statements)), seed: maphash.MakeSeed(),
		tables: make([]tableKeys, len(plan.Tables))}
	for i := range plan.Statements {
		u.statements[i] = keyedBy(plan, &plan.Statements[i])
	}
	return u
}

func keyedBy(plan *engine.Plan, s *engine.Statement) keyUse {
	none := keyUse{table: -1}
	switch s.Kind {
	case engine.KindPointLookup, engine.KindRangeScan, engine.KindInsert, engine.KindUpdate, engine.KindDelete:
	default:
		return none
	}
	at := slices.IndexFunc(plan.Tables, func(t engine.Table) bool { return t.Name == s.Table })
	if at < 0 && s.Table == "" && len(plan.Tables) == 1 {
		at = 0
	}
	if at < 0 || len(plan.Tables[at].Key) == 0 {
		return none
	}
	k := keyUse{table: at, inserts: s.Kind == engine.KindInsert}
	for _, column := range plan.Tables[at].Key {
		// An UPDATE sets columns before it names the row.
		place := -1
		for i, b := range s.Binds {
			if b.Column == column {
				place = i
			}
		}
		if place < 0 {
			return none
		}
		k.places = append(k.places, place)
	}
	return k
}

func (u *FailedInserts) of(op plugin.Op) *keyUse {
	if int(op.Statement) >= len(u.statements) || u.statements[op.Statement].table < 0 {
		return nil
	}
	k := &u.statements[op.Statement]
	for _, place := range k.places {
		if place >= int(op.NArgs) {
			return nil
		}
	}
	return k
}

func (u *FailedInserts) hash(b *plugin.Batch, op plugin.Op, k *keyUse) uint64 {
	var h maphash.Hash
	h.SetSeed(u.seed)
	for _, place := range k.places {
		v := b.Args[int(op.FirstArg)+place]
		_, _ = h.WriteString(string(v.Type))
		switch v.Type {
		case engine.TypeText, engine.TypeBytes:
			var n [4]byte
			binary.LittleEndian.PutUint32(n[:], v.Len)
			_, _ = h.Write(n[:])
			_, _ = h.Write(b.Bytes(v))
		case engine.TypeF64:
			var n [8]byte
			binary.LittleEndian.PutUint64(n[:], math.Float64bits(v.F))
			_, _ = h.Write(n[:])
		default:
			var n [8]byte
			binary.LittleEndian.PutUint64(n[:], uint64(v.I))
			_, _ = h.Write(n[:])
		}
	}
	return h.Sum64()
}

// Ended takes what became of an operation outside of a transaction.
func (u *FailedInserts) Ended(b *plugin.Batch, op plugin.Op, ok bool, rows int64) {
	if ok && rows > 0 && !u.some.Load() {
		return
	}
	k := u.of(op)
	// A trigger or a rule may leave a row out without an error.
	ok = ok && rows > 0
	if k == nil || !k.inserts && !ok {
		return
	}
	t := &u.tables[k.table]
	if !k.inserts && t.supplied.Load() {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case !ok:
		if u.sieve.Load() == nil {
			u.sieve.Store(new(sieve))
		}
		h := u.hash(b, op, k)
		t.forget(h)
		u.sieve.Load().put(h)
		u.some.Store(true)
	case k.inserts:
		t.made.add(b, op, k)
		t.supplied.Store(true)
	case len(t.made.keys) == 0:
		t.found.add(b, op, k)
		t.supplied.Store(len(t.found.keys) == maxKnownKeys)
	}
}

// forget notes a key that has no row.
func (t *tableKeys) forget(h uint64) {
	if t.gone == nil {
		t.gone = map[uint64]struct{}{}
	}
	if _, known := t.gone[h]; known {
		return
	}
	t.gone[h] = struct{}{}
	if len(t.order) < maxFailedKeys {
		t.order = append(t.order, h)
		return
	}
	delete(t.gone, t.order[t.next])
	t.order[t.next] = h
	t.next = (t.next + 1) % maxFailedKeys
}

// Begin puts other keys in the place of those whose INSERT has failed. The
// arguments of an operation that has not begun are its slot's alone.
func (u *FailedInserts) Begin(b *plugin.Batch, ops []plugin.Op) {
	if !u.some.Load() {
		return
	}
	failed := u.sieve.Load()
	looks := func(op plugin.Op) (*keyUse, uint64) {
		k := u.of(op)
		if k == nil || k.inserts {
			return nil, 0
		}
		return k, u.hash(b, op, k)
	}
	for _, op := range ops {
		if k, h := looks(op); k != nil && failed.holds(h) {
			u.replace(b, ops, looks)
			return
		}
	}
}

// replace gives operations the keys of rows that are there, when the INSERTs of their own
// have failed. It holds the lock over all of them: what is known must not change between
// two operations of one transaction, which are to get the same key or to keep their own.
func (u *FailedInserts) replace(b *plugin.Batch, ops []plugin.Op, looks func(plugin.Op) (*keyUse, uint64)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, op := range ops {
		k, h := looks(op)
		if k == nil {
			continue
		}
		t := &u.tables[k.table]
		if _, gone := t.gone[h]; gone && (t.made.put(b, op, k, h) || t.found.put(b, op, k, h)) {
			u.replaced++
		}
	}
}

// Count is how many operations got another key.
func (u *FailedInserts) Count() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.replaced
}

func (r *newest) add(b *plugin.Batch, op plugin.Op, k *keyUse) {
	if len(r.keys) < maxKnownKeys {
		r.keys = append(r.keys, rowKey{})
		r.next = len(r.keys) - 1
	}
	key := &r.keys[r.next]
	r.next = (r.next + 1) % maxKnownKeys
	key.values, key.data = key.values[:0], key.data[:0]
	for _, place := range k.places {
		v := b.Args[int(op.FirstArg)+place]
		if v.Type == engine.TypeText || v.Type == engine.TypeBytes {
			at := uint32(len(key.data))
			key.data = append(key.data, b.Bytes(v)...)
			v.Off = at
		}
		key.values = append(key.values, v)
	}
}

// put writes one of the keys over that of an operation; h chooses which, so that
// operations of one transaction get the same one. Texts have the room of those before.
func (r *newest) put(b *plugin.Batch, op plugin.Op, k *keyUse, h uint64) bool {
	n := len(r.keys)
	for i := range n {
		if key := &r.keys[(int(h%uint64(n))+i)%n]; key.fits(b, op, k) {
			key.write(b, op, k)
			return true
		}
	}
	return false
}

func (key *rowKey) fits(b *plugin.Batch, op plugin.Op, k *keyUse) bool {
	for i, place := range k.places {
		if old := b.Args[int(op.FirstArg)+place]; old.Type != key.values[i].Type || old.Len < key.values[i].Len {
			return false
		}
	}
	return true
}

func (key *rowKey) write(b *plugin.Batch, op plugin.Op, k *keyUse) {
	for i, place := range k.places {
		v, old := key.values[i], &b.Args[int(op.FirstArg)+place]
		if v.Type == engine.TypeText || v.Type == engine.TypeBytes {
			copy(b.Data[old.Off:], key.data[v.Off:v.Off+v.Len])
			v.Off = old.Off
		}
		*old = v
	}
}
