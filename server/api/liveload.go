package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// LoadInput is the load that a run is to have; exactly one field is given.
type LoadInput struct {
	TargetQPS   *float64 `json:"target_qps,omitempty" doc:"Operations per second of a run of the mode QPS."`
	Connections *int     `json:"connections,omitempty" doc:"Connections of a run of the mode CONCURRENCY, all together."`
}

type loadInput struct {
	IDInput
	Body LoadInput
}

func registerLoadChange(a *API) {
	o := NewOperation(
		http.MethodPut,
		"/api/v1/runs/{id}/load",
		"change-load",
		liveControlTag,
		"Change the load of a run that goes on",
		http.StatusNotFound,
		http.StatusConflict,
	)
	o.Description = "The rate of a run of the mode QPS, or the connections of one of the mode CONCURRENCY, without " +
		"stages. Answers the event LOAD_CHANGED; the verdict of the run says so, and comparisons with it."
	Handle(a, o, func(ctx context.Context, in *loadInput) (*liveControlBody[engine.Event], error) {
		e, err := a.Runs.ChangeLoad(ctx, in.ID, a.Caller(ctx), scaling.LoadRequest(in.Body))
		if err != nil {
			return nil, markNotFound(err, in.ID, "")
		}
		a.Audit(ctx, "run.load", in.ID, loadChangeText(e.Data))
		return &liveControlBody[engine.Event]{e}, nil
	})
}

func loadChangeText(d engine.EventData) string {
	if d.TargetQPS != nil && d.OldQPS != nil {
		return fmt.Sprintf("target_qps %g to %g", *d.OldQPS, *d.TargetQPS)
	}
	if d.TargetConnections != nil && d.OldConnections != nil {
		return fmt.Sprintf("connections %d to %d", *d.OldConnections, *d.TargetConnections)
	}
	return ""
}
