package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/bench/measure"
)

// cluster are the processes of an embedded Postgres, by what they work for.
type cluster struct{ proc, postmaster string }

// kinds are what its processes work for: the database of live series, that of snapshots, and all of it.
var kinds = [3]string{"results", "control", "the rest"}

// clusterOf finds the Postgres of a server that keeps its files in a folder.
func clusterOf(dir string) (cluster, error) {
	text, err := os.ReadFile(filepath.Join(dir, "postgres", "postmaster.pid"))
	if err != nil {
		return cluster{}, fmt.Errorf("finding the server's Postgres: %w", err)
	}
	pid, _, _ := strings.Cut(string(text), "\n")
	return cluster{"/proc", strings.TrimSpace(pid)}, nil
}

// used is what each of its processes has computed so far, exact to a nanosecond, by kind.
func (c cluster) used() (map[string]int, map[string]time.Duration, error) {
	all, err := filepath.Glob(filepath.Join(c.proc, "[0-9]*"))
	if err != nil {
		return nil, nil, err
	}
	kind, took := map[string]int{}, map[string]time.Duration{}
	for _, dir := range all {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid …
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		title, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		spent, err := os.ReadFile(filepath.Join(dir, "schedstat"))
		if err != nil || len(fields) < 2 || fields[1] != c.postmaster {
			continue
		}
		ns, _, _ := strings.Cut(string(spent), " ")
		n, err := strconv.ParseInt(ns, 10, 64)
		if err != nil {
			return nil, nil, fmt.Errorf("reading what a process has computed: %w", err)
		}
		took[dir] = time.Duration(n)
		switch text := string(title); {
		case strings.Contains(text, " results results "):
			kind[dir] = 0
		case strings.Contains(text, " loadstone loadstone "):
			kind[dir] = 1
		default:
			kind[dir] = 2
		}
	}
	if len(took) == 0 {
		return nil, nil, errors.New("the server's Postgres has no processes")
	}
	return kind, took, nil
}

// cost is what happens in a while, for each second of it.
type cost struct {
	// postgres is milliseconds of processor time, by kind; wal is bytes of the log of both databases.
	postgres [3]float64
	wal      float64
	server   float64
}

// during measures what a server and its Postgres do for so many seconds.
func during(ctx context.Context, s *server, c cluster, seconds int) (cost, error) {
	wal := func() (float64, error) {
		var answer struct{ Rows [][]float64 }
		err := s.call(ctx, http.MethodPost, "/api/query",
			map[string]any{"sql": "SELECT wal_bytes::float8 FROM pg_stat_wal"}, &answer)
		if err == nil && len(answer.Rows) != 1 {
			err = errors.New("there is no answer of Postgres to what it has written")
		}
		if err != nil {
			return 0, err
		}
		return answer.Rows[0][0], nil
	}
	var out cost
	walBefore, err := wal()
	if err != nil {
		return out, err
	}
	_, before, err := c.used()
	if err != nil {
		return out, err
	}
	process, began := used(s.process), time.Now()
	if err := pause(ctx, time.Duration(seconds)*time.Second); err != nil {
		return out, err
	}
	kind, after, err := c.used()
	if err != nil {
		return out, err
	}
	took := time.Since(began).Seconds()
	cpu, _ := process()
	walAfter, err := wal()
	for dir, spent := range after {
		out.postgres[kind[dir]] += (spent - before[dir]).Seconds() * 1e3 / took
	}
	out.server, out.wal = cpu.Seconds()*1e3/took, (walAfter-walBefore)/took
	return out, err
}

// live: what it costs the server's Postgres that a run's snapshots and live series are kept, against the same while
// without a run. The target is another Postgres, and nothing is taken in meanwhile. The run has -nodes run workers, 2.
func live(ctx context.Context, b *bench) error {
	rounds, seconds, workers := b.or(b.rounds, 8), b.or(b.seconds, 10), b.or(b.nodes, 2)
	pg, err := b.postgres(ctx)
	if err != nil {
		return err
	}
	dir, err := b.folder("live")
	if err != nil {
		return err
	}
	s, err := b.serve(ctx, dir, "--refresh-workers", "0")
	if err != nil {
		return err
	}
	c, err := clusterOf(dir)
	if err != nil {
		return err
	}
	t := map[string]any{"name": "live",
		"target": map[string]any{"connection": map[string]any{"driver": "postgres", "dsn": pg.DSN("playground")},
			"adapter": "postgres", "table_name": "bench_live",
			"prepare": map[string]any{"rows": 100_000, "if_exists": "use"}},
		"workload": map[string]any{"plugin": "mix",
			"params":    map[string]any{"weights": map[string]int{"POINT_LOOKUP": 70, "RANGE_SCAN": 10, "UPDATE": 20}},
			"load_mode": "CONCURRENCY", "concurrent_connections": 16, "duration_seconds": seconds + 5, "warmup_seconds": 1},
		"scaling": map[string]any{"mode": "FIXED", "worker_count": workers, "per_worker_capacity": 16 / workers}}
	var more [3][]float64
	var wal, share, idle []float64
	for round := -1; round < rounds; round++ { // the first makes the table and compiles the plugins
		var costs [2]cost
		for i := range 2 {
			with := (i+round&1)%2 == 1 // which comes first changes
			if !with {
				if costs[0], err = during(ctx, s, c, seconds); err != nil {
					return err
				}
				continue
			}
			run, err := s.run(ctx, t)
			if err != nil {
				return err
			}
			if err := s.measuring(ctx, run.RunID); err != nil {
				return err
			}
			if costs[1], err = during(ctx, s, c, seconds); err != nil {
				return err
			}
			if _, err := s.settled(ctx, run.RunID); err != nil {
				return err
			}
		}
		if round < 0 {
			continue
		}
		all := 0.0
		for i := range kinds {
			difference := costs[1].postgres[i] - costs[0].postgres[i]
			more[i], all = append(more[i], difference), all+difference
		}
		wal, idle = append(wal, (costs[1].wal-costs[0].wal)/1e3), append(idle, costs[0].postgres[0]+costs[0].postgres[1])
		share = append(share, all/(costs[1].server+all)*100)
		fmt.Printf("  pair %d: results %.1f, control %.1f, the rest %.1f ms/s more than without a run, %.0f KB/s of log, "+
			"the server %.0f ms/s (load average %.1f)\n", round+1, more[0][round], more[1][round], more[2][round], wal[round],
			costs[1].server, measure.LoadAverage())
	}
	for i, kind := range kinds {
		tell(fmt.Sprintf("processor time of Postgres, %s, for a second of a run, %d pairs", kind, rounds),
			measure.Spread("%.1f ms", more[i]), "")
	}
	tell("the same without a run, results and control", measure.Spread("%.1f ms", idle), "")
	tell("its share of all that Loadstone computes, the load included", measure.Spread("%.2f %%", share), "")
	tell("written to the log of Postgres for a second of a run", measure.Spread("%.0f KB", wal), "")
	return nil
}
