package worker

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/params"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// parameterFlushInterval is how often what was kept of parameters is written while there is load, if there is more of
// it: a killed process loses no more than that.
const parameterFlushInterval = 10 * time.Second

// parameterFile is the file of one run worker with the parameters of some of its executions. They are no part of the
// record that figures are computed from: where they cannot be written the run goes on, and its log says so. A nil
// one keeps nothing.
type parameterFile struct {
	sampler *params.Sampler
	of      params.FileInfo
	dir     string
	quota   record.Quota
	log     zerolog.Logger
	say     func(level engine.LogLevel, format string, args ...any)

	end, ended chan struct{}
	once       sync.Once
}

// parameterFile returns the file of the worker, nil where its template has nothing kept.
func (w *runWorker) parameterFile(dir string) *parameterFile {
	sampler := params.New(w.a.Workload.Binds, w.a.Plan.Statements, w.a.Workers)
	if sampler == nil {
		return nil
	}
	return &parameterFile{sampler: sampler, dir: dir, of: params.FileInfo{
		RunID:    w.a.RunID,
		ResultID: w.a.ResultID,
		WorkerID: w.a.WorkerID,
		Name:     params.FreeName(dir, w.a.WorkerID),
	}, quota: runQuota{w.node.disk, w.a.RunID, w.a.WorkerID},
		log: w.node.opts.Log, say: w.log}
}

// sample is what the load keeps parameters with.
func (f *parameterFile) sample() *params.Sampler {
	if f == nil {
		return nil
	}
	return f.sampler
}

// begin writes beside the load from now on, until finish.
func (f *parameterFile) begin() {
	if f == nil {
		return
	}
	f.end, f.ended = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(f.ended)
		ticker := time.NewTicker(parameterFlushInterval)
		defer ticker.Stop()
		for {
			select {
			case <-f.end:
				return
			case <-ticker.C:
				if !f.sampler.Changed() {
					continue
				}
				kept, left := f.sampler.Samples(f.of.WorkerID)
				if _, err := params.Write(f.dir, f.of, kept, left, false); err != nil {
					f.log.Warn().Err(err).Str("run_id", f.of.RunID).Str("worker_id", f.of.WorkerID).
						Msg("parameters of executions cannot be written; they are tried again")
				}
			}
		}
	}()
}

// finish writes what was kept when nothing is added any more, and reports whether there is a file.
func (f *parameterFile) finish() (a engine.Artifact, ok bool) {
	if f == nil {
		return a, false
	}
	f.once.Do(func() {
		if f.end != nil {
			close(f.end)
			<-f.ended
		}
	})
	kept, left := f.sampler.Samples(f.of.WorkerID)
	if len(kept) == 0 {
		return a, false
	}
	a, err := params.Write(f.dir, f.of, kept, left, true)
	if err == nil {
		err = f.quota.Grow(a.Name, a.SizeBytes)
	}
	if err != nil {
		f.log.Warn().Err(err).Str("run_id", f.of.RunID).Str("worker_id", f.of.WorkerID).
			Msg("parameters of executions could not be written")
		f.say(engine.LogWarning, "The parameters of failed and slow executions of %s could not be kept: %s", f.of.WorkerID,
			engine.AsError(err).Message)
		_ = os.Remove(filepath.Join(f.dir, f.of.Name)) // a part of it may be there, which nobody announces
		f.quota.Abandoned(f.of.Name)
		return a, false
	}
	f.quota.Finished(a)
	return a, true
}
