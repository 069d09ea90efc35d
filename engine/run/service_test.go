package run_test

import (
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/store"
)

func TestARunFromStartToFigures(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	run := f.run(func(sc *engine.Scenario) {
		sc.Thresholds = []string{"qps > 1", "p95_ms < 0.000001"}
		sc.Tags = map[string]string{"ticket": "PERF-1"}
	})
	updates, cancel, err := f.svc.Subscribe(run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	var phases []engine.Phase
	var final *engine.LiveState
	for p := range updates {
		final = p
		if p.Phase != nil && (len(phases) == 0 || phases[len(phases)-1] != *p.Phase) {
			phases = append(phases, *p.Phase)
		}
	}
	if final.Status != engine.StatusCompleted || final.Phase != nil {
		t.Fatalf("final payload: %s %v\n%s", final.Status, final.Phase, f.logs(run.RunID))
	}
	t.Log(phases)
	sum := f.wait(run.RunID)
	if !sum.Accounting.Balanced || sum.Operations == 0 || sum.Accounting.Warmup == 0 ||
		sum.Accounting.Recorded != sum.Accounting.Warmup+sum.Operations {
		t.Fatalf("accounting %+v, %d operations", sum.Accounting, sum.Operations)
	}
	if len(sum.Thresholds) != 2 || !sum.Thresholds[0].Passed || sum.Thresholds[1].Passed || sum.Passed {
		t.Fatalf("thresholds %+v, passed %v", sum.Thresholds, sum.Passed)
	}
	if len(sum.Plugins) != 2 || sum.Plugins[0].SHA256 == "" || sum.Environment.ServerVersion == "" ||
		sum.Environment.IOEngine == "" {
		t.Fatalf("plugins %+v, environment %+v", sum.Plugins, sum.Environment)
	}
	d := f.detail(run.RunID)
	if part := d.StartTime.UnixNano() % int64(time.Millisecond); part != 0 {
		t.Errorf("the run started %d ns behind the millisecond that is told: its seconds begin elsewhere", part)
	}
	if d.Status != engine.StatusCompleted || d.Phase != engine.PhaseNone || len(d.Workers) != 2 || partsOf(d) != 2 ||
		d.Plan == nil || d.Live != nil || d.Summary == nil {
		t.Fatalf("detail: %s/%q, %d workers, %d artifacts", d.Status, d.Phase, len(d.Workers), len(d.Artifacts))
	}
	var types []engine.EventType
	for i, e := range d.Events {
		if e.SequenceID != int64(i+1) {
			t.Fatalf("event %d has the sequence id %d", i, e.SequenceID)
		}
		types = append(types, e.Type)
	}
	want := []engine.EventType{engine.EventStart, engine.EventSetPhase, engine.EventSetWorkerTarget,
		engine.EventSetWorkerTarget, engine.EventSetPhase, engine.EventStop}
	if len(types) != len(want) {
		t.Fatalf("events %v", types)
	}
	var operations int64
	for _, w := range d.Workers {
		if w.Figures == nil || w.Status != engine.StatusCompleted || !w.Figures.Accounting.Balanced {
			t.Fatalf("worker %+v", w)
		}
		operations += w.Figures.Operations
	}
	if operations != sum.Operations {
		t.Fatalf("the workers have %d operations, the run %d", operations, sum.Operations)
	}
	if took := sum.EndTime.Sub(d.WarmupStartTime.Time); took < 1600*time.Millisecond || took > 5*time.Second {
		t.Fatalf("load took %v", took)
	}
	points, _, err := f.store.Series(t.Context(), run.RunID, store.Window{})
	if err != nil || len(points) == 0 {
		t.Fatalf("%d points, %v", len(points), err)
	}
}

func TestAUserStopsARun(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	run := f.run(func(sc *engine.Scenario) { sc.Workload.DurationSeconds = 60; sc.Workload.WarmupSeconds = 0 })
	f.until(run.RunID, func(p *engine.LiveState) bool { return phase(engine.PhaseMeasurement)(p) && p.Ops.Total > 0 })
	if _, err := f.svc.Start(t.Context(), run.RunID, "other"); !engine.HasCode(err, engine.CodeConflict) ||
		!strings.Contains(err.Error(), "RUNNING since") {
		t.Fatalf("a second start gave %v", err)
	}
	if err := f.svc.Delete(t.Context(), run.RunID, "tester"); !engine.HasCode(err, engine.CodeConflict) {
		t.Fatalf("deleting a live run gave %v", err)
	}
	begin := time.Now()
	stopped, err := f.svc.Stop(t.Context(), run.RunID, "tester")
	if err != nil || (stopped.Status != engine.StatusCancelling && stopped.Status != engine.StatusCancelled) {
		t.Fatalf("stop gave %s, %v", stopped.Status, err)
	}
	sum := f.wait(run.RunID)
	if took := time.Since(begin); took > 10*time.Second {
		t.Fatalf("the run ended %v after stop", took)
	}
	if sum.Status != engine.StatusCancelled || sum.CancellationReason == nil ||
		*sum.CancellationReason != "User requested cancellation" || !sum.Accounting.Balanced || sum.Operations == 0 {
		t.Fatalf("%s, %v, %+v", sum.Status, sum.CancellationReason, sum.Accounting)
	}
	if _, err := f.svc.Stop(t.Context(), run.RunID, "tester"); !engine.HasCode(err, engine.CodeConflict) ||
		!strings.Contains(err.Error(), "CANCELLED") {
		t.Fatalf("stopping a finished run gave %v", err)
	}
	if err := f.svc.Delete(t.Context(), run.RunID, "tester"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.svc.Detail(t.Context(), run.RunID); !engine.HasCode(err, engine.CodeNotFound) {
		t.Fatalf("a deleted run gave %v", err)
	}
}

func TestStopBeforeStartAndWhilePreparing(t *testing.T) {
	f := newFixture(t).start()
	created, err := f.svc.Create(t.Context(), f.scenario(nil), engine.Actor{Name: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	if run, err := f.svc.Stop(t.Context(), created.RunID, "tester"); err != nil || run.Status != engine.StatusCancelled {
		t.Fatalf("%s, %v", run.Status, err)
	}
	if _, err := f.svc.Start(t.Context(), created.RunID, "tester"); !engine.HasCode(err, engine.CodeConflict) {
		t.Fatalf("starting a cancelled run gave %v", err)
	}

	run := f.run(func(sc *engine.Scenario) { sc.Target.Prepare.Rows = 50_000_000 })
	p := f.until(run.RunID, func(p *engine.LiveState) bool {
		return p.Prepare != nil && p.Prepare.Step == "load" && p.Prepare.RowsDone > 0
	})
	if p.Prepare.RowsTotal != 50_000_000 || p.Prepare.RowsPerSecond == 0 || p.Prepare.RemainingSecs == nil {
		t.Fatalf("progress %+v", p.Prepare)
	}
	if _, err := f.svc.Stop(t.Context(), run.RunID, "tester"); err != nil {
		t.Fatal(err)
	}
	sum := f.wait(run.RunID)
	if sum.Status != engine.StatusCancelled || sum.Operations != 0 || !sum.Accounting.Balanced {
		t.Fatalf("%s %+v", sum.Status, sum.Accounting)
	}
	if f.has("orders") {
		t.Fatal("the half-filled table is still there")
	}
}

func TestSetupFailuresNameTheirReason(t *testing.T) {
	f := newFixture(t).start()
	f.sql("CREATE TABLE other (code text PRIMARY KEY)", "CREATE TABLE kept (id bigint PRIMARY KEY)",
		"CREATE TABLE theirs (id bigint PRIMARY KEY, v int)", "INSERT INTO theirs VALUES (1, 1)")
	cases := []struct {
		name   string
		change func(*engine.Scenario)
		want   string
	}{
		{"missing table", func(sc *engine.Scenario) { sc.Target.Prepare = nil; sc.Target.TableName = "nowhere" },
			"The table nowhere does not exist"},
		{"table exists", func(sc *engine.Scenario) {
			sc.Target.TableName = "kept"
			sc.Target.Prepare.IfExists = engine.IfExistsFail
		}, "exists already"},
		{"writes that were not allowed", func(sc *engine.Scenario) {
			sc.Target.Prepare, sc.Target.TableName, sc.Workload.Params = nil, "theirs", []byte(`{"weights":{"UPDATE":1}}`)
		}, "UPDATE in public.theirs, 1 row. target.allow_writes: is not set"},
		{"unreachable host", func(sc *engine.Scenario) {
			sc.Target.Connection.DSN = "postgres://u:p@127.0.0.1:1/x?connect_timeout=2"
		}, "Set-up failed: "},
		{"wrong password", func(sc *engine.Scenario) {
			sc.Target.Connection.DSN = "postgres://somebody:wrong@" + refusingServer(t) + "/db?sslmode=disable"
		}, "assword"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			run := f.run(tc.change)
			sum := f.wait(run.RunID)
			if sum.Status != engine.StatusFailed || sum.CancellationReason == nil ||
				!strings.Contains(*sum.CancellationReason, tc.want) {
				t.Fatalf("%s: %v", sum.Status, sum.CancellationReason)
			}
			t.Log(*sum.CancellationReason)
			d := f.detail(run.RunID)
			if d.CancellationReason == nil || *d.CancellationReason != *sum.CancellationReason || d.Phase != engine.PhaseNone {
				t.Fatalf("detail %v, %q", d.CancellationReason, d.Phase)
			}
		})
	}
	if !f.has("kept") {
		t.Fatal("a table was dropped without being asked")
	}
}

// refusingServer is a Postgres that asks for a password and takes none. It
// returns its address.
func refusingServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 1024)
				_, _ = c.Read(buf)                                  // startup
				_, _ = c.Write([]byte{'R', 0, 0, 0, 8, 0, 0, 0, 3}) // cleartext password, please
				_, _ = c.Read(buf)                                  // password
				text := "SFATAL\x00C28P01\x00Mpassword authentication failed for user \"somebody\"\x00\x00"
				_, _ = c.Write(append([]byte{'E', 0, 0, 0, byte(len(text) + 4)}, text...))
			}()
		}
	}()
	return listener.Addr().String()
}

func TestWhatCannotRunIsRefusedBeforeItIsStored(t *testing.T) {
	f := newFixture(t).start()
	cases := []struct {
		name   string
		change func(*engine.Scenario)
		field  string
		code   engine.Code
	}{
		{"too few bounded workers", func(sc *engine.Scenario) {
			sc.Scaling = engine.Scaling{Mode: engine.ScalingBounded, MaxWorkers: 1, PerWorkerCapacity: 3}
		}, "scaling.max_workers", engine.CodeInvalid},
		{"too many connections", func(sc *engine.Scenario) { sc.Workload.ConcurrentConnections = 17 },
			"scaling.per_worker_capacity", engine.CodeInvalid},
		{"unknown plugin", func(sc *engine.Scenario) { sc.Workload.Plugin = "mixx" }, "workload.plugin", engine.CodePlugin},
		{"unknown adapter", func(sc *engine.Scenario) { sc.Target.Adapter = "oracle" }, "target.adapter", engine.CodePlugin},
		{"unknown parameter", func(sc *engine.Scenario) { sc.Workload.Params = json.RawMessage(`{"weightz": {}}`) },
			"workload.params.weightz", engine.CodeInvalid},
		{"unknown connection", func(sc *engine.Scenario) { sc.Target.Connection = engine.ConnectionRef{Name: "nope"} },
			"target.connection", engine.CodeInvalid},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := f.svc.Create(t.Context(), f.scenario(tc.change), engine.Actor{Name: "tester"})
			var e *engine.Error
			if !errors.As(err, &e) || e.Code != tc.code ||
				!slices.ContainsFunc(e.Fields, func(x engine.FieldError) bool { return x.Field == tc.field && x.Hint != "" }) {
				t.Fatalf("%v", err)
			}
			t.Log(err)
		})
	}
	list, err := f.store.ListRuns(t.Context(), store.RunFilter{})
	if err != nil || list.Total != 0 {
		t.Fatalf("%d runs were stored, %v", list.Total, err)
	}
}

func TestATargetThatDiesFailsTheRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	run := f.run(func(sc *engine.Scenario) { sc.Workload.DurationSeconds = 60; sc.Workload.WarmupSeconds = 0 })
	f.until(run.RunID, func(p *engine.LiveState) bool { return p.Ops.Total > 0 })
	// What a restart of the server does to its clients, without disturbing the control store.
	f.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> " +
		"pg_backend_pid()")
	sum := f.wait(run.RunID)
	if sum.Status != engine.StatusFailed || !strings.HasPrefix(*sum.CancellationReason, "Worker failure: ") {
		t.Fatalf("%s: %v", sum.Status, *sum.CancellationReason)
	}
	t.Log(*sum.CancellationReason)
	if sum.Validity != engine.VerdictDegraded || !sum.Accounting.Balanced || sum.Operations == 0 {
		t.Fatalf("%+v, %+v", sum.ValidityDetail, sum.Accounting)
	}
}

func TestTwoRunsAtOnceAreNoted(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	longer := func(table string) func(*engine.Scenario) {
		return func(sc *engine.Scenario) { sc.Target.TableName = table; sc.Workload.DurationSeconds = 3 }
	}
	first, second := f.run(longer("orders_a")), f.run(longer("orders_b"))
	for _, id := range []string{first.RunID, second.RunID} {
		sum := f.wait(id)
		if sum.Status != engine.StatusCompleted ||
			!slices.ContainsFunc(sum.ValidityDetail.Notes,
				func(n string) bool { return strings.Contains(n, "other run was live") }) {
			t.Fatalf("%s: %+v", sum.Status, sum.ValidityDetail)
		}
	}
}

// TestRowsThatDifferAreSaidBesideTheFigures: a run on a table of another size is not
// the run that the template asks for, whoever reads only its summary.
func TestRowsThatDifferAreSaidBesideTheFigures(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	f.wait(f.run(nil).RunID)
	run := f.run(func(sc *engine.Scenario) {
		sc.Target.Prepare.Rows = 77_777
		sc.Target.Prepare.IfExists = engine.IfExistsUse
	})
	sum := f.wait(run.RunID)
	if sum.Status != engine.StatusCompleted ||
		!slices.ContainsFunc(sum.ValidityDetail.Notes,
			func(n string) bool { return strings.Contains(n, "not the 77777 of target.prepare.rows") }) {
		t.Errorf("%s: %+v", sum.Status, sum.ValidityDetail)
	}
}

func TestPreflightChangesNothing(t *testing.T) {
	f := newFixture(t).start()
	p, err := f.svc.Preflight(t.Context(), f.scenario(nil), true)
	if err != nil || !p.OK || p.Plan == nil || len(p.Plan.Statements) != 2 || len(p.Creates) != 1 || p.Server == nil {
		t.Fatalf("%+v, %v", p, err)
	}
	if f.has("orders") {
		t.Fatal("preflight created the table")
	}
	p, err = f.svc.Preflight(t.Context(), f.scenario(func(sc *engine.Scenario) { sc.Target.Prepare = nil }), true)
	if err != nil || p.OK || !slices.ContainsFunc(p.Checks, func(c prepare.CheckResult) bool {
		return c.Name == "table" && c.Outcome == "failed" && c.Fix != ""
	}) {
		t.Fatalf("%+v, %v", p, err)
	}
	info, err := f.svc.CheckConnection(t.Context(), "postgres", secret.New(f.target))
	if err != nil || info.Version == "" {
		t.Fatalf("%+v, %v", info, err)
	}
}

// TestPreflightOfAMatrix looks at each target, and says which one a check is about.
func TestPreflightOfAMatrix(t *testing.T) {
	f := newFixture(t).start()
	sc := f.scenario(nil)
	missing := sc.Target
	missing.TableName, missing.Prepare = "nowhere", nil
	sc.Matrix = &engine.Matrix{Targets: []engine.MatrixTarget{{Label: "made", Target: sc.Target},
		{Label: "absent", Target: missing}}}
	sc.Target = engine.Target{}
	p, err := f.svc.Preflight(t.Context(), sc, true)
	if err != nil || p.OK || p.Plan != nil || p.Server != nil || len(p.Targets) != 2 {
		t.Fatalf("%+v, %v", p, err)
	}
	made, absent := p.Targets[0], p.Targets[1]
	if made.Label != "made" || !made.OK || made.Plan == nil || made.Server == nil || len(made.Creates) != 1 {
		t.Errorf("%+v", made)
	}
	if absent.Label != "absent" || absent.OK || absent.Plan != nil {
		t.Errorf("%+v", absent)
	}
	if len(p.Checks) != len(made.Checks)+len(absent.Checks) || len(p.Creates) != 1 || p.Creates[0].Target != "made" {
		t.Errorf("%+v", p)
	}
	for _, c := range p.Checks {
		if c.Outcome == "failed" && (c.Target != "absent" || !strings.HasPrefix(c.Field, "matrix.targets[1].")) ||
			c.Target == "" {
			t.Errorf("%+v", c)
		}
	}
	// Without the second one all is well.
	sc.Matrix.Targets = sc.Matrix.Targets[:1]
	if p, err := f.svc.Preflight(t.Context(), sc, true); err != nil || !p.OK || len(p.Targets) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	if f.has("orders") {
		t.Error("preflight created the table")
	}
}
