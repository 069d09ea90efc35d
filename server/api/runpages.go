package api

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
)

type eventsInput struct {
	IDInput
	After int64 `query:"after" minimum:"0" maximum:"9007199254740991" doc:"Only events whose sequence_id is greater."`
	Limit int   `query:"limit" minimum:"1" maximum:"1000" default:"200"`
}

// EventPage is a part of a run's control events, oldest first.
type EventPage struct {
	Events       []engine.Event `json:"events"`
	LastSequence int64          `json:"last_sequence" doc:"Give it as after to read on."`
	Total        int64          `json:"total" doc:"How many events the run has."`
}

type artifactsInput struct {
	IDInput
	After string `query:"after" maxLength:"300" doc:"Only artifacts whose name comes after it."`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"200"`
}

// ArtifactPage is a part of a run's artifacts, by name.
type ArtifactPage struct {
	Artifacts []engine.Artifact `json:"artifacts"`
	LastName  string            `json:"last_name" doc:"Give it as after to read on."`
	Total     int64             `json:"total" doc:"How many artifacts the run has."`
}

func (a *API) events(ctx context.Context, in *eventsInput) (*body[EventPage], error) {
	if err := a.exists(ctx, in.ID); err != nil {
		return nil, err
	}
	events, total, err := a.Store.EventPage(ctx, in.ID, in.After, in.Limit)
	if err != nil {
		return nil, notFoundAs(err, "run", in.ID)
	}
	page := EventPage{Events: orEmpty(events), LastSequence: in.After, Total: total}
	if n := len(events); n > 0 {
		page.LastSequence = events[n-1].SequenceID
	}
	return &body[EventPage]{page}, nil
}

func (a *API) artifacts(ctx context.Context, in *artifactsInput) (*body[ArtifactPage], error) {
	if err := a.exists(ctx, in.ID); err != nil {
		return nil, err
	}
	parts, total, err := a.Store.ArtifactPage(ctx, in.ID, in.After, in.Limit)
	if err != nil {
		return nil, notFoundAs(err, "run", in.ID)
	}
	page := ArtifactPage{Artifacts: orEmpty(parts), LastName: in.After, Total: total}
	if n := len(parts); n > 0 {
		page.LastName = parts[n-1].Name
	}
	return &body[ArtifactPage]{page}, nil
}
