package server_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server"
)

// A database that is slow to answer is called that: it is no server that shuts down.
func TestAPreflightThatTakesTooLongNamesTheDatabase(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) {
		o.Preflight = func(context.Context, engine.Scenario, bool) (any, error) {
			return nil, fmt.Errorf("inspecting the target: %w", context.DeadlineExceeded)
		}
	})
	b.do("POST", "/api/preflight", map[string]any{"source": "name: x\ntarget: {connection: playground, table_name: t}\n" +
		"workload: {plugin: mix}\n"}).problem(t, 422, engine.CodeTarget)
}
