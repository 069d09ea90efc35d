package warehouse

import (
	"errors"
	"math"
	"slices"
	"time"
)

// Errors of the model.
var (
	ErrUnknown      = errors.New("there is no such warehouse")
	ErrExists       = errors.New("there is a warehouse of this name")
	ErrSuspended    = errors.New("the warehouse is suspended and does not resume by itself")
	ErrState        = errors.New("cannot be suspended or resumed now")
	ErrQueueTimeout = errors.New("the statement was queued for too long")
	ErrInteractive  = errors.New("an interactive warehouse only reads")
)

// ID is one statement in the model.
type ID uint64

// Event reports that a statement starts on a warehouse or, with Err, that it never will.
type Event struct {
	ID  ID
	At  time.Time
	Err error

	// How long it will take from At; execution includes Throttle.
	Compilation, Execution, Throttle time.Duration
	// How long it waited for the warehouse to start, and for a free slot.
	QueuedProvisioning, QueuedOverload time.Duration
	Size, Type                         string
	// Cluster is the cluster's number, from 1.
	Cluster int
	// HybridRequests went to hybrid storage, Throttled of them had to wait.
	HybridRequests, Throttled int64
}

// Total is how long the statement occupies its slot. A slot is taken for the
// compilation too, which is a simplification: Snowflake compiles elsewhere.
func (e *Event) Total() time.Duration { return e.Compilation + e.Execution }

// Model holds the warehouses of an account. It is a pure state machine: times
// come in with the calls and never go back, statements end when Finish is called.
// It is not safe for concurrent use.
type Model struct {
	config Config
	houses map[string]*house
	where  map[ID]*house
	last   ID
	events []Event
	now    time.Time // of the latest Advance

	// The bucket of hybrid storage.
	tokens float64
	filled time.Time
}

// New returns a model without warehouses.
func New(c Config) *Model {
	c.complete()
	return &Model{config: c, houses: map[string]*house{}, where: map[ID]*house{}, tokens: c.HybridBurst}
}

type ticket struct {
	id        ID
	work      Work
	open      bool // of a transaction that has begun
	units     int
	submitted time.Time
	cluster   *cluster // nil while it is queued
}

type cluster struct {
	number int
	ready  time.Time
	busy   int // units
}

// house is one warehouse.
type house struct {
	Spec
	status                    Status
	clusters                  []*cluster
	queue                     []*ticket
	running                   map[ID]*ticket
	created, resumed, updated time.Time
	idle                      time.Time // since when nothing runs or waits; zero while something does
	lastStart                 time.Time // of a cluster
	checked                   time.Time
	quiet                     int       // checks in a row that found one cluster too many
	started                   time.Time // when the warehouse was ready last
	updatedAt                 time.Time // the latest time that it knows of
}

// Create adds a warehouse. The zero fields of the spec get their defaults.
func (m *Model) Create(now time.Time, spec Spec) error {
	spec = Defaults(spec)
	if err := m.Check(spec); err != nil {
		return err
	}
	if m.houses[spec.Name] != nil {
		return ErrExists
	}
	h := &house{Spec: spec, status: Suspended, running: map[ID]*ticket{}, created: now, updated: now}
	m.houses[spec.Name] = h
	if !spec.Suspended {
		// A new warehouse starts at once.
		m.open(h, now, now)
	}
	return nil
}

// Alter replaces the spec of a warehouse, which keeps its name and type.
func (m *Model) Alter(now time.Time, name string, spec Spec) error {
	h := m.houses[name]
	if h == nil {
		return ErrUnknown
	}
	spec = Defaults(spec)
	if err := m.Check(spec); err != nil {
		return err
	}
	if spec.Type != h.Type {
		return errors.New("the type of a warehouse cannot be changed")
	}
	h.Spec, h.updated = spec, now
	if h.up() {
		for len(h.clusters) < h.MinClusters {
			m.grow(h, now)
		}
	}
	m.settle(h, now)
	return nil
}

// Drop removes a warehouse; what waits for it is refused, what runs may end.
func (m *Model) Drop(now time.Time, name string) error {
	h := m.houses[name]
	if h == nil {
		return ErrUnknown
	}
	for _, t := range h.queue {
		delete(m.where, t.id)
		m.events = append(m.events, Event{ID: t.id, At: now, Err: ErrUnknown})
	}
	h.queue = nil
	delete(m.houses, name)
	return nil
}

// Resume starts a suspended warehouse.
func (m *Model) Resume(now time.Time, name string) error {
	h := m.houses[name]
	switch {
	case h == nil:
		return ErrUnknown
	case h.status != Suspended:
		return ErrState
	}
	m.open(h, now, now.Add(m.config.resume(h.Type)))
	return nil
}

// Suspend suspends a warehouse: at once when it is idle, else when what runs has ended.
func (m *Model) Suspend(now time.Time, name string) error {
	h := m.houses[name]
	switch {
	case h == nil:
		return ErrUnknown
	case h.status == Suspended || h.status == Suspending:
		return ErrState
	}
	h.status, h.updated = Suspending, now
	m.settle(h, now)
	return nil
}

func (c *Config) resume(houseType string) time.Duration {
	if houseType == TypeInteractive {
		return c.ResumeInteractive
	}
	return c.Resume
}

// up reports that a warehouse has clusters, ready or on their way.
func (h *house) up() bool { return h.status == Started || h.status == Resuming || h.status == Starting }

// open starts the clusters of a warehouse, which are ready at a time.
func (m *Model) open(h *house, now, ready time.Time) {
	h.status, h.resumed, h.started = Resuming, now, ready
	h.clusters = nil
	for len(h.clusters) < h.MinClusters {
		h.clusters = append(h.clusters, &cluster{number: len(h.clusters) + 1, ready: ready})
	}
	h.lastStart, h.checked, h.quiet = ready, ready, 0
	m.settle(h, now)
}

// grow starts a further cluster.
func (m *Model) grow(h *house, now time.Time) {
	number := 1
	for slices.ContainsFunc(h.clusters, func(c *cluster) bool { return c.number == number }) {
		number++
	}
	ready := now.Add(m.config.resume(h.Type))
	h.clusters = append(h.clusters, &cluster{number: number, ready: ready})
	h.lastStart, h.checked, h.quiet = ready, ready, 0
}

// Submit queues a statement on a warehouse. An event reports its start.
func (m *Model) Submit(now time.Time, name string, w Work) (ID, error) {
	return m.submit(now, name, w, false)
}

// SubmitOpen is Submit for a statement whose transaction has begun. It does not
// queue for room, because those that run may be waiting for the transaction's locks.
func (m *Model) SubmitOpen(now time.Time, name string, w Work) (ID, error) {
	return m.submit(now, name, w, true)
}

func (m *Model) submit(now time.Time, name string, w Work, open bool) (ID, error) {
	h := m.houses[name]
	switch {
	case h == nil:
		return 0, ErrUnknown
	case h.Type == TypeInteractive && (w.Op == Write || w.Op == Load):
		return 0, ErrInteractive
	case (h.status == Suspended || h.status == Suspending) && !h.AutoResume:
		return 0, ErrSuspended
	}
	m.last++
	t := &ticket{id: m.last, work: w, open: open,
		units: min(units(m.config.profile(w, h.Type).Share), h.MaxConcurrency*unitsPerSlot), submitted: now}
	m.where[t.id] = h
	at := len(h.queue)
	if open {
		at = 0
		for at < len(h.queue) && h.queue[at].open {
			at++
		}
	}
	h.queue = slices.Insert(h.queue, at, t)
	h.idle = time.Time{}
	m.settle(h, now)
	return t.id, nil
}

// Finish ends a statement, whether it runs or waits. Unknown ones are ignored.
func (m *Model) Finish(now time.Time, id ID) {
	h := m.where[id]
	if h == nil {
		return
	}
	delete(m.where, id)
	if t := h.running[id]; t != nil {
		t.cluster.busy -= t.units
		delete(h.running, id)
	} else {
		h.queue = slices.DeleteFunc(h.queue, func(t *ticket) bool { return t.id == id })
	}
	m.events = slices.DeleteFunc(m.events, func(e Event) bool { return e.ID == id })
	m.settle(h, now)
}

// Advance lets everything happen that is due until now, and returns what became
// of statements since the last call.
func (m *Model) Advance(now time.Time) []Event {
	for {
		h, at := m.next()
		if h == nil || at.After(now) {
			break
		}
		m.step(h, at)
	}
	m.now = later(m.now, now)
	out := m.events
	m.events = nil
	return out
}

// Next is the time of the model's next own event, if there is one.
func (m *Model) Next() (time.Time, bool) {
	if len(m.events) > 0 {
		return m.events[0].At, true
	}
	h, at := m.next()
	return at, h != nil
}

func (m *Model) next() (*house, time.Time) {
	var first *house
	var when time.Time
	for _, h := range m.houses {
		at, any := m.due(h)
		if any && (first == nil || at.Before(when) || at.Equal(when) && h.Name < first.Name) {
			first, when = h, at
		}
	}
	return first, when
}

// due is the time of a warehouse's next own event.
func (m *Model) due(h *house) (at time.Time, any bool) {
	consider := func(t time.Time) {
		if !any || t.Before(at) {
			at, any = t, true
		}
	}
	if h.status == Resuming || h.status == Starting {
		consider(h.started)
	}
	if h.QueuedTimeout > 0 {
		for _, t := range h.queue {
			consider(t.submitted.Add(h.QueuedTimeout))
		}
	}
	if h.status != Started {
		return at, any
	}
	for _, c := range h.clusters {
		if len(h.queue) > 0 && c.ready.After(h.updatedAt) {
			consider(c.ready)
		}
	}
	if len(h.queue) > 0 && len(h.clusters) < h.MaxClusters && m.wants(h) {
		consider(later(h.lastStart.Add(m.config.ClusterPause), h.updatedAt))
	}
	if len(h.clusters) > h.MinClusters {
		consider(h.checked.Add(m.config.Check))
	}
	if h.AutoSuspend > 0 && !h.idle.IsZero() {
		consider(h.idle.Add(h.AutoSuspend))
	}
	return at, any
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// step lets what is due at a time happen to a warehouse.
func (m *Model) step(h *house, now time.Time) {
	if (h.status == Resuming || h.status == Starting) && !h.started.After(now) {
		h.status = Started
		if len(h.queue)+len(h.running) == 0 {
			h.idle = now
		}
	}
	if h.QueuedTimeout > 0 {
		h.queue = slices.DeleteFunc(h.queue, func(t *ticket) bool {
			if t.submitted.Add(h.QueuedTimeout).After(now) {
				return false
			}
			delete(m.where, t.id)
			m.events = append(m.events, Event{ID: t.id, At: now, Err: ErrQueueTimeout})
			return true
		})
	}
	if h.status == Started && len(h.clusters) > h.MinClusters && !h.checked.Add(m.config.Check).After(now) {
		m.check(h, now)
	}
	if h.status == Started && h.AutoSuspend > 0 && !h.idle.IsZero() && !h.idle.Add(h.AutoSuspend).After(now) {
		h.status = Suspending
	}
	m.settle(h, now)
	if h.status == Started && len(h.queue) > 0 && len(h.clusters) < h.MaxClusters && m.wants(h) &&
		!h.lastStart.Add(m.config.ClusterPause).After(now) {
		m.grow(h, now)
	}
}

// settle brings a warehouse into a state that fits what runs and waits.
func (m *Model) settle(h *house, now time.Time) {
	h.updatedAt = later(h.updatedAt, now)
	if h.status == Suspending && len(h.running) == 0 {
		h.status, h.clusters, h.idle = Suspended, nil, time.Time{}
	}
	if h.status == Suspended && len(h.queue) > 0 && h.AutoResume {
		m.open(h, now, now.Add(m.config.resume(h.Type)))
		return
	}
	if (h.status == Resuming || h.status == Starting) && !h.started.After(now) {
		h.status = Started
	}
	if h.status == Started {
		m.begin(h, now)
		if surplus := len(h.clusters) - h.MaxClusters; surplus > 0 {
			h.clusters = slices.DeleteFunc(h.clusters, func(c *cluster) bool {
				gone := surplus > 0 && c.busy == 0
				if gone {
					surplus--
				}
				return gone
			})
		}
		// The standard policy starts the first further cluster as soon as a statement waits.
		if len(h.queue) > 0 && len(h.clusters) < h.MaxClusters && m.wants(h) &&
			!h.lastStart.Add(m.config.ClusterPause).After(now) {
			m.grow(h, now)
		}
	}
	switch busy := len(h.queue)+len(h.running) > 0; {
	case busy:
		h.idle = time.Time{}
	case h.status == Started && h.idle.IsZero():
		h.idle = now
	}
}

// begin starts as many waiting statements as there is room for, in their order.
// Those of open transactions need no room.
func (m *Model) begin(h *house, now time.Time) {
	for len(h.queue) > 0 {
		t := h.queue[0]
		capacity := h.MaxConcurrency * unitsPerSlot
		var best *cluster
		for _, c := range h.clusters {
			if !c.ready.After(now) && (c.busy+t.units <= capacity || t.open) && (best == nil || c.busy < best.busy) {
				best = c
			}
		}
		if best == nil {
			return
		}
		h.queue = h.queue[1:]
		best.busy += t.units
		t.cluster = best
		h.running[t.id] = t
		m.events = append(m.events, m.started(h, t, now))
	}
}

// started returns the event of a statement that starts.
func (m *Model) started(h *house, t *ticket, now time.Time) Event {
	e := Event{ID: t.id, At: now, Size: h.Size, Type: h.Type, Cluster: t.cluster.number}
	if waited := now.Sub(t.submitted); waited > 0 {
		e.QueuedProvisioning = min(max(h.started.Sub(t.submitted), 0), waited)
		e.QueuedOverload = waited - e.QueuedProvisioning
	}
	p := m.config.profile(t.work, h.Type)
	e.Compilation = m.sample(t.id, 0, p.Compilation, p.Spread)
	faster := math.Pow(max(p.Speedup, 1), float64(slices.Index(Sizes, h.Size)))
	e.Execution = m.sample(t.id, 1, time.Duration(float64(p.Execution)/faster), p.Spread)
	if t.work.Table == Hybrid {
		e.HybridRequests = 1
		if e.Throttle = m.throttle(now); e.Throttle > 0 {
			e.Throttled = 1
			e.Execution += e.Throttle
		}
	}
	return e
}

// throttle takes one request from the bucket of hybrid storage and returns how
// long the request has to wait.
func (m *Model) throttle(now time.Time) time.Duration {
	c := &m.config
	if !m.filled.IsZero() {
		m.tokens = min(m.tokens+now.Sub(m.filled).Seconds()*c.HybridRate, c.HybridBurst)
	}
	m.filled = later(m.filled, now)
	m.tokens--
	if m.tokens >= 0 {
		return 0
	}
	return min(time.Duration(-m.tokens/c.HybridRate*1e9), maxThrottleWait)
}

// sample draws a log-normal duration around a median.
func (m *Model) sample(id ID, draw uint64, median time.Duration, spread float64) time.Duration {
	if median <= 0 {
		return 0
	}
	// Box and Muller, cut off at three deviations.
	u := uniform(m.config.Seed, uint64(id), draw)
	v := uniform(m.config.Seed, uint64(id), draw+16)
	z := math.Sqrt(-2*math.Log(1-u)) * math.Cos(2*math.Pi*v)
	z = min(max(z, -3), 3)
	return time.Duration(float64(median) * math.Exp(spread*z) / m.config.TimeScale)
}

// uniform is a number in [0, 1) that depends on its arguments only.
func uniform(parts ...uint64) float64 {
	z := uint64(0x9e3779b97f4a7c15)
	for _, p := range parts {
		z += p * 0xd1342543de82ef95
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
	}
	return float64(z>>11) / (1 << 53)
}

// wants reports whether the scaling policy wants a further cluster for the queue.
func (m *Model) wants(h *house) bool {
	if h.ScalingPolicy == PolicyStandard {
		return true
	}
	var load time.Duration // of one slot
	for _, t := range h.queue {
		p := m.config.profile(t.work, h.Type)
		load += time.Duration(float64(p.Compilation+p.Execution) * float64(t.units) / unitsPerSlot / m.config.TimeScale)
	}
	return load/time.Duration(h.MaxConcurrency) >= m.config.EconomyLoad
}

// check stops a cluster when one less has been enough for some checks.
func (m *Model) check(h *house, now time.Time) {
	h.checked = now
	busy := 0
	for _, c := range h.clusters {
		busy += c.busy
	}
	if len(h.queue) > 0 || busy > (len(h.clusters)-1)*h.MaxConcurrency*unitsPerSlot {
		h.quiet = 0
		return
	}
	h.quiet++
	needed := standardChecks
	if h.ScalingPolicy == PolicyEconomy {
		needed = economyChecks
	}
	if h.quiet < needed {
		return
	}
	for i := len(h.clusters) - 1; i >= 0; i-- {
		if h.clusters[i].busy == 0 {
			h.clusters = slices.Delete(h.clusters, i, i+1)
			h.quiet = 0
			return
		}
	}
}

// Get returns the state of a warehouse.
func (m *Model) Get(name string) (State, bool) {
	h := m.houses[name]
	if h == nil {
		return State{}, false
	}
	s := State{Spec: h.Spec, Status: h.status, Running: len(h.running), Queued: len(h.queue), CreatedOn: h.created,
		ResumedOn: h.resumed, UpdatedOn: h.updated}
	s.Tables = slices.Clone(s.Tables)
	for _, c := range h.clusters {
		if h.status == Started && !c.ready.After(later(h.updatedAt, m.now)) {
			s.StartedClusters++
		}
	}
	return s, true
}

// List returns the states of all warehouses, in no order.
func (m *Model) List() []State {
	out := make([]State, 0, len(m.houses))
	for name := range m.houses {
		s, _ := m.Get(name)
		out = append(out, s)
	}
	return out
}
