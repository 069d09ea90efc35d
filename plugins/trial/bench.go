package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/host"
	"github.com/loadstone-db/loadstone/plugins/sample"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// BenchBatch is the batch size of Bench.
const BenchBatch = 128

// BenchFigures are what Bench measured. An operation is one of a batch: BEGIN, COMMIT and
// DELAY count as their own.
type BenchFigures struct {
	Plugin  string `json:"plugin"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
	// Operations that were generated, checked and decoded.
	Operations int64 `json:"operations"`
	// NsPerOperation is the time of the best round: generating, checking, decoding.
	NsPerOperation    float64 `json:"ns_per_operation"`
	BytesPerOperation float64 `json:"bytes_per_operation"`
	// FuelPerOperation is in units of about one instruction.
	FuelPerOperation float64 `json:"fuel_per_operation"`
	// AllocationsPerBatch are those of the host.
	AllocationsPerBatch float64 `json:"allocations_per_batch"`
	// MemoryPages is the guest's memory at the end, in pages of 64 KB; MaxMemoryPages is the limit.
	MemoryPages    int64 `json:"memory_pages"`
	MaxMemoryPages int64 `json:"max_memory_pages"`
	// ReadyMs is how long it took from the file to the first operation, compilation included.
	ReadyMs float64 `json:"ready_ms"`
}

// Bench measures a workload plugin for about duration, on a table made of its own
// declaration, in batches of BenchBatch. params are those of a template; the defaults of the
// plugin's schema are filled in. The error is about the plugin, the parameters or the machine.
func Bench(ctx context.Context, wasm []byte, params json.RawMessage, duration time.Duration) (BenchFigures, error) {
	return measure(ctx, host.Options{Log: zerolog.Nop()}, wasm, params, duration)
}

// measure is Bench with a host of other options.
func measure(ctx context.Context, o host.Options, wasm []byte, params json.RawMessage,
	duration time.Duration) (BenchFigures,
	error) {
	var f BenchFigures
	begin := time.Now()
	h, err := host.New(ctx, o)
	if err != nil {
		return f, err
	}
	defer func() { _ = h.Close(context.WithoutCancel(ctx)) }()
	info, err := h.Register(ctx, wasm, false)
	if err != nil {
		return f, err
	}
	f.Plugin, f.Version, f.SHA256, f.MaxMemoryPages = info.Name, info.Version, info.SHA256, abi.MaxMemoryPages
	if info.Kind != plugin.KindWorkload {
		return f, failed("Plugin %s is an adapter, which has no operations to measure.", info.Name)
	}
	r := Report{Info: info, Passed: true}
	full, complete := parameterChecks(&r, params)
	if !complete {
		reason := "it requires parameters; give them with --params"
		if !r.Passed {
			reason = r.Checks[len(r.Checks)-1].Message
		}
		return f, failed("Plugin %s cannot be measured: %s.", info.Name, reason)
	}
	ready, err := h.Workload(ctx, info.SHA256)
	if err != nil {
		return f, err
	}
	b := bench{ctx: ctx, workload: ready}
	if err := b.prepare(full); err != nil {
		return f, err
	}
	defer b.close()
	if err := b.round(0); err != nil {
		return f, err
	}
	f.ReadyMs = float64(time.Since(begin).Microseconds()) / 1000
	const rounds = 5
	for range rounds {
		if err := b.round(duration / rounds); err != nil {
			return f, err
		}
	}
	n := float64(b.operations)
	f.Operations, f.NsPerOperation, f.BytesPerOperation, f.FuelPerOperation = b.operations, b.best, float64(b.bytes)/n,
		float64(b.fuel)/n
	f.AllocationsPerBatch = float64(b.allocations) / float64(b.batches)
	f.MemoryPages = b.stream.MemoryBytes() / abi.PageSize
	return f, nil
}

// bench takes batches of a stream, and opens another when it ends.
type bench struct {
	ctx        context.Context
	workload   plugin.Workload
	request    plugin.OpenRequest
	statements []engine.Statement
	stream     host.Metered
	batch      plugin.Batch

	operations, batches, bytes, fuel int64
	allocations                      uint64
	best                             float64
}

func (b *bench) prepare(params json.RawMessage) error {
	declared, err := b.workload.Tables(b.ctx, params)
	if err != nil {
		return err
	}
	tables := sample.Tables(declared)
	list, err := b.workload.Statements(b.ctx, params, tables)
	if err != nil {
		return err
	}
	b.statements = statementsWithoutSQL(list)
	b.request = plugin.OpenRequest{Seed: 42, KeySlots: 4, Params: params, Tables: tables,
		Pools: sample.Pools(b.ctx, b.workload, params, declared, tables)}
	return b.open()
}

func (b *bench) open() error {
	s, err := b.workload.Open(b.ctx, b.request, b.statements)
	if err != nil {
		return err
	}
	b.stream = s.(host.Metered)
	return nil
}

func (b *bench) close() { _ = b.stream.Close() }

// round takes batches for a time, at least one. Opening another stream is not measured.
func (b *bench) round(duration time.Duration) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var spent time.Duration
	operations := b.operations
	fresh := true
	for b.operations == operations || spent < duration {
		if b.batches%64 == 0 && b.ctx.Err() != nil {
			return b.ctx.Err()
		}
		begin := time.Now()
		err := b.stream.Fill(&b.batch, BenchBatch)
		spent += time.Since(begin)
		if errors.Is(err, plugin.ErrEnded) && !fresh {
			b.close()
			if err := b.open(); err != nil {
				return err
			}
			fresh = true
			continue
		}
		if errors.Is(err, plugin.ErrEnded) {
			return failed("Plugin %s has no operations: its stream ends before the first.", b.workload.Info().Name)
		}
		if err != nil {
			return err
		}
		fresh = false
		b.batches++
		b.operations += int64(len(b.batch.Ops))
		b.bytes += int64(len(b.batch.Data))
		b.fuel += b.stream.FuelSpent()
	}
	runtime.ReadMemStats(&after)
	if duration == 0 {
		// The first batch makes the host's buffers: it is not part of the figures.
		b.operations, b.batches, b.bytes, b.fuel = 0, 0, 0, 0
		return nil
	}
	b.allocations += after.Mallocs - before.Mallocs
	if ns := float64(spent.Nanoseconds()) / float64(b.operations-operations); b.best == 0 || ns < b.best {
		b.best = ns
	}
	return nil
}

func failed(format string, args ...any) error {
	return &engine.Error{Code: engine.CodePlugin, Message: fmt.Sprintf(format, args...), Cause: plugin.ErrFailed}
}
