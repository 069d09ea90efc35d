package load_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/load"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// lookups is a native stream of uniform point lookups.
type lookups struct {
	random *rand.Rand
	rows   int64
}

func (s *lookups) Fill(b *plugin.Batch, n int) error {
	b.Reset()
	for i := range n {
		b.Ops = append(b.Ops, plugin.Op{FirstArg: uint32(i), NArgs: 1})
		b.Args = append(b.Args, plugin.Value{Type: engine.TypeI64, I: 1 + s.random.Int64N(s.rows)})
	}
	return nil
}
func (s *lookups) Close() error { return nil }

type counting struct{ n int64 }

func (s *counting) Write(recs []engine.Execution) error { s.n += int64(len(recs)); return nil }

func lookupPlan() *engine.Plan {
	return &engine.Plan{Statements: []engine.Statement{{ID: "lookup", Kind: engine.KindPointLookup,
		SQL:   "SELECT abalance FROM pgbench_accounts WHERE aid = $1",
		Binds: []engine.Bind{{Name: "id", Type: engine.TypeI64}}}}}
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPointLookup runs 16 connections in a closed loop against a real
// Postgres and reports TPS and client CPU for each query. With
// LOADSTONE_BENCH_PGBENCH set it alternates with pgbench on the same server.
func BenchmarkPointLookup(b *testing.B) {
	const rows, connections = 100000, 16
	server := pgtest.Start(b)
	dsn := server.NewDatabase(b)
	database, err := postgres.NewDriver().Open(target.Config{DSN: dsn, StatementTimeout: 30 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	defer database.Close()
	ctx := context.Background()
	err = database.Exec(ctx,
		"CREATE TABLE pgbench_accounts (aid int NOT NULL, bid int, abalance int, filler char(84))",
		fmt.Sprintf("INSERT INTO pgbench_accounts SELECT i, 1, 0, '' FROM generate_series(1, %d) i", rows),
		"ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid)", "VACUUM ANALYZE pgbench_accounts", "CHECKPOINT")
	if err != nil {
		b.Fatal(err)
	}
	for _, io := range []engine.IOEngine{engine.IOEvents, engine.IOGoroutines} {
		b.Run(string(io), func(b *testing.B) { pointLookups(b, database, server, dsn, io, rows, connections) })
	}
}

func pointLookups(b *testing.B, database target.Database, server *pgtest.Server, dsn string, io engine.IOEngine,
	rows int64, connections int) {
	ctx := context.Background()
	for b.Loop() {
		sink := &counting{}
		g, err := load.Open(ctx, load.Config{Plan: lookupPlan(), Stream: &lookups{rand.New(rand.NewPCG(1, 2)), rows},
			Database: database, Sink: sink, Log: zerolog.Nop(), Workload: engine.Workload{IOEngine: io}}, connections, nil)
		if err != nil {
			b.Fatal(err)
		}
		used, begin := cpu(), time.Now()
		g.Start(engine.PhaseMeasurement)
		time.Sleep(4 * time.Second)
		if err := g.Drain(ctx); err != nil {
			b.Fatal(err)
		}
		used, took := cpu()-used, time.Since(begin)
		t := g.Totals()
		_ = g.Close()
		if t.Failed > 0 || t.Recorded != t.Started {
			b.Fatalf("%+v", t)
		}
		ours := float64(t.Started) / took.Seconds()
		b.ReportMetric(ours, "tps")
		b.ReportMetric(float64(used.Nanoseconds())/float64(t.Started), "cpu-ns/query")
		b.ReportMetric(0, "ns/op")
		if os.Getenv("LOADSTONE_BENCH_PGBENCH") != "" {
			theirs := pgbench(b, server, dsn)
			b.ReportMetric(theirs, "pgbench-tps")
			b.ReportMetric(ours/theirs, "ratio")
			b.Logf("%.0f against %.0f of pgbench: %.2f", ours, theirs, ours/theirs)
		}
	}
}

var tpsLine = regexp.MustCompile(`tps = ([0-9.]+)`)

func pgbench(b *testing.B, _ *pgtest.Server, dsn string) float64 {
	binary, err := exec.LookPath("pgbench")
	if err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
		if len(found) == 0 {
			b.Skip("pgbench is not installed")
		}
		binary = found[len(found)-1]
	}
	script := filepath.Join(b.TempDir(), "lookup.sql")
	if err := os.WriteFile(script,
		[]byte("\\set aid random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	out, err := exec.Command(binary, "-n", "-M", "prepared", "-c", "16", "-j", "2", "-T", "4", "-f", script, dsn).
		CombinedOutput()
	m := tpsLine.FindSubmatch(out)
	if err != nil || m == nil {
		b.Fatalf("pgbench: %v: %s", err, bytes.TrimSpace(out))
	}
	tps, _ := strconv.ParseFloat(string(m[1]), 64)
	return tps
}
