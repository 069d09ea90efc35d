package derived_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/derived"
)

// single are so many executions, and a statement inside a transaction after every fifth of them.
func single(n int) *rollup.Executions {
	e := &rollup.Executions{}
	e.Kind.Values, e.Statement.Values = []string{"POINT_LOOKUP", "TRANSACTION"}, []string{"get", "ä \x00 and \xff"}
	e.Worker.Values, e.Class.Values = []string{"worker-1"}, []string{"TIMEOUT"}
	e.Code.Values, e.Message.Values = []string{"57014"}, []string{"cancelled", strings.Repeat("long ", 300_000)}
	for i := range n {
		failed := int32(-1)
		if i%10 == 0 {
			failed = 0
		}
		message := failed
		if i == 10 {
			message = 1
		}
		e.DueNs = append(e.DueNs, noon.Add(time.Duration(i)*time.Millisecond).UnixNano())
		e.StartedNs = append(e.StartedNs, noon.Add(time.Duration(i)*time.Millisecond+1500).UnixNano())
		e.ElapsedMs, e.LagMs = append(e.ElapsedMs, float64(i)+0.25), append(e.LagMs, 0.0015)
		e.ElapsedNs, e.WaitMs = append(e.ElapsedNs, 0), append(e.WaitMs, 0)
		e.DecodeNs, e.Connection = append(e.DecodeNs, int64(i)), append(e.Connection, -1) // the highest uint32
		e.Seq, e.Step, e.Retries = append(e.Seq, int32(i)), append(e.Step, 1), append(e.Retries, 2)
		e.Rows, e.Position = append(e.Rows, 3), append(e.Position, int32(i%5/4))
		e.Warmup, e.Success = append(e.Warmup, i < 4), append(e.Success, failed < 0)
		e.RolledBack = append(e.RolledBack, i == 7)
		e.Kind.Index, e.Statement.Index = append(e.Kind.Index, int32(i%2)), append(e.Statement.Index, int32(i%2))
		e.Worker.Index, e.Class.Index = append(e.Worker.Index, 0), append(e.Class.Index, failed)
		e.Code.Index, e.Message.Index = append(e.Code.Index, failed), append(e.Message.Index, message)
		id := int32(-1)
		if i%2 == 0 {
			id = int32(len(e.QueryID.Values))
			e.QueryID.Values = append(e.QueryID.Values, fmt.Sprint("query-", i))
		}
		e.QueryID.Index = append(e.QueryID.Index, id)
	}
	return e
}

// takeIn stages so many batches and puts the run, as the ingest does.
func takeIn(ctx context.Context, d *derived.Database, run string, epoch int64, print string,
	batches ...*rollup.Executions) error {
	c := claim("runs", run, epoch)
	if err := d.Begin(ctx, c); err != nil {
		return err
	}
	r, _ := oneRun(run, 30)
	r.Fingerprint = print
	known, err := d.KnownExecutions(ctx, run)
	if err != nil {
		return err
	}
	if known != print {
		return stageAndPut(ctx, d, c, r, batches...)
	}
	r.Executions.Unchanged = true
	_, _, err = d.PutRun(ctx, c, r, held)
	return err
}

// stageAndPut stages batches and puts their run.
func stageAndPut(ctx context.Context, d *derived.Database, c refresh.Claim, r rollup.Run,
	batches ...*rollup.Executions) (err error) {
	r.Executions, err = d.StageExecutions(ctx, c, r.Run.StartTime.Time, r.Fingerprint,
		func(_ context.Context, take func(*rollup.Executions) error) error {
			for _, b := range batches {
				if err := take(b); err != nil {
					return err
				}
			}
			return nil
		})
	if err == nil {
		_, _, err = d.PutRun(ctx, c, r, held)
	}
	if err != nil {
		d.Unstage(ctx, r.Executions)
	}
	return err
}

// leftovers are tables of executions that are no partition, and partitions that no run names.
const leftovers = `SELECT count(*) FROM pg_class c WHERE c.relnamespace = 'staging'::regnamespace AND c.relkind = 'r'
	AND starts_with(c.relname, 'executions~') AND (NOT c.relispartition OR NOT EXISTS (
		SELECT FROM rollup.execution_runs e WHERE e.partition = c.relname))`

func TestExecutionsAreThereAsTheyWereRecorded(t *testing.T) {
	d, owner, reader := open(t)
	e := single(100)
	if err := takeIn(t.Context(), d, "it's a", 1, "first", e, e); err != nil {
		t.Fatal(err)
	}
	if err := takeIn(t.Context(), d, "b", 2, "first", single(30)); err != nil {
		t.Fatal(err)
	}
	if n := count(t, reader, "SELECT count(*) FROM executions WHERE run_id = $1", "it's a"); n != 200 {
		t.Errorf("readers see %d executions of 200", n)
	}
	for _, i := range []int{0, 7, 10, 99} {
		var got, want []any
		rows, err := reader.Query(t.Context(), `SELECT DISTINCT seq, due_at, started_at, app_elapsed_ms, schedule_lag_ms,
			pool_wait_ms, decode_ns, connection_id, step, row_count, retries, position, warmup, success, rolled_back, worker_id,
			kind, statement_id, error_class, error_code, error_message, server_query_id
			FROM executions WHERE run_id = $1 AND seq = $2`, "it's a", i)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			if got, err = rows.Values(); err != nil {
				t.Fatal(err)
			}
		}
		null := func(c *record.Texts) any {
			if c.Index[i] < 0 {
				return nil
			}
			return c.At(i)
		}
		statement := strings.ReplaceAll(strings.ToValidUTF8(e.Statement.At(i), "\uFFFD"), "\x00", "\uFFFD")
		want = []any{int64(i), time.Unix(0, e.DueNs[i]).UTC(), time.Unix(0, e.StartedNs[i]).Truncate(time.Microsecond).UTC(),
			e.ElapsedMs[i], e.LagMs[i], e.WaitMs[i], e.DecodeNs[i], int64(1<<32 - 1), e.Step[i], e.Rows[i], e.Retries[i],
			e.Position[i], e.Warmup[i], e.Success[i], e.RolledBack[i], e.Worker.At(i), e.Kind.At(i), statement, null(&e.Class),
			null(&e.Code), null(&e.Message), null(&e.QueryID)}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("execution %d: %.600v\nwant %.600v", i, got, want)
		}
	}
	// The same parts again are kept; others take their place; a deleted run takes its own along and no other's.
	before := count(t, owner, "SELECT min(tableoid::bigint) FROM rollup.executions WHERE run_id = $1", "it's a")
	if err := takeIn(t.Context(), d, "it's a", 3, "first"); err != nil {
		t.Fatal(err)
	}
	if n := count(t, owner, "SELECT min(tableoid::bigint) FROM rollup.executions WHERE run_id = $1",
		"it's a"); n != before {
		t.Error("executions were copied again though their parts are the same")
	}
	if err := takeIn(t.Context(), d, "it's a", 4, "second", single(50)); err != nil {
		t.Fatal(err)
	}
	if n := count(t, reader, "SELECT count(*) FROM executions"); n != 80 {
		t.Errorf("%d executions of 50 and 30", n)
	}
	c := claim("runs", "it's a", 5)
	if err := errors.Join(d.Begin(t.Context(), c), d.DropRun(t.Context(), c)); err != nil {
		t.Fatal(err)
	}
	if n := count(t, reader, "SELECT count(*) FROM executions"); n != 30 {
		t.Errorf("%d executions of 30", n)
	}
	if n := count(t, owner, leftovers); n != 0 {
		t.Errorf("%d tables are left", n)
	}
	for _, table := range derived.Bundled() {
		if table.Name != "slow_executions" {
			continue
		}
		table.Version = 1
		if _, err := d.Materialize(t.Context(), table, claim(table.Name, "", 1), held); err != nil {
			t.Fatal(err)
		}
	}
	// Of 30, four are warm-up and six are statements inside transactions.
	if n := count(t, reader, "SELECT max(seq) FROM slow_executions WHERE run_id = 'b' AND place = 1"); n != 28 {
		t.Errorf("the slowest execution is %d", n)
	}
	if n := count(t, reader, "SELECT count(*) FROM slow_executions"); n != 20 {
		t.Errorf("%d slow executions of 20", n)
	}
	// Whoever does not want them any more has none.
	plain, _ := oneRun("b", 30)
	put(t, d, plain, 6)
	if n := count(t, owner, `SELECT count(*) + (SELECT count(*) FROM rollup.execution_runs)
		+ (SELECT count(*) FROM rollup.slow_executions) FROM rollup.executions`); n != 0 {
		t.Errorf("%d executions of a run that is to have none", n)
	}
}

// TestAKillAtAnyStepLeavesOneCopyOfExecutions: at whatever step a worker ends, readers see the old executions or
// the new ones, and the next worker leaves exactly one copy and no table beside it.
func TestAKillAtAnyStepLeavesOneCopyOfExecutions(t *testing.T) {
	d, owner, reader := open(t)
	killed := errors.New("killed here")
	seen := map[string]bool{}
	epoch := int64(1)
	for failAt := 1; ; failAt++ {
		epoch += 3
		d.SetStepHook(nil)
		if err := takeIn(t.Context(), d, "a", epoch, fmt.Sprint("old ", failAt), single(40)); err != nil {
			t.Fatal(err)
		}
		step, dead := 0, false
		d.SetStepHook(func(name string) error {
			if step++; step == failAt {
				dead = true
			}
			if dead {
				seen[name] = true
				return killed
			}
			return nil
		})
		err := takeIn(t.Context(), d, "a", epoch+1, fmt.Sprint("new ", failAt), single(70))
		d.SetStepHook(nil)
		if err == nil {
			break
		}
		if !errors.Is(err, killed) {
			t.Fatal(err)
		}
		if n := count(t, reader, "SELECT count(*) FROM executions"); n != 40 && n != 70 {
			t.Fatalf("killed at step %d: readers see %d executions", failAt, n)
		}
		if err := takeIn(t.Context(), d, "a", epoch+2, fmt.Sprint("new ", failAt), single(70)); err != nil {
			t.Fatal(err)
		}
		if n, left := count(t, reader, "SELECT count(*) FROM executions"), count(t, owner, leftovers); n != 70 || left != 0 {
			t.Fatalf("killed at step %d: %d executions of 70, and %d tables are left", failAt, n, left)
		}
	}
	if len(seen) < 8 {
		t.Errorf("the process ended at %d steps only: %v", len(seen), seen)
	}
}

// TestAStaleWorkerCopiesNothing: an epoch that is not the highest any more attaches nothing, and what it had copied
// goes.
func TestAStaleWorkerCopiesNothing(t *testing.T) {
	d, owner, reader := open(t)
	d.SetStepHook(func(step string) error {
		if step != "copy" {
			return nil
		}
		d.SetStepHook(nil)
		return takeIn(t.Context(), d, "a", 8, "young", single(20))
	})
	if err := takeIn(t.Context(), d, "a", 7, "old", single(70)); !errors.Is(err, store.ErrClaimLost) {
		t.Errorf("an old epoch: %v", err)
	}
	d.SetStepHook(func(step string) error {
		if step != "staged" {
			return nil
		}
		d.SetStepHook(nil)
		return takeIn(t.Context(), d, "a", 10, "younger", single(25))
	})
	if err := takeIn(t.Context(), d, "a", 9, "old", single(70)); !errors.Is(err, store.ErrClaimLost) {
		t.Errorf("an old epoch: %v", err)
	}
	if n, left := count(t, reader, "SELECT count(*) FROM executions"), count(t, owner, leftovers); n != 25 || left != 0 {
		t.Errorf("%d executions of 25, and %d tables are left", n, left)
	}
	// A record that cannot be read to its end leaves nothing.
	broken := errors.New("broken off")
	c := claim("runs", "b", 1)
	if err := d.Begin(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	_, err := d.StageExecutions(t.Context(), c, noon, "x", func(_ context.Context,
		take func(*rollup.Executions) error) error {
		return errors.Join(take(single(9)), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("a record that is broken off: %v", err)
	}
	if left := count(t, owner, leftovers); left != 0 {
		t.Errorf("%d tables are left", left)
	}
	if _, err := reader.Exec(t.Context(), "SELECT * FROM staging."+pgx.Identifier{"executions~"}.Sanitize()); err == nil {
		t.Error("readers reach partitions by their own names")
	}
}

// TestAResultsDatabaseThatGoesAwayMidway: sessions that end in the middle are no failure of the run, and leave nothing.
func TestAResultsDatabaseThatGoesAwayMidway(t *testing.T) {
	d, owner, reader := open(t)
	epoch := int64(0)
	for _, at := range []string{"create", "copy", "identify", "drop", "attach", "commit"} {
		epoch += 2
		d.SetStepHook(func(step string) error {
			if step == at {
				_, err := owner.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
					WHERE usename = current_user AND pid <> pg_backend_pid()`)
				return err
			}
			return nil
		})
		if err := takeIn(t.Context(), d, "a", epoch, at, single(3000)); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("away at %s: %v", at, err)
		}
		d.SetStepHook(nil)
		if err := takeIn(t.Context(), d, "a", epoch+1, at, single(40)); err != nil {
			t.Fatalf("after it was away at %s: %v", at, err)
		}
		if n, left := count(t, reader, "SELECT count(*) FROM executions"), count(t, owner, leftovers); n != 40 || left != 0 {
			t.Errorf("after it was away at %s: %d executions of 40, and %d tables are left", at, n, left)
		}
	}
}
