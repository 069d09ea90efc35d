package derived_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/storage/derived"
	"github.com/loadstone-db/loadstone/storage/embedded"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// workerEnv makes the test binary a worker: it holds the databases, at which step the worker waits, and how many times
// shorter its limits are.
const workerEnv = "LOADSTONE_TEST_REFRESH_WORKER"

// worker refreshes what is due until SIGTERM. At its step it says so and waits for a line.
func worker() {
	args := strings.Split(os.Getenv(workerEnv), "\n")
	shorter, _ := strconv.Atoi(args[4])
	settings := derived.DefaultSettings()
	settings.MaxIdleInTransaction /= time.Duration(shorter)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, args[0])
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	var db *derived.Database
	for db == nil && ctx.Err() == nil {
		if db, err = derived.OpenWith(ctx, args[1], args[2], settings); err != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
	if db == nil {
		return
	}
	defer db.Close()
	lines := bufio.NewReader(os.Stdin)
	var once sync.Once
	db.SetStepHook(func(step string) error {
		if step != args[3] {
			return nil
		}
		var err error
		once.Do(func() {
			fmt.Println("at", step)
			line := make(chan error, 1)
			go func() { _, err := lines.ReadString('\n'); line <- err }()
			select {
			case err = <-line:
			case <-ctx.Done():
				err = ctx.Err()
			}
		})
		return err
	})
	q := postgres.RefreshQueue{Pool: pool}
	keeper := refresh.Start(refresh.Options{Store: q, Workers: 1, Role: refresh.Server,
		ClaimTTL: refresh.ClaimTTL / time.Duration(shorter), Name: fmt.Sprintf("process-%d", os.Getpid()),
		Log: zerolog.New(os.Stdout), Work: func(ctx context.Context, c refresh.Claim, prove func(context.Context) error) (
			refresh.Result, error) {
			table, err := q.DynamicTable(ctx, c.Table)
			if err != nil {
				return refresh.Result{}, err
			}
			r, err := db.Materialize(ctx, table, c, prove)
			fmt.Println("over", c.Epoch, err)
			return r, err
		}})
	<-ctx.Done()
	keeper.Close()
}

// process is a worker in a process of its own.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	mu    sync.Mutex
	out   strings.Builder
	ended chan struct{}
}

func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(text)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
}

// still tells whether no thread of the process runs any more: each is stopped, or has ended.
func (p *process) still() bool {
	select {
	case <-p.ended:
		return true
	default:
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	if err != nil || len(threads) == 0 {
		time.Sleep(time.Second) // not Linux
		return true
	}
	for _, name := range threads {
		stat, err := os.ReadFile(name)
		state := strings.TrimSpace(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if err == nil && !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "Z") {
			return false
		}
	}
	return true
}

// fault is what is done to workers of one table, which has its own control store.
type fault struct {
	t                      *testing.T
	name                   string
	control, owner, reader string
	shorter                int
	q                      postgres.RefreshQueue
	db                     *derived.Database
}

func (f *fault) begin(step string) *process {
	f.t.Helper()
	p := &process{cmd: exec.CommandContext(context.Background(), os.Args[0]), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), workerEnv+"="+strings.Join([]string{f.control, f.owner, f.reader, step,
		strconv.Itoa(f.shorter)}, "\n"))
	p.cmd.Stdout, p.cmd.Stderr = p, p
	var err error
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	f.t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.ended })
	return p
}

// until waits for what is to happen, however slow the machine is.
func (f *fault) until(what string, p *process, met func() bool) {
	f.t.Helper()
	for began := time.Now(); !met(); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > time.Minute+4*refresh.ClaimTTL/time.Duration(f.shorter) {
			f.t.Fatalf("not %s:\n%s", what, p.said())
		}
	}
}

// run puts a run into the results database, as an ingest does; its epoch is the test's own.
func (f *fault) run(number int) {
	f.t.Helper()
	r, _ := oneRun(fmt.Sprintf("%s %d", f.name, number), 30)
	r.Run.Scenario.TemplateName = f.name
	put(f.t, f.db, r, int64(number))
}

// rows is how many runs the table knows of.
func (f *fault) rows() (n int) {
	answer, err := f.db.Query(f.t.Context(), `SELECT n FROM "`+f.name+`"`, 10)
	if err == nil && len(answer.Rows) == 1 {
		n, _ = strconv.Atoi(fmt.Sprint(answer.Rows[0][0]))
	}
	return n
}

func newFault(t *testing.T, name string, shorter int) *fault {
	t.Helper()
	server := pgtest.Start(t)
	f := &fault{t: t, name: name, shorter: shorter, control: server.NewFilled(t, schema.Apply)}
	f.owner, f.reader = server.Results(t)
	// As many workers at a time are more than the readers of one server.
	admin := connect(t, server.DSN("postgres"))
	if _, err := admin.Exec(t.Context(), "ALTER ROLE results_reader CONNECTION LIMIT 150"); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.q.Pool, err = pgxpool.New(t.Context(), f.control); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.q.Pool.Close)
	if f.db, err = derived.Open(t.Context(), f.owner, f.reader); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.db.Close)
	f.run(1)
	f.table()
	return f
}

// table makes the table, which is due then.
func (f *fault) table() {
	f.t.Helper()
	if _, err := f.q.CreateDynamicTable(f.t.Context(), refresh.Table{Name: f.name, Kind: refresh.SQL,
		TargetLagSeconds: 3600, Mode: refresh.Full, Definition: "SELECT count(*) AS n FROM rollup.runs WHERE template = '" +
			f.name + "' HAVING count(*) > 0"}); err != nil {
		f.t.Fatal(err)
	}
}

// suffer has a worker stopped or killed at a step, and another one refresh the table in its place after more has come
// in. What the first one had begun with must never be seen again.
func (f *fault) suffer(step string, s syscall.Signal) {
	t := f.t
	first := f.begin(step)
	f.until("at its step", first, func() bool { return strings.Contains(first.said(), "at "+step) })
	began := time.Now()
	first.signal(t, s)
	// A signal takes effect when a thread of the process is scheduled. Until then another one could read the line, and
	// commit: nothing would be due any more.
	f.until("standing still or dead", first, first.still)
	if _, err := fmt.Fprintln(first.in); err != nil { // it goes on at once when it is woken
		t.Log(err)
	}
	f.run(2)
	second := f.begin("")
	f.until("refreshed by another", second, func() bool { return f.rows() == 2 })
	f.until("told", second, func() bool { return f.successes() >= 1 })
	t.Logf("%v at %q: another has refreshed after %v", s, step, time.Since(began).Round(time.Millisecond))
	if s == syscall.SIGSTOP {
		if wait := 130*time.Second/time.Duration(f.shorter) - time.Since(began); wait > 0 {
			time.Sleep(wait)
		}
		first.signal(t, syscall.SIGCONT)
		f.until("over", first, func() bool { return strings.Contains(first.said(), "over ") })
	}
	second.signal(t, syscall.SIGTERM)
	first.signal(t, syscall.SIGTERM)
	<-second.ended
	<-first.ended
	if n := f.rows(); n != 2 {
		t.Errorf("%v at %q: a stale worker has written: %d runs of 2 are seen", s, step, n)
	}
	history, err := f.q.RefreshHistory(t.Context(), f.name, 10)
	if err != nil {
		t.Fatal(err)
	}
	var last int64
	for i, r := range history { // the newest first
		if r.Error != "" || i > 0 && r.Epoch >= last {
			t.Errorf("%v at %q: the history has %+v before epoch %d", s, step, r, last)
		}
		last = r.Epoch
	}
	state, err := f.q.RefreshState(t.Context(), 1)
	if err != nil || len(state.Claims)+len(state.Pending) != 0 {
		t.Errorf("%v at %q: left are %v, %v, %v", s, step, state.Claims, state.Pending, err)
	}
}

func (f *fault) successes() int {
	history, err := f.q.RefreshHistory(f.t.Context(), f.name, 10)
	if err != nil {
		return 0
	}
	return len(history)
}

// TestWorkersThatStandStillOrDie: real processes at work on a table are stopped or killed at one step each, and what
// they had begun is never seen once another one has refreshed it. Their limits are a sixtieth; in a soak they are the
// real ones, each worker stands still for 130 s, and there are 20 of them.
func TestWorkersThatStandStillOrDie(t *testing.T) {
	open(t)
	type hit struct {
		step string
		s    syscall.Signal
	}
	shorter, cases := 60, []hit{{"proved", syscall.SIGSTOP}, {"ready", syscall.SIGKILL}}
	if os.Getenv("LOADSTONE_SOAK") != "" {
		shorter, cases = 1, nil
		for _, step := range []string{"read", "replaced", "proved", "ready"} {
			for range 5 {
				cases = append(cases, hit{step, syscall.SIGSTOP})
			}
			cases = append(cases, hit{step, syscall.SIGKILL})
		}
	}
	var group sync.WaitGroup
	atOnce := make(chan struct{}, 12) // each has up to nine connections to the results database
	for i, c := range cases {
		group.Go(func() {
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			t.Run(fmt.Sprintf("%v at %s, %d", c.s, c.step, i), func(t *testing.T) {
				newFault(t, fmt.Sprintf("faults %d", i), shorter).suffer(c.step, c.s)
			})
		})
	}
	group.Wait()
}

// TestSIGTERMGivesClaimsBack: a worker that is told to end in the middle of a refresh leaves no claim that others would
// have to wait for.
func TestSIGTERMGivesClaimsBack(t *testing.T) {
	open(t)
	f := newFault(t, "told to end", 1)
	first := f.begin("replaced")
	f.until("at its step", first, func() bool { return strings.Contains(first.said(), "at replaced") })
	first.signal(t, syscall.SIGTERM)
	<-first.ended
	state, err := f.q.RefreshState(t.Context(), 1)
	if err != nil || len(state.Claims) != 0 || len(state.Pending) != 1 {
		t.Fatalf("claims %v, entries %v, %v\n%s", state.Claims, state.Pending, err, first.said())
	}
	if n := f.rows(); n != 0 {
		t.Errorf("%d rows of a refresh that did not end", n)
	}
	claims, err := f.q.ClaimRefreshes(t.Context(), "another", refresh.ClaimTTL, 1)
	if err != nil || len(claims) != 1 || claims[0].ClaimedAt.Before(engine.At(time.Now().Add(-time.Hour)).Time) {
		t.Errorf("claimed %v, %v", claims, err)
	}
}

// TestARestartOfPostgres: the database of both stores is restarted while a worker is at a step. It loses nothing that
// was there, takes no failure for one of the table, and refreshes the table when the database is back. It belongs to
// make soak.
func TestARestartOfPostgres(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("starts a cluster of its own eight times: make soak")
	}
	dir, err := os.MkdirTemp("", "loadstone-restart-") // as root, Postgres cannot enter t.TempDir
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	start := func() *embedded.Postgres {
		pg, err := embedded.Start(t.Context(), embedded.Options{DataDir: dir, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		return pg
	}
	pg := start()
	t.Cleanup(func() { _ = pg.Stop(context.Background()) })
	if err := schema.Apply(t.Context(), pg.DSN(embedded.ControlDatabase)); err != nil {
		t.Fatal(err)
	}
	for i, step := range []string{"read", "replaced", "proved", "ready"} {
		f := &fault{t: t, name: "restart at " + step, shorter: 20, control: pg.DSN(embedded.ControlDatabase)}
		if f.owner, f.reader, err = pg.Results(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f.q.Pool, err = pgxpool.New(t.Context(), f.control); err != nil {
			t.Fatal(err)
		}
		if f.db, err = derived.Open(t.Context(), f.owner, f.reader); err != nil {
			t.Fatal(err)
		}
		f.run(1)
		f.table()
		p := f.begin(step)
		f.until("at its step", p, func() bool { return strings.Contains(p.said(), "at "+step) })
		if err := pg.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintln(p.in); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 300 * time.Millisecond)
		pg = start()
		f.until("refreshed", p, func() bool { return f.successes() > 0 })
		p.signal(t, syscall.SIGTERM)
		<-p.ended
		table, err := f.q.DynamicTable(t.Context(), f.name)
		history, historyErr := f.q.RefreshHistory(t.Context(), f.name, 10)
		if err != nil || historyErr != nil || table.Failures != 0 || table.Status != refresh.Active || f.rows() != 1 ||
			len(history) != 1 || history[0].Error != "" {
			t.Errorf("restarted at %q: %+v, %+v, %v, %v\\n%s", step, table, history, err, historyErr, p.said())
		}
		f.db.Close()
		f.q.Pool.Close()
	}
}

// TestTheClockOfAWorkerDoesNotCount: a worker whose clock is decades behind claims, prolongs and ends by the time of
// the database; what it holds neither expires early nor late.
func TestTheClockOfAWorkerDoesNotCount(t *testing.T) {
	open(t)
	f := newFault(t, "clock", 1)
	now := func() (at time.Time) {
		if err := f.q.Pool.QueryRow(context.Background(), "SELECT clock_timestamp()").Scan(&at); err != nil {
			t.Error(err)
		}
		return at
	}
	synctest.Test(t, func(t *testing.T) { // its time begins with the year 2000
		ctx := context.Background()
		pool, err := pgxpool.New(ctx, f.control)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		q := postgres.RefreshQueue{Pool: pool}
		before := now()
		state, err := q.RefreshState(ctx, 1)
		if err != nil || time.Since(state.Now.Time) > -20*365*24*time.Hour {
			t.Fatalf("the worker's clock is %v, the database says %v, %v", time.Now(), state.Now, err)
		}
		if err := q.ScheduleRefreshes(ctx, refresh.Plan(state)); err != nil {
			t.Fatal(err)
		}
		claims, err := q.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 1)
		if err != nil || len(claims) != 1 || claims[0].ClaimedAt.Before(before) || claims[0].ClaimedAt.After(now()) ||
			claims[0].ExpiresAt.Sub(claims[0].ClaimedAt.Time) != refresh.ClaimTTL {
			t.Fatalf("claimed %+v, %v", claims, err)
		}
		if err := q.RenewRefresh(ctx, claims[0], refresh.ClaimTTL); err != nil {
			t.Error(err)
		}
		if swept, err := q.SweepRefreshes(ctx); err != nil || swept != 0 {
			t.Errorf("%d claims have expired, %v", swept, err)
		}
		if err := q.ReleaseRefresh(ctx, claims[0], refresh.Result{Rows: 1}); err != nil {
			t.Error(err)
		}
		table, err := q.DynamicTable(ctx, f.name)
		if err != nil || !table.AsOf.Equal(claims[0].ClaimedAt.Time) || table.LastSeconds < 0 || table.LastSeconds > 3600 {
			t.Errorf("refreshed: %+v, %v", table, err)
		}
	})
}
