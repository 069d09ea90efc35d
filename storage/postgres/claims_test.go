package postgres_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/storage/embedded"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// durable is a queue on an embedded Postgres as a server has it: what is committed is on the disk.
func durable(t testing.TB, connections int32) (q postgres.RefreshQueue, dsn string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "loadstone-claims-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	pg, err := embedded.Start(t.Context(), embedded.Options{DataDir: dir, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Stop(context.Background()) })
	dsn = pg.DSN(embedded.ControlDatabase)
	if err := schema.Apply(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]string{"synchronous_commit": "on", "fsync": "on"} {
		if got := ask[string](t, dsn, "SHOW "+setting); got != want {
			t.Fatalf("%s is %s", setting, got)
		}
	}
	return queueOf(t, dsn, connections), dsn
}

func queueOf(t testing.TB, dsn string, connections int32) postgres.RefreshQueue {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	q := postgres.RefreshQueue{Pool: pool, Limiter: postgres.NewClaimLimiter()}
	must := func(_ refresh.Table, err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(q.CreateDynamicTable(t.Context(), refresh.Table{Name: "runs", Kind: refresh.Ingest, TargetLagSeconds: 60,
		Mode: refresh.Incremental}))
	for i := range 9 {
		must(q.CreateDynamicTable(t.Context(), refresh.Table{Name: fmt.Sprintf("reader_%d", i), Kind: refresh.SQL,
			Definition: "SELECT", TargetLagSeconds: 60, Mode: refresh.Auto, Sources: []string{"runs"}}))
	}
	return q
}

func ask[T any](t testing.TB, dsn, sql string) (v T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// fill puts jobs into the queue, each a run to take in.
func fill(t testing.TB, q postgres.RefreshQueue, from, to int) {
	t.Helper()
	for from < to {
		var plan refresh.Schedule
		for ; from < to && len(plan.Enqueue) < 5000; from++ {
			plan.Enqueue = append(plan.Enqueue, refresh.Pending{Task: refresh.Task{Table: "runs",
				Subtask: "run-" + strconv.Itoa(from)}, Priority: 5 * (from % 2), Due: engine.At(time.Now())})
		}
		if err := q.ScheduleRefreshes(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
	}
}

// crowd is what claimers did, and what must not be.
type crowd struct {
	mu       sync.Mutex
	held     map[refresh.Task]int64
	done     map[refresh.Task]int
	epochs   map[refresh.Task]int64
	overlaps int
	lost     int
	waits    []time.Duration
}

func (c *crowd) claimed(claims []refresh.Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range claims {
		if c.held[one.Task] != 0 || one.Epoch <= c.epochs[one.Task] {
			c.overlaps++
		}
		c.held[one.Task], c.epochs[one.Task] = one.Epoch, one.Epoch
	}
}

func (c *crowd) released(claims, lost []refresh.Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost += len(lost)
	for _, one := range claims {
		c.done[one.Task]++
	}
}

// work has claimers claim and release until so many jobs are done, batch at a time. It returns how long that took.
func work(t testing.TB, q postgres.RefreshQueue, claimers, jobs, batch int) (*crowd, time.Duration) {
	t.Helper()
	c := &crowd{held: map[refresh.Task]int64{}, done: map[refresh.Task]int{}, epochs: map[refresh.Task]int64{}}
	var left atomic.Int64
	left.Store(int64(jobs))
	began := time.Now()
	var group sync.WaitGroup
	for w := range claimers {
		group.Go(func() {
			for left.Load() > 0 && t.Context().Err() == nil {
				asked := time.Now()
				claims, err := q.ClaimRefreshes(t.Context(), fmt.Sprintf("w%d", w), refresh.ClaimTTL, batch)
				if err != nil {
					t.Error(err)
					return
				}
				took := time.Since(asked)
				c.claimed(claims)
				ended := make([]refresh.Completion, len(claims))
				for i, one := range claims {
					ended[i] = refresh.Completion{Claim: one, Result: refresh.Result{Rows: 1}}
					c.mu.Lock()
					delete(c.held, one.Task) // from here on somebody else may hold it
					c.waits = append(c.waits, took)
					c.mu.Unlock()
				}
				if len(ended) == 0 {
					time.Sleep(time.Millisecond)
					continue
				}
				lost, err := q.ReleaseRefreshes(t.Context(), ended)
				if err != nil {
					t.Error(err)
					return
				}
				c.released(claims, lost)
				left.Add(-int64(len(claims)))
			}
		})
	}
	group.Wait()
	return c, time.Since(began)
}

// check says what must never be: a job that two hold, that is done twice, or that nobody does.
func (c *crowd) check(t testing.TB, jobs int) {
	t.Helper()
	for task, times := range c.done {
		if times != 1 {
			t.Errorf("%v was done %d times", task, times)
		}
	}
	if c.overlaps != 0 || c.lost != 0 || len(c.done) != jobs {
		t.Errorf("%d overlaps, %d claims lost, %d of %d jobs done", c.overlaps, c.lost, len(c.done), jobs)
	}
}

// TestManyClaimers: 64 claimers of many jobs never hold one at the same time, and leave none. make soak has 100 000.
func TestManyClaimers(t *testing.T) {
	t.Parallel()
	jobs := 600
	if os.Getenv("LOADSTONE_SOAK") != "" {
		jobs = 100_000
	}
	_, dsn := open(t)
	q := queueOf(t, dsn, 64)
	fill(t, q, 0, jobs)
	c, took := work(t, q, 64, jobs, 1)
	c.check(t, jobs)
	t.Logf("64 claimers, %d jobs: %d overlaps, %d lost, %.0f cycles a second", jobs, c.overlaps, c.lost,
		float64(jobs)/took.Seconds())
	left := "SELECT (SELECT count(*) FROM pending_refreshes) + (SELECT count(*) FROM refresh_claims)"
	if n := ask[int](t, dsn, left); n != 0 {
		t.Errorf("%d entries and claims are left", n)
	}
	if n := ask[int](t, dsn, "SELECT count(DISTINCT epoch) FROM refresh_history"); n != jobs {
		t.Errorf("%d epochs of %d jobs", n, jobs)
	}
}

// BenchmarkClaims measures cycles of claim and release, each durable when it returns. What the sessions of the server
// compute for one says more than the rest where something else is at work on the machine.
func BenchmarkClaims(b *testing.B) {
	for _, batch := range []int{1, 32} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			q, dsn := durable(b, 64)
			fill(b, q, 0, b.N)
			computed := serverCPU(b, dsn)
			b.ResetTimer()
			c, took := work(b, q, 64, b.N, batch)
			b.StopTimer()
			computed = serverCPU(b, dsn) - computed
			c.check(b, b.N)
			slices.Sort(c.waits)
			b.ReportMetric(float64(b.N)/took.Seconds(), "cycles/s")
			b.ReportMetric(float64(c.waits[len(c.waits)*99/100].Microseconds())/1000, "claim-P99-ms")
			if computed > 0 {
				b.ReportMetric(float64(computed.Microseconds())/float64(b.N), "server-CPU-µs/cycle")
			}
		})
	}
}

// serverCPU is how long the sessions of a server have computed, those that have ended, too; 0 where that is not known.
func serverCPU(t testing.TB, dsn string) (total time.Duration) {
	t.Helper()
	const tick = 10 * time.Millisecond
	server := ask[string](t, dsn, `SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)`)
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		pid, _, _ := strings.Cut(string(text), " ")
		_, behind, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(behind) // from the third, its state
		ticks := func(i int) time.Duration { n, _ := strconv.Atoi(fields[i-3]); return time.Duration(n) * tick }
		switch server {
		case fields[1]:
			total += ticks(14) + ticks(15)
		case pid:
			total += ticks(16) + ticks(17)
		}
	}
	return total
}

// TestWhatIsGivenBackForLater: it is claimed by nobody until then, and a lost claim puts nothing off.
func TestWhatIsGivenBackForLater(t *testing.T) {
	t.Parallel()
	_, dsn := open(t)
	q := queueOf(t, dsn, 4)
	fill(t, q, 0, 1)
	claim := func() []refresh.Claim {
		t.Helper()
		claims, err := q.ClaimRefreshes(t.Context(), "w", refresh.ClaimTTL, 9)
		if err != nil {
			t.Fatal(err)
		}
		return claims
	}
	first := claim()
	stale := first[0]
	stale.Epoch--
	due := "SELECT extract(epoch FROM next_refresh_due - clock_timestamp())::float8 FROM pending_refreshes"
	if err := q.AbandonRefresh(t.Context(), stale, time.Hour); err != nil || ask[float64](t, dsn, due) > 0 {
		t.Errorf("a lost claim puts it off, %v", err)
	}
	if err := q.AbandonRefresh(t.Context(), first[0], time.Hour); err != nil {
		t.Fatal(err)
	}
	if again, wait := claim(), ask[float64](t, dsn, due); len(again) != 0 || wait < 3000 || wait > 3600 {
		t.Errorf("claimed %v, due in %v s", again, wait)
	}
	if err := q.RequestRefresh(t.Context(), "reader_0"); err != nil {
		t.Fatal(err)
	}
	if again := claim(); len(again) != 1 || again[0].Table != "reader_0" {
		t.Errorf("claimed %v", again)
	}
}

// TestAPartThatFailsForGood: without it nothing of the table is put in place, and the table has failed.
func TestAPartThatFailsForGood(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.CreateDynamicTable(ctx, refresh.Table{Name: "a", Kind: refresh.SQL, Definition: "SELECT",
		TargetLagSeconds: 60, Mode: refresh.Auto})
	must(err)
	must(s.RequestRefresh(ctx, "a"))
	claim := func() []refresh.Claim {
		t.Helper()
		claims, err := s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 9)
		must(err)
		return claims
	}
	must(s.ReleaseRefresh(ctx, claim()[0], refresh.Result{Parts: []string{"1", "2", "3"}, ReplaceParts: true}))
	parts := claim()
	must(s.AbandonRefresh(ctx, parts[2], 0))
	release := "SELECT release_refresh('a', $1, $2, 'no', '', '', 0, 0, true, false, '{}')"
	var held bool
	must(connect(t, dsn).QueryRow(ctx, release, parts[0].Subtask, parts[0].Epoch).Scan(&held))
	table, err := s.DynamicTable(ctx, "a")
	must(err)
	if !held || table.Status != refresh.Failed || table.Error != "Part "+parts[0].Subtask+": no" {
		t.Errorf("held %t, and the table is %+v", held, table)
	}
	if left := claim(); len(left) != 0 {
		t.Errorf("claimed of a table that has failed: %+v", left)
	}
	// Who is at work on another part may end it.
	must(s.ReleaseRefresh(ctx, parts[1], refresh.Result{Unchanged: true}))
	must(s.SetDynamicTableStatus(ctx, "a", refresh.Active))
	must(s.RequestRefresh(ctx, "a"))
	if again := claim(); len(again) != 1 || again[0].Subtask != "" {
		t.Errorf("resumed: %+v", again)
	}
}
