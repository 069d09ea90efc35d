package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/bench/measure"
)

// receiver takes what remote-write sends and keeps nothing of it, so that what is measured is
// what sending costs and not what a TSDB does with it.
type receiver struct {
	requests, bytes atomic.Int64
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	n, _ := io.Copy(io.Discard, q.Body)
	r.requests.Add(1)
	r.bytes.Add(n)
	// How much was written is what a receiver of version 2.0 has to say; more than was sent does no harm.
	for _, what := range []string{"Samples", "Histograms", "Exemplars"} {
		w.Header().Set("X-Prometheus-Remote-Write-"+what+"-Written", strconv.Itoa(1<<30))
	}
	w.WriteHeader(http.StatusNoContent)
}

// outflow: what it costs a run that its metrics are sent to a receiver of remote-write while it goes on.
func outflow(ctx context.Context, b *bench) error {
	rounds, seconds := b.or(b.rounds, 12), b.or(b.seconds, 10)
	pg, err := b.postgres(ctx)
	if err != nil {
		return err
	}
	var listening net.ListenConfig
	l, err := listening.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var taken receiver
	out := &http.Server{Handler: &taken, ReadHeaderTimeout: time.Minute}
	go func() { _ = out.Serve(l) }()
	b.onClose(func() { _ = out.Close() })
	var sides [2]side
	for i, args := range [][]string{nil, {"--remote-write", "http://" + l.Addr().String()}} {
		dir, err := b.folder("outflow-" + strconv.Itoa(i))
		if err != nil {
			return err
		}
		if sides[i].server, err = b.serve(ctx, dir, args...); err != nil {
			return err
		}
		sides[i].processes = []*process{sides[i].server.process}
	}
	t := map[string]any{"name": "outflow",
		"target": map[string]any{"connection": map[string]any{"driver": "postgres", "dsn": pg.DSN("playground")},
			"adapter": "postgres", "table_name": "bench_outflow",
			"prepare": map[string]any{"rows": 100_000, "if_exists": "use"}},
		"workload": map[string]any{"plugin": "mix",
			"params":    map[string]any{"weights": map[string]int{"POINT_LOOKUP": 70, "RANGE_SCAN": 10, "UPDATE": 20}},
			"load_mode": "CONCURRENCY", "concurrent_connections": 16, "duration_seconds": seconds, "warmup_seconds": 1},
		"scaling": map[string]any{"mode": "FIXED", "worker_count": 2, "per_worker_capacity": 8}}
	var rates, costs, without []float64
	for round := -1; round < rounds; round++ { // the first makes the table and compiles the plugins
		var rate, cost [2]float64
		for i := range 2 {
			at := (i + round&1) % 2 // who begins changes
			if rate[at], cost[at], err = sides[at].carry(ctx, t); err != nil {
				return err
			}
		}
		if round < 0 {
			continue
		}
		rates, costs = append(rates, rate[1]/rate[0]), append(costs, cost[1]/cost[0])
		without = append(without, rate[0])
		fmt.Printf("  pair %d: alone %.0f/s and %.1f µs of processor time each, sending %.0f/s and %.1f µs: "+
			"%.3f and %.3f (load average %.1f)\n", round+1, rate[0], cost[0], rate[1], cost[1], rates[round], costs[round],
			measure.LoadAverage())
	}
	if taken.requests.Load() == 0 {
		return errors.New("the receiver has got nothing")
	}
	tell("operations per second when nothing is sent", measure.Spread("%.0f", without), "")
	tell(fmt.Sprintf("sending ÷ alone, %d pairs", rounds), measure.Spread("%.3f", rates)+
		fmt.Sprintf(", middle half %.3f–%.3f", measure.Quantile(rates, 0.25), measure.Quantile(rates, 0.75)), "≥ 0.99")
	tell("processor time of an operation, sending ÷ alone", measure.Spread("%.3f", costs)+
		fmt.Sprintf(", middle half %.3f–%.3f", measure.Quantile(costs, 0.25), measure.Quantile(costs, 0.75)), "≤ 1.01")
	tell("what the receiver got", fmt.Sprintf("%d requests, %.0f KB", taken.requests.Load(),
		float64(taken.bytes.Load())/1e3), "")
	return nil
}
