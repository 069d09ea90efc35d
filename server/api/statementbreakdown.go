// This part holds the handlers that tell the kinds and statements of runs apart.

package api

import (
	"context"
	"net/http"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
)

type kindsInput struct {
	IDInput
	Points int `query:"points" minimum:"10" maximum:"5000" default:"1200" doc:"At most so many; a long run's are coarser."`
}

type breakdownCompareInput struct {
	A            []string `query:"a" required:"true" minItems:"1" maxItems:"20" doc:"Run ids of the first side, comma separated."`
	B            []string `query:"b" required:"true" minItems:"1" maxItems:"20" doc:"Run ids of the second side, comma separated."`
	TolerancePct float64  `query:"tolerance_pct" minimum:"0" maximum:"1000" default:"5" doc:"The least difference that matters, in percent."`
}

type breakdownBody[T any] struct{ Body T }

// StatementBreakdownReader is what reads the kinds and statements of runs of an API; nil where it has no segments.
func StatementBreakdownReader(a *API) *compare.BreakdownReader {
	segments, ok := a.Files.(compare.Segments)
	if !ok {
		return nil
	}
	return &compare.BreakdownReader{Runs: a.Runs, Segments: segments}
}

// RegisterStatementBreakdown adds the routes.
func RegisterStatementBreakdown(a *API) {
	reader := StatementBreakdownReader(a)
	none := func() error {
		return &engine.Error{Code: engine.CodeUnsupported, Message: "This server keeps no series of runs.",
			Hint: "ask one that keeps results"}
	}
	kinds := NewOperation(http.MethodGet, "/api/v1/runs/{id}/kinds", "run-kinds", "Runs",
		"Rate, errors and latencies of each kind over time", http.StatusNotFound, http.StatusConflict,
		http.StatusTooManyRequests)
	kinds.Description = "Of a run that is over, from its series: some seconds after its end."
	Handle(a, kinds, Throttled(a, func(ctx context.Context, in *kindsInput) (*breakdownBody[compare.KindCurves], error) {
		if reader == nil {
			return nil, none()
		}
		c, err := reader.Curves(ctx, in.ID, in.Points)
		if err != nil {
			return nil, NotFoundAs(err, "run", in.ID)
		}
		return &breakdownBody[compare.KindCurves]{c}, nil
	}))
	parts := NewOperation(http.MethodGet, "/api/v1/compare/parts", "compare-parts", "Runs",
		"Compare the kinds and the statements of runs", http.StatusNotFound, http.StatusConflict,
		http.StatusTooManyRequests)
	parts.Description = "Each kind and each statement on its own, as `/api/compare` compares runs as a whole."
	Handle(
		a,
		parts,
		Throttled(a, func(ctx context.Context, in *breakdownCompareInput) (*breakdownBody[compare.PartComparison],
			error) {
			if reader == nil {
				return nil, none()
			}
			o := compare.Defaults()
			o.TolerancePct = in.TolerancePct
			c, err := reader.Compare(ctx, in.A, in.B, o)
			if err != nil {
				return nil, err
			}
			return &breakdownBody[compare.PartComparison]{c}, nil
		}),
	)
}
