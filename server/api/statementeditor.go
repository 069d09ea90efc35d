// This part holds the handlers for who writes statements: samples of generators, trials, and the tables of a
// connection.

package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/dryrun"
	"github.com/loadstone-db/loadstone/server/auth"
)

// StatementEditor tries statements.
type StatementEditor interface {
	Try(ctx context.Context, sc engine.Scenario, statement string) (dryrun.StatementTrial, error)
	Samples(ctx context.Context, binds []json.RawMessage) ([]dryrun.GeneratorSample, error)
	Catalog(ctx context.Context, ref engine.ConnectionRef) (dryrun.RelationCatalog, error)
}

type tryInput struct {
	Body struct {
		ScenarioInput
		Statement string `json:"statement,omitempty" maxLength:"200" doc:"The id of the statement; the first when left out."`

		ConfirmProduction auth.Names `json:"confirm_production,omitempty"`
	}
}

type samplesInput struct {
	Body struct {
		Binds []Document `json:"binds" maxItems:"50" doc:"Parameters as those of the workload sql: a name, a generator and what it takes."`
	}
}

// SampleList is what generators make.
type SampleList struct {
	Samples []dryrun.GeneratorSample `json:"samples" nullable:"false"`
}

type catalogInput struct {
	Body struct {
		Connection string `json:"connection" minLength:"1" maxLength:"100" doc:"The name of a saved connection."`
	}
}

type editorBody[T any] struct{ Body T }

const editorTag = "Templates"

// RegisterStatementEditor adds the routes to the API.
func RegisterStatementEditor(a *API, b StatementEditor) {
	try := editorOp("/api/statements/try", "try-statement",
		"Draw values for a statement, explain it and, where it only reads, execute it once", http.StatusNotFound,
		http.StatusTooManyRequests)
	try.Description = "Nothing is written: a statement that reads is executed in a transaction that cannot write, for " +
		"5 s at most; one that writes is only explained. The answer says what is wrong."
	Handle(a, try, Throttled(a, func(ctx context.Context, in *tryInput) (*editorBody[dryrun.StatementTrial], error) {
		s, err := a.Resolve(ctx, in.Body.ScenarioInput)
		if err != nil {
			return nil, err
		}
		if err := a.MayLoad(ctx, s, in.Body.ConfirmProduction); err != nil {
			return nil, err
		}
		t, err := b.Try(ctx, s, in.Body.Statement)
		if err != nil {
			return nil, err
		}
		return &editorBody[dryrun.StatementTrial]{t}, nil
	}))
	Handle(a, editorOp("/api/statements/samples", "sample-generators", "Values that generators make, without a database",
		http.StatusTooManyRequests),
		Throttled(a, func(ctx context.Context, in *samplesInput) (*editorBody[SampleList], error) {
			binds := make([]json.RawMessage, len(in.Body.Binds))
			for i, d := range in.Body.Binds {
				binds[i] = d.RawMessage
			}
			list, err := b.Samples(ctx, binds)
			if err != nil {
				return nil, err
			}
			return &editorBody[SampleList]{SampleList{list}}, nil
		}))
	Handle(a, editorOp("/api/statements/catalog", "list-relations", "The tables and columns that a connection's user sees",
		http.StatusNotFound, http.StatusTooManyRequests),
		Throttled(a, func(ctx context.Context, in *catalogInput) (*editorBody[dryrun.RelationCatalog], error) {
			ref := engine.ConnectionRef{Name: in.Body.Connection}
			s := engine.Scenario{Target: engine.Target{Connection: ref}}
			if err := a.authorizer().ResolveConnections(ctx, &s); err != nil {
				return nil, err
			}
			if err := a.MayUse(ctx, s); err != nil {
				return nil, err
			}
			c, err := b.Catalog(ctx, s.Target.Ref())
			if err != nil {
				return nil, err
			}
			return &editorBody[dryrun.RelationCatalog]{c}, nil
		}))
}

func editorOp(path, id, summary string, errors ...int) huma.Operation {
	return NewOperation(http.MethodPost, path, id, editorTag, summary, errors...)
}
