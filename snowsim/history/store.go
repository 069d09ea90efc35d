package history

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// Options limit what is stored and what of it is visible.
type Options struct {
	// Limit is how many executions are stored; 0 is 2 million, some 200 MB when full.
	Limit int
	// Lag is how long an execution is not visible after its end, AggregateLag how
	// long an interval is not visible after its own.
	Lag, AggregateLag time.Duration
	// Short is the duration under which executions on hybrid and interactive
	// tables are left out of the query history; 0 is 500 ms, negative leaves none out.
	Short time.Duration
	// Interval is the length of the aggregates' intervals; 0 is a minute, as on an account.
	Interval time.Duration
}

const (
	chunkRows = 1 << 14
	// maxGroups bounds the aggregates; the oldest intervals go first.
	maxGroups = 100_000
	// maxText is where an account cuts a text off; maxTexts bounds all of them together, in bytes.
	maxText  = 100_000
	maxTexts = 64 << 20
	// maxFailures bounds the different messages.
	maxFailures = 10_000
	droppedText = "(text not kept: the stand-in remembers 64 MB of different texts)"
)

// Store holds executions. It is safe for concurrent use.
type Store struct {
	opts Options

	mu sync.RWMutex
	// chunks hold the visible executions in the order of their end.
	chunks [][]row
	rows   int
	total  int64 // executions ever added, visible or not

	contexts  dictionary[Context]
	textBytes int
	texts     dictionary[statement]
	failures  dictionary[failure]

	groups map[group]*sums
	// intervals are the beginnings of the intervals in groups, ascending.
	intervals []int64
}

type statement struct{ text, queryType, table string }

type failure struct{ code, message string }

// row is an execution without what others have too. Durations are in microseconds.
type row struct {
	id                                         [16]byte
	end                                        int64 // ns since 1970
	total, compilation, provisioning, overload uint32
	execution                                  uint32
	context, statement, failure                uint32
	produced, scanned                          uint32 // scanned in KiB
	session                                    int64
}

type group struct {
	interval           int64
	context, statement uint32
}

type sums struct {
	calls, throttled                        int64
	total, compilation, execution, overload spread
}

// New returns an empty store.
func New(o Options) *Store {
	if o.Limit <= 0 {
		o.Limit = 2_000_000
	}
	if o.Short == 0 {
		o.Short = 500 * time.Millisecond
	}
	if o.Interval <= 0 {
		o.Interval = time.Minute
	}
	return &Store{opts: o, groups: map[group]*sums{}}
}

// Add records an execution. Its end is moved forward, if need be, so that
// executions end in the order in which they are added.
func (s *Store) Add(r *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	session := r.SessionID
	common := r.Context
	common.SessionID = 0 // sessions come and go; the aggregates are over all of them
	context := s.contexts.index(common)
	text := s.texts.index(s.statement(r))
	s.aggregate(r, group{interval: r.Start.UnixNano() / int64(s.opts.Interval) * int64(s.opts.Interval), context: context,
		statement: text})
	if s.hidden(r) {
		return
	}
	fail := failure{r.ErrorCode, r.ErrorMessage}
	if len(s.failures.values) >= maxFailures {
		fail.message = ""
	}
	end := r.End.UnixNano()
	if n := len(s.chunks); n > 0 {
		last := s.chunks[n-1]
		end = max(end, last[len(last)-1].end)
	}
	if n := len(s.chunks); n == 0 || len(s.chunks[n-1]) == chunkRows {
		s.chunks = append(s.chunks, make([]row, 0, chunkRows))
	}
	last := &s.chunks[len(s.chunks)-1]
	*last = append(*last, row{id: r.QueryID, end: end, total: micros(r.Total()), compilation: micros(r.Compilation),
		provisioning: micros(r.QueuedProvisioning),
		overload:     micros(r.QueuedOverload), execution: micros(r.Execution), context: context, statement: text,
		failure: s.failures.index(fail), produced: count(r.RowsProduced), scanned: count((r.BytesScanned + 1023) / 1024),
		session: session})
	s.rows++
	if s.rows-len(s.chunks[0]) >= s.opts.Limit {
		s.rows -= len(s.chunks[0])
		s.chunks[0] = nil
		s.chunks = s.chunks[1:]
	}
}

// statement is the stored text of an execution.
func (s *Store) statement(r *Record) statement {
	out := statement{r.Text, r.QueryType, r.Table}
	if len(out.text) > maxText {
		out.text = out.text[:maxText]
	}
	if _, known := s.texts.places[out]; known {
		return out
	}
	if s.textBytes += len(out.text); s.textBytes > maxTexts {
		// A client that writes values into its SQL has a new text for every execution.
		out.text = droppedText
	}
	return out
}

// hidden decides whether the query history leaves an execution out.
func (s *Store) hidden(r *Record) bool {
	return (r.Table == "hybrid" || r.Table == "interactive") && r.Total() < s.opts.Short
}

func (s *Store) aggregate(r *Record, g group) {
	a := s.groups[g]
	if a == nil {
		a = &sums{}
		s.groups[g] = a
		if i, found := slices.BinarySearch(s.intervals, g.interval); !found {
			s.intervals = slices.Insert(s.intervals, i, g.interval)
		}
		if len(s.groups) > maxGroups && len(s.intervals) > 1 {
			oldest := s.intervals[0]
			s.intervals = s.intervals[1:]
			for k := range s.groups {
				if k.interval == oldest {
					delete(s.groups, k)
				}
			}
			if g.interval == oldest {
				return
			}
		}
	}
	a.calls++
	a.total.add(r.Total())
	a.compilation.add(r.Compilation)
	a.execution.add(r.Execution)
	a.overload.add(r.QueuedOverload)
	a.throttled += r.Throttled
}

// Query returns the latest executions that match, the latest first.
func (s *Store) Query(f Filter) []Record {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	to := f.To
	if visible := f.Now.Add(-s.opts.Lag); !f.Now.IsZero() && (to.IsZero() || visible.Before(to)) {
		to = visible
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Record
	for c := len(s.chunks) - 1; c >= 0; c-- {
		rows := s.chunks[c]
		n := len(rows)
		if !to.IsZero() {
			limit := to.UnixNano()
			n = sort.Search(len(rows), func(i int) bool { return rows[i].end > limit })
		}
		for i := n - 1; i >= 0; i-- {
			r := &rows[i]
			if !f.From.IsZero() && r.end < f.From.UnixNano() {
				return out
			}
			if !f.takes(&s.contexts.values[r.context], r.session) {
				continue
			}
			out = append(out, s.record(r))
			if len(out) == f.Limit {
				return out
			}
		}
	}
	return out
}

// takes reports whether the executions of a session in a context are selected.
func (f *Filter) takes(c *Context, session int64) bool {
	return (f.User == "" || c.User == f.User) && (f.Warehouse == "" || c.Warehouse == f.Warehouse) &&
		(f.Session == 0 || session == f.Session) && (f.Visible == nil || f.Visible(c.User, c.Warehouse))
}

func (s *Store) record(r *row) Record {
	end := time.Unix(0, r.end).UTC()
	text, fail := s.texts.values[r.statement], s.failures.values[r.failure]
	out := Record{Context: s.contexts.values[r.context], QueryID: r.id, Text: text.text, QueryType: text.queryType,
		Table: text.table,
		Start: end.Add(-duration(r.total)), End: end, Compilation: duration(r.compilation),
		QueuedProvisioning: duration(r.provisioning),
		QueuedOverload:     duration(r.overload), Execution: duration(r.execution), RowsProduced: int64(r.produced),
		BytesScanned: int64(r.scanned) * 1024, ErrorCode: fail.code, ErrorMessage: fail.message}
	out.SessionID = r.session
	return out
}

// Aggregates returns the intervals that are visible at now, in the order of time. Their
// contexts have no session.
func (s *Store) Aggregates(now time.Time) []Aggregate {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Aggregate
	for g, a := range s.groups {
		start := time.Unix(0, g.interval).UTC()
		end := start.Add(s.opts.Interval)
		if end.Add(s.opts.AggregateLag).After(now) {
			continue
		}
		text := s.texts.values[g.statement]
		out = append(out, Aggregate{Context: s.contexts.values[g.context], Text: text.text, QueryType: text.queryType,
			IntervalStart: start, IntervalEnd: end, Calls: a.calls, Total: a.total.distribution(),
			Compilation: a.compilation.distribution(), Execution: a.execution.distribution(),
			QueuedOverload: a.overload.distribution(), Throttled: a.throttled})
	}
	slices.SortFunc(out, func(a, b Aggregate) int {
		return cmp.Or(a.IntervalStart.Compare(b.IntervalStart), strings.Compare(a.Text, b.Text),
			strings.Compare(a.Warehouse, b.Warehouse), strings.Compare(a.Tag, b.Tag))
	})
	return out
}

// dictionary stores each value once.
type dictionary[T comparable] struct {
	values []T
	places map[T]uint32
}

func (d *dictionary[T]) index(v T) uint32 {
	if i, ok := d.places[v]; ok {
		return i
	}
	if d.places == nil {
		d.places = map[T]uint32{}
	}
	i := uint32(len(d.values))
	d.values = append(d.values, v)
	d.places[v] = i
	return i
}

func micros(d time.Duration) uint32 {
	return uint32(min(max(d.Microseconds(), 0), 1<<32-1))
}

func duration(micros uint32) time.Duration { return time.Duration(micros) * time.Microsecond }

func count(n int64) uint32 { return uint32(min(max(n, 0), 1<<32-1)) }
