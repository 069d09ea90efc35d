package api

import (
	"context"
	"net/http"

	"github.com/loadstone-db/loadstone/engine/admission"
	"github.com/loadstone-db/loadstone/engine/inspect"
)

// Scaling is what the API needs to say how many nodes the demand wants.
type Scaling interface {
	Scaling(ctx context.Context) (admission.Needs, error)
}

func (a *API) registerScaling() {
	if a.Scaling == nil {
		return
	}
	o := op(http.MethodGet, "/api/v1/scaling", "get-scaling", tagNodes, "Read what the runs need of nodes")
	o.Description = "For KEDA's metrics-api scaler (valueLocation wanted_nodes) and others. All servers on one control " +
		"store answer the same, as far as they see the same nodes."
	handle(a, o, func(ctx context.Context, _ *struct{}) (*body[admission.Needs], error) {
		s, err := a.Scaling.Scaling(ctx)
		return &body[admission.Needs]{s}, inspect.StoreError(err)
	})
}
