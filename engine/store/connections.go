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
