package run_test

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/enrich"
	"github.com/loadstone-db/loadstone/engine/target"
)

// account is a Postgres that gives its executions ids and keeps a history of
// them, as an account of Snowflake does.
type account struct {
	target.Driver
	mu   sync.Mutex
	seq  uint64
	rows [][]any
	// shows says which executions the history has; nil: all. away is what it answers instead.
	shows func(seq uint64) bool
	away  error
	asked int
	// queue says whether the warehouse has queries waiting; nil: it cannot be polled. open counts connections.
	queue func(open int) bool
	open  int
	// latency is that of the account's aggregates; 0: it has none. They hold published executions.
	latency   time.Duration
	published int64
	summed    int // how often they were asked for
	// fallback is the fallback warehouse that its warehouse says it has.
	fallback *string
	// kind is the type of its warehouse.
	kind string
}

func (a *account) Name() string { return "account" }

func (*account) Traits() target.Traits {
	return target.Traits{Title: "The account", History: true, Warehouses: true}
}

func (a *account) Open(cfg target.Config) (target.Database, error) {
	db, err := a.Driver.Open(cfg)
	return &accountDB{db, a}, err
}

func (a *account) executed(began, ended time.Time) engine.QueryID {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seq++
	id := engine.QueryID{1}
	binary.BigEndian.PutUint64(id[8:], a.seq)
	ms := ended.Sub(began).Milliseconds()
	a.rows = append(a.rows, []any{id.String(), ended, ms, int64(0), ms, a.seq})
	return id
}

func (a *account) set(shows func(uint64) bool, away error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shows, a.away = shows, away
}

func (a *account) polls() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

type accountDB struct {
	target.Database
	a *account
}

const (
	historySQL   = "SELECT * FROM history"
	aggregateSQL = "SELECT * FROM aggregates"
)

func (d *accountDB) Query(ctx context.Context, sql string, args ...any) (*target.ResultSet, error) {
	if sql == aggregateSQL {
		d.a.mu.Lock()
		defer d.a.mu.Unlock()
		d.a.summed++
		return &target.ResultSet{Columns: []string{"QUERY_TYPE", "QUERY_TEXT", "CALLS", "THROTTLED", "INTERVAL_START",
			"INTERVAL_END", "SUM_MS", "COMPILATION_SUM_MS", "EXECUTION_SUM_MS", "QUEUED_SUM_MS",
			"P50_CALLS", "P90_CALLS", "P99_CALLS", "P999_CALLS", "MAX_MS"},
			Rows: [][]any{{"SELECT", "SELECT 1", d.a.published, int64(0), time.Now(), time.Now(), 1.0, 0.0, 1.0, 0.0, 1.0, 1.0,
				1.0, 1.0, 1.0}}}, nil
	}
	if sql != historySQL {
		return d.Database.Query(ctx, sql, args...)
	}
	d.a.mu.Lock()
	defer d.a.mu.Unlock()
	d.a.asked++
	if d.a.away != nil {
		return nil, d.a.away
	}
	rs := &target.ResultSet{Columns: []string{"QUERY_ID", "END_TIME", "TOTAL_ELAPSED_TIME", "COMPILATION_TIME",
		"EXECUTION_TIME"}}
	for _, row := range d.a.rows {
		if d.a.shows == nil || d.a.shows(row[5].(uint64)) {
			rs.Rows = append(rs.Rows, row[:5])
		}
	}
	return rs, nil
}

func (d *accountDB) Connect(ctx context.Context, statements []engine.Statement) (target.Conn, error) {
	c, err := d.Database.Connect(ctx, statements)
	if err == nil {
		d.a.mu.Lock()
		d.a.open++
		d.a.mu.Unlock()
	}
	return &accountConn{Conn: c, a: d.a}, err
}

// accountConn hides that it could be driven by an event loop: ids come from Exec.
type accountConn struct {
	target.Conn
	a    *account
	once sync.Once
}

func (c *accountConn) Close() error {
	c.once.Do(func() {
		c.a.mu.Lock()
		c.a.open--
		c.a.mu.Unlock()
	})
	return c.Conn.Close()
}

func (c *accountConn) Exec(ctx context.Context, b *plugin.Batch, op plugin.Op, res *target.Result) error {
	began := time.Now()
	err := c.Conn.Exec(ctx, b, op, res)
	res.QueryID = c.a.executed(began, time.Now())
	return err
}

// accountHost has one adapter more, for the account.
type accountHost struct {
	plugin.Host
	a *account
}

func (h accountHost) Adapter(ctx context.Context, ref string) (plugin.Adapter, error) {
	a, err := h.Host.Adapter(ctx, "postgres")
	return accountAdapter{a, h.a}, err
}

type accountAdapter struct {
	plugin.Adapter
	a *account
}

func (a accountAdapter) Info() plugin.Info {
	info := a.Adapter.Info()
	info.Manifest.Driver = "account"
	sends := info.Manifest.Patterns()
	sends.Query = append(slices.Clone(sends.Query), historySQL, aggregateSQL)
	info.Manifest.Sends = &sends
	return info
}

func (a accountAdapter) Call(ctx context.Context, request, answer any) error {
	if request.(plugin.AdapterRequest).Op == plugin.OpPoll {
		a.a.mu.Lock()
		defer a.a.mu.Unlock()
		if a.a.queue == nil {
			return errors.New("no privilege")
		}
		w := &engine.Warehouse{
			Name:              "WH",
			State:             "STARTED",
			Size:              "X-Small",
			StartedClusters:   new(1),
			MaxClusterCount:   new(1),
			Running:           a.a.open,
			FallbackWarehouse: a.a.fallback,
			Type:              a.a.kind,
			Generation:        "2",
			Raw:               []byte(`{"name":"WH"}`),
		}
		if a.a.queue(a.a.open) {
			w.Queued = 1
		}
		answer.(*plugin.AdapterAnswer).Warehouse = w
		return nil
	}
	if req := request.(plugin.AdapterRequest); req.Op == plugin.OpEnrich {
		if req.RunID == "" || req.From >= req.To || req.NowMs == 0 {
			return errors.New("the request lacks something")
		}
		p := &plugin.EnrichPlan{Page: historySQL, PageSize: 1_000_000, Note: "Read it with care."}
		if a.a.latency > 0 {
			p.Aggregate, p.AggregateDelaySeconds = aggregateSQL, int(a.a.latency/time.Second)
		}
		answer.(*plugin.AdapterAnswer).Enrich = p
		return nil
	}
	return a.Adapter.Call(ctx, request, answer)
}

// newAccount is a fixture whose target keeps a history.
func newAccount(t *testing.T) (*fixture, *account) {
	f := newFixture(t)
	a := &account{Driver: f.driver}
	f.driver, f.plugins = a, accountHost{f.plugins, a}
	f.enrichment = enrich.Policy{
		PageSize:      10_000,
		Interval:      50 * time.Millisecond,
		Timeout:       30 * time.Second,
		TargetRatio:   0.9,
		MaxStuckPolls: 3,
		StuckRatio:    0.5,
	}
	return f, a
}

func onAccount(sc *engine.Scenario) {
	sc.Target.Connection.Driver = "account"
	sc.Workload.IOEngine = "goroutines"
	sc.Workload.DurationSeconds, sc.Workload.WarmupSeconds = 0.5, 0.2
}

func TestEnrichmentOfARun(t *testing.T) {
	t.Parallel()
	f, a := newAccount(t)
	f.start()
	// At first the history has nothing: it lags.
	a.set(func(uint64) bool { return false }, nil)
	run := f.run(onAccount)
	sum := f.wait(run.RunID)
	if sum.Operations == 0 {
		t.Fatal("no operations")
	}
	p := f.until(run.RunID, func(p *engine.LiveState) bool { return p.Enrichment.Polls > 0 })
	if *p.Phase != engine.PhaseProcessing || p.Enrichment.Status != engine.EnrichmentRunning || *p.Enrichment.Ratio != 0 {
		t.Fatalf("while it goes on: %v %+v", p.Phase, p.Enrichment)
	}
	if err := f.svc.Delete(t.Context(), run.RunID, "tester"); !engine.HasCode(err, engine.CodeConflict) {
		t.Fatalf("deleting gave %v", err)
	}
	if _, err := f.svc.RetryEnrichment(
		t.Context(),
		run.RunID,
		engine.Actor{Name: "tester"},
	); !engine.HasCode(
		err,
		engine.CodeConflict,
	) {
		t.Fatalf("a second one gave %v", err)
	}
	a.set(nil, nil)
	d := f.settled(run.RunID)
	e := d.Enrichment
	if e.Status != engine.EnrichmentCompleted || *e.Ratio != 1 || e.Executions != sum.Accounting.Started ||
		e.Total.Matched != sum.Operations || len(e.Notes) != 1 || e.Retryable {
		t.Fatalf("%+v of %+v\n%s", e, sum.Accounting, f.logs(run.RunID))
	}
	for kind, k := range e.ByKind {
		if k.Ratio != 1 || k.Figures.Matched != sum.ByKind[kind].Count ||
			k.Figures.ClientMs.P50 != sum.ByKind[kind].LatencyMs.P50 {
			t.Fatalf("%s: %+v, the run has %+v", kind, k.Figures, sum.ByKind[kind])
		}
	}
	parts := 0
	for _, p := range d.Artifacts {
		if p.Kind == "enrichment" {
			parts++
			if p.RowCount != sum.Accounting.Started {
				t.Fatalf("%+v", p)
			}
		}
	}
	if parts != 1 {
		t.Fatalf("%d parts\n%s", parts, f.logs(run.RunID))
	}
	for begin := time.Now(); !strings.Contains(f.logs(run.RunID), "The enrichment is COMPLETED"); {
		if time.Since(begin) > time.Minute { // its line comes behind its state
			t.Fatal(f.logs(run.RunID))
		}
		time.Sleep(20 * time.Millisecond)
	}
	f.deleted(run.RunID)
}

// deleted deletes a run, once the loop that showed its end has let go of it.
func (f *fixture) deleted(runID string) {
	f.t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := f.svc.Delete(f.t.Context(), runID, "tester")
		if err == nil {
			return
		}
		if !engine.HasCode(err, engine.CodeConflict) || time.Since(begin) > time.Minute {
			f.t.Fatal(err)
		}
	}
}

func TestEnrichmentSurvivesARestart(t *testing.T) {
	t.Parallel()
	f, a := newAccount(t)
	f.start()
	a.set(func(seq uint64) bool { return seq%4 == 0 }, nil)
	run := f.run(onAccount)
	sum := f.wait(run.RunID)
	f.until(run.RunID, func(p *engine.LiveState) bool { return p.Enrichment.Polls > 1 })
	f.kill()
	f.start()
	p := f.until(run.RunID, func(p *engine.LiveState) bool { return p.Enrichment.Polls > 0 })
	if p.Status != engine.StatusCompleted || *p.Phase != engine.PhaseProcessing || p.Enrichment.Matched == 0 {
		t.Fatalf("after the restart: %+v", p.Enrichment)
	}
	f.stop() // an orderly end interrupts it too
	a.set(nil, nil)
	f.start()
	d := f.settled(run.RunID)
	if d.Enrichment.Status != engine.EnrichmentCompleted || d.Enrichment.Total.Matched != sum.Operations ||
		d.Summary.Operations != sum.Operations {
		t.Fatalf("%+v", d.Enrichment)
	}
	var rows int64
	for _, p := range d.Artifacts {
		if p.Kind == "enrichment" {
			rows += p.RowCount
		}
	}
	if rows != sum.Accounting.Started {
		t.Fatalf("%d rows for %d executions", rows, sum.Accounting.Started)
	}
}

func TestEnrichmentIsRetried(t *testing.T) {
	t.Parallel()
	f, a := newAccount(t)
	f.start()
	a.set(func(seq uint64) bool { return seq%10 < 7 }, nil)
	run := f.run(onAccount)
	d := f.settled(run.RunID)
	if d.Enrichment.Status != engine.EnrichmentPartial || !d.Enrichment.Retryable || *d.Enrichment.Ratio < 0.5 {
		t.Fatalf("%+v", d.Enrichment)
	}
	// A retry whose end the server does not see.
	a.set(nil, errors.New("the network is down"))
	a.asked = 0
	e, err := f.svc.RetryEnrichment(t.Context(), run.RunID, engine.Actor{Name: "tester"})
	if err != nil || e.Status != engine.EnrichmentPending {
		t.Fatalf("%+v, %v", e, err)
	}
	for a.polls() == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	f.kill()
	a.set(nil, nil)
	f.start()
	for range 100 {
		if d = f.detail(run.RunID); d.Enrichment.Status.Terminal() {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if d.Enrichment.Status != engine.EnrichmentCompleted || *d.Enrichment.Ratio != 1 || d.Phase != engine.PhaseNone {
		t.Fatalf("%s %+v", d.Phase, d.Enrichment)
	}
}

func TestEnrichmentIsStopped(t *testing.T) {
	t.Parallel()
	f, a := newAccount(t)
	f.start()
	a.set(func(seq uint64) bool { return seq%4 == 0 }, nil)
	run := f.run(onAccount)
	f.wait(run.RunID)
	f.until(run.RunID, func(p *engine.LiveState) bool { return p.Enrichment.Polls > 1 })
	e, err := f.svc.StopEnrichment(t.Context(), run.RunID, "tester")
	if err != nil || e.Status != engine.EnrichmentPartial || e.Matched == 0 || !e.Retryable || e.Total == nil ||
		len(e.Notes) != 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	if d := f.settled(run.RunID); d.Enrichment.Status != engine.EnrichmentPartial || d.Enrichment.Reason != e.Reason {
		t.Fatalf("%+v", d.Enrichment)
	}
	if _, err := f.svc.StopEnrichment(t.Context(), run.RunID, "tester"); !engine.HasCode(err, engine.CodeConflict) {
		t.Fatalf("a second stop gave %v", err)
	}
}

func TestPostgresHasNoHistory(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	run := f.run(func(sc *engine.Scenario) { sc.Workload.DurationSeconds, sc.Workload.WarmupSeconds = 0.3, 0 })
	f.wait(run.RunID)
	d := f.settled(run.RunID)
	if d.Enrichment.Status != engine.EnrichmentSkipped ||
		!strings.HasPrefix(d.Enrichment.Reason, "Postgres keeps no history") || d.Enrichment.Retryable {
		t.Fatalf("%+v", d.Enrichment)
	}
	if _, err := f.svc.RetryEnrichment(
		t.Context(),
		run.RunID,
		engine.Actor{Name: "tester"},
	); !engine.HasCode(
		err,
		engine.CodeConflict,
	) {
		t.Fatalf("a retry gave %v", err)
	}
}

// TestAnEnrichmentIsRevoked: one whose user has lost the right to it ends with the reason, and says who asked for it.
func TestAnEnrichmentIsRevoked(t *testing.T) {
	t.Parallel()
	f, a := newAccount(t)
	f.start()
	a.set(func(seq uint64) bool { return seq%4 == 0 }, nil)
	run := f.run(onAccount)
	f.wait(run.RunID)
	const why = "It was stopped: ada, who started the run, is locked out."
	revoked := func(by string) {
		t.Helper()
		if o, under := f.svc.Enrichments()[run.RunID]; !under || o.By.Name != by {
			t.Fatalf("it is that of %+v, %v", o, under)
		}
		if err := f.svc.RevokeEnrichment(t.Context(), run.RunID, why); err != nil {
			t.Fatal(err)
		}
		if d := f.settled(run.RunID); d.Enrichment.Status != engine.EnrichmentPartial || d.Enrichment.Reason != why {
			t.Fatalf("%+v", d.Enrichment)
		}
		if len(f.svc.Enrichments()) != 0 {
			t.Error("it is under way still")
		}
	}
	f.until(run.RunID, func(p *engine.LiveState) bool { return p.Enrichment.Polls > 1 })
	revoked("")
	if _, err := f.svc.RetryEnrichment(t.Context(), run.RunID, engine.Actor{Name: "bob"}); err != nil {
		t.Fatal(err)
	}
	revoked("bob")
	if err := f.svc.RevokeEnrichment(t.Context(), run.RunID, why); err != nil {
		t.Errorf("without one: %v", err)
	}
}
