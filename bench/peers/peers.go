package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// output runs a client and returns what it printed and the CPU time it took.
func output(ctx context.Context, dir, name string, args ...string) (string, time.Duration, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", 0, fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String(), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

func figure(out string, pattern *regexp.Regexp) (float64, error) {
	m := pattern.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("no figure matches %s in:\n%s", pattern, out)
	}
	return strconv.ParseFloat(m[1], 64)
}

// perQuery is CPU time in µs a query.
func perQuery(cpu time.Duration, operations float64) float64 {
	return cpu.Seconds() * 1e6 / operations
}

var (
	pgbenchOps = regexp.MustCompile(`number of transactions actually processed: (\d+)`)
	pgbenchTPS = regexp.MustCompile(`tps = ([\d.]+) \(without initial connection time\)`)
)

func pgbench(c config) client {
	connect := []string{"-h", c.host, "-U", c.user}
	if c.port != "" {
		connect = append(connect, "-p", c.port)
	}
	load := func(ctx context.Context, seconds int, extra ...string) (string, time.Duration, error) {
		args := append(slices.Clone(connect), "-b", c.script, "-n", "-M", "prepared", "-c", strconv.Itoa(c.connections), "-j",
			"2", "-T", strconv.Itoa(seconds))
		return output(ctx, c.dir, "pgbench", append(append(args, extra...), c.database)...)
	}
	var p50, p99 float64
	return client{
		name: "pgbench",
		prepare: func(ctx context.Context) error {
			if _, _, err := output(ctx, c.dir, "pgbench",
				append(slices.Clone(connect), "-i", "-q", "-s", strconv.Itoa(c.scale), c.database)...); err != nil {
				return err
			}
			if _, _, err := load(ctx, min(c.seconds, 5), "-l", "--log-prefix=sample", "--sampling-rate=0.2"); err != nil {
				return err
			}
			latencies, err := pgbenchLog(c.dir)
			if err != nil {
				return err
			}
			p50, p99 = quantile(latencies, 0.5), quantile(latencies, 0.99)
			return nil
		},
		round: func(ctx context.Context) (sample, error) {
			before := machineNow()
			out, cpu, err := load(ctx, c.seconds)
			used := machineNow().since(before)
			if err != nil {
				return sample{}, err
			}
			ops, err := figure(out, pgbenchOps)
			if err != nil {
				return sample{}, err
			}
			tps, err := figure(out, pgbenchTPS)
			return sample{tps: tps, p50: p50, p99: p99, cpu: perQuery(cpu, ops), whole: perQuery(cpu, ops),
				operations: int64(ops),
				rest:       used.rest(cpu, ops)}, err
		},
	}
}

// pgbenchLog reads the latencies in ms from the logs in dir, one file a thread:
// client, transaction, latency in µs, script, time.
func pgbenchLog(dir string) ([]float64, error) {
	files, err := filepath.Glob(filepath.Join(dir, "sample.*"))
	if err != nil {
		return nil, err
	}
	var all []float64
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			if len(fields) < 3 {
				continue
			}
			us, err := strconv.ParseFloat(fields[2], 64)
			if err != nil {
				f.Close()
				return nil, fmt.Errorf("reading pgbench's log: %w", err)
			}
			all = append(all, us/1000)
		}
		f.Close()
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("reading pgbench's log: %w", err)
		}
		os.Remove(path)
	}
	slices.Sort(all)
	return all, nil
}

// quantile of sorted values, without interpolation; 0 of none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}

var (
	sysbenchOps    = regexp.MustCompile(`queries:\s+(\d+)`)
	sysbenchTPS    = regexp.MustCompile(`queries:\s+\d+\s+\(([\d.]+) per sec\.\)`)
	sysbenchBucket = regexp.MustCompile(`(?m)^\s*([\d.]+) \|\**\s+(\d+)$`)
)

func sysbench(c config) client {
	args := []string{"oltp_point_select", "--db-driver=pgsql", "--pgsql-host=" + c.host, "--pgsql-user=" + c.user,
		"--pgsql-db=" + c.database, "--db-ps-mode=auto", "--tables=1", "--table-size=" + strconv.Itoa(c.scale*100_000),
		"--rand-type=uniform", "--threads=" + strconv.Itoa(c.connections), "--time=" + strconv.Itoa(c.seconds),
		"--histogram=on"}
	return client{
		name: "sysbench",
		prepare: func(ctx context.Context) error {
			_, _, err := output(ctx, c.dir, "sysbench", append(slices.Clone(args), "prepare")...)
			return err
		},
		round: func(ctx context.Context) (sample, error) {
			before := machineNow()
			out, cpu, err := output(ctx, c.dir, "sysbench", append(slices.Clone(args), "run")...)
			used := machineNow().since(before)
			if err != nil {
				return sample{}, err
			}
			ops, err := figure(out, sysbenchOps)
			if err != nil {
				return sample{}, err
			}
			tps, err := figure(out, sysbenchTPS)
			if err != nil {
				return sample{}, err
			}
			s := sample{tps: tps, cpu: perQuery(cpu, ops), whole: perQuery(cpu, ops), operations: int64(ops),
				rest: used.rest(cpu, ops)}
			s.p50, s.p99, err = sysbenchHistogram(out)
			return s, err
		},
	}
}

// sysbenchHistogram reads P50 and P99 in ms from the histogram that sysbench prints.
func sysbenchHistogram(out string) (p50, p99 float64, err error) {
	type bucket struct{ ms, n float64 }
	var buckets []bucket
	var total float64
	for _, m := range sysbenchBucket.FindAllStringSubmatch(out, -1) {
		ms, err1 := strconv.ParseFloat(m[1], 64)
		n, err2 := strconv.ParseFloat(m[2], 64)
		if err1 != nil || err2 != nil {
			return 0, 0, fmt.Errorf("reading sysbench's histogram: %q", m[0])
		}
		buckets = append(buckets, bucket{ms, n})
		total += n
	}
	if total == 0 {
		return 0, 0, fmt.Errorf("no histogram in sysbench's output:\n%s", out)
	}
	at := func(q float64) float64 {
		var below float64
		for _, b := range buckets {
			if below += b.n; below >= q*total {
				return b.ms
			}
		}
		return buckets[len(buckets)-1].ms
	}
	return at(0.5), at(0.99), nil
}
