package run_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plugin"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/store/fake"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
	"github.com/loadstone-db/loadstone/engine/worker"
	"github.com/loadstone-db/loadstone/storage/results"
)

// trivialHost has the bundled workloads, and the adapter of a third database.
type trivialHost struct{ plugin.Host }

func (trivialHost) Adapter(context.Context, string) (plugin.Adapter, error) {
	return trivialAdapter{}, nil
}

// trivialAdapter knows one table with a thousand rows, and no operation that is optional.
type trivialAdapter struct{}

func (trivialAdapter) Info() plugin.Info {
	return plugin.Info{PluginRef: engine.PluginRef{Kind: "adapter", Name: "trivial", Version: "1.0.0", SHA256: "trivial"},
		Manifest: plugin.Manifest{Kind: "adapter", Name: "trivial", Version: "1.0.0", Driver: "trivial"}}
}

func (trivialAdapter) Call(_ context.Context, request, answer any) error {
	req, a := request.(plugin.AdapterRequest), answer.(*plugin.AdapterAnswer)
	switch req.Op {
	case plugin.OpInspect:
		first, last := int64(1), int64(1000)
		a.Exists = true
		a.Table = &engine.Table{PhysicalName: req.TableName, Key: []string{"id"}, Rows: 1000, RowsExact: true, KeyMin: &first,
			KeyMax: &last, Dense: true,
			Columns: []engine.Column{{Name: "id", Type: engine.TypeI64}, {Name: "note", Type: engine.TypeText, Nullable: true}}}
	case plugin.OpStatements:
		for _, s := range req.Statements {
			a.Statements = append(a.Statements,
				engine.Statement{ID: s.ID, Kind: s.Kind, Table: s.Table, SQL: "SELECT note FROM things WHERE id = $1",
					Binds: s.Binds, Columns: s.Columns})
		}
	default:
		return plugin.ErrFailed
	}
	return nil
}

// TestAThirdDriverNeedsNoEditOfTheCore runs the main job on a database that the
// core has never heard of: a driver and an adapter are all that it takes.
func TestAThirdDriverNeedsNoEditOfTheCore(t *testing.T) {
	t.Parallel()
	driver := &targettest.Trivial{}
	drivers := map[string]target.Driver{driver.Name(): driver}
	host, dir := trivialHost{plugins(t)}, t.TempDir()
	folder, err := results.Open(filepath.Join(dir, "results"))
	if err != nil {
		t.Fatal(err)
	}
	link := protocol.NewMemory()
	node := worker.NewNode(worker.Options{NodeID: "local", Sample: sampleMachine(), Plugins: host, Drivers: drivers,
		SpoolDir: filepath.Join(dir, "spool"), Log: testLog()})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- node.Listen(ctx, link) }()
	svc := enginerun.New(enginerun.Options{Store: fake.New(), Results: folder, Plugins: host,
		Drivers: drivers,
		Nodes:   []protocol.Dialer{link}, Log: testLog(), Version: "test", TempDir: filepath.Join(dir, "scratch")})
	if err := svc.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stopping, done := context.WithTimeout(context.Background(), 20*time.Second)
		defer done()
		if err := svc.Close(stopping); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		node.Close()
	}()

	run, err := svc.Create(t.Context(), engine.Scenario{
		Name: "third",
		Target: engine.Target{Connection: engine.ConnectionRef{Driver: "trivial", DSN: "anywhere"}, Adapter: "trivial",
			TableName: "things"},
		Workload: engine.Workload{Plugin: "mix", Params: []byte(`{"weights": {"POINT_LOOKUP": 1}}`), LoadMode: engine.LoadQPS,
			TargetQPS: rate(500), Arrival: engine.ArrivalPoisson,
			ConcurrentConnections: 4, DurationSeconds: 1, Seed: 1, Repeat: 1},
		Scaling: engine.Scaling{
			Mode:              engine.ScalingFixed,
			WorkerCount:       1,
			PerWorkerCapacity: 8,
		},
	}, engine.Actor{Name: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Start(t.Context(), run.RunID, "tester"); err != nil {
		t.Fatal(err)
	}
	waiting, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	sum, err := svc.Wait(waiting, run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	reason := ""
	if sum.CancellationReason != nil {
		reason = *sum.CancellationReason
	}
	if sum.Status != engine.StatusCompleted || sum.Operations == 0 || !sum.Accounting.Balanced ||
		sum.Accounting.Recorded != driver.Executed.Load() || sum.Errors.Count != 0 {
		t.Errorf("%s with %d operations of %d, %+v, %q", sum.Status, sum.Operations, driver.Executed.Load(), sum.Accounting,
			reason)
	}
	d, err := svc.Detail(t.Context(), run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if d.Enrichment.Status != engine.EnrichmentSkipped ||
		!strings.HasPrefix(d.Enrichment.Reason, "The target keeps no history") || d.Warehouse != nil {
		t.Errorf("enrichment %+v, warehouse %+v", d.Enrichment, d.Warehouse)
	}
	if _, err := svc.CheckConnection(
		t.Context(),
		"oracle",
		secret.New("x"),
	); !strings.Contains(
		engine.AsError(err).Fields[0].Hint,
		"trivial",
	) {
		t.Errorf("an unknown driver: %v", err)
	}
}

func rate(qps float64) *float64 { return &qps }
