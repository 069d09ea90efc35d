// This part holds the handler that tells scalers what there is to do: for nodes that carry load, and for
// workers that refresh tables.

package api

import (
	"context"
	"net/http"

	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/run/admission"
	"github.com/loadstone-db/loadstone/engine/run/query"
)

// NodeDemandRuns say how many nodes the runs want.
type NodeDemandRuns interface {
	ScalingNeeds(ctx context.Context) (admission.ScalingNeeds, error)
}

// RefreshQueue say how much there is to refresh.
type RefreshQueue interface {
	Load(ctx context.Context) (refresh.Load, error)
}

// Needs is what there is to do.
type Needs struct {
	admission.ScalingNeeds
	PendingRefreshes int     `json:"pending_refresh_count" doc:"Refreshes of derived tables, and finished runs to be taken in, that are due or under way."`
	RefreshBacklog   float64 `json:"refresh_backlog_seconds" doc:"How long the oldest of them that no worker has has been due."`
	RefreshP95       float64 `json:"refresh_duration_p95_seconds" doc:"How long the newest 500 refreshes took that succeeded, the 95th percentile; 0 without any."`
}

type demandBody struct{ Body Needs }

// RegisterNodeDemand adds the route. There may be no derived tables: then nothing of them waits.
func RegisterNodeDemand(a *API, runs NodeDemandRuns, refreshes RefreshQueue) {
	o := NewOperation(http.MethodGet, "/api/v1/scaling", "get-scaling", "Nodes", "Read what there is to do")
	o.Description = "For KEDA's metrics-api scaler (valueLocation wanted_nodes for nodes that carry load, " +
		"pending_refresh_count for workers that refresh tables) and others. All servers on one control " +
		"store answer the same, as far as they see the same nodes."
	Handle(a, o, func(ctx context.Context, _ *struct{}) (*demandBody, error) {
		needs, err := runs.ScalingNeeds(ctx)
		if err != nil {
			return nil, query.StoreError(err)
		}
		all := Needs{ScalingNeeds: needs}
		if refreshes != nil {
			l, err := refreshes.Load(ctx)
			if err != nil {
				return nil, query.StoreError(err)
			}
			all.PendingRefreshes, all.RefreshBacklog, all.RefreshP95 = l.Due, l.OldestSeconds, l.P95Seconds
		}
		return &demandBody{all}, nil
	})
}
