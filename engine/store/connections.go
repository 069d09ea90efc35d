package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	// LastName and LastAddress are the name, and the digest of the address, of the one to which results were taken last,
	// where they are taken to none.
	LastName    string `json:"last_name,omitempty"`
	LastAddress string `json:"last_address,omitempty"`
}

// Released is what is kept of a connection to which no results are taken any more: its name, and where it leads.
func (r ResultsConnection) Released(leads Connection) ResultsConnection {
	if r.ConnectionID == "" {
		return ResultsConnection{} // there was none of the name
	}
	return ResultsConnection{LastName: r.Name, LastAddress: leads.addressDigest()}
}

// Looked is what is kept while a connection of a name is looked for: what is known of the one before stays.
func (r ResultsConnection) Looked(name string) ResultsConnection {
	return ResultsConnection{Name: name, LastName: r.LastName, LastAddress: r.LastAddress}
}

// Adopted is the connection that was found. changed: it leads elsewhere than the one of the same name did when results
// were taken there last.
func (r ResultsConnection) Adopted(found Connection) (adopted ResultsConnection, changed bool) {
	changed = r.LastName == r.Name && r.LastAddress != "" && r.LastAddress != found.addressDigest()
	return ResultsConnection{Name: r.Name, ConnectionID: found.ConnectionID}, changed
}

// addressDigest tells where a connection leads, and nothing of a password.
func (c Connection) addressDigest() string {
	sum := sha256.Sum256([]byte(c.Driver + "\x00" + c.DSN))
	return hex.EncodeToString(sum[:])
}

// Is tells the connection, and any of the name while it is not known.
func (r ResultsConnection) Is(id, name string) bool {
	return r.ConnectionID != "" && r.ConnectionID == id || r.ConnectionID == "" && r.Named(name)
}

// Named tells a name by which servers look the connection up when they start.
func (r ResultsConnection) Named(name string) bool { return r.Name != "" && r.Name == name }
