// Package diskbudget decides which files of a node stay on its disk: parts of records that
// servers fetch, and a cache of Parquet files. It is pure: it knows no clock and no
// disk. Events go in with their time, and actions come out, which a shell carries
// out and reports back; what is on the disk is counted until it is reported Gone.
//
// The rules, in the order in which they give way:
//
//   - Together the files never take more than the budget. Whoever writes asks before each
//     write (Grow), and is answered Granted or Refused, at once or when room has been made.
//   - The cache never takes what the floor leaves to the spool, and makes room for itself only
//     in the cache.
//   - Above the high watermark files go until the low one is reached: the cache, least
//     recently used first; what a server has acknowledged, in that order; what has expired.
//     Only a write that would not fit otherwise makes an artifact go that nobody has
//     fetched, the oldest first; its work is redone (Redo).
//   - A run's executions never go unfetched. Above the low watermark its finished parts are to be
//     announced at once (Announce), so that servers fetch them while it runs. When the high
//     watermark is passed all the same, the run is marked (Degrade), and what it writes then has
//     the room up to the budget; nothing of a run is refused before it is marked.
//   - An acknowledged artifact stays for a while, for a server that asks again, and one that
//     was announced and never acknowledged, a run's executions aside, for a longer one.
package diskbudget

import (
	"slices"
	"time"
)

// Policy are the sizes in bytes, and the times.
type Policy struct {
	Budget, Floor int64
	// Low and High are the watermarks, Low < High <= Budget.
	Low, High int64
	// Acknowledged and Announced are how long an artifact stays after each.
	Acknowledged, Announced time.Duration
}

// The times of the contract.
const (
	AcknowledgedFor = 30 * time.Second
	AnnouncedFor    = 10 * time.Minute
)

// PolicyFor is the usual policy for a budget: watermarks at 60 and 85 %, and half of it
// for the spool whatever the cache would like.
func PolicyFor(bytes int64) Policy {
	return Policy{Budget: bytes, Floor: bytes / 2, Low: bytes / 100 * 60, High: bytes / 100 * 85,
		Acknowledged: AcknowledgedFor, Announced: AnnouncedFor}
}

// Kind is what a file is.
type Kind string

// The kinds of files.
const (
	Cache  Kind = "CACHE"  // can be fetched again
	Work   Kind = "WORK"   // the artifact of a work, which can be redone
	Record Kind = "RECORD" // executions of a run, which cannot
)

// state is what has become of a file of the spool.
type state int

const (
	writing state = iota
	finished
	announced
	expired
	acknowledged
)

// file is one file on the disk, or ordered off it.
type file struct {
	key   string
	kind  Kind
	run   string
	bytes int64
	state state
	// since is when the state began, of the cache when it was last used; order is that of
	// files with one time.
	since time.Time
	order int64
	going bool
	// lane is where it stands, nil while nothing can be wanted of it; between its neighbours there.
	lane         *lane
	before, next *file
}

// Budget holds what is on the disk. It is not safe for concurrent use.
type Budget struct {
	policy  Policy
	files   map[string]*file
	used    int64
	cache   int64
	lanes   [lanes]lane
	marked  map[string]bool // runs
	waiting []Grow
	order   int64
}

// New returns a budget for an empty disk.
func New(p Policy) *Budget {
	return &Budget{policy: p, files: map[string]*file{}, marked: map[string]bool{}}
}

// Used is what the files take, those included that are being deleted.
func (b *Budget) Used() int64 { return b.used }

// Spool is the part of it that is no cache.
func (b *Budget) Spool() int64 { return b.used - b.cache }

// Policy is what New was given.
func (b *Budget) Policy() Policy { return b.policy }

// Event is what a Budget is told.
type Event interface{ event() }

// Grow asks for more bytes of a file, before they are written. The first makes the file known.
type Grow struct {
	Key   string
	Kind  Kind
	Run   string // of a Record
	Bytes int64
}

// Found is a file that was there before, such as that of an earlier process; it counts
// whatever the budget says.
type Found struct {
	Key   string
	Kind  Kind
	Run   string
	Bytes int64
}

// Finished says that a file is whole, and how large it has become: what was granted
// beyond that is given back. 0 is what was granted.
type Finished struct {
	Key   string
	Bytes int64
}

// Announced says that servers have been told of a file.
type Announced struct{ Key string }

// Acknowledged says that a server has stored a file.
type Acknowledged struct{ Key string }

// Used says that a file of the cache was read.
type Used struct{ Key string }

// Gone says that a file is not on the disk any more.
type Gone struct{ Key string }

// RequestCancelled says that nobody waits for an answer about a file any more.
type RequestCancelled struct{ Key string }

// Tick says that time has passed.
type Tick struct{}

// Ended says that a run has ended: its mark is not needed any more.
type Ended struct{ Run string }

func (Grow) event()             {}
func (Found) event()            {}
func (Finished) event()         {}
func (Announced) event()        {}
func (Acknowledged) event()     {}
func (Used) event()             {}
func (Gone) event()             {}
func (RequestCancelled) event() {}
func (Tick) event()             {}
func (Ended) event()            {}

// Action is what is to be done.
type Action interface{ action() }

// Granted answers Grow: the bytes may be written.
type Granted struct{ Grow }

// Refused answers Grow: there is no room, and none can be made.
type Refused struct{ Grow }

// Reason says why a file goes.
type Reason string

// The reasons, in the order in which files go.
const (
	ReasonCache        Reason = "CACHE"
	ReasonAcknowledged Reason = "ACKNOWLEDGED"
	ReasonExpired      Reason = "EXPIRED"
	ReasonOldest       Reason = "OLDEST"
)

// Delete orders a file off the disk; Gone follows.
type Delete struct {
	Key    string
	Reason Reason
}

// Redo says that a file goes that nobody has fetched: the work is to be redone.
type Redo struct{ Key string }

// Announce says that a finished file is to be announced now.
type Announce struct{ Key string }

// Degrade marks a run whose record may not fit, before anything of it is refused.
type Degrade struct{ Run string }

func (Granted) action()  {}
func (Refused) action()  {}
func (Delete) action()   {}
func (Redo) action()     {}
func (Announce) action() {}
func (Degrade) action()  {}

// Apply takes in what has happened, and says what is to be done, in that order.
func (b *Budget) Apply(now time.Time, h Event) []Action {
	d := &decision{Budget: b, now: now}
	switch h := h.(type) {
	case Grow:
		b.waiting = append(b.waiting, h)
	case Found:
		f := b.add(d.now, Grow(h))
		f.state = finished
		b.place(f)
		d.count(f, h.Bytes)
	case Finished:
		if f := b.files[h.Key]; f != nil && f.state == writing && h.Bytes > 0 && h.Bytes < f.bytes {
			d.count(f, h.Bytes-f.bytes)
		}
		d.advance(h.Key, finished)
	case Announced:
		d.advance(h.Key, announced)
	case Acknowledged:
		d.advance(h.Key, acknowledged)
	case Used:
		if f := b.files[h.Key]; f != nil && f.kind == Cache {
			f.since, f.order = now, b.next()
			b.place(f)
		}
	case RequestCancelled:
		b.withdraw(h.Key)
	case Gone:
		b.withdraw(h.Key)
		if f := b.files[h.Key]; f != nil {
			d.count(f, -f.bytes)
			f.leave()
			delete(b.files, h.Key)
		}
	case Ended:
		delete(b.marked, h.Run)
	}
	_, tick := h.(Tick)
	d.expire(tick)
	d.grantWaiting()
	d.relieve()
	return d.actions
}

func (b *Budget) withdraw(key string) {
	b.waiting = slices.DeleteFunc(b.waiting, func(g Grow) bool { return g.Key == key })
}

func (b *Budget) next() int64 {
	b.order++
	return b.order
}

func (b *Budget) add(now time.Time, g Grow) *file {
	f := b.files[g.Key]
	if f == nil {
		f = &file{key: g.Key, kind: g.Kind, run: g.Run, since: now, order: b.next()}
		b.files[g.Key] = f
	}
	return f
}

// decision is one Apply.
type decision struct {
	*Budget
	now     time.Time
	actions []Action
}

func (d *decision) emit(a Action) { d.actions = append(d.actions, a) }

func (d *decision) count(f *file, bytes int64) {
	f.bytes += bytes
	d.used += bytes
	if f.kind == Cache {
		d.cache += bytes
	}
	if f.lane != nil {
		f.lane.bytes += bytes
	}
}

// advance takes a file a step on; there is no step back.
func (d *decision) advance(key string, s state) {
	if f := d.files[key]; f != nil && f.state < s && (f.kind != Cache || s == finished) {
		f.state, f.since, f.order = s, d.now, d.next()
		d.place(f)
	}
}

// expire marks what has been announced for long enough; with a tick it goes, and what
// was acknowledged long enough ago.
func (d *decision) expire(tick bool) {
	for f := d.lanes[announcedWork].first; f != nil && d.now.Sub(f.since) >= d.policy.Announced; {
		f.state = expired
		d.place(f)
		f = d.lanes[announcedWork].first
	}
	if !tick {
		return
	}
	for f := d.lanes[expiredWork].first; f != nil; f = d.lanes[expiredWork].first {
		d.remove(f, ReasonExpired)
	}
	for f := d.lanes[stored].first; f != nil && d.now.Sub(f.since) >= d.policy.Acknowledged; {
		d.remove(f, ReasonAcknowledged)
		f = d.lanes[stored].first
	}
}

// grantWaiting answers who waits for room, in their order: one that has to wait holds up those behind it.
func (d *decision) grantWaiting() {
	for len(d.waiting) > 0 {
		g := d.waiting[0]
		if f := d.files[g.Key]; f != nil && f.going {
			d.emit(Refused{g})
		} else if !d.fits(g) {
			if d.makeRoom(g) {
				return // Gone follows
			}
			d.mark(g.Kind, g.Run)
			d.emit(Refused{g})
		} else {
			d.count(d.add(d.now, g), g.Bytes)
			if d.used > d.policy.High && !d.relievable() {
				d.mark(g.Kind, g.Run)
			}
			d.emit(Granted{g})
		}
		d.waiting = d.waiting[1:]
	}
}

// fits reports whether the bytes may be written now.
func (d *decision) fits(g Grow) bool {
	return d.used+g.Bytes <= d.policy.Budget &&
		(g.Kind != Cache || d.cache+g.Bytes <= d.policy.Budget-d.policy.Floor)
}

// mark marks a run once.
func (d *decision) mark(k Kind, run string) {
	if k == Record && !d.marked[run] {
		d.marked[run] = true
		d.emit(Degrade{run})
	}
}

// makeRoom orders as much off the disk as the write needs, in order; false when all
// that may go for it is not enough, and then nothing goes.
func (d *decision) makeRoom(g Grow) bool {
	need := d.used + g.Bytes - d.policy.Budget - d.lanes[goingSpool].bytes - d.lanes[goingCache].bytes
	if g.Kind == Cache {
		need = max(d.used+g.Bytes-d.policy.Budget, d.cache+g.Bytes-(d.policy.Budget-d.policy.Floor)) -
			d.lanes[goingCache].bytes
	}
	var victims []*file
	for f := range d.victims(true) {
		if need <= 0 || g.Kind == Cache && f.kind != Cache {
			break
		}
		if f.key != g.Key {
			victims = append(victims, f)
			need -= f.bytes
		}
	}
	if need > 0 {
		return false
	}
	for _, f := range victims {
		d.remove(f, f.reason())
	}
	return true
}

// relieve lets files go above the high watermark, and has parts of records announced above the low one.
func (d *decision) relieve() {
	if d.retained() > d.policy.High {
		for d.retained() > d.policy.Low {
			f := d.victim()
			if f == nil {
				break
			}
			d.remove(f, f.reason())
		}
	}
	if d.retained() <= d.policy.Low {
		return
	}
	for f := d.lanes[finishedRecord].first; f != nil; f = f.next {
		d.emit(Announce{f.key})
	}
}

// retained is what is on the disk and not ordered off it.
func (d *decision) retained() int64 {
	return d.used - d.lanes[goingSpool].bytes - d.lanes[goingCache].bytes
}

// relievable reports whether what may go brings the disk below the high watermark.
func (d *decision) relievable() bool {
	return d.retained()-d.lanes[cached].bytes-d.lanes[stored].bytes-d.lanes[expiredWork].bytes <= d.policy.High
}

// reason is the reason for which a file goes, empty when it stays.
func (f *file) reason() Reason {
	switch {
	case f.state == writing:
		return ""
	case f.kind == Cache:
		return ReasonCache
	case f.state == acknowledged:
		return ReasonAcknowledged
	case f.state == expired:
		return ReasonExpired
	case f.kind == Work:
		return ReasonOldest
	}
	return ""
}

// remove orders a file off the disk, once.
func (d *decision) remove(f *file, why Reason) {
	if f.going {
		return
	}
	f.going = true
	d.place(f)
	if why == ReasonOldest || why == ReasonExpired {
		d.emit(Redo{f.key})
	}
	d.emit(Delete{f.key, why})
}
