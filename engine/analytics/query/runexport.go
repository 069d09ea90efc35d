package query

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
)

// RunExport is what ingestion and export have made of a run. A part is nil while there is nothing to say of it.
type RunExport struct {
	Record  *RunRecord  `json:"record"`
	Account *RunAccount `json:"account"`
}

// RunRecord says which parts of a run's record could not be read into the results database.
type RunRecord struct {
	Parts    int64    `json:"parts" minimum:"0" doc:"Number of parts of the record."`
	Problems []string `json:"problems" nullable:"false" doc:"One sentence per part that could not be read."`
}

// RunAccount is what of a run the account of the results connection has, after the last attempt.
type RunAccount struct {
	Connection string      `json:"connection"`
	Place      string      `json:"place" doc:"DATABASE.SCHEMA of the export; empty if the account was not reached."`
	Status     string      `json:"status" enum:"DONE,FAILED"`
	Executions int64       `json:"executions" minimum:"0"`
	Views      []string    `json:"views" nullable:"false"`
	Problem    string      `json:"problem" doc:"What is missing and why, or why the attempt failed."`
	NotedAt    engine.Time `json:"noted_at"`
}

// RunExports reads what has become of a run in the results database and in the account.
type RunExports interface {
	RunExport(ctx context.Context, runID string) (RunExport, error)
}
