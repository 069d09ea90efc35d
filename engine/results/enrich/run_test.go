package enrich

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	resultsrecord "github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/target"
)

// record is a run's record in memory: n executions, one each millisecond.
type record struct {
	resultsrecord.Results
	n, warmup int
	service   func(i int) float64
	kept      []string
	dir       string
	keepErr   error
}

func id(i int) (q engine.QueryID) {
	q[0] = 1
	binary.BigEndian.PutUint64(q[8:], uint64(i)*0x9e3779b97f4a7c15) // ids are not in the order of time
	return q
}

func (r *record) QueryRows(_ context.Context, _ string, fn func(*resultsrecord.QueryRows) error) error {
	const group = 1000
	for first := 0; first < r.n; first += group {
		q := &resultsrecord.QueryRows{}
		for i := first; i < min(first+group, r.n); i++ {
			q.IDs, q.Kinds = append(q.IDs, id(i)), append(q.Kinds, engine.Kind(i%2))
			q.Warmup, q.ServiceMs = append(q.Warmup, i < r.warmup), append(q.ServiceMs, r.service(i))
		}
		// One that never reached the server, and a transaction, which has no id of its own.
		q.IDs, q.Kinds = append(q.IDs, engine.QueryID{}, engine.QueryID{}),
			append(q.Kinds, engine.KindInsert, engine.KindTransaction)
		q.Warmup, q.ServiceMs = append(q.Warmup, false, false), append(q.ServiceMs, 0, 0)
		if err := fn(q); err != nil {
			return err
		}
	}
	return nil
}

func (r *record) Enriched(_ context.Context, _ string, fn func(*engine.EnrichedExecution) error) (int, error) {
	for _, path := range r.kept {
		f, err := resultsrecord.OpenFile(path)
		if err != nil {
			return 0, err
		}
		if err := errors.Join(resultsrecord.ReadEnrichment(f, filepath.Base(path), fn), f.Close()); err != nil {
			return 0, err
		}
	}
	return len(r.kept), nil
}

func (r *record) keep(_ context.Context, a engine.Artifact, path string) error {
	if r.keepErr != nil {
		return r.keepErr
	}
	if want := resultsrecord.EnrichmentName(len(r.kept) + 1); a.Name != want || a.Kind != resultsrecord.KindEnrichment ||
		filepath.Base(path) != want {
		return errors.New("another name than " + want)
	}
	if size, sum, err := resultsrecord.Checksum(path); err != nil || size != a.SizeBytes || sum != a.SHA256 {
		return errors.New("the checksum differs")
	}
	r.kept = append(r.kept, path)
	return nil
}

var base = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// account is a history that lags and samples. It has others' executions too.
type account struct {
	n        int
	clock    *fakeClock
	lag      time.Duration
	shows    func(i int) bool
	pageSize int
	pages    int
	fail     func(page int) error
	others   int // rows of others beside each one of ours
}

func (a *account) PageSize() int { return a.pageSize }

func (a *account) Page(_ context.Context, from, to time.Time, row func(*engine.EnrichedExecution) error) error {
	a.pages++
	if a.fail != nil {
		if err := a.fail(a.pages); err != nil {
			return err
		}
	}
	visible := a.clock.now.Add(-a.lag)
	rows := 0
	last := min(a.n-1, int(to.Sub(base)/time.Millisecond), int(visible.Sub(base)/time.Millisecond))
	for i := last; i >= 0 && rows < a.pageSize; i-- {
		ended := base.Add(time.Duration(i) * time.Millisecond)
		if ended.Before(from) {
			break
		}
		for range a.others {
			if rows++; rows > a.pageSize {
				return nil
			}
			if err := row(&engine.EnrichedExecution{QueryID: engine.QueryID{9}, EndedAt: engine.At(ended)}); err != nil {
				return err
			}
		}
		if a.shows != nil && !a.shows(i) {
			continue
		}
		if rows++; rows > a.pageSize {
			return nil
		}
		total := float64(2 + i%5)
		if err := row(&engine.EnrichedExecution{QueryID: id(i), EndedAt: engine.At(ended), ServerMs: total, CompilationMs: 1,
			ExecutionMs: total - 1, QueuedOverloadMs: 0, Status: "SUCCESS", Cluster: 1}); err != nil {
			return err
		}
	}
	return nil
}

type fakeClock struct {
	now    time.Time
	onWait func(time.Time) error
}

func (c *fakeClock) Now() time.Time { return c.now }
func (c *fakeClock) Wait(_ context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	if c.onWait != nil {
		return c.onWait(c.now)
	}
	return nil
}

func setup(t testing.TB, n int) (*record, *account, Job) {
	clock := &fakeClock{now: base.Add(time.Duration(n)*time.Millisecond + time.Second)}
	r := &record{n: n, warmup: n / 10, service: func(i int) float64 { return float64(2+i%5) + 0.5 }, dir: t.TempDir()}
	a := &account{n: n, clock: clock, pageSize: 100}
	return r, a, Job{
		RunID:     "run-1",
		From:      base.Add(-time.Minute),
		To:        clock.now.Add(time.Minute),
		Policy:    DefaultPolicy(),
		Connect:   func(context.Context) (History, error) { return a, nil },
		Results:   r,
		Dir:       r.dir,
		StorePart: r.keep,
		Clock:     clock,
	}
}

func run(t *testing.T, j Job) engine.Enrichment {
	t.Helper()
	e, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEveryExecutionIsFound(t *testing.T) {
	r, a, j := setup(t, 5000)
	e := run(t, j)
	if e.Status != engine.EnrichmentCompleted || *e.Ratio != 1 || e.Matched != 5000 || e.WithoutID != 5 || e.Polls != 1 ||
		e.Retryable {
		t.Fatalf("%+v", e)
	}
	if a.pages > 55 {
		t.Fatalf("%d pages for 50", a.pages)
	}
	for _, kind := range []engine.Kind{engine.KindPointLookup, engine.KindRangeScan} {
		k := e.ByKind[kind]
		if k.Executions != 2500 || k.Matched != 2500 || k.Ratio != 1 || k.Figures.Matched != 2250 {
			t.Fatalf("%s: %+v", kind, k)
		}
	}
	f := e.Total
	if f.Matched != 4500 || f.ServerMs.P50 != 4 || f.ClientMs.P50 != 4.5 || f.ServerMs.Max != 6 || f.ClientMs.Max != 6.5 {
		t.Fatalf("figures without the warm-up: %+v", f)
	}
	s := f.Split
	if sum := s.Compilation + s.Queued + s.Blocked + s.Execution + s.Other + s.Overhead; math.Abs(
		sum-f.ClientMs.Avg) > 1e-9 || math.Abs(s.Overhead-0.5) > 1e-9 || s.Compilation != 1 {
		t.Fatalf("the parts %+v are %g, the mean is %g", s, sum, f.ClientMs.Avg)
	}
	seen := map[engine.QueryID]bool{}
	last, err := r.Enriched(t.Context(), "", func(row *engine.EnrichedExecution) error {
		if seen[row.QueryID] || row.OverheadMs != 0.5 || row.ClientMs != row.ServerMs+0.5 || row.Status != "SUCCESS" ||
			row.Cluster != 1 {
			t.Fatalf("row %+v", row)
		}
		seen[row.QueryID] = true
		return nil
	})
	if err != nil || last != 1 || len(seen) != 5000 {
		t.Fatalf("%d rows in %d parts: %v", len(seen), last, err)
	}
}

func TestALaggingHistoryIsPolledAgain(t *testing.T) {
	r, a, j := setup(t, 2000)
	a.lag = 32 * time.Second
	e := run(t, j)
	if e.Status != engine.EnrichmentCompleted || e.Polls != 5 || len(r.kept) != 2 {
		t.Fatalf("%d polls, %d parts, %+v", e.Polls, len(r.kept), e)
	}
}

func TestASamplingHistoryEndsEarlyOrLate(t *testing.T) {
	_, a, j := setup(t, 2000)
	a.shows = func(i int) bool { return i%10 < 7 }
	if e := run(t, j); e.Status != engine.EnrichmentPartial || e.Polls != 4 || *e.Ratio != 0.7 || !e.Retryable {
		t.Fatalf("%+v", e)
	}
	_, a, j = setup(t, 2000)
	a.shows = func(i int) bool { return i%100 == 0 }
	if e := run(t, j); e.Status != engine.EnrichmentPartial || e.Polls != 25 || e.Matched != 20 {
		t.Fatalf("%+v", e)
	}
}

// TestAHistoryThatNeverShowsOurQueries is asked until its time is over, and may be asked again.
func TestAHistoryThatNeverShowsOurQueries(t *testing.T) {
	r, a, j := setup(t, 2000)
	a.shows = func(int) bool { return false }
	if e := run(t, j); e.Status != engine.EnrichmentPartial || e.Matched != 0 || e.Polls != 25 || !e.Retryable ||
		len(r.kept) != 0 {
		t.Fatalf("%d parts, %+v", len(r.kept), e)
	}
}

// TestItGoesOnWhereItStopped interrupts a job and repeats it.
func TestItGoesOnWhereItStopped(t *testing.T) {
	r, a, j := setup(t, 3000)
	ctx, cancel := context.WithCancel(t.Context())
	a.fail = func(page int) error {
		if page == 12 {
			cancel()
			return ctx.Err()
		}
		return nil
	}
	if e, err := Run(ctx, j); !errors.Is(err, context.Canceled) || e.Status != engine.EnrichmentRunning ||
		len(r.kept) != 1 {
		t.Fatalf("%v, %+v", err, e)
	}
	a.fail = nil
	e := run(t, j)
	if e.Status != engine.EnrichmentCompleted || e.Matched != 3000 || len(r.kept) != 2 || e.Total.Matched != 2700 {
		t.Fatalf("%d parts, %+v", len(r.kept), e)
	}
	seen := map[engine.QueryID]int{}
	_, _ = r.Enriched(t.Context(), "", func(row *engine.EnrichedExecution) error { seen[row.QueryID]++; return nil })
	for q, n := range seen {
		if n != 1 {
			t.Fatalf("%s is there %d times", q, n)
		}
	}
	if e := run(t, j); e.Status != engine.EnrichmentCompleted || e.Polls != 0 || e.Total.Matched != 2700 ||
		len(r.kept) != 2 {
		t.Fatalf("all is there already: %+v", e)
	}
}

func TestErrorsOfTheHistory(t *testing.T) {
	away := errors.New("connection reset")
	_, a, j := setup(t, 1000)
	a.fail = func(page int) error {
		if page == 1 {
			return away
		}
		return nil
	}
	if e := run(t, j); e.Status != engine.EnrichmentCompleted || e.Polls != 2 {
		t.Fatalf("one failed poll: %+v", e)
	}
	_, a, j = setup(t, 1000)
	a.fail = func(page int) error {
		if page > 4 {
			return away
		}
		return nil
	}
	if e := run(t, j); e.Status != engine.EnrichmentFailed || e.Polls != 3 || e.Matched == 0 || e.Total == nil ||
		!e.Retryable {
		t.Fatalf("away for good: %+v", e)
	}
	_, a, j = setup(t, 1000)
	a.fail = func(int) error { return away }
	j.Permanent = func(error) (string, bool) { return "no privilege", true }
	if e := run(t, j); e.Status != engine.EnrichmentFailed || e.Polls != 1 ||
		e.Reason != "The history could not be read: no privilege" {
		t.Fatalf("no privilege: %+v", e)
	}
}

func TestAPartThatCannotBeStoredIsAnError(t *testing.T) {
	r, _, j := setup(t, 1000)
	r.keepErr = errors.New("disk full")
	if e, err := Run(t.Context(), j); !errors.Is(err, r.keepErr) {
		t.Fatalf("%v, %+v", err, e)
	}
}

func TestOthersFillThePages(t *testing.T) {
	_, a, j := setup(t, 1000)
	a.others = 3
	e := run(t, j)
	// 12 pages of 100 rows hold 4000 rows of everyone: the limit of pages is for our own.
	if e.Matched == 0 || e.Matched >= 1000 || len(e.Notes) != 1 {
		t.Fatalf("%+v", e)
	}
}

func TestWithoutQueryIDsThereIsNothingToDo(t *testing.T) {
	_, a, j := setup(t, 0)
	if e := run(t, j); e.Status != engine.EnrichmentSkipped || a.pages != 0 {
		t.Fatalf("%+v", e)
	}
}

func TestATargetMayKeepNoHistory(t *testing.T) {
	_, _, j := setup(t, 10)
	calls := 0
	j.Connect = func(context.Context) (History, error) { calls++; return nil, &SkipError{"There is none."} }
	if e := run(t, j); e.Status != engine.EnrichmentSkipped || e.Reason != "There is none." || e.Retryable || calls != 1 {
		t.Fatalf("%+v", e)
	}
	_, a, j := setup(t, 10)
	j.Connect = func(context.Context) (History, error) {
		if calls++; calls < 4 {
			return nil, errors.New("refused")
		}
		return a, nil
	}
	if e := run(t, j); e.Status != engine.EnrichmentCompleted || e.Polls != 3 {
		t.Fatalf("%+v", e)
	}
}

func TestProgressIsACopy(t *testing.T) {
	_, a, j := setup(t, 2000)
	a.lag = 15 * time.Second
	var told []engine.Enrichment
	j.Progress = func(e engine.Enrichment) { told = append(told, e) }
	run(t, j)
	if len(told) < 20 || told[0].Matched != 0 || told[0].ByKind[engine.KindPointLookup].Matched != 0 {
		t.Fatalf("%d states, the first %+v", len(told), told[0])
	}
	waits := slices.ContainsFunc(told, func(e engine.Enrichment) bool { return !e.NextPollAt.IsZero() })
	if last := told[len(told)-1]; last.Status != engine.EnrichmentCompleted || !last.NextPollAt.IsZero() || !waits {
		t.Fatalf("the last %+v", last)
	}
}

// sqlDB answers queries from a table of rows.
type sqlDB struct {
	target.Database
	columns []string
	rows    [][]any
	args    []any
}

func (d *sqlDB) Query(_ context.Context, _ string, args ...any) (*target.ResultSet, error) {
	d.args = args
	return &target.ResultSet{Columns: d.columns, Rows: d.rows}, nil
}

func TestAPageIsReadByNames(t *testing.T) {
	q := id(7).String()
	db := &sqlDB{columns: []string{"total_elapsed_time", "Query_ID", "END_TIME", "COMPILATION_TIME",
		"QUEUED_OVERLOAD_TIME", "CLUSTER_NUMBER"},
		rows: [][]any{{"12", q, base, int64(3), 2.0, "2"}, {nil, "not an id", nil, nil, nil, nil},
			{int64(1), q, "2026-11-21 12:00:00.001 +0000", nil, nil, nil}}}
	var got []engine.EnrichedExecution
	ahead := int64(0)
	page := func() error {
		got = nil
		return NewHistory(db, plugin.EnrichPlan{Page: "SELECT", ClockOffsetMs: ahead}).Page(t.Context(), base,
			base.Add(time.Second), func(e *engine.EnrichedExecution) error {
				got = append(got, *e)
				return nil
			})
	}
	if err := page(); err != nil {
		t.Fatal(err)
	}
	want := []engine.EnrichedExecution{{QueryID: id(7), EndedAt: engine.At(base), ServerMs: 12, CompilationMs: 3,
		QueuedOverloadMs: 2, Cluster: 2}, {},
		{QueryID: id(7), EndedAt: engine.At(base.Add(time.Millisecond)), ServerMs: 1}}
	if !slices.Equal(got, want) {
		t.Fatalf("got %+v", got)
	}
	if db.args[0] != "2026-11-21 12:00:00.000 +00:00" || db.args[1] != "2026-11-21 12:00:01.000 +00:00" {
		t.Fatalf("asked for %v", db.args)
	}
	ahead = 3_600_000 // an hour
	if err := page(); err != nil || db.args[0] != "2026-11-21 13:00:00.000 +00:00" ||
		!got[0].EndedAt.Equal(base.Add(-time.Hour)) {
		t.Fatalf("a clock that is ahead: %v, %v, %+v", err, db.args, got[0])
	}
	db.rows = [][]any{{"twelve", q, base, nil, nil, nil}}
	if err := page(); err == nil {
		t.Fatal("a text was taken for a number")
	}
	db.columns = []string{"a", "b", "c", "d", "e", "f"}
	if err := page(); err == nil {
		t.Fatal("columns are missing")
	}
}

// BenchmarkEnrich joins a million executions with their history, pages of 10 000
// rows, and writes the part. It reports the peak of the heap.
func BenchmarkEnrich(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		b.StopTimer()
		r, a, j := setup(b, n)
		a.pageSize = 10_000
		order := rand.New(rand.NewPCG(1, 2))
		r.service = func(int) float64 { return 2 + order.Float64()*40 }
		runtime.GC()
		var most uint64
		j.Progress = func(engine.Enrichment) {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
		}
		b.StartTimer()
		e, err := Run(b.Context(), j)
		if err != nil || e.Matched != n {
			b.Fatalf("%v: %+v", err, e)
		}
		b.ReportMetric(float64(most)/(1<<20), "MB-heap")
	}
}

// TestAnEnrichmentEndsAtTheReserve: what was matched before the disk had no room is kept.
func TestAnEnrichmentEndsAtTheReserve(t *testing.T) {
	r, _, j := setup(t, 5000)
	asked, full := 0, errors.New("the disk has 1 MB left")
	j.CheckDiskSpace = func() error {
		if asked++; asked > 3 {
			return full
		}
		return nil
	}
	e, err := Run(t.Context(), j)
	if !errors.Is(err, full) || e.Matched == 0 || e.Matched >= 5000 || len(r.kept) != 1 || e.Total == nil ||
		e.Total.Matched == 0 {
		t.Errorf("%+v with %d parts, %v", e, len(r.kept), err)
	}
}
