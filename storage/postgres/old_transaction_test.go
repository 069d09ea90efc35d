package postgres_test

import (
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

// openTransaction holds a snapshot: until it ends no row that is dead since can be removed.
func openTransaction(t testing.TB, dsn string) pgx.Tx {
	t.Helper()
	tx, err := connect(t, dsn).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT count(*) FROM dynamic_tables"); err != nil {
		t.Fatal(err)
	}
	return tx
}

// TestAClaimPassesByDeadEntries: while a transaction stays open somewhere, the entries that were claimed and released
// stay in the index; a claim does not read them.
func TestAClaimPassesByDeadEntries(t *testing.T) {
	t.Parallel()
	_, dsn := open(t)
	q := queueOf(t, dsn, 1)
	const jobs = 1500
	tx := openTransaction(t, dsn)
	var plan refresh.Schedule
	hourAgo := time.Now().Add(-time.Hour)
	for i := range jobs {
		plan.Enqueue = append(plan.Enqueue, refresh.Pending{Due: engine.At(hourAgo),
			Task: refresh.Task{Table: "runs", Subtask: "old-" + strconv.Itoa(i)}})
	}
	if err := q.ScheduleRefreshes(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	c, _ := work(t, q, 1, jobs, 50)
	c.check(t, jobs)
	if _, err := q.SweepRefreshes(t.Context()); err != nil {
		t.Fatal(err)
	}
	fill(t, q, 0, 2)
	before := entriesRead(t, q, dsn)
	claims, err := q.ClaimRefreshes(t.Context(), "w", refresh.ClaimTTL, 2)
	if err != nil || len(claims) != 2 {
		t.Fatal(claims, err)
	}
	if read := entriesRead(t, q, dsn) - before; read > 100 {
		t.Errorf("a claim of two entries read %d of the index, in which %d dead ones are", read, jobs)
	}
	// What is put in with an earlier time is found all the same.
	plan.Enqueue = plan.Enqueue[:1]
	if err := q.ScheduleRefreshes(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	if claims, err = q.ClaimRefreshes(t.Context(), "w", refresh.ClaimTTL, 1); err != nil || len(claims) != 1 ||
		claims[0].Subtask != "old-0" {
		t.Errorf("claimed %v, %v", claims, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}

// entriesRead is how many entries of the queue's index the one session of a queue has read so far.
func entriesRead(t testing.TB, q postgres.RefreshQueue, dsn string) int64 {
	t.Helper()
	if ask[int](t, dsn, "SELECT current_setting('server_version_num')::int") < 150000 {
		t.Skip("this Postgres cannot be made to say what it has counted")
	}
	if _, err := q.Pool.Exec(t.Context(), "SELECT pg_stat_force_next_flush()"); err != nil {
		t.Fatal(err)
	}
	return ask[int64](t, dsn, `SELECT coalesce(sum(idx_tup_read), 0)::bigint FROM pg_stat_user_indexes
		WHERE indexrelname = 'pending_refreshes_order'`)
}

// TestAReleaseReadsNoTableInWhole: sessions keep their plans, and one that was made while the queue was empty would
// read all dead rows of it later, at every release.
func TestAReleaseReadsNoTableInWhole(t *testing.T) {
	t.Parallel()
	_, dsn := open(t)
	q := queueOf(t, dsn, 1)
	if ask[int](t, dsn, "SELECT current_setting('server_version_num')::int") < 150000 {
		t.Skip("this Postgres cannot be made to say what it has counted")
	}
	scans := func() int64 {
		if _, err := q.Pool.Exec(t.Context(), "SELECT pg_stat_force_next_flush()"); err != nil {
			t.Fatal(err)
		}
		return ask[int64](t, dsn, `SELECT coalesce(sum(seq_scan), 0)::bigint FROM pg_stat_user_tables WHERE relname IN
			('pending_refreshes', 'refresh_claims', 'refresh_subtasks')`)
	}
	const jobs = 200
	fill(t, q, 0, jobs)
	if _, err := q.Pool.Exec(t.Context(), "ANALYZE pending_refreshes, refresh_claims, refresh_subtasks"); err != nil {
		t.Fatal(err)
	}
	before := scans()
	for i, result := range []refresh.Result{{Rows: 1}, {Error: "no"}, {Gone: true}, {Unchanged: true}} {
		for batch := range 10 {
			claims, err := q.ClaimRefreshes(t.Context(), "w", refresh.ClaimTTL, 1+i+batch%2)
			if err != nil || len(claims) != 1+i+batch%2 {
				t.Fatal(claims, err)
			}
			ended := make([]refresh.Completion, len(claims))
			for i, one := range claims {
				ended[i] = refresh.Completion{Claim: one, Result: result}
			}
			if lost, err := q.ReleaseRefreshes(t.Context(), ended); err != nil || len(lost) != 0 {
				t.Fatal(lost, err)
			}
		}
	}
	if n := scans() - before; n != 0 {
		t.Errorf("claims and releases have read tables in whole %d times", n)
	}
}

// TestClaimsBesideAnOldTransaction is an hour of 50 jobs a second with a transaction of 15 minutes in it, at six times
// the pace: as many jobs, as many dead rows. It belongs to make soak, and says what it measured.
func TestClaimsBesideAnOldTransaction(t *testing.T) {
	t.Parallel()
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("ten minutes: make soak")
	}
	const pace, perSecond, workers, runs = 6, 300, 8, 3000
	q, dsn := durable(t, workers+2)
	var mu sync.Mutex
	var during, other []time.Duration
	var old pgx.Tx
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			claimAll(t, q, stop, func(took time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				if old != nil {
					during = append(during, took)
				} else {
					other = append(other, took)
				}
			})
		})
	}
	group.Go(func() {
		pruned := time.Now()
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
			if _, err := q.SweepRefreshes(t.Context()); err != nil {
				t.Error(err)
			}
			if time.Since(pruned) > 10*time.Minute/pace {
				if err := q.PruneRefreshHistory(t.Context(), 500); err != nil {
					t.Error(err)
				}
				pruned = time.Now()
			}
		}
	})
	began, jobs := time.Now(), 0
	const length = time.Hour / pace
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for elapsed := time.Duration(0); elapsed < length; elapsed = time.Since(began) {
		fill(t, q, jobs%runs, jobs%runs+perSecond) // the same runs change again and again
		jobs += perSecond
		open := elapsed > length/4 && elapsed < length/2
		mu.Lock()
		was := old
		mu.Unlock()
		if open && was == nil {
			was = openTransaction(t, dsn)
		} else if !open && was != nil {
			t.Logf("at the end of the transaction: %s", sizes(t, dsn))
			if err := was.Rollback(t.Context()); err != nil {
				t.Error(err)
			}
			was = nil
		}
		mu.Lock()
		old = was
		mu.Unlock()
		<-tick.C
	}
	close(stop)
	group.Wait()
	t.Logf("at the end: %s", sizes(t, dsn))
	t.Logf("%d jobs; claims during the transaction %s, before and after %s", jobs, quantiles(during), quantiles(other))
	slices.Sort(during)
	if p99 := during[len(during)*99/100]; p99 > 100*time.Millisecond {
		t.Errorf("P99 of claims is %s", p99)
	}
}

// claimAll claims and releases until it is stopped, and tells how long each claim took that got something.
func claimAll(t *testing.T, q postgres.RefreshQueue, stop <-chan struct{}, told func(time.Duration)) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		asked := time.Now()
		claims, err := q.ClaimRefreshes(t.Context(), "w", refresh.ClaimTTL, 1)
		took := time.Since(asked)
		if err != nil {
			t.Error(err)
			return
		}
		if len(claims) == 0 {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		told(took)
		if err := q.ReleaseRefresh(t.Context(), claims[0], refresh.Result{Rows: 1}); err != nil {
			t.Error(err)
		}
	}
}

func sizes(t testing.TB, dsn string) string {
	return ask[string](t, dsn, `SELECT string_agg(relname || ' ' || pg_size_pretty(pg_total_relation_size(relid)) ||
			', ' || n_dead_tup || ' dead', '; ' ORDER BY relname)
		FROM pg_stat_user_tables WHERE relname IN ('pending_refreshes', 'refresh_claims', 'dynamic_tables',
			'refresh_subtasks', 'refresh_history', 'refresh_bounds')`)
}

func quantiles(took []time.Duration) string {
	slices.Sort(took)
	text := strconv.Itoa(len(took)) + " of"
	for _, q := range []int{50, 95, 99} {
		text += " P" + strconv.Itoa(q) + " " + took[len(took)*q/100].Round(10*time.Microsecond).String()
	}
	return text + ", most " + took[len(took)-1].Round(time.Millisecond).String()
}
