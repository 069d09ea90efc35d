package load_test

import (
	"bufio"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// nullTarget starts a target that answers at once, in another process.
func nullTarget(b *testing.B, address string) (dsn string) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asTarget+"="+address)
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		b.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// inUse is the memory that this process's heap and stacks hold.
func inUse() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// BenchmarkConnections compares 2000 connections with 64 on a target that does
// nothing, in rounds that take turns: TPS, CPU for each query, and the memory of each connection in this process.
// Beside it runs the barest client there can be, which shows how much of the difference is the system's.
func BenchmarkConnections(b *testing.B) {
	const few, many, rounds, length = 64, 2000, 5, 3 * time.Second
	address := filepath.Join(b.TempDir(), ".s.PGSQL.5432")
	database, err := postgres.NewDriver().
		Open(target.Config{DSN: secret.New(nullTarget(b, address)), StatementTimeout: 30 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	defer database.Close()
	run := func(connections int) (tps, cost, bytes float64) {
		before := inUse()
		g, err := load.Open(context.Background(),
			load.Config{Plan: lookupPlan(), Stream: &lookups{rand.New(rand.NewPCG(1, 2)), 1000},
				Database: database, Sink: &counting{}, Log: zerolog.Nop()}, connections, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer g.Close()
		g.Start(engine.PhaseMeasurement)
		time.Sleep(time.Second) // every connection has had its first batch and chunk
		from, used, begin := g.Totals().Succeeded, cpu(), time.Now()
		time.Sleep(length)
		n := float64(g.Totals().Succeeded - from)
		tps, cost = n/time.Since(begin).Seconds(), float64((cpu()-used).Nanoseconds())/n
		bytes = (inUse() - before) / float64(connections)
		if err := g.Drain(context.Background()); err != nil {
			b.Fatal(err)
		}
		if n := g.Totals(); n.Failed > 0 || n.Recorded != n.Started {
			b.Fatalf("%+v", n)
		}
		return tps, cost, bytes
	}
	for b.Loop() {
		var base, wide, ratio, memory, baseCost, wideCost, bareRatio, bareCost, bareWideCost []float64
		for range rounds {
			a, costA, _ := run(few)
			c, costC, bytes := run(many)
			base, wide, ratio, memory = append(base, a), append(wide, c), append(ratio, c/a), append(memory, bytes)
			baseCost, wideCost = append(baseCost, costA), append(wideCost, costC)
			x, costX := bare(b, address, few, length)
			y, costY := bare(b, address, many, length)
			bareRatio, bareCost, bareWideCost = append(bareRatio, y/x), append(bareCost, costX), append(bareWideCost, costY)
		}
		middle := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
		b.ReportMetric(middle(base), "tps-64")
		b.ReportMetric(middle(wide), "tps-2000")
		b.ReportMetric(middle(ratio), "ratio")
		b.ReportMetric(middle(bareRatio), "bare-ratio")
		b.ReportMetric(middle(bareCost), "bare-cpu-ns/query-64")
		b.ReportMetric(middle(bareWideCost), "bare-cpu-ns/query-2000")
		b.ReportMetric(middle(baseCost), "cpu-ns/query-64")
		b.ReportMetric(middle(wideCost), "cpu-ns/query-2000")
		b.ReportMetric(middle(memory)/1024, "KB/connection")
		b.ReportMetric(0, "ns/op")
	}
}
