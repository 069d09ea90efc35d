package findings

import (
	"slices"
	"sort"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// maxSlots bounds what a collector holds: of a longer run neighbours are merged.
const maxSlots = 7200

// What the server names is bounded: the sessions that are remembered by what they are, other causes, counters by their
// names and objects, and those of one slot.
const (
	maxCulprits, maxCauses, maxCounters = 500, 300, 4096
	maxSlotCauses, maxSlotRates         = 64, 256
)

// rest is who stands for all that are too many to be remembered.
const rest = "the rest"

// Collector adds up what is seen of a server, second by second. It is not safe for concurrent use.
type Collector struct {
	from time.Time
	// step is how long a slot is: a whole number of seconds.
	step  time.Duration
	slots []slot
	// counters are the latest values, by name and object.
	counters map[counterKey]counterValue
	gauges   map[string]bool
	// culprits are the sessions behind causes.
	culprits map[string]engine.FindingSession
	// statements is how much of a cause each statement of the run had, in looks.
	statements map[cause]map[string]float64
	events     []engine.ServerEvent
	plans      map[string]time.Time
	took       []float64
	looks      int64
	last       engine.ServerLook
	peaks      map[string]float64
	facts      engine.ServerFacts
	// hidden counts looks in a row, by session.
	hidden map[string]int
	// named are the causes that are the name of an event.
	named map[cause]bool
	// own are the run's sessions that were seen.
	own map[string]bool
}

type counterKey struct{ name, object string }

type counterValue struct {
	at    time.Time
	value float64
}

// cause is what a moment of a session went to. who is a key of culprits, or the name of an event.
type cause struct{ rule, who string }

// slot is what was seen in one second, or in several. What is of sessions is summed over looks.
type slot struct {
	looks        int
	ours, others map[engine.WaitClass]float64
	idle         float64
	// fresh is how often a session of the run was seen for the first time.
	fresh  float64
	causes map[cause]float64
	// byStatement is the time with the processor and with reading of each statement.
	byStatement map[string]float64
	// rates are differences of counters, in units a second times seconds.
	rates map[counterKey]float64
}

// maxOwn bounds the sessions of the run that are remembered.
const maxOwn = 50_000

func (c *Collector) noteOwn(s *slot, session string) {
	if c.own[session] {
		return
	}
	if len(c.own) >= maxOwn {
		clear(c.own)
	}
	c.own[session] = true
	s.fresh++
}

// rate adds to a counter; nil is a slot before the first.
func (s *slot) rate(key counterKey, amount float64) {
	if s == nil {
		return
	}
	if _, known := s.rates[key]; known || len(s.rates) < maxSlotRates {
		add(&s.rates, key, amount)
	}
}

// NewCollector returns one that begins with the first second that it is told of.
func NewCollector() *Collector {
	c := &Collector{step: time.Second, counters: map[counterKey]counterValue{},
		gauges: map[string]bool{}, culprits: map[string]engine.FindingSession{},
		statements: map[cause]map[string]float64{}, plans: map[string]time.Time{}, peaks: map[string]float64{},
		named: map[cause]bool{}, own: map[string]bool{}}
	for _, name := range plugin.GaugeCounters() {
		c.gauges[name] = true
	}
	return c
}

// Grid is where the slots lie: the beginning of the first, their length, and how many there are.
func (c *Collector) Grid() (from time.Time, step time.Duration, n int) {
	return c.from, c.step, len(c.slots)
}

// at is the slot of a moment, nil before the first.
func (c *Collector) at(t time.Time) *slot {
	if c.from.IsZero() {
		c.from = t.Truncate(time.Second)
	}
	if t.Before(c.from) {
		return nil
	}
	for t.Sub(c.from)/c.step >= maxSlots {
		c.merge()
	}
	i := int(t.Sub(c.from) / c.step)
	for len(c.slots) <= i {
		c.slots = append(c.slots, slot{})
	}
	return &c.slots[i]
}

// merge makes one slot of two.
func (c *Collector) merge() {
	for i := range c.slots {
		if i%2 == 0 {
			c.slots[i/2] = c.slots[i]
			continue
		}
		a, b := &c.slots[i/2], &c.slots[i]
		a.looks += b.looks
		a.idle += b.idle
		a.fresh += b.fresh
		a.ours, a.others = added(a.ours, b.ours), added(a.others, b.others)
		a.byStatement = added(a.byStatement, b.byStatement)
		for k, v := range b.causes {
			if _, known := a.causes[k]; !known && len(a.causes) >= maxSlotCauses && k.who != "" {
				k.who = rest
			}
			add(&a.causes, k, v)
		}
		for k, v := range b.rates {
			a.rate(k, v)
		}
	}
	c.slots = c.slots[:(len(c.slots)+1)/2]
	c.step *= 2
}

func added[K comparable](a, b map[K]float64) map[K]float64 {
	if a == nil {
		return b
	}
	for k, v := range b {
		a[k] += v
	}
	return a
}

func add[K comparable](m *map[K]float64, k K, v float64) {
	if *m == nil {
		*m = map[K]float64{}
	}
	(*m)[k] += v
}

// Facts takes what is known of the server; the latest is true.
func (c *Collector) Facts(f engine.ServerFacts) { c.facts = f }

// Missing are sentences on what could not be seen.
func (c *Collector) Missing() []string { return append([]string{}, c.facts.Missing...) }

// Look adds what was seen at one moment.
func (c *Collector) Look(l engine.ServerLook) {
	s := c.at(l.At.Time)
	if s == nil {
		return
	}
	c.looks++
	if len(c.took) < 1000 {
		c.took = append(c.took, l.TookMs)
	} else {
		c.took[c.looks%1000] = l.TookMs
	}
	c.last = l
	s.looks++
	s.idle += float64(l.Idle)
	chain := newChains(l.Sessions)
	c.noteHidden(&l, chain)
	for i := range l.Sessions {
		a := &l.Sessions[i]
		switch {
		case a.Ours && a.State == engine.SessionInTransaction:
			s.idle++ // the client has it: it is between two statements
		case a.State != engine.SessionActive && a.State != engine.SessionService:
		case !a.Ours:
			add(&s.others, a.Class, 1)
		default:
			add(&s.ours, a.Class, 1)
			c.noteOwn(s, a.Session)
			key := c.causeOf(a, chain)
			if _, known := s.causes[key]; !known && len(s.causes) >= maxSlotCauses && key.who != "" {
				key.who = rest
			}
			add(&s.causes, key, 1)
			if a.StatementID != "" {
				if c.statements[key] == nil {
					c.statements[key] = map[string]float64{}
				}
				c.statements[key][a.StatementID]++
				if a.Class == engine.WaitCPU || a.Class == engine.WaitRead {
					add(&s.byStatement, a.StatementID, 1)
				}
			}
		}
	}
}

// Counters adds numbers of the server as they were at one moment. One that has fallen was reset, and begins anew.
func (c *Collector) Counters(at time.Time, list []engine.ServerCounter) {
	for _, n := range list {
		key := counterKey{n.Name, n.Object}
		was, known := c.counters[key]
		if !known && len(c.counters) >= maxCounters {
			continue
		}
		c.counters[key] = counterValue{at, n.Value}
		if c.gauges[n.Name] {
			if s := c.at(at); n.Name == plugin.CounterVacuuming && n.Value > 0 {
				s.rate(key, 1)
			}
			c.peaks[n.Name] = max(c.peaks[n.Name], n.Value)
			if known && n.Value != was.value {
				switch n.Name {
				case plugin.CounterStarted:
					c.Event(engine.ServerEvent{At: engine.At(at), Kind: "restart", Text: "The server was started again"})
				case plugin.CounterReset:
					c.Event(engine.ServerEvent{At: engine.At(at), Kind: "reset", Text: "The server's statistics were reset"})
				}
			}
			continue
		}
		if !known || n.Value <= was.value || !at.After(was.at) {
			continue
		}
		switch n.Name {
		case plugin.CounterCheckpoints:
			c.Event(engine.ServerEvent{At: engine.At(at), Kind: "checkpoint", Text: "A checkpoint by its schedule"})
		case plugin.CounterRequested:
			c.Event(engine.ServerEvent{At: engine.At(at), Kind: "checkpoint", Text: "A checkpoint that was requested"})
		case plugin.CounterTableVacuums:
			c.Event(engine.ServerEvent{At: engine.At(at), Kind: "vacuum", Text: "A vacuum of " + n.Object + " has ended"})
		}
		c.spread(key, was.at, at, n.Value-was.value)
	}
}

// spread divides a difference over the seconds in which it came about.
func (c *Collector) spread(key counterKey, from, to time.Time, amount float64) {
	const most = 120
	if to.Sub(from) > most*time.Second {
		from = to.Add(-time.Second)
	}
	whole := to.Sub(from)
	for t := from; t.Before(to); {
		end := t.Truncate(time.Second).Add(time.Second)
		if end.After(to) {
			end = to
		}
		c.at(t).rate(key, amount*float64(end.Sub(t))/float64(whole))
		t = end
	}
}

// maxEvents bounds what is kept of them.
const maxEvents = 500

// Event adds something that happened.
func (c *Collector) Event(e engine.ServerEvent) {
	if len(c.events) < maxEvents {
		c.events = append(c.events, e)
	}
	if e.Kind == "plan" && e.StatementID != "" {
		if _, known := c.plans[e.StatementID]; !known {
			c.plans[e.StatementID] = e.At.Time
		}
	}
}

// Events are those that happened, in order.
func (c *Collector) Events() []engine.ServerEvent {
	list := slices.Clone(c.events)
	sort.SliceStable(list, func(i, j int) bool { return list[i].At.Before(list[j].At.Time) })
	return list
}

// Looks is how often the server was seen.
func (c *Collector) Looks() int64 { return c.looks }

// Last is the latest look.
func (c *Collector) Last() engine.ServerLook { return c.last }

// tookMs is how long a look took in the middle.
func (c *Collector) tookMs() float64 {
	if len(c.took) == 0 {
		return 0
	}
	list := slices.Clone(c.took)
	slices.Sort(list)
	return list[len(list)/2]
}

// Seconds are what charts draw, at most so many.
func (c *Collector) Seconds(start time.Time, most int) []engine.ServerSecond {
	every := max(1, (len(c.slots)+most-1)/most)
	list := make([]engine.ServerSecond, 0, len(c.slots)/every+1)
	for i := 0; i < len(c.slots); i += every {
		at := c.from.Add(time.Duration(i) * c.step)
		out := engine.ServerSecond{At: engine.At(at), ElapsedSeconds: at.Sub(start).Seconds(),
			Seconds: (time.Duration(every) * c.step).Seconds(), Ours: map[engine.WaitClass]float64{},
			Others: map[engine.WaitClass]float64{}}
		for _, s := range c.slots[i:min(i+every, len(c.slots))] {
			out.Looks += s.looks
			for k, v := range s.ours {
				out.Ours[k] += v
			}
			for k, v := range s.others {
				out.Others[k] += v
			}
		}
		for k := range out.Ours {
			out.Ours[k] /= float64(max(1, out.Looks))
		}
		for k := range out.Others {
			out.Others[k] /= float64(max(1, out.Looks))
		}
		list = append(list, out)
	}
	return list
}
