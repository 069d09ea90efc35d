// Package fake is a control store in memory with what runs, their queue, their commands, nodes and refreshes need: for
// the simulation, and for tests of them in virtual time. It passes the same suite as the store on Postgres
// (engine/store/storetest).
//
// Documents (scenarios, figures, states) are stored as JSON and read by each call, so that nothing a caller changes
// afterwards changes what is stored.
package fake

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Store implements run.ControlStore, nodes.Nodes and refresh.Refreshes. It is safe for concurrent use.
type Store struct {
	*RefreshQueue

	mu            sync.Mutex
	runs          map[string]*run
	desiredStates map[string]nodes.DesiredState
	nodeEvents    []nodes.NodeEvent
	// runCommands are in the order of their numbers; commandAdded is closed with the next one.
	runCommands  []store.RunCommand
	commandAdded chan struct{}
	// created numbers rows in the order in which they were made.
	created int64
}

// New returns an empty store.
func New() *Store {
	s := &Store{runs: map[string]*run{}, desiredStates: map[string]nodes.DesiredState{},
		commandAdded: make(chan struct{})}
	s.RefreshQueue = NewRefreshQueue(s.ended)
	return s
}

// ended are the runs that are over, with when they changed last.
func (s *Store) ended() (over map[string]time.Time, there func(string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	over, all := map[string]time.Time{}, map[string]bool{}
	for id, r := range s.runs {
		all[id] = true
		if r.row.Phase == engine.PhaseNone && r.row.Status.Terminal() {
			over[id] = r.row.UpdatedAt.Time
			if p := r.results[id]; p.UpdatedAt.After(over[id]) {
				over[id] = p.UpdatedAt.Time
			}
		}
	}
	return over, func(id string) bool { return all[id] }
}

// lock locks the store, unless the context is over. The caller unlocks it.
func (s *Store) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("asking the control store: %w", err)
	}
	s.mu.Lock()
	return nil
}

// OpenDSN implements run.ControlStore for connections that are written in a scenario.
func (s *Store) OpenDSN(ctx context.Context, ref engine.ConnectionRef) (driver string, dsn secret.Secret, err error) {
	if !ref.Inline() {
		return "", dsn, notFound("connection", ref.Name)
	}
	return ref.Driver, secret.New(ref.DSN), ctx.Err()
}

// Ping implements storetest.Store.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	s.mu.Unlock()
	return nil
}

// next numbers a new row.
func (s *Store) next() int64 {
	s.created++
	return s.created
}

func newID() string { return uuid.NewString() }

// now is exact to a microsecond, as a time that comes back from a database.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// orNow is the time, or now when it is zero.
func orNow(t engine.Time) engine.Time {
	if t.IsZero() {
		return engine.At(now())
	}
	return engine.At(t.Truncate(time.Microsecond))
}

// document is v as it is stored.
func document(what string, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, &engine.Error{Code: engine.CodeInvalid, Cause: err,
			Message: fmt.Sprintf("The %s cannot be stored: %v.", what, err)}
	}
	return store.CleanJSON(text), nil
}

// read returns what document has stored, the zero value for nil.
func read[T any](what string, text []byte) (v T, err error) {
	if text == nil {
		return v, nil
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return v, fmt.Errorf("reading stored %s: %w", what, err)
	}
	return v, nil
}

// sorted returns the values of a map in an order.
func sorted[K comparable, V any](m map[K]V, less func(a, b V) int) []V {
	out := make([]V, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	slices.SortFunc(out, less)
	return out
}

func earlier(a, b engine.Time) int { return a.Compare(b.Time) }

// notFound is a user-facing store.ErrNotFound.
func notFound(what, name string) error {
	return &engine.Error{Code: engine.CodeNotFound, Cause: store.ErrNotFound,
		Message: fmt.Sprintf("There is no %s %q.", what, name)}
}

// conflict is a user-facing store.ErrConflict.
func conflict(message, hint string) error {
	return &engine.Error{Code: engine.CodeConflict, Cause: store.ErrConflict, Message: message, Hint: hint}
}

// unnamed refuses an empty key.
func unnamed(what string) error {
	return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("A %s needs a name or an id.", what)}
}

// Lease implements store.Leases.
func (s *Store) Lease() time.Duration { return store.LeaseDuration }
