// This part holds the handlers that read single executions of a run from its record.

package api

import (
	"context"
	"net/http"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
)

// ExecutionFinder is what can look into the parts of a record.
type ExecutionFinder interface {
	FindExecutions(ctx context.Context, runID string, parts []engine.Artifact,
		q executions.Query) (executions.ExecutionPage, error)
	Failures(ctx context.Context, runID string, parts []engine.Artifact) (executions.Failures, error)
}

type executionQuery struct {
	IDInput
	Kind      []string  `query:"kind" maxItems:"20" doc:"Comma separated; one of them is enough, as everywhere below."`
	Statement []string  `query:"statement" maxItems:"50" doc:"Ids of statements, comma separated."`
	Worker    []string  `query:"worker" maxItems:"100" doc:"Ids of run workers, comma separated."`
	Class     []string  `query:"error_class" maxItems:"20" doc:"Comma separated."`
	Code      []string  `query:"error_code" maxItems:"20" doc:"Comma separated."`
	Message   []string  `query:"error_message,explode" maxItems:"10" doc:"An exact message, as it was recorded; may be repeated."`
	Outcome   string    `query:"outcome" enum:"succeeded,failed,rolled_back"`
	Phase     string    `query:"phase" enum:"WARMUP,MEASUREMENT"`
	From      time.Time `query:"from" doc:"RFC 3339. Executions that ended then or later."`
	Until     time.Time `query:"until" doc:"RFC 3339. Executions that ended before."`
	Over      float64   `query:"over_ms" minimum:"0" doc:"Latencies above it."`
	Upto      float64   `query:"upto_ms" minimum:"0" doc:"Latencies up to it; 0 is no bound."`
	Inside    bool      `query:"inside" doc:"Statements inside transactions, too."`
	Sort      string    `query:"sort" enum:"time,latency" default:"time"`
	Order     string    `query:"order" enum:"asc,desc" default:"desc"`
	Limit     int       `query:"limit" minimum:"1" maximum:"500" default:"50"`
	Cursor    string    `query:"cursor" maxLength:"1000" doc:"next_cursor of the page before, with the same filters and order."`
}

type failuresInput struct {
	IDInput
	Mask bool `query:"mask" doc:"Without the values in the texts of statements, too; messages have none."`
}

type executionBody[T any] struct{ Body T }

// RegisterExecutions adds the routes.
func RegisterExecutions(a *API) {
	finder, _ := a.Files.(ExecutionFinder)
	table := NewOperation(http.MethodGet, "/api/v1/runs/{id}/executions", "find-executions", "Runs",
		"Look for executions of a run, page by page", http.StatusNotFound, http.StatusTooManyRequests)
	table.Description = "Reads the recorded parts, those of a run that goes on as far as they have come to the server. " +
		"An execution is found at the time at which it ended, as in charts."
	Handle(a, table, Throttled(a, func(ctx context.Context, in *executionQuery) (*executionBody[executions.ExecutionPage],
		error) {
		q, err := in.query()
		if err != nil {
			return nil, err
		}
		run, parts, err := registerExecutionSearch(ctx, a, finder, in.ID)
		if err != nil {
			return nil, err
		}
		page, err := finder.FindExecutions(ctx, in.ID, parts, q)
		if err != nil {
			return nil, err
		}
		page.Record.Complete = recordComplete(run, page.Record)
		// What was recorded before messages were masked as they come holds values still.
		for i := range page.Executions {
			page.Executions[i].ErrorMessage = executions.Mask(page.Executions[i].ErrorMessage)
		}
		return &executionBody[executions.ExecutionPage]{page}, nil
	}))
	failures := NewOperation(http.MethodGet, "/api/v1/runs/{id}/failures", "list-failures", "Runs",
		"What failed in a run, by error and statement", http.StatusNotFound, http.StatusTooManyRequests)
	failures.Description = "The warm-up and statements inside transactions included. Reads the recorded parts, those of " +
		"a run that goes on as far as they have come to the server."
	Handle(a, failures, Throttled(a, func(ctx context.Context, in *failuresInput) (*executionBody[executions.Failures],
		error) {
		run, parts, err := registerExecutionSearch(ctx, a, finder, in.ID)
		if err != nil {
			return nil, err
		}
		found, err := finder.Failures(ctx, in.ID, parts)
		if err != nil {
			return nil, err
		}
		found.Record.Complete = recordComplete(run, found.Record)
		texts := map[string]string{}
		if run.Plan != nil {
			for _, s := range run.Plan.Statements {
				texts[s.ID] = s.SQL
			}
		}
		for i := range found.Failures {
			f := &found.Failures[i]
			if f.InTransaction || f.Kind != engine.KindTransaction {
				f.SQL = texts[f.StatementID]
			}
			f.MaskMessages()
			if in.Mask {
				f.SQL = executions.MaskSQL(f.SQL)
			}
		}
		return &executionBody[executions.Failures]{found}, nil
	}))
}

func registerExecutionSearch(
	ctx context.Context,
	a *API,
	f ExecutionFinder,
	id string,
) (engine.RunDetail, []engine.Artifact, error) {
	run, err := a.Run(ctx, id)
	if err == nil {
		err = executions.CheckDeleted(run.Run)
	}
	if err != nil {
		return run, nil, err
	}
	if f == nil {
		return run, nil, &engine.Error{Code: engine.CodeUnsupported, Message: "This server does not look into records.",
			Hint: "Download the Parquet parts."}
	}
	parts, err := a.Store.Artifacts(ctx, id)
	return run, parts, err
}

// recordComplete reports whether all that was begun is in the parts: figures are there of a record that is lost, too.
func recordComplete(run engine.RunDetail, r executions.RecordRead) bool {
	if !run.Status.Terminal() || run.Summary == nil || run.Summary.RecordLost() {
		return false
	}
	a := run.Summary.Accounting
	return a.Recorded == a.Started && r.ExecutionsCount == a.Recorded+a.Statements
}

func (in *executionQuery) query() (executions.Query, error) {
	q := executions.Query{Statements: in.Statement, Workers: in.Worker, Classes: in.Class, Codes: in.Code,
		Messages: in.Message, Outcome: executions.Outcome(in.Outcome), Phase: engine.Phase(in.Phase), From: in.From,
		Until: in.Until, OverMs: in.Over, UptoMs: in.Upto, InTransactions: in.Inside, Sort: executions.Sort(in.Sort),
		Ascending: in.Order == "asc", Limit: in.Limit}
	for _, name := range in.Kind {
		k, err := engine.ParseKind(name)
		if err != nil {
			return q, engine.InvalidField("kind", err.Error(), "")
		}
		q.Kinds = append(q.Kinds, k)
	}
	if err := q.Resume(in.Cursor); err != nil {
		return q, err
	}
	return q, q.Validate()
}
