package run_test

import (
	"context"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
)

// standIn is Postgres that says of itself that it models another database.
type standIn struct{ target.Driver }

func (d standIn) Open(cfg target.Config) (target.Database, error) {
	db, err := d.Driver.Open(cfg)
	return modelled{db}, err
}

type modelled struct{ target.Database }

func (d modelled) Check(ctx context.Context) (target.ServerInfo, error) {
	info, err := d.Database.Check(ctx)
	info.Simulated = true
	return info, err
}

// TestSimulatedIsSaidWhereverFiguresAre: in the live payload, in the payload of
// a run at rest, in the detail and in the summary.
func TestSimulatedIsSaidWhereverFiguresAre(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.driver = standIn{postgres.NewDriver()}
	f.start()
	run := f.run(func(sc *engine.Scenario) { sc.Workload.DurationSeconds, sc.Workload.WarmupSeconds = 0.5, 0 })
	if p := f.until(run.RunID, phase(engine.PhaseMeasurement)); !p.Simulated {
		t.Error("the live payload does not say so")
	}
	if sum := f.wait(run.RunID); !sum.Simulated || !sum.Environment.Simulated {
		t.Error("the summary does not say so")
	}
	d := f.settled(run.RunID)
	if !d.Simulated {
		t.Error("the detail does not say so")
	}
	updates, cancel, err := f.svc.Subscribe(run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	if p := <-updates; p == nil || !p.Simulated {
		t.Error("the payload of the run at rest does not say so")
	}
}
