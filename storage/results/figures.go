package results

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// FiguresIn implements record.Results. A run without parts has zero figures.
//
// Where the window has no end, the measurement starts when the first execution outside the
// warm-up was due (which in a closed loop is when it started) and ends when the last
// one ended; rates are taken over that time. With a workerID both are that run worker's own.
func (f *Results) FiguresIn(ctx context.Context, runID, workerID string, w engine.Window) (*engine.Figures, error) {
	s, err := f.scan(ctx, runID, workerID, w)
	if err != nil {
		return nil, err
	}
	return s.parent(ctx)
}

// FiguresByWorker implements record.Results. A run worker without parts has zero figures.
func (f *Results) FiguresByWorker(ctx context.Context, runID string, workerIDs []string,
	w engine.Window) (run *engine.Figures, workers []*engine.Figures, err error) {
	s, err := f.scan(ctx, runID, "", w)
	if err != nil {
		return nil, nil, err
	}
	if run, err = s.parent(ctx); err != nil {
		return nil, nil, err
	}
	// Bins of when something ended are kept once, and not for each of many run workers.
	s.ends = nil
	for _, id := range workerIDs {
		var own []*partSums
		if sum := s.workers[id]; sum != nil {
			own = append(own, sum)
		}
		figures, err := s.figures(ctx, own)
		if err != nil {
			return nil, nil, err
		}
		workers = append(workers, figures)
	}
	return run, workers, nil
}

// kindSums are the sums of one kind, of the measurement only.
type kindSums struct {
	distribution
	rows, errors int64
	// rated ended in time to count in a rate, carried did so and were due in the warm-up, empty succeeded without a row.
	rated, carried, empty int64
}

// partSums is what one pass over a run worker's parts collects.
type partSums struct {
	recorded, warmup int64
	// held is for how long of the measurement connections were busy with operations of the warm-up, in ns, longestHeld
	// with one of them at most.
	held, longestHeld int64
	// inside counts the statements of transactions.
	inside, retries, rolledBack int64
	statements                  map[statementKey]*statementSums
	kinds                       [engine.NumKinds]kindSums
	errors                      map[engine.ExecutionError]int64
	minDue, maxEnd              int64
	// after are the sums of what was begun after the measurement until that is settled, afterCount operations, the last at
	// lastDue; overran are those that count in nothing.
	after                        *partSums
	afterCount, lastDue, overran int64
	slowest                      slowestList
	// split adds up where the time went; service and lag are of an open loop only.
	split        engine.LatencySplit
	service, lag distribution
}

// carries reports whether any execution of the warm-up ended in the measurement.
func (s *partSums) carries() bool {
	return slices.ContainsFunc(s.kinds[:], func(k kindSums) bool { return k.carried > 0 })
}

func newSums() *partSums {
	return &partSums{statements: map[statementKey]*statementSums{}, errors: map[engine.ExecutionError]int64{},
		minDue: math.MaxInt64, maxEnd: math.MinInt64}
}

func (s *partSums) merge(o *partSums) {
	s.recorded += o.recorded
	s.warmup += o.warmup
	s.held, s.longestHeld = s.held+o.held, max(s.longestHeld, o.longestHeld)
	s.inside += o.inside
	s.retries += o.retries
	s.split.Add(o.split)
	s.service.pieces = append(s.service.pieces, o.service.pieces...)
	s.lag.pieces = append(s.lag.pieces, o.lag.pieces...)
	s.rolledBack += o.rolledBack
	mergeStatements(s.statements, o.statements)
	for k := range s.kinds {
		s.kinds[k].pieces = append(s.kinds[k].pieces, o.kinds[k].pieces...)
		s.kinds[k].rows += o.kinds[k].rows
		s.kinds[k].errors += o.kinds[k].errors
		s.kinds[k].rated += o.kinds[k].rated
		s.kinds[k].carried += o.kinds[k].carried
		s.kinds[k].empty += o.kinds[k].empty
	}
	for e, n := range o.errors {
		s.errors[e] += n
	}
	s.minDue, s.maxEnd = min(s.minDue, o.minDue), max(s.maxEnd, o.maxEnd)
	s.afterCount, s.lastDue, s.overran = s.afterCount+o.afterCount, max(s.lastDue, o.lastDue), s.overran+o.overran
	if o.after != nil {
		if s.after == nil {
			s.after = newSums()
		}
		s.after.merge(o.after)
	}
	for _, c := range o.slowest {
		s.slowest.add(c)
	}
}

// figuresScan is the state of one computation: the parts and the sums per run worker.
// Parts are opened one at a time, since a long run has many.
type figuresScan struct {
	parts   []part
	workers map[string]*partSums
	window  *window
	ends    *endTimes
	// answered is how many operations were, by the ends.
	answered float64
}

func (f *Results) scan(ctx context.Context, runID, workerID string, over engine.Window) (*figuresScan, error) {
	parts, err := f.executionParts(ctx, runID)
	if err != nil {
		return nil, err
	}
	s := &figuresScan{parts: parts, workers: map[string]*partSums{}}
	if s.window, err = newWindow(ctx, over, parts, workerID); err != nil {
		return nil, err
	}
	s.ends = newEndTimes(s.window)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		next  atomic.Int64
		mu    sync.Mutex
		group sync.WaitGroup
	)
	for range max(1, min(runtime.GOMAXPROCS(0), len(parts), 4)) {
		group.Go(func() {
			r := &reader{window: s.window, ends: newEndTimes(s.window)}
			mine := map[string]*partSums{}
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(parts) {
					break
				}
				if err := r.readPart(ctx, mine, parts[i], i, workerID); err != nil {
					cancel(fmt.Errorf("reading executions from %s: %w", parts[i].name, err))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			s.ends.merge(r.ends)
			for id, sum := range mine {
				if s.workers[id] == nil {
					s.workers[id] = newSums()
				}
				s.workers[id].merge(sum)
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, sum := range s.workers {
		sum.settle(s.window)
	}
	return s, nil
}

// reader holds the column buffers of one goroutine.
type reader struct {
	record.Columns
	window *window
	ends   *endTimes
	// late: what is added was begun after the measurement, and nothing of it is carried over into it.
	late bool
}

// readPart adds a part, the index-th of the run, to the sums of its run worker;
// parts of others than workerID are skipped.
func (r *reader) readPart(ctx context.Context, workers map[string]*partSums, at part, index int,
	workerID string) error {
	p, err := at.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }() // only read
	id := p.Artifact().WorkerID
	if workerID != "" && id != workerID {
		return nil
	}
	if workers[id] == nil {
		workers[id] = newSums()
	}
	for g, err := range r.Scan(ctx, p, figureColumns...) {
		if err != nil {
			return err
		}
		if err := r.addGroup(workers[id], p, index, g); err != nil {
			return err
		}
	}
	return nil
}

// figureColumns are those of all executions; what the parts of latencies and errors need is read where there are some.
var figureColumns = []record.Column{record.ColAppElapsedMs, record.ColDueAt, record.ColRows, record.ColWarmup,
	record.ColSuccess, record.ColKind, record.ColStatementID, record.ColPosition, record.ColRetries,
	record.ColRolledBack, record.ColDecodeNs}

// parseKinds reads names of kinds.
func parseKinds(names []string) ([]engine.Kind, error) {
	kinds := make([]engine.Kind, len(names))
	for i, name := range names {
		var err error
		if kinds[i], err = engine.ParseKind(name); err != nil {
			return nil, err
		}
	}
	return kinds, nil
}

// addWarmup counts an operation of the warm-up that held its connection for so long of the measurement; late is what adds
// operations that were counted before.
func (s *partSums) addWarmup(held int64, late bool) {
	s.warmup++
	if held > 0 && !late {
		s.held, s.longestHeld = s.held+held, max(s.longestHeld, held)
	}
}

// add adds one row group to the sums.
func (r *reader) add(s *partSums, p *record.Part, part, g int) error {
	kinds, err := parseKinds(r.Kind.Values)
	if err != nil {
		return err
	}
	n := r.N
	due, rows, warmup, success, kind := r.Due[:n], r.Rows[:n], r.Warmup[:n], r.Success[:n], r.Kind.Index[:n]
	statement, position, retries, rolledBack := r.Statement.Index[:n], r.Position[:n], r.Retries[:n], r.RolledBack[:n]
	byStatement := newStatementTable(s.statements, r.Statement.Values, kinds)
	outcomesOf := r.ends.outcomeTable(r.Statement.Values, kinds)
	threshold := s.slowest.threshold()
	failures := false
	for i, ms := range r.Elapsed {
		inside := position[i] != 0
		ended := due[i] + record.Nanoseconds(ms)
		rated := r.window.rates(ended)
		switch {
		case !warmup[i]:
			byStatement.of(statement[i], kind[i], inside).add(ms, rows[i], success[i], retries[i], rated)
		case !r.late && r.window.carries(ended) && rated:
			byStatement.of(statement[i], kind[i], inside).carried++
			if !inside {
				s.kinds[kinds[kind[i]]].carried++
			}
		}
		if inside {
			s.inside++
			continue
		}
		s.recorded++
		if warmup[i] {
			s.addWarmup(r.window.held(due[i], ended), r.late)
			continue
		}
		r.ends.addOutcome(outcomesOf.of(statement[i], kind[i]), ended, success[i])
		k := &s.kinds[kinds[kind[i]]]
		k.rows += int64(rows[i])
		s.retries += int64(retries[i])
		if rolledBack[i] {
			s.rolledBack++
		}
		if rated {
			k.rated++
		}
		if !success[i] {
			k.errors++
			failures = true
		} else if rows[i] == 0 {
			k.empty++
		}
		s.minDue, s.maxEnd = min(s.minDue, due[i]), max(s.maxEnd, ended)
		if success[i] {
			r.ends.add(ended, ms)
		}
		if ms >= threshold {
			s.slowest.add(slowExecution{ms, part, g, i})
			threshold = s.slowest.threshold()
		}
	}
	byStatement.finish(part, g, func(k engine.Kind, p sortedPiece) { s.kinds[k].pieces = append(s.kinds[k].pieces, p) })
	if err := r.readSplit(s, p, part, g); err != nil {
		return err
	}
	if failures {
		return r.countErrors(s, p, g)
	}
	return nil
}

// readSplit adds the parts of the latencies of a row group, whose elapsed times are read.
func (r *reader) readSplit(s *partSums, p *record.Part, part, g int) error {
	n := r.N
	decode := r.Decode[:n]
	if !p.OpenLoop() {
		for i, ms := range r.Elapsed {
			if !r.Warmup[i] && r.Position[i] == 0 {
				s.split.Count++
				s.split.RoundTrip += record.Nanoseconds(ms) - decode[i]
				s.split.Decode += decode[i]
			}
		}
		return nil
	}
	if err := r.Read(p, g, record.ColScheduleLagMs, record.ColPoolWaitMs); err != nil {
		return err
	}
	lag, wait, warmup, position := r.Lag[:n], r.Wait[:n], r.Warmup[:n], r.Position[:n]
	var service, late []uint64
	for i, ms := range r.Elapsed {
		if warmup[i] || position[i] != 0 {
			continue
		}
		s.split.Add(engine.LatencySplit{Count: 1, Lag: record.Nanoseconds(lag[i]), Wait: record.Nanoseconds(wait[i]),
			RoundTrip: record.Nanoseconds(ms-lag[i]-wait[i]) - decode[i], Decode: decode[i]})
		service = append(service, key(ms-lag[i]-wait[i]))
		late = append(late, key(lag[i]))
	}
	if len(service) > 0 {
		s.service.pieces = append(s.service.pieces, newPiece(service, part, g))
		s.lag.pieces = append(s.lag.pieces, newPiece(late, part, g))
	}
	return nil
}

// countErrors groups the failures of the measurement in a row group.
func (r *reader) countErrors(s *partSums, p *record.Part, group int) error {
	if err := r.Read(p, group, record.ColErrorClass, record.ColErrorCode, record.ColErrorMessage); err != nil {
		return err
	}
	values := [3][]string{r.Class.Values, r.Code.Values, r.Message.Values}
	counts := map[[3]int32]int64{}
	for i, ok := range r.Success {
		if !ok && !r.Warmup[i] && r.Position[i] == 0 {
			counts[[3]int32{r.Class.Index[i], r.Code.Index[i], r.Message.Index[i]}]++
			if class := r.Class.Index[i]; class < 0 || !unanswered(engine.ErrorClass(values[0][class]), r.Elapsed[i]) {
				r.ends.add(r.Due[i]+record.Nanoseconds(r.Elapsed[i]), r.Elapsed[i])
			} else {
				r.ends.addUnanswered(r.Due[i]+record.Nanoseconds(r.Elapsed[i]), r.Elapsed[i])
			}
		}
	}
	for at, n := range counts {
		s.errors[executionError(at, values)] += n
	}
	return nil
}

// lockWaitMs is how long an operation that was refused a lock has waited at least to have been given up
// by the target's own timeout; what may not wait is refused at once.
const lockWaitMs = 100

// unanswered reports whether an operation that failed so got no answer from the target:
// it was given up, or its connection was.
func unanswered(class engine.ErrorClass, ms float64) bool {
	switch class {
	case engine.ErrClassTimeout, engine.ErrClassConnection, engine.ErrClassCancelled:
		return true
	case engine.ErrClassLock:
		return ms >= lockWaitMs
	default:
		return false
	}
}

// executionError resolves the three dictionary indexes of a failed execution.
func executionError(at [3]int32, values [3][]string) engine.ExecutionError {
	var texts [3]string
	for i, index := range at {
		if index >= 0 {
			texts[i] = values[i][index]
		}
	}
	if texts[0] == "" {
		texts[0] = string(engine.ErrClassOther)
	}
	return engine.ExecutionError{Class: engine.ErrorClass(texts[0]), Code: texts[1], Message: texts[2]}
}

func (s *figuresScan) parent(ctx context.Context) (*engine.Figures, error) {
	all := make([]*partSums, 0, len(s.workers))
	for _, sum := range s.workers {
		all = append(all, sum)
	}
	return s.figures(ctx, all)
}

// maxErrorGroups bounds engine.ErrorFigures.Top.
const maxErrorGroups = 20

// figures turns the sums of some run workers into their figures.
func (s *figuresScan) figures(ctx context.Context, of []*partSums) (*engine.Figures, error) {
	total := newSums()
	for _, sum := range of {
		total.merge(sum)
	}
	fig := &engine.Figures{
		ByKind:     map[engine.Kind]*engine.KindFigures{},
		Errors:     engine.ErrorFigures{ByClass: map[engine.ErrorClass]int64{}, Top: []engine.ErrorGroup{}},
		Accounting: engine.Accounting{Recorded: total.recorded, Warmup: total.warmup, Statements: total.inside},
		Retries:    total.retries,
		Overran:    total.overran,
		HeldOver:   engine.HeldOver{Seconds: float64(total.held) / 1e9, LongestSeconds: float64(total.longestHeld) / 1e9},
	}
	s.window.describe(fig, total)
	rate := func(n int64) *float64 {
		if fig.DurationSeconds <= 0 || fig.RecordLost() {
			return nil
		}
		return new(float64(n) / fig.DurationSeconds)
	}
	var all distribution
	rated := int64(0)
	for i := range total.kinds {
		sum, kind := &total.kinds[i], engine.Kind(i)
		fig.CarriedOver += sum.carried
		if len(sum.pieces) == 0 && sum.carried == 0 {
			continue
		}
		sum.order()
		n := sum.count()
		all.pieces = append(all.pieces, sum.pieces...)
		fig.Operations += n
		fig.Errors.Count += sum.errors
		switch {
		case kind.Read():
			fig.Reads += n
		case kind.Write():
			fig.Writes += n
		}
		rated += sum.rated
		fig.ByKind[kind] = &engine.KindFigures{
			Count:     n,
			Errors:    sum.errors,
			QPS:       rate(sum.rated + sum.carried),
			Rows:      sum.rows,
			NoRows:    sum.empty,
			LatencyMs: sum.latency(),

			CarriedOver: sum.carried,
		}
		if !s.window.partial {
			fig.ByKind[kind].FinishedLate = n - sum.rated
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("computing figures: %w", err)
		}
	}
	fig.QPS = rate(rated + fig.CarriedOver)
	if !s.window.partial {
		fig.FinishedLate = fig.Operations - rated
	}
	fig.ByStatement = statementFigures(total.statements, rate, s.window.partial)
	if t := fig.ByKind[engine.KindTransaction]; t != nil && t.Count > 0 {
		fig.Transactions = &engine.TransactionFigures{Count: t.Count, RolledBack: total.rolledBack, Failed: t.Errors,
			Committed: t.Count - t.Errors - total.rolledBack}
	}
	fig.LatencyMs = all.latency()
	fig.Histogram = all.histogram()
	total.service.order()
	total.lag.order()
	fig.ServiceMs, fig.ScheduleLagMs = total.service.latency(), total.lag.latency()
	s.stalls(fig, &all)
	fig.Failing = s.ends.failing()
	fig.Freezes = s.freezes(fig)
	fig.SplitMs = total.split.Mean()
	if fig.Operations > 0 {
		fig.Errors.Rate = new(float64(fig.Errors.Count) / float64(fig.Operations))
	}
	for e, n := range total.errors {
		fig.Errors.ByClass[e.Class] += n
		fig.Errors.Top = append(fig.Errors.Top, engine.ErrorGroup{ExecutionError: e, Count: n})
	}
	slices.SortFunc(fig.Errors.Top, func(a, b engine.ErrorGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Message, b.Message))
	})
	fig.Errors.Top = fig.Errors.Top[:min(len(fig.Errors.Top), maxErrorGroups)]
	var err error
	fig.Slowest, err = s.details(ctx, total.slowest)
	return fig, err
}

// details reads the slowest executions themselves: a second pass over the few
// row groups that hold them.
func (s *figuresScan) details(ctx context.Context, of slowestList) ([]engine.SlowExecution, error) {
	out := make([]engine.SlowExecution, len(of))
	byPart := map[int]map[int][]int{} // part → row group → positions in of
	for i, c := range of {
		if byPart[c.part] == nil {
			byPart[c.part] = map[int][]int{}
		}
		byPart[c.part][c.group] = append(byPart[c.part][c.group], i)
	}
	for part, groups := range byPart {
		p, err := s.parts[part].open(ctx)
		if err != nil {
			return nil, err
		}
		var r rows
		for group, wanted := range groups {
			if err := r.Read(p, group, slowColumns...); err != nil {
				_ = p.Close() // only read
				return nil, fmt.Errorf("reading slowest executions: %w", err)
			}
			for _, i := range wanted {
				out[i] = r.slow(of[i].row)
			}
		}
		_ = p.Close() // only read
	}
	return out, nil
}
