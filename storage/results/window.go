package results

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// window says which executions count in a rate, and over which time.
type window struct {
	from, to int64 // ns; to is MaxInt64 when only the executions can tell
	// Of a record that lost parts, what is left covers these times.
	partial bool
	covered []interval
	// connections were asked for at most, 0 for unknown; fewer at times where they vary.
	connections int
	varies      bool
	// lostEnd: nobody told the run workers that the measurement ends.
	lostEnd bool
}

type interval struct{ from, to int64 }

// coverageEdge is how much time beside a lost part its neighbours may hold in part only: records
// of a connection reach the file up to a second after those of another.
const coverageEdge = time.Second

func newWindow(ctx context.Context, w engine.Window, parts []part, workerID string) (*window, error) {
	out := &window{from: math.MinInt64, to: math.MaxInt64, connections: w.Connections, varies: w.Varies,
		lostEnd: w.LostEnd}
	// Whole milliseconds, as times are written: whoever reckons from the record with the times that
	// the figures name finds the same.
	if !w.From.IsZero() {
		out.from = w.From.Truncate(time.Millisecond).UnixNano()
	}
	if !w.To.IsZero() {
		out.to = w.To.Truncate(time.Millisecond).UnixNano()
	}
	if !w.Partial {
		return out, nil
	}
	out.partial = true
	workers := w.Workers
	if workerID != "" {
		workers = []string{workerID}
	}
	var err error
	out.covered, err = coverage(ctx, parts, workers, *out)
	return out, err
}

// rates reports whether an execution that ended then counts in a rate.
func (w *window) rates(ended int64) bool {
	if !w.partial {
		return ended <= w.to
	}
	for _, c := range w.covered {
		if ended > c.from && ended <= c.to {
			return true
		}
	}
	return false
}

// carries reports whether an execution of the warm-up that ended then counts in the rates of the measurement. Where
// nothing tells when it began none does.
func (w *window) carries(ended int64) bool { return w.from != math.MinInt64 && ended > w.from }

// held is for how long of the measurement an execution went on that was begun before it.
func (w *window) held(due, ended int64) int64 {
	if w.from == math.MinInt64 || due >= w.from {
		return 0
	}
	return min(ended, w.to) - w.from
}

// describe says in the figures what was measured.
func (w *window) describe(f *engine.Figures, total *partSums) {
	if total.maxEnd <= total.minDue {
		total.minDue, total.maxEnd = 0, 0
	} else {
		f.LastEnded = engine.At(time.Unix(0, total.maxEnd))
	}
	from, to := w.from, w.to
	if from == math.MinInt64 {
		from = total.minDue
	}
	if to == math.MaxInt64 {
		to = total.maxEnd
		if !total.carries() {
			from = total.minDue
		}
	}
	f.DurationSeconds = max(time.Duration(to-from).Seconds(), 0)
	switch ms := int64(time.Millisecond); {
	case w.to == math.MaxInt64 && to > from:
		// A load that ended by itself was measured from its first execution to its last, whole milliseconds as they are
		// stored: none of them is outside.
		f.MeasuredFrom, f.MeasuredTo = engine.At(time.Unix(0, from/ms*ms)), engine.At(time.Unix(0, (to+ms-1)/ms*ms))
	case w.to != math.MaxInt64 && w.from != math.MinInt64:
		f.MeasuredFrom, f.MeasuredTo = engine.At(time.Unix(0, from)), engine.At(time.Unix(0, to))
		f.DrainSeconds = max(time.Duration(total.maxEnd-to).Seconds(), 0)
	}
	if !w.partial {
		return
	}
	var covered int64
	for _, c := range w.covered {
		covered += c.to - c.from
	}
	if f.RecordPartial = true; covered > 0 {
		seconds := time.Duration(covered).Seconds()
		f.DurationSeconds, f.CoveredSeconds = seconds, &seconds
	}
}

// coverage returns when the parts that are left hold the executions of all
// workers: of each from its first part to its last, without the edges at which one is missing.
func coverage(ctx context.Context, of []part, workers []string, w window) ([]interval, error) {
	parts := map[string][]numberedPart{}
	for _, at := range of {
		p, err := at.open(ctx)
		if err != nil {
			return nil, fmt.Errorf("opening %s: %w", at.name, err)
		}
		id := p.Artifact().WorkerID
		span, err := partEndSpan(ctx, p)
		_ = p.Close() // only read
		if err != nil {
			return nil, fmt.Errorf("reading executions from %s: %w", at.name, err)
		}
		parts[id] = append(parts[id], numberedPart{partNumber(at.name), span})
	}
	covered := []interval{{max(w.from, 0), w.to}}
	for _, id := range workers {
		covered = intersect(covered, spans(parts[id]))
	}
	return covered, nil
}

// partEndSpan is from when to when executions of a part ended. When they began says
// less: one may have taken long.
func partEndSpan(ctx context.Context, p *record.Part) (span interval, err error) {
	span = interval{math.MaxInt64, math.MinInt64}
	var c record.Columns
	for _, err := range c.Scan(ctx, p, record.ColDueAt, record.ColAppElapsedMs) {
		if err != nil {
			return span, err
		}
		for i, at := range c.Due {
			at += record.Nanoseconds(c.Elapsed[i])
			span.from, span.to = min(span.from, at), max(span.to, at)
		}
	}
	return span, nil
}

// firstPart is the number of a run worker's first part.
const firstPart = 1

type numberedPart struct {
	number int
	interval
}

// partNumber is the number at the end of a part's name, -1 when it has none.
func partNumber(name string) int {
	name = strings.TrimSuffix(name, ".parquet")
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil {
		return -1
	}
	return n
}

// spans joins parts whose numbers follow each other.
func spans(parts []numberedPart) []interval {
	slices.SortFunc(parts, func(a, b numberedPart) int { return a.number - b.number })
	var out []interval
	for i, p := range parts {
		if p.number == firstPart {
			p.from = math.MinInt64 // nothing was before
		}
		if i > 0 && p.number == parts[i-1].number+1 {
			last := &out[len(out)-1]
			last.to = max(last.to, p.to)
			continue
		}
		if p.number > firstPart {
			p.from += int64(coverageEdge)
		}
		out = append(out, p.interval)
	}
	for i := range out {
		out[i].to -= int64(coverageEdge)
	}
	return slices.DeleteFunc(out, func(s interval) bool { return s.to <= s.from })
}

func intersect(a, b []interval) (out []interval) {
	for _, x := range a {
		for _, y := range b {
			if c := (interval{max(x.from, y.from), min(x.to, y.to)}); c.to > c.from {
				out = append(out, c)
			}
		}
	}
	return out
}

// endTimes follows when executions ended, closely enough to find the times in which
// none did: of each bin the first and the last end, and how many there were.
type endTimes struct {
	first, last []uint32 // ns since the beginning of the bin
	count       []uint32
	// How many ended with and without an answer, and how many of them failed.
	outcomes
	statements statementOutcomes
	fine       fineTimes
	// The time of the operations that ended, in ms, and of those of them that were not answered.
	spent, lost []float32
}

// binLength is short against the stalls that are looked for.
const (
	binLength = int64(250 * time.Millisecond)
	noEndTime = math.MaxUint32
)

// newEndTimes is nil where the measurement has no bounds, or lost executions.
func newEndTimes(w *window) *endTimes {
	if w.partial || w.from == math.MinInt64 || w.to == math.MaxInt64 || w.to <= w.from {
		return nil
	}
	n := (w.to-w.from)/binLength + 1
	e := &endTimes{
		outcomes:   newOutcomes(w.from, w.to, math.MaxInt64),
		statements: newStatementOutcomes(w.from, w.to),
		first:      make([]uint32, n),
		last:       make([]uint32, n),
		count:      make([]uint32, n),
		fine:       newFineTimes(w.to - w.from),
		spent:      make([]float32, n),
		lost:       make([]float32, n),
	}
	for i := range e.first {
		e.first[i] = noEndTime
	}
	return e
}

// add counts an operation that was answered then, after ms.
func (e *endTimes) add(ended int64, ms float64) {
	if e == nil || ended < e.from || ended > e.to {
		return
	}
	at := ended - e.from
	i, in := at/binLength, uint32(at%binLength)
	e.first[i], e.last[i] = min(e.first[i], in), max(e.last[i], in)
	e.count[i]++
	e.spent[i] += float32(ms)
	e.fine.add(at, ms)
}

// addOutcome tells of an operation that ended then, whether or not it was answered; of is its statement, nil for one
// that is not told apart.
func (e *endTimes) addOutcome(of *outcomes, ended int64, success bool) {
	if e == nil || ended < e.from || ended > e.to {
		return
	}
	e.outcomes.add(ended, success)
	if of != nil {
		of.add(ended, success)
	}
}

// addUnanswered tells of an operation that was given up then, without an answer.
func (e *endTimes) addUnanswered(ended int64, ms float64) {
	if e == nil || ended < e.from || ended > e.to {
		return
	}
	i := (ended - e.from) / binLength
	e.spent[i] += float32(ms)
	e.lost[i] += float32(ms)
}

func (e *endTimes) merge(o *endTimes) {
	if e == nil {
		return
	}
	e.fine.merge(o.fine)
	e.outcomes.merge(&o.outcomes)
	e.statements.merge(o.statements)
	for i := range e.first {
		e.first[i], e.last[i] = min(e.first[i], o.first[i]), max(e.last[i], o.last[i])
		e.count[i] += o.count[i]
		e.spent[i] += o.spent[i]
		e.lost[i] += o.lost[i]
	}
}

// total is how many ended.
func (e *endTimes) total() (n float64) {
	for _, c := range e.count {
		n += float64(c)
	}
	return n
}

// paceWindow is how long before and after a gap the pace is taken where it varies.
const paceWindow = int64(5 * time.Second)

// pace is how many ended in a second beside a gap: before it or after it, whichever is
// slower. It is 0 when nothing is known.
func (e *endTimes) pace(gap interval) float64 {
	minimum := 0.0
	for _, side := range []interval{{gap.from - paceWindow, gap.from}, {gap.to, gap.to + paceWindow}} {
		var ended, bins float64
		for i := max(0, (side.from-e.from+binLength-1)/binLength); i < int64(len(e.count)); i++ {
			if begin := e.from + i*binLength; begin+binLength > min(side.to, e.to) {
				break
			}
			ended += float64(e.count[i])
			bins++
		}
		if bins > 0 {
			if pace := ended / (bins * time.Duration(binLength).Seconds()); minimum == 0 || pace < minimum {
				minimum = pace
			}
		}
	}
	return minimum
}

// gaps are the times of at least that length in which nothing ended.
func (e *endTimes) gaps(minimum time.Duration) (out []interval) {
	if e == nil {
		return nil
	}
	last := e.from
	note := func(until int64) {
		if until-last >= int64(minimum) {
			out = append(out, interval{last, until})
		}
	}
	for i := range e.first {
		if e.first[i] == noEndTime {
			continue
		}
		begin := e.from + int64(i)*binLength
		note(begin + int64(e.first[i]))
		last = begin + int64(e.last[i])
	}
	note(e.to)
	return out
}
