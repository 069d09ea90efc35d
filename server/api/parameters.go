// This part holds the handlers that tell the parameters of failed and slow executions: without their values for
// everybody, and with them for operators who may use what the run did, each time with a line in the audit log.

package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/params"
)

// ParameterReader is what reads the files of a run in which parameters are kept.
type ParameterReader interface {
	// Parameters reads what was kept, and how many executions there was no room for.
	Parameters(ctx context.Context, runID string, parts []engine.Artifact) (kept []params.KeptExecution, left int64,
		err error)
}

// KeptBinds is what was kept of the parameters of a run.
type KeptBinds struct {
	Mode       string                 `json:"mode" enum:"masked,plain,none" doc:"What the run's template had kept."`
	Values     bool                   `json:"values_shown" doc:"Whether the values are in the answer."`
	Executions []params.KeptExecution `json:"executions" nullable:"false" doc:"Those that failed, the first ones of each error of a statement, by time; then the slowest of each statement, the slowest first."`
	Total      int                    `json:"total_count" doc:"How many match; the answer has at most 200."`
	LeftOut    int64                  `json:"left_out" doc:"How many that failed or were slow, of the whole run, there was no room for: run workers keep 8 MiB together, and each tells 400 errors of statements apart."`
}

// maxParameters bounds an answer.
const maxParameters = 200

type parameterQuery struct {
	IDInput
	Why       string `query:"why" enum:"failed,slow" doc:"Left out, both."`
	Statement string `query:"statement" maxLength:"200" doc:"Executions of one statement."`
	Class     string `query:"error_class" maxLength:"50" doc:"Those that failed like that."`
	Code      string `query:"error_code" maxLength:"200"`
	Inside    string `query:"inside" enum:"yes,no" doc:"Whether of statements inside transactions; left out, both."`
	Worker    string `query:"worker" maxLength:"160" doc:"Of one run worker. With connection and seq it is one execution."`
	// Huma leaves numbers that were not given at their default, and 0 is a connection.
	Connection int64 `query:"connection" minimum:"-1" maximum:"4294967295" default:"-1"`
	Seq        int64 `query:"seq" minimum:"-1" maximum:"4294967295" default:"-1"`
}

type parameterBody struct{ Body KeptBinds }

// RegisterParameters adds the routes.
func RegisterParameters(a *API) {
	reader, _ := a.Files.(ParameterReader)
	const path = "/api/v1/runs/{id}/binds"
	masked := NewOperation(http.MethodGet, path, "list-binds", "Runs",
		"Parameters of failed and slow executions, without values", http.StatusNotFound, http.StatusTooManyRequests)
	masked.Description = "The first executions of each error of a statement and the slowest of each statement, " +
		"with the types and lengths of their parameters. They are there when the record has come to the server."
	Handle(a, masked, Throttled(a, func(ctx context.Context, in *parameterQuery) (*parameterBody, error) {
		run, kept, err := collectParameters(ctx, a, reader, in)
		if err != nil {
			return nil, err
		}
		for i := range kept.Executions {
			kept.Executions[i].Mask()
		}
		return &parameterBody{explainParameters(kept, run)}, nil
	}))
	plain := NewOperation(
		http.MethodPost,
		path,
		"show-binds",
		"Runs",
		"Parameters of failed and slow executions, with values",
		http.StatusNotFound,
		http.StatusConflict,
		http.StatusTooManyRequests,
	)
	plain.Description = "For operators who may use the run's template and connection, where the template has values " +
		"kept (`workload.binds: plain`). Each request is in the audit log."
	Handle(a, plain, Throttled(a, func(ctx context.Context, in *parameterQuery) (*parameterBody, error) {
		run, err := a.Run(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		if err := a.mayUseRecorded(ctx, run.Run); err != nil {
			return nil, err
		}
		if run.Scenario.Workload.Binds != params.Plain {
			return nil, &engine.Error{Code: engine.CodeConflict, Message: "The values of this run were not kept.",
				Hint: "Set workload.binds: plain in the template, and run it again."}
		}
		run, kept, err := collectParameters(ctx, a, reader, in)
		if err != nil {
			return nil, err
		}
		kept.Values = true
		a.Audit(ctx, "binds.show", in.ID, fmt.Sprintf("%d executions", len(kept.Executions)))
		return &parameterBody{explainParameters(kept, run)}, nil
	}))
}

func explainParameters(kept KeptBinds, run engine.RunDetail) KeptBinds {
	if run.Plan != nil {
		params.AddStatementTexts(kept.Executions, run.Plan.Statements)
	}
	return kept
}

// collectParameters takes together what the run workers of a run have kept, as far as it was asked for.
func collectParameters(
	ctx context.Context,
	a *API,
	reader ParameterReader,
	in *parameterQuery,
) (run engine.RunDetail, kept KeptBinds, err error) {
	if run, err = a.Run(ctx, in.ID); err == nil {
		err = executions.CheckDeleted(run.Run)
	}
	if err != nil {
		return run, kept, err
	}
	if reader == nil {
		return run, kept, &engine.Error{Code: engine.CodeUnsupported, Message: "This server does not look into records.",
			Hint: "Ask one that keeps results."}
	}
	kept.Mode = run.Scenario.Workload.Binds
	if kept.Mode == "" {
		kept.Mode = params.None // a run from before there were any
	}
	parts, err := a.Store.Artifacts(ctx, in.ID)
	if err != nil {
		return run, kept, err
	}
	all, left, err := reader.Parameters(ctx, in.ID, parts)
	if err != nil {
		return run, kept, err
	}
	all = slices.DeleteFunc(params.Merge(all), func(e params.KeptExecution) bool { return !in.matches(&e) })
	kept.Total, kept.LeftOut = len(all), left
	kept.Executions = append([]params.KeptExecution{}, all[:min(len(all), maxParameters)]...)
	return run, kept, nil
}

func (in *parameterQuery) matches(e *params.KeptExecution) bool {
	like := func(wanted, have string) bool { return wanted == "" || wanted == have }
	return like(in.Why, e.Why) && like(in.Statement, e.StatementID) && like(in.Class, e.ErrorClass) &&
		like(in.Code, e.ErrorCode) && like(in.Worker, e.WorkerID) &&
		(in.Inside == "" || (in.Inside == "yes") == (e.Position > 0)) &&
		(in.Connection < 0 || uint32(in.Connection) == e.ConnectionID) && (in.Seq < 0 || uint32(in.Seq) == e.Seq)
}
