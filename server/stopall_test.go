package server_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/api"
)

// carried is an orchestra that says which runs are live here, and whose store can be away.
type carried struct {
	*orchestra
	mu      sync.Mutex
	held    []string
	stopped []string
	// busy is how often a run is being started when it is told to stop.
	busy int
}

func (c *carried) ActiveRunIDs() []string { return c.held }

func (c *carried) Stop(_ context.Context, id, _ string) (engine.Run, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy > 0 {
		c.busy--
		return engine.Run{}, &engine.Error{Code: engine.CodeConflict, Message: "The run is being started."}
	}
	c.stopped = append(c.stopped, id)
	return engine.Run{RunID: id, Status: engine.StatusCancelling}, nil
}

// TestEverythingIsStopped stops the runs of this server and those of others, as operator, and without the store.
func TestEverythingIsStopped(t *testing.T) {
	t.Parallel()
	var c *carried
	b := start(t, func(o *server.Options) {
		c = &carried{orchestra: o.Runs.(*orchestra), held: []string{"here-1", "here-2"}}
		o.Runs = c
	})
	remote := b.createRun("elsewhere")
	b.runs.move(remote.RunID, engine.PhaseMeasurement, engine.StatusRunning)
	_, operator := b.join("ada", store.RoleOperator)
	_, viewer := b.join("vic", store.RoleViewer)
	b.do("POST", "/api/stop-all", "{}", viewer...).problem(t, 403, engine.CodeForbidden)
	if len(c.stopped) > 0 {
		t.Fatalf("a viewer stopped %v", c.stopped)
	}
	r := decode[api.StopReport](t, b.do("POST", "/api/stop-all", "{}", operator...).want(t, 200))
	slices.Sort(c.stopped)
	if !r.StoreAnswered || len(r.Here) != 2 || len(r.Elsewhere) != 1 || r.Elsewhere[0].RunID != remote.RunID ||
		!slices.Equal(c.stopped, []string{"here-1", "here-2", remote.RunID}) {
		t.Errorf("report %+v, stopped %v", r, c.stopped)
	}
	if got := b.lines("action=run.stop_all&user=ada"); len(got) != 1 {
		t.Errorf("noted as %+v", got)
	}

	c.stopped = nil
	b.store.mu.Lock()
	b.store.down = store.ErrUnavailable
	b.store.mu.Unlock()
	r = decode[api.StopReport](t, b.do("POST", "/api/stop-all", "{}", operator...).want(t, 200))
	if r.StoreAnswered || len(r.Here) != 2 || len(c.stopped) != 2 {
		t.Errorf("without the store: %+v, stopped %v", r, c.stopped)
	}
}

// TestARunThatIsBeingStartedIsStopped tells a run to stop that cannot hear it yet: it is told again until it does.
func TestARunThatIsBeingStartedIsStopped(t *testing.T) {
	t.Parallel()
	var c *carried
	b := start(t, func(o *server.Options) {
		c = &carried{orchestra: o.Runs.(*orchestra), busy: 2}
		o.Runs = c
	})
	run := b.createRun("starting")
	b.runs.move(run.RunID, engine.PhaseMeasurement, engine.StatusRunning)
	c.held = []string{run.RunID}
	r := decode[api.StopReport](t, b.do("POST", "/api/stop-all", "{}").want(t, 200))
	if len(r.Here) != 1 || r.Here[0].Error != "" || !slices.Equal(c.stopped, c.held) {
		t.Errorf("report %+v, stopped %v", r, c.stopped)
	}
	c.busy = 1 << 20
	r = decode[api.StopReport](t, b.do("POST", "/api/stop-all", "{}").want(t, 200))
	if len(r.Here) != 1 || r.Here[0].Error == "" {
		t.Errorf("not stopped, and reported as %+v", r)
	}
	b.runs.move(run.RunID, engine.PhaseNone, engine.StatusCancelling, engine.StatusCancelled)
	if r = decode[api.StopReport](t, b.do("POST", "/api/stop-all", "{}").want(t, 200)); r.Here[0].Error != "" {
		t.Errorf("ended, and reported as %+v", r)
	}
}
