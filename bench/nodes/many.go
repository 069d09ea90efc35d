package main

import (
	"context"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/bench/measure"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker"
)

// simulated are nodes whose load is played.
func simulated(n int, proxied bool) farmOptions {
	return farmOptions{nodes: n, proxied: proxied, node: worker.Options{Plugins: noPlugins{},
		Drivers: map[string]target.Driver{"postgres": noDriver{"postgres"}}, OpenLoad: openPlayed, Capacity: 64}}
}

// template is a run that every node takes a part of, in an open loop at rate of each.
func template(name string, nodes int, rate float64, seconds int) map[string]any {
	return map[string]any{
		"name": name,
		"target": map[string]any{"connection": "playground", "adapter": "postgres", "table_name": "bench_nodes",
			"prepare": map[string]any{"rows": 1000, "if_exists": "use"}},
		"workload": map[string]any{"plugin": "mix", "load_mode": "QPS", "target_qps": rate * float64(nodes),
			"concurrent_connections": nodes, "duration_seconds": seconds, "warmup_seconds": 0},
		"scaling": map[string]any{"mode": "FIXED", "worker_count": nodes, "per_worker_capacity": 1},
	}
}

// on makes a database of the figure's own Postgres the target of a template.
func (b *bench) on(ctx context.Context, t map[string]any) (map[string]any, error) {
	pg, err := b.postgres(ctx)
	if err != nil {
		return nil, err
	}
	t["target"].(map[string]any)["connection"] = map[string]any{"driver": "postgres", "dsn": pg.DSN("playground")}
	return t, nil
}

// many: simulated nodes that report once a second to one server.
func many(ctx context.Context, b *bench) error {
	nodes, seconds := b.or(b.nodes, 1000), b.or(b.seconds, 60)
	s, err := b.server(ctx, "server", elsewhere...)
	if err != nil {
		return err
	}
	_, took, err := b.joined(ctx, s, simulated(nodes, false))
	if err != nil {
		return err
	}
	tell(fmt.Sprintf("%d nodes have joined and stand", nodes), took.Round(10*time.Millisecond).String(), "")
	now, peak, err := measure.Memory(s.pid())
	if err != nil {
		return err
	}
	tell("memory of the server then, and its peak", fmt.Sprintf("%d and %d MB", now>>20, peak>>20), "")
	cpu := used(s.process)
	if err := pause(ctx, time.Duration(seconds)*time.Second/3); err != nil {
		return err
	}
	_, cores := cpu()
	tell("processor time of the server without a run", fmt.Sprintf("%.2f cores", cores), "")

	t, err := b.on(ctx, template("many", nodes, 10, seconds+20))
	if err != nil {
		return err
	}
	run, err := s.run(ctx, t)
	if err != nil {
		return err
	}
	if err := s.measuring(ctx, run.RunID); err != nil {
		return err
	}
	if err := pause(ctx, 5*time.Second); err != nil {
		return err
	}
	before, err := s.metrics(ctx)
	if err != nil {
		return err
	}
	cpu = used(s.process)
	if err := pause(ctx, time.Duration(seconds)*time.Second); err != nil {
		return err
	}
	_, cores = cpu()
	after, err := s.metrics(ctx)
	if err != nil {
		return err
	}
	tell(fmt.Sprintf("processor time of the server in %d s of a run", seconds), fmt.Sprintf("%.2f cores", cores), "≤ 1")
	ticks := after.since(before, tickMetric)
	if len(ticks) > 0 {
		tell("its ticks, P50 and P99 at most", fmt.Sprintf("%.0f and %.0f ms of %.0f", atMost(ticks, 0.5)*1000,
			atMost(ticks, 0.99)*1000, ticks[len(ticks)-1].count), "P99 ≤ 200 ms")
	}
	d, err := s.settled(ctx, run.RunID)
	if err != nil {
		return err
	}
	if now, peak, err = measure.Memory(s.pid()); err != nil {
		return err
	}
	tell("memory of the server at the end, and its peak", fmt.Sprintf("%d and %d MB", now>>20, peak>>20), "≤ 500 MB")
	tell("the run", account(d), "")
	return nil
}

// tickMetric is how long the second of a run takes on a server.
const tickMetric = "loadstone_run_tick_seconds"

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
