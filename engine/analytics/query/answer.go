// This part holds queries over results and their answers: columns and rows.

package query

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
)

// Column is one of an answer.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type" doc:"As the database names it."`
}

// Answer is what a query gave. Values are null, true or false, numbers, JSON documents of json columns, and text for
// everything else, as the database writes it.
type Answer struct {
	Columns []Column `json:"columns" nullable:"false"`
	Rows    [][]any  `json:"rows" nullable:"false"`
	// Truncated: there were more rows than were asked for, or than an answer holds.
	Truncated bool    `json:"truncated"`
	ElapsedMs float64 `json:"elapsed_ms"`
}

type callerKey struct{}

type callerID struct{ caller, id string }

// WithCaller says who asks a query, and by which name its caller knows it; an empty one is for none.
func WithCaller(ctx context.Context, caller, id string) context.Context {
	return context.WithValue(ctx, callerKey{}, callerID{caller, id})
}

func callerOf(ctx context.Context) callerID { k, _ := ctx.Value(callerKey{}).(callerID); return k }

// Caller is who asks, empty where that is not known.
func Caller(ctx context.Context) string { return callerOf(ctx).caller }

// ID is the name of a query, empty when its caller has given it none.
func ID(ctx context.Context) string { return callerOf(ctx).id }

// Session is by what a session of the database is told apart that executes a query.
func Session(ctx context.Context) string {
	k := callerOf(ctx)
	if k.id == "" {
		k.id = uuid.NewString()
	}
	return SessionOf(k.caller, k.id)
}

// SessionPrefix is what all sessions begin with that execute queries.
const SessionPrefix = "loadstone query "

// SessionsOf is what the sessions begin with that execute the queries of a caller, on all servers.
func SessionsOf(caller string) string { return SessionPrefix + digest(caller, 6) + " " }

// SessionOf is Session of a query that its caller names. Nobody can tell from it how to cancel it.
func SessionOf(caller, id string) string { return SessionsOf(caller) + digest(caller+"\x00"+id, 16) }

func digest(text string, bytes int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:bytes])
}

// ErrCancelled ends a query that its caller does not want any more.
var ErrCancelled = &engine.Error{Code: engine.CodeConflict, Message: "The query was cancelled."}

// Querier answers queries: one statement that reads, with at most so many rows.
type Querier interface {
	Query(ctx context.Context, sql string, rows int) (Answer, error)
}

// Preview is what the definition of a derived table would give.
type Preview struct {
	Answer
	// Plan is that of the database, a line for each step.
	Plan string
	// Sources are the derived tables that it reads.
	Sources []string
	// Note says why there are no rows.
	Note string
}

// Relation is a table that can be asked.
type Relation struct {
	Schema  string   `json:"schema"`
	Name    string   `json:"name"`
	Columns []Column `json:"columns" nullable:"false"`
}

// SavedQuery is a query that somebody keeps under a name.
type SavedQuery struct {
	Name string `json:"name"`
	SQL  string `json:"sql"`
	// PreviousName is its name before, of a query that is saved under another; a store gives it to nobody.
	PreviousName string `json:"-"`
	// Chart says how the page draws it, as the page writes that into its address.
	Chart     string      `json:"chart" doc:"How the page draws its answer, as it stands in the page's address."`
	Version   int64       `json:"version" doc:"Rises with each change."`
	CreatedBy string      `json:"created_by"`
	UpdatedBy string      `json:"updated_by"`
	CreatedAt engine.Time `json:"created_at"`
	UpdatedAt engine.Time `json:"updated_at"`
}
