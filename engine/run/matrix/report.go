package matrix

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
)

// Report is the result of a matrix: matrix.json.
type Report struct {
	engine.MatrixRun
	// Simulated is true when a stand-in that models a database gave any of the figures.
	Simulated bool `json:"simulated"`
	// Passed is true when every run completed and met its thresholds.
	Passed bool `json:"passed"`
	// TolerancePct is the least difference that the comparisons count, in percent.
	TolerancePct float64        `json:"tolerance_pct"`
	Targets      []TargetReport `json:"targets"`
}

// TargetReport is one target of a matrix.
type TargetReport struct {
	Label     string        `json:"label"`
	RunID     string        `json:"run_id"`
	Status    engine.Status `json:"status"`
	Simulated bool          `json:"simulated"`
	// Emulated: the stand-in is another engine, which models nothing.
	Emulated bool `json:"emulated"`
	// SetupFailed: the run ended before its load began.
	SetupFailed bool `json:"setup_failed"`
	// Summary is null when the run has no figures.
	Summary *engine.Summary `json:"summary"`
	// Comparison compares with the first target; null for it, and where one has no figures.
	Comparison *compare.Comparison `json:"against_first"`
	// Problem says why there is no comparison, in a sentence.
	Problem string `json:"problem,omitempty"`
}

// Report gathers the results of a matrix. It reads every execution of runs that
// are compared; runs that have not ended are told without figures.
func (s *Service) Report(ctx context.Context, matrixID string, o compare.Options) (Report, error) {
	state, err := s.Get(ctx, matrixID)
	if err != nil {
		return Report{}, err
	}
	r := Report{MatrixRun: state.MatrixRun, TolerancePct: o.TolerancePct, Passed: state.Status == engine.StatusCompleted,
		Targets: []TargetReport{}}
	for i, row := range state.Runs {
		t := TargetReport{Label: row.MatrixLabel, RunID: row.RunID, Status: row.Status,
			SetupFailed: row.StopReason == engine.StopSetupFailure}
		d, err := s.opts.Runs.Detail(ctx, row.RunID)
		if err != nil {
			return Report{}, fmt.Errorf("reading run %s of the matrix: %w", row.RunID, err)
		}
		t.Summary, t.Simulated, t.Emulated = d.Summary, d.Simulated, d.Emulated
		r.Simulated = r.Simulated || t.Simulated
		r.Passed = r.Passed && t.Summary != nil && t.Summary.Passed
		switch first := r.Targets; {
		case i == 0:
		case t.Summary == nil || first[0].Summary == nil || t.Summary.Operations == 0 || first[0].Summary.Operations == 0:
			t.Problem = "One of the two has no figures."
		default:
			c, err := s.opts.Runs.Compare(ctx, []string{first[0].RunID}, []string{t.RunID}, o)
			if ctx.Err() != nil {
				return Report{}, ctx.Err()
			}
			if err != nil {
				t.Problem = engine.AsError(err).Message
			} else {
				t.Comparison = &c
			}
		}
		r.Targets = append(r.Targets, t)
	}
	return r, nil
}
