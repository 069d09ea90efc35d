// Command refresh measures how a run is taken into the results database: real parts, made by the recorder, on a disk;
// a Postgres as the server starts one.
//
//	go run ./refresh [-executions 10000000] [-rounds 3]
//
// It prints, for each round, how long the ingest takes as a server does it (roll-ups and segment, and beside them the
// single executions), and its steps alone: parts into the bytes of a segment, and rows into Postgres. Reading the
// parts from a cold disk is not in it: they have just been written.
//
//	go run ./refresh -tables 1000 [-workers 2] [-for 10m] [-every 5s]
//
// keeps so many tables fresh while runs come in, and prints how old what refreshes brought was, against target lags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/loadstone-db/loadstone/bench/measure"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/ingest"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/results/segment"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/derived"
	"github.com/loadstone-db/loadstone/storage/embedded"
	"github.com/loadstone-db/loadstone/storage/results"
)

const (
	runID   = "bench-run"
	perSec  = 50_000 // executions in a second of the run
	workers = 4
)

// begun is when the run started.
var begun = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func main() {
	executions := flag.Int("executions", 10_000_000, "executions of the run")
	rounds := flag.Int("rounds", 3, "rounds")
	dir := flag.String("dir", "", "where the folder of the benchmark is made; empty is the system's for temporary files")
	var f freshness
	flag.IntVar(&f.tables, "tables", 0, "measure how fresh so many tables are kept, and nothing else")
	flag.IntVar(&f.workers, "workers", 2, "by so many workers, each in a server of its own")
	flag.DurationVar(&f.length, "for", 10*time.Minute, "for so long")
	flag.DurationVar(&f.every, "every", 5*time.Second, "while a run comes in so often")
	flag.Parse()
	// The Postgres and the folder go also when the benchmark is stopped.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	measured := func() error { return run(ctx, *dir, *executions, *rounds) }
	if f.tables > 0 {
		measured = func() error { return fresh(ctx, *dir, f) }
	}
	if err := measured(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

type bench struct {
	n        int
	results  *results.Results
	parts    []engine.Artifact
	database *derived.Database
	epoch    int64
}

func run(ctx context.Context, parent string, n, rounds int) (err error) {
	dir, err := os.MkdirTemp(parent, "loadstone-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{n: n}
	if b.results, err = results.Open(filepath.Join(dir, "results")); err != nil {
		return err
	}
	fmt.Printf("%s, %d processors\n", measure.Machine(), runtime.NumCPU())
	if err := b.record(ctx, filepath.Join(dir, "spool")); err != nil {
		return err
	}
	pg, err := embedded.Start(ctx, embedded.Options{DataDir: filepath.Join(dir, "postgres"), Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pg.Stop(context.WithoutCancel(ctx))) }()
	owner, reader, err := pg.Results(ctx)
	if err != nil {
		return err
	}
	if b.database, err = derived.Open(ctx, owner, reader); err != nil {
		return err
	}
	defer b.database.Close()
	return b.ingests(ctx, rounds)
}

// ingests measures the ingest of the run and its steps.
func (b *bench) ingests(ctx context.Context, rounds int) error {
	figures := []struct {
		name, goal string
		measure    func(context.Context) (time.Duration, error)
		seconds    []float64
	}{
		{name: "parts into the bytes of a segment", goal: ">= 1 000 000/s", measure: b.toSegment},
		{name: "ingest without executions", goal: "<= 20 s for 10 million", measure: b.without},
		{name: "executions into Postgres alone", goal: ">= 250 000/s", measure: b.copyOnly},
		{name: "ingest with executions", goal: "<= 60 s for 10 million", measure: b.with},
	}
	for round := range rounds {
		for i := range figures {
			f := &figures[i]
			runtime.GC()
			took, err := f.measure(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			f.seconds = append(f.seconds, took.Seconds())
			fmt.Printf("round %d, load %.1f: %s: %.2f s, %.0f/s\n", round+1, measure.LoadAverage(), f.name, took.Seconds(),
				float64(b.n)/took.Seconds())
		}
	}
	for _, f := range figures {
		fmt.Printf("%-36s %s s, median %.0f/s (goal %s)\n", f.name, measure.Spread("%.2f", f.seconds),
			float64(b.n)/measure.Median(f.seconds), f.goal)
	}
	return nil
}

// record makes the parts of the run, as its run workers would have.
func (b *bench) record(ctx context.Context, spool string) error {
	statements := []engine.Statement{{ID: "lookup"}, {ID: "range"}, {ID: "insert"}, {ID: "update"}}
	var mu sync.Mutex
	var size int64
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for number := range workers {
		group.Go(func() error {
			worker := fmt.Sprintf("0198c1f0-0000-7000-8000-%012d", number)
			dir := filepath.Join(spool, worker)
			w, err := record.NewWriter(record.WriterOptions{Dir: dir, RunID: runID, ResultID: runID, WorkerID: worker,
				Statements: statements, PartAge: time.Hour, Errors: func(uint32) engine.ExecutionError {
					return engine.ExecutionError{Class: "TIMEOUT", Code: "57014", Message: "canceling statement due to user request"}
				}})
			if err != nil {
				return err
			}
			if err := fill(w, b.n/workers, uint64(number)); err != nil {
				return err
			}
			parts, err := w.Close()
			if err != nil {
				return err
			}
			for _, a := range parts {
				if err := b.results.Put(ctx, a, record.LocalFile(filepath.Join(dir, a.Name))); err != nil {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for _, a := range parts {
				size += a.SizeBytes
			}
			b.parts = append(b.parts, parts...)
			return os.RemoveAll(dir)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	b.n = b.n / workers * workers
	fmt.Printf("a record of %d executions in %d parts, %d MB, made in %.1f s\n", b.n, len(b.parts), size>>20,
		time.Since(began).Seconds())
	return nil
}

// fill writes executions of 32 connections, as a collector finds them: a chunk of one connection after that of
// another.
func fill(w *record.Writer, n int, seed uint64) error {
	const connections, chunk = 32, 64
	rng := rand.New(rand.NewPCG(seed, 7))
	gap := int64(time.Second) / (perSec / workers) * connections
	var due [connections]int64
	var seq [connections]uint32
	for i := range due {
		due[i] = begun.UnixNano() + int64(i)*gap/connections
	}
	recs := make([]engine.Execution, chunk)
	for done := 0; done < n; {
		for c := 0; c < connections && done < n; c++ {
			batch := recs[:min(chunk, n-done)]
			for i := range batch {
				kind := rng.IntN(4)
				batch[i] = engine.Execution{DueAt: due[c], StartedAt: due[c] + rng.Int64N(20_000),
					Elapsed: int64(math.Exp(rng.NormFloat64()*0.6) * 400_000), ConnectionID: uint32(c), Seq: seq[c], Rows: 1,
					Success: true, Kind: engine.Kind(kind), Statement: uint16(kind), Decode: rng.Int64N(9_000)}
				if rng.IntN(1000) == 0 {
					batch[i].Success, batch[i].ErrorID, batch[i].Rows = false, 1, 0
				}
				due[c] += gap
				seq[c]++
			}
			if err := w.Write(batch); err != nil {
				return err
			}
			done += len(batch)
		}
	}
	return nil
}

// Artifacts and Warehouse are what a control store knows of the run.
func (b *bench) Artifacts(context.Context, string) ([]engine.Artifact, error) { return b.parts, nil }

// Warehouse implements ingest.Store.
func (b *bench) Warehouse(context.Context, string) ([]engine.WarehousePoint, error) { return nil, nil }

// Reports implements ingest.Store.
func (b *bench) Reports(context.Context, string, func(*engine.WorkerSnapshot)) error { return nil }

// QueueDeletion implements ingest.Store.
func (b *bench) QueueDeletion(context.Context, store.PendingDeletion) error { return nil }

func held(context.Context) error { return nil }

func (b *bench) claim() refresh.Claim {
	b.epoch++
	return refresh.Claim{Task: refresh.Task{Table: ingest.Table, Subtask: runID}, Worker: "bench", Epoch: b.epoch}
}

// take is the ingest of the run, as a server does it; it was not there before.
func (b *bench) take(ctx context.Context, executions bool) (time.Duration, error) {
	c := b.claim()
	if err := errors.Join(b.database.Begin(ctx, c), b.database.DropRun(ctx, c)); err != nil {
		return 0, err
	}
	in := &ingest.Ingest{Store: b, Record: b.results, Target: b.database, Executions: executions,
		Detail: func(context.Context, string) (engine.RunDetail, error) {
			return engine.RunDetail{Run: engine.Run{RunID: runID, Status: engine.StatusCompleted, StartTime: engine.At(begun)}},
				nil
		}}
	began := time.Now()
	result, err := in.Run(ctx, b.claim(), held)
	if err == nil && (result.Note != "" || result.Rows == 0) {
		err = fmt.Errorf("taken in: %+v", result)
	}
	return time.Since(began), err
}

func (b *bench) without(ctx context.Context) (time.Duration, error) { return b.take(ctx, false) }

func (b *bench) with(ctx context.Context) (time.Duration, error) { return b.take(ctx, true) }

// toSegment rolls the parts up and encodes the segment.
func (b *bench) toSegment(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	r := rollup.Run{Run: engine.Run{RunID: runID}, Seconds: rollup.New(begun)}
	var adding sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, a := range b.parts {
		group.Go(func() error {
			s := rollup.New(begun)
			if err := b.results.RollUp(ctx, runID, a.Name, s); err != nil {
				return err
			}
			adding.Lock()
			defer adding.Unlock()
			r.Seconds.Merge(s)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if r.Seconds.Executions != int64(b.n) {
		return 0, fmt.Errorf("%d executions of %d", r.Seconds.Executions, b.n)
	}
	_, _, err := segment.Bytes(&r)
	return time.Since(began), err
}

// copyOnly copies the executions into a table of their own.
func (b *bench) copyOnly(ctx context.Context) (time.Duration, error) {
	c := b.claim()
	if err := b.database.Begin(ctx, c); err != nil {
		return 0, err
	}
	began := time.Now()
	staged, err := b.database.StageExecutions(ctx, c, begun, "bench",
		func(ctx context.Context, take func(*rollup.Executions) error) error {
			for _, a := range b.parts {
				if err := b.results.ReadExecutions(ctx, runID, a.Name, take); err != nil {
					return err
				}
			}
			return nil
		})
	took := time.Since(began)
	if err == nil && staged.Rows != int64(b.n) {
		err = fmt.Errorf("%d rows of %d", staged.Rows, b.n)
	}
	b.database.Unstage(ctx, staged)
	return took, err
}
