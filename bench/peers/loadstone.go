package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/bench/measure"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// template is what Loadstone runs: pgbench's own script on pgbench's own tables.
func template(c config) ([]byte, error) {
	return json.MarshalIndent(map[string]any{
		"name": "peers: " + c.script,
		"target": map[string]any{
			"connection": map[string]any{"driver": "postgres", "dsn": c.dsn},
			"adapter":    "postgres",
		},
		"workload": map[string]any{
			"plugin":                 "tpcb",
			"params":                 map[string]any{"scale": c.scale, "script": c.script},
			"io_engine":              c.io,
			"load_mode":              "CONCURRENCY",
			"concurrent_connections": c.connections,
			"warmup_seconds":         c.warmup,
			"duration_seconds":       c.seconds,
		},
		"scaling": map[string]any{"mode": "FIXED", "worker_count": c.workers,
			"per_worker_capacity": (c.connections + c.workers - 1) / c.workers},
	}, "", "  ")
}

// loadstone runs a binary; each has its own data directory, since versions need not share one.
func loadstone(c config, name, binary string) client {
	source := filepath.Join(c.dir, name+".json")
	data := filepath.Join(c.dir, name)
	return client{
		name: name,
		prepare: func(context.Context) error {
			b, err := template(c)
			if err != nil {
				return err
			}
			return os.WriteFile(source, b, 0o600)
		},
		round: func(ctx context.Context) (sample, error) {
			out := filepath.Join(c.dir, "summary.json")
			cmd := exec.CommandContext(ctx, binary, "run", source, "--data-dir", data, "--out", out, "--quiet")
			// An interrupt lets it stop its own Postgres.
			cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
			cmd.WaitDelay = 30 * time.Second
			var text bytes.Buffer
			cmd.Stdout, cmd.Stderr = &text, &text
			if err := cmd.Start(); err != nil {
				return sample{}, err
			}
			stop, usage := make(chan struct{}), make(chan series, 1)
			go func() { usage <- watch(cmd.Process.Pid, stop) }()
			err := cmd.Wait()
			close(stop)
			taken := <-usage
			if err != nil {
				return sample{}, fmt.Errorf("%w\n%s", err, text.String())
			}
			b, err := os.ReadFile(out)
			if err != nil {
				return sample{}, err
			}
			var summary engine.Summary
			if err := json.Unmarshal(b, &summary); err != nil {
				return sample{}, fmt.Errorf("reading the summary: %w", err)
			}
			if summary.LatencyMs == nil || summary.Operations == 0 {
				return sample{}, errors.New("the run recorded nothing")
			}
			if summary.Errors.Count > 0 || !summary.Accounting.Balanced {
				return sample{}, fmt.Errorf("%d errors, accounting %+v", summary.Errors.Count, summary.Accounting)
			}
			from, to, err := measured(filepath.Join(data, "results", summary.RunID))
			if err != nil {
				return sample{}, err
			}
			cpu, used := taken.between(from, to)
			whole := time.Duration(0)
			if len(taken) > 0 {
				whole = taken[len(taken)-1].cpu
			}
			return sample{whole: perQuery(whole, float64(summary.Accounting.Started)), tps: *summary.QPS,
				p50: summary.LatencyMs.P50, p99: summary.LatencyMs.P99,
				cpu: perQuery(cpu, float64(summary.Operations)), operations: summary.Operations,
				rest: used.rest(cpu, float64(summary.Operations))}, nil
		},
	}
}

// measured returns when the first execution of the measurement was due and when
// the last part was finished, from the run's parts.
func measured(dir string) (from, to time.Time, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "executions-*.parquet"))
	if err != nil {
		return from, to, err
	}
	if len(paths) == 0 {
		return from, to, fmt.Errorf("no parts in %s", dir)
	}
	first := int64(math.MaxInt64)
	for _, path := range paths {
		p, err := record.OpenPart(path)
		if err != nil {
			return from, to, err
		}
		for g := range p.RowGroups() {
			due, err1 := p.Int64s(g, record.ColDueAt, nil)
			warmup, err2 := p.Bools(g, record.ColWarmup, nil)
			if err := errors.Join(err1, err2); err != nil {
				_ = p.Close() // only read
				return from, to, err
			}
			for i, ns := range due {
				if !warmup[i] {
					first = min(first, ns)
				}
			}
		}
		if created := p.Artifact().CreatedAt.Time; created.After(to) {
			to = created
		}
		_ = p.Close() // only read
	}
	return time.Unix(0, first), to, nil
}

// point is what the client, and the machine, had used at a moment.
type point struct {
	at      time.Time
	cpu     time.Duration
	machine machine
}

type series []point

// between is what was used from one moment to another, interpolated.
func (s series) between(from, to time.Time) (cpu time.Duration, used machine) {
	a, b := s.at(from), s.at(to)
	return b.cpu - a.cpu, b.machine.since(a.machine)
}

func (s series) at(t time.Time) point {
	i, found := slices.BinarySearchFunc(s, t, func(p point, t time.Time) int { return p.at.Compare(t) })
	switch {
	case len(s) == 0:
		return point{}
	case found || i == 0:
		return s[i]
	case i == len(s):
		return s[i-1]
	}
	a, b := s[i-1], s[i]
	share := float64(t.Sub(a.at)) / float64(b.at.Sub(a.at))
	part := func(a, b float64) float64 { return a + share*(b-a) }
	return point{t, time.Duration(part(float64(a.cpu), float64(b.cpu))),
		machine{busy: part(a.machine.busy, b.machine.busy), idle: part(a.machine.idle, b.machine.idle),
			stolen: part(a.machine.stolen, b.machine.stolen), switches: part(a.machine.switches, b.machine.switches)}}
}

// watch reads the process's user and system time ten times a second, its
// children's not included, and the machine's, until stop is closed.
func watch(pid int, stop <-chan struct{}) series {
	var s series
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if cpu, err := measure.CPU(pid); err == nil {
			s = append(s, point{time.Now(), cpu, machineNow()})
		}
		select {
		case <-stop:
			return s
		case <-tick.C:
		}
	}
}
