package api

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
)

// MeasuredSeconds is a run's measurement second by second.
type MeasuredSeconds struct {
	Seconds []engine.MeasuredSecond `json:"seconds"`
}

type compareInput struct {
	A            []string `query:"a" required:"true" minItems:"1" maxItems:"20" doc:"Run ids of the first side, comma separated."`
	B            []string `query:"b" required:"true" minItems:"1" maxItems:"20" doc:"Run ids of the second side, comma separated."`
	TolerancePct float64  `query:"tolerance_pct" minimum:"0" maximum:"1000" default:"5" doc:"The least difference that matters, in percent."`
}

func (a *API) seconds(ctx context.Context, in *IDInput) (*body[MeasuredSeconds], error) {
	seconds, err := a.Runs.Seconds(ctx, in.ID)
	if err != nil {
		return nil, notFoundAs(err, "run", in.ID)
	}
	return &body[MeasuredSeconds]{MeasuredSeconds{orEmpty(seconds)}}, nil
}

func (a *API) compare(ctx context.Context, in *compareInput) (*body[compare.Comparison], error) {
	o := compare.Defaults()
	o.TolerancePct = in.TolerancePct
	c, err := a.Runs.Compare(ctx, in.A, in.B, o)
	if err != nil {
		return nil, err
	}
	return &body[compare.Comparison]{c}, nil
}
