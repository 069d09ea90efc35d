package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
)

// ConnectionFinder finds saved connections. What is stored refers to them by id; neither lookup tries the other.
type ConnectionFinder interface {
	// Connection returns the connection with an id; ErrNotFound without one.
	Connection(ctx context.Context, id string) (Connection, error)
	// ConnectionByName returns the connection with a name; ErrNotFound without one.
	ConnectionByName(ctx context.Context, name string) (Connection, error)
}

// FindConnection returns the connection that a user has typed, by id or name. An id wins, and what looks like an id is
// never looked up as a name. It is for the one place where a user typed it: what is stored of it is the id.
func FindConnection(ctx context.Context, from ConnectionFinder, typed string) (Connection, error) {
	c, err := from.Connection(ctx, typed)
	if !errors.Is(err, ErrNotFound) {
		return c, err
	}
	if engine.LooksLikeID(typed) {
		return c, fmt.Errorf("a connection with the id %s: %w", typed, ErrNotFound)
	}
	return from.ConnectionByName(ctx, typed)
}

// ResultsConnection is the saved connection to which the servers of a store take results, as --results-connection names
// it; zero where they take none. Results are of all users: from when it is kept, admins alone decide where they go.
type ResultsConnection struct {
	// Name is what the flag says, ConnectionID what was found by it; empty while there is none of the name.
	Name         string `json:"name"`
	ConnectionID string `json:"connection_id,omitempty"`
}

// Is tells the connection, and any of the name while it is not known.
func (r ResultsConnection) Is(id, name string) bool {
	return r.ConnectionID != "" && r.ConnectionID == id || r.ConnectionID == "" && r.Named(name)
}

// Named tells a name by which servers look the connection up when they start.
func (r ResultsConnection) Named(name string) bool { return r.Name != "" && r.Name == name }
