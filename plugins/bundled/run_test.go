package bundled_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// ended counts what a run worker's executions came to, by the name of the
// transaction (or of the statement outside of one).
type ended struct {
	statements []engine.Statement

	mu                            sync.Mutex
	committed, rolledBack, failed map[string]int
	retries                       int
}

func (e *ended) Write(recs []engine.Execution) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range recs {
		if r.Position != 0 {
			continue
		}
		e.retries += int(r.Retries)
		s := e.statements[r.Statement]
		name := s.ID
		if r.Kind == engine.KindTransaction && s.Transaction != "" {
			name = s.Transaction
		}
		switch {
		case !r.Success:
			e.failed[name]++
		case r.RolledBack:
			e.rolledBack[name]++
		default:
			e.committed[name]++
		}
	}
	return nil
}

// connections of one run worker.
const connections = 4

// load runs a prepared workload as so many run workers for a
// time, and returns what their executions came to. Errors fail the test.
func (b *bench) load(sc engine.Scenario, p *prepare.Prepared, workers int, lasting time.Duration) *ended {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lasting+2*time.Minute)
	defer cancel()
	total := &ended{statements: p.Plan.Statements, committed: map[string]int{}, rolledBack: map[string]int{},
		failed: map[string]int{}}
	w, err := b.host.Workload(ctx, p.Plan.Workload.SHA256)
	if err != nil {
		b.Fatal(err)
	}
	database, err := postgres.NewDriver().
		Open(target.Config{DSN: secret.New(b.dsn), Session: p.Plan.Session, StatementTimeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer database.Close()
	var groups []*load.Group
	for slot := range workers {
		stream, err := w.Open(ctx, plugin.OpenRequest{Seed: sc.Workload.Seed, KeySlot: slot, KeySlots: p.Plan.KeySlots,
			Params: p.Params, Tables: p.Plan.Tables, Pools: p.Plan.Pools}, p.Plan.Statements)
		if err != nil {
			b.Fatal(err)
		}
		defer stream.Close()
		g, err := load.Open(ctx, load.Config{Stream: stream, Database: database, Sink: total, Log: zerolog.Nop(),
			Plan: p.Plan, Workload: sc.Workload}, connections, nil)
		if err != nil {
			b.Fatal(err)
		}
		groups = append(groups, g)
	}
	for _, g := range groups {
		g.Start(engine.PhaseMeasurement)
	}
	time.Sleep(lasting)
	for _, g := range groups {
		if err := g.Drain(ctx); err != nil {
			b.Error(err)
		}
		if err := g.Close(); err != nil {
			b.Error(err)
		}
		n := g.Totals()
		if n.Started == 0 || n.Started != n.Succeeded+n.Failed || n.Recorded != n.Started {
			b.Errorf("the accounts of a run worker do not balance: %+v", n)
		}
		// A connection that is to leave repeats no more what lost against another one.
		lost := sc.Workload.Retry != nil && n.Failed <= connections && g.Error(1).Class == engine.ErrClassSerialization
		if n.Failed > 0 && !lost {
			b.Errorf("%d of %d failed: %+v, %v", n.Failed, n.Started, g.Error(1), fmt.Sprint(total.failed))
		}
	}
	return total
}
