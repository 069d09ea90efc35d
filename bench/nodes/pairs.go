package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/loadstone-db/loadstone/bench/measure"
)

// side is one of the two that are compared: a server whose own node carries the load, or one with
// two nodes beside it.
type side struct {
	server    *server
	processes []*process
}

// cpu is what the processes of the side have taken so far.
func (s *side) cpu() (sum time.Duration) {
	for _, p := range s.processes {
		t, _ := measure.CPU(p.pid())
		sum += t
	}
	return sum
}

// pairs: two nodes on a machine issue what one node in the server's process does.
func pairs(ctx context.Context, b *bench) error {
	rounds, seconds := b.or(b.rounds, 12), b.or(b.seconds, 5)
	pg, err := b.postgres(ctx)
	if err != nil {
		return err
	}
	ownDir, err := b.folder("own")
	if err != nil {
		return err
	}
	var own, two side
	if own.server, err = b.serve(ctx, ownDir); err != nil {
		return err
	}
	own.processes = []*process{own.server.process}
	if two.server, err = b.server(ctx, "two", elsewhere...); err != nil {
		return err
	}
	token, err := two.server.token(ctx, 2)
	if err != nil {
		return err
	}
	two.processes = []*process{two.server.process}
	for i := range 2 {
		n, err := b.worker(ctx, two.server, fmt.Sprintf("worker-%d", i), token)
		if err != nil {
			return err
		}
		two.processes = append(two.processes, n.process)
	}
	t := map[string]any{"name": "pairs",
		"target": map[string]any{"connection": map[string]any{"driver": "postgres", "dsn": pg.DSN("playground")},
			"adapter": "postgres", "table_name": "bench_pairs", "prepare": map[string]any{"rows": 100_000, "if_exists": "use"}},
		"workload": map[string]any{"plugin": "mix", "params": map[string]any{"weights": map[string]int{"POINT_LOOKUP": 100}},
			"load_mode": "CONCURRENCY", "concurrent_connections": 16, "duration_seconds": seconds, "warmup_seconds": 1},
		"scaling": map[string]any{"mode": "FIXED", "worker_count": 2, "per_worker_capacity": 8}}
	var rates, costs, ownRate, twoRate []float64
	for round := -1; round < rounds; round++ { // the first makes the table and compiles the plugins
		var rate, cost [2]float64
		for i := range 2 {
			at := i
			if round%2 != 0 {
				at = 1 - i // who begins changes
			}
			if rate[at], cost[at], err = []*side{&own, &two}[at].carry(ctx, t); err != nil {
				return err
			}
		}
		if round < 0 {
			continue
		}
		rates, costs = append(rates, rate[1]/rate[0]), append(costs, cost[1]/cost[0])
		ownRate, twoRate = append(ownRate, rate[0]), append(twoRate, rate[1])
		fmt.Printf("  pair %d: own node %.0f/s and %.1f µs of processor time each, two nodes %.0f/s and %.1f µs: "+
			"%.3f and %.3f (load average %.1f)\n", round+1, rate[0], cost[0], rate[1], cost[1], rates[round], costs[round],
			measure.LoadAverage())
	}
	tell("operations per second, the server's own node", measure.Spread("%.0f", ownRate), "")
	tell("two nodes beside a server", measure.Spread("%.0f", twoRate), "")
	tell(fmt.Sprintf("two nodes ÷ own node, %d pairs", rounds), measure.Spread("%.3f", rates)+
		fmt.Sprintf(", middle half %.3f–%.3f", measure.Quantile(rates, 0.25), measure.Quantile(rates, 0.75)), "≥ 0.95")
	tell("processor time of an operation, two nodes and their server ÷ the other server", measure.Spread("%.3f", costs)+
		fmt.Sprintf(", middle half %.3f–%.3f", measure.Quantile(costs, 0.25), measure.Quantile(costs, 0.75)), "≤ 1.05")
	return nil
}

// carry makes a run, and returns its operations per second and what an operation took of the
// side's processors, in µs; what starting and judging the run takes is in it.
func (s *side) carry(ctx context.Context, t map[string]any) (rate, cost float64, err error) {
	before := s.cpu()
	run, err := s.server.run(ctx, t)
	if err != nil {
		return 0, 0, err
	}
	d, err := s.server.settled(ctx, run.RunID)
	if err != nil {
		return 0, 0, err
	}
	a := d.Summary.Accounting
	if !a.Balanced || d.Summary.Errors.Count > 0 || a.Started == 0 || d.Summary.QPS == nil {
		return 0, 0, fmt.Errorf("%s, %d errors", account(d), d.Summary.Errors.Count)
	}
	return *d.Summary.QPS, math.Round((s.cpu()-before).Seconds()*1e6/float64(a.Started)*100) / 100, nil
}
