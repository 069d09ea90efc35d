// This part stops every run at once, in an emergency. It asks the store last and does not wait for it: what this
// server carries is told to stop first, from memory, and the nodes with it.

package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// StoppedRun is what became of a run.
type StoppedRun struct {
	RunID   string        `json:"run_id"`
	RunName string        `json:"run_name,omitempty"`
	Status  engine.Status `json:"status,omitempty" doc:"The status after it was asked to stop; it drains first. Empty when that is not known."`
	Error   string        `json:"error,omitempty" doc:"Why it could not be asked to stop."`
}

// StopReport is what stopping everything came to.
type StopReport struct {
	Here      []StoppedRun `json:"here" nullable:"false" doc:"The runs of this server, which were stopped at once."`
	Elsewhere []StoppedRun `json:"elsewhere" nullable:"false" doc:"The runs of other servers on the control store and those that wait for room: the others read it there within seconds."`
	Matrices  []string     `json:"matrices" nullable:"false" doc:"The matrices that start no further run."`
	// StoreAnswered is false when nothing is known of other servers.
	StoreAnswered bool `json:"store_answered" doc:"Whether the control store could be asked. If not, runs of other servers go on: stop each server, or ask it for the same."`
}

// How long is waited: for a run to have noted that it stops, and for the store to say what else there is.
const (
	runStopTimeout     = 8 * time.Second
	storeTimeout       = 3 * time.Second
	maxConcurrentStops = 32
	stopPollInterval   = 200 * time.Millisecond
)

type stopAllBody struct{ Body StopReport }

// RegisterStopAll adds the route.
func RegisterStopAll(a *API) {
	o := NewOperation(
		http.MethodPost,
		"/api/stop-all",
		"stop-everything",
		"Runs",
		"Stop all runs and matrices, in an emergency",
	)
	o.Description = "Tells the runs of this server to stop, also while the control store is away, and through the store " +
		"those of other servers. They drain as with a stop of each. Asks nothing: whoever sends it means it."
	Handle(a, o, func(ctx context.Context, _ *struct{}) (*stopAllBody, error) {
		r := stopAll(ctx, a, a.Caller(ctx))
		a.Audit(ctx, "run.stop_all", "", "")
		return &stopAllBody{r}, nil
	})
}

// stopAll stops all that can be reached.
func stopAll(ctx context.Context, a *API, by string) StopReport {
	r := StopReport{Here: []StoppedRun{}, Elsewhere: []StoppedRun{}, Matrices: []string{}}
	// Before their runs: a matrix would begin the next one.
	if a.Matrices != nil {
		r.Matrices = append(r.Matrices, a.Matrices.Halt()...)
	}
	held := a.Runs.ActiveRunIDs()
	r.Here = append(r.Here, stopEach(ctx, a, held, by)...)

	requested, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	others, err := remoteRuns(requested, a, held)
	if r.StoreAnswered = err == nil; err != nil {
		return r
	}
	stopped, failed := stopRemoteMatrices(ctx, a, r.Matrices, by)
	r.Matrices = append(r.Matrices, stopped...)
	r.Elsewhere = append(r.Elsewhere, failed...)
	r.Elsewhere = append(r.Elsewhere, stopEach(ctx, a, others, by)...)
	return r
}

// remoteRuns are the runs that are live on other servers, or wait for room on the nodes.
func remoteRuns(ctx context.Context, a *API, held []string) ([]string, error) {
	live, err := a.Store.LiveRuns(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, run := range live {
		if !run.Status.Terminal() && !slices.Contains(held, run.RunID) {
			ids = append(ids, run.RunID)
		}
	}
	rooms, ok := a.Store.(interface {
		Ledger(ctx context.Context) (store.Ledger, error)
	})
	if !ok {
		return ids, nil
	}
	l, err := rooms.Ledger(ctx)
	for _, w := range l.Queued {
		if !slices.Contains(ids, w.RunID) && !slices.Contains(held, w.RunID) {
			ids = append(ids, w.RunID)
		}
	}
	return ids, err
}

// stopRemoteMatrices stops those of other servers: it returns the ids of the stopped, and a row for each that was not.
func stopRemoteMatrices(
	ctx context.Context,
	a *API,
	known []string,
	by string,
) (stopped []string, failed []StoppedRun) {
	s, ok := a.Store.(interface {
		LiveMatrices(ctx context.Context) ([]engine.MatrixRun, error)
	})
	if a.Matrices == nil || !ok {
		return nil, nil
	}
	limited, cancel := context.WithTimeout(ctx, storeTimeout)
	list, err := s.LiveMatrices(limited)
	cancel()
	if err != nil {
		return nil, []StoppedRun{{RunName: "all matrices", Error: engine.AsError(err).Message}}
	}
	for _, m := range list {
		if m.Status != engine.StatusRunning || slices.Contains(known, m.MatrixID) {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		_, err := a.Matrices.Stop(limited, m.MatrixID, by)
		cancel()
		switch {
		case err == nil:
			stopped = append(stopped, m.MatrixID)
		case !isConflict(err): // one that has ended meanwhile is as it should be
			failed = append(failed, StoppedRun{RunID: m.MatrixID, RunName: "matrix " + m.Name,
				Error: engine.AsError(err).Message})
		}
	}
	return stopped, failed
}

func isConflict(err error) bool {
	return engine.HasCode(err, engine.CodeConflict) || errors.Is(err, store.ErrConflict)
}

// stopEach stops runs side by side: one that does not answer keeps none of the others.
func stopEach(ctx context.Context, a *API, ids []string, by string) []StoppedRun {
	out := make([]StoppedRun, len(ids))
	positions := make(chan struct{}, maxConcurrentStops)
	var group sync.WaitGroup
	for i, id := range ids {
		positions <- struct{}{}
		group.Go(func() {
			defer func() { <-positions }()
			out[i] = stopAllOne(ctx, a, id, by)
		})
	}
	group.Wait()
	return out
}

// stopAllOne stops a run. A conflict is either that it has ended by itself, which is as it should be, or that it is
// being started: then it is told again, until it is live and hears it.
func stopAllOne(ctx context.Context, a *API, id string, by string) StoppedRun {
	limited, cancel := context.WithTimeout(ctx, runStopTimeout)
	defer cancel()
	for {
		run, err := a.Runs.Stop(limited, id, by)
		if err == nil {
			return StoppedRun{RunID: id, RunName: run.RunName, Status: run.Status}
		}
		failed := StoppedRun{RunID: id, Error: engine.AsError(err).Message}
		if !isConflict(err) {
			return failed
		}
		now, readErr := a.Store.Run(limited, id)
		if readErr == nil {
			failed.RunName, failed.Status = now.RunName, now.Status
			if now.Status.Terminal() {
				failed.Error = ""
				return failed
			}
		}
		select {
		case <-limited.Done():
			return failed
		case <-time.After(stopPollInterval):
		}
	}
}
