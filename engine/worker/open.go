package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker/load"
	"github.com/loadstone-db/loadstone/engine/worker/load/arrival"
)

// open makes everything that load needs: the plugin's stream, the recorder, the connections.
func (w *runWorker) open(ctx context.Context) (_ *resources, err error) {
	opts := w.node.opts
	r := &resources{dir: w.node.spool(w.a.RunID, w.a.WorkerID)}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	driver := opts.Drivers[w.a.Plan.Driver]
	if driver == nil {
		return nil, &engine.Error{Code: engine.CodeUnsupported,
			Message: fmt.Sprintf("The node %s has no driver %q.", opts.NodeID, w.a.Plan.Driver),
			Hint:    "run the same version of Loadstone on every node"}
	}
	workload, err := opts.Plugins.Workload(ctx, w.a.Plan.Workload.SHA256)
	if err != nil {
		return nil, fmt.Errorf("opening the workload plugin: %w", err)
	}
	feed, err := w.feed(ctx)
	if err != nil {
		return nil, err
	}
	r.stream, err = workload.Open(ctx,
		plugin.OpenRequest{Feed: feed, Log: w.logPlugin, Seed: plugin.StreamSeed(w.a.Workload.Seed, w.a.KeySlot),
			KeySlot: w.a.KeySlot, KeySlots: w.a.Plan.KeySlots,
			Params: w.a.Workload.Params, Tables: w.a.Plan.Tables, Pools: w.a.Plan.Pools}, w.a.Plan.Statements)
	if err != nil {
		var known *engine.Error
		if errors.As(err, &known) {
			return nil, err
		}
		return nil, &engine.Error{Code: engine.CodePlugin,
			Message: fmt.Sprintf("The workload plugin %s could not start: %v", w.a.Plan.Workload.Name, err),
			Hint:    "check workload.params; the message is the plugin's own", Cause: err}
	}
	r.database, err = driver.Open(target.Config{DSN: w.a.DSN, Session: w.a.Plan.Session,
		StatementTimeout: w.a.Workload.StatementTimeout(),
		ApplicationName:  "loadstone " + w.a.WorkerID, Warehouse: w.a.Plan.Warehouse, Prepared: w.a.Plan.Prepared,
		RunID: w.a.RunID, WorkerID: w.a.WorkerID, Own: w.a.Own, Reconnects: w.a.Workload.Reconnects()})
	if err != nil {
		return nil, fmt.Errorf("opening the target: %w", err)
	}
	r.writer, err = record.NewWriter(record.WriterOptions{Dir: r.dir, RunID: w.a.RunID, ResultID: w.a.ResultID,
		WorkerID:   w.a.WorkerID,
		Statements: w.a.Plan.Statements, Errors: func(id uint32) engine.ExecutionError { return r.load.Error(id) },
		OpenLoop: w.a.Workload.LoadMode == engine.LoadQPS,
		Reserve:  record.Reserve(opts.SpoolDir, opts.Reserve),
		Quota:    runQuota{w.node.disk, w.a.RunID, w.a.WorkerID}})
	if err != nil {
		return nil, fmt.Errorf("opening the recorder: %w", err)
	}
	w.node.awaitGiveWay(ctx)
	r.parameters = w.parameterFile(r.dir)
	w.line.Store(w.runClock(ctx))
	last := time.Now()
	r.load, err = opts.OpenLoad(ctx,
		load.Config{Plan: w.a.Plan, Workload: w.a.Workload, Stream: r.stream, Database: r.database, Sink: w.sink(r),
			Share: shareOf(w.a), Binds: r.parameters.sample(), Clock: w.line.Load(),
			Log: opts.Log.With().Str("run_id", w.a.RunID).Str("worker_id", w.a.WorkerID).Logger()},
		w.a.Connections,
		func(open, want int) {
			w.mu.Lock()
			w.state.OpenConnections, w.state.WantConnections = open, want
			w.mu.Unlock()
			if now := time.Now(); now.Sub(last) > 250*time.Millisecond {
				last = now
				w.node.out.Put(w.report())
			}
		})
	if err != nil {
		return nil, fmt.Errorf("connecting to the target: %w", err)
	}
	w.startObserver(r)
	r.parameters.begin()
	return r, nil
}

// shareOf is the part of the run's load that the worker takes.
func shareOf(a protocol.AssignRun) arrival.Share {
	if a.Workers <= 0 {
		return arrival.Share{}
	}
	return arrival.Share{Index: a.WorkerGroupID, Of: a.Workers}
}

// close releases everything and returns the finished parts. The first error of
// the recorder is the one that matters.
func (r *resources) close() closeDone {
	var done closeDone
	if r.load != nil {
		done.err = r.load.Close()
	}
	r.closeObserver()
	if r.writer != nil {
		parts, err := r.writer.Close()
		done.parts = parts
		if err != nil {
			done.err = err
		}
	}
	if a, ok := r.parameters.finish(); ok {
		done.parts = append(done.parts, a)
	}
	if r.stream != nil {
		_ = r.stream.Close()
	}
	if r.database != nil {
		_ = r.database.Close()
	}
	return done
}
