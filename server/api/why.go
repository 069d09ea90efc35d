// This part holds the handler of what made operations of a run slow.

package api

import (
	"context"
	"net/http"

	"github.com/loadstone-db/loadstone/engine"
)

// ServerViewer says what the server of a run's target did, and what follows from it.
type ServerViewer interface {
	ServerView(ctx context.Context, runID string) (engine.ServerView, error)
}

type serverViewBody struct{ Body engine.ServerView }

// RegisterWhy adds the route.
func RegisterWhy(a *API) {
	viewer, _ := a.Runs.(ServerViewer)
	why := NewOperation(http.MethodGet, "/api/v1/runs/{id}/why", "explain-run", "Runs",
		"Why operations of a run were slow: what the server did, and findings", http.StatusNotFound,
		http.StatusTooManyRequests)
	why.Description = "Of a run that goes on it is what this server has seen so far; its findings may change. observed is " +
		"false where nothing was seen, and reason says why."
	Handle(a, why, Throttled(a, func(ctx context.Context, in *IDInput) (*serverViewBody, error) {
		if viewer == nil {
			return nil, &engine.Error{Code: engine.CodeUnsupported, Message: "This server does not look at targets.",
				Hint: "Ask the server that carries the run."}
		}
		v, err := viewer.ServerView(ctx, in.ID)
		return &serverViewBody{v}, err
	}))
}
