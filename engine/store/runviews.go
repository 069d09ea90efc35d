package store

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
)

// RunView is a list of runs that a user keeps under a name.
type RunView struct {
	ViewID string `json:"view_id"`
	Name   string `json:"name"`
	// Query is the page's address from its question mark on: status, search, template, range, tag, sort, columns, trend.
	Query  string `json:"query" doc:"Filters, order, columns and trend, as they stand in the address of the page Runs."`
	Shared bool   `json:"shared" doc:"Whether everybody sees it."`
	// OwnerID is empty of a shared view whose user is gone.
	OwnerID   string      `json:"owner_id" doc:"Whose it is; empty when that user is gone."`
	Owner     string      `json:"owner"`
	Version   int64       `json:"version"`
	UpdatedBy string      `json:"updated_by"`
	CreatedAt engine.Time `json:"created_at"`
	UpdatedAt engine.Time `json:"updated_at"`
}

// MostRunViews is how many views a user keeps.
const MostRunViews = 200

// RunViews keeps lists of runs under names. A user has one of a name; others may have another one.
type RunViews interface {
	// RunViews lists a user's and those that are shared, by name and owner.
	RunViews(ctx context.Context, userID string) ([]RunView, error)
	RunView(ctx context.Context, viewID string) (RunView, error)
	// AddRunView makes a view of OwnerID's, which is ErrNotFound if there is no such user. A name that the user has
	// already, and a view too many, is ErrConflict.
	AddRunView(ctx context.Context, v RunView) (RunView, error)
	// ChangeRunView sets name, query and whether it is shared. Version is that which was edited; another is ErrConflict,
	// and the error says who was faster. What belongs to nobody stays shared.
	ChangeRunView(ctx context.Context, v RunView) (RunView, error)
	DeleteRunView(ctx context.Context, viewID string) error
}

// The bounds of a view, in characters.
const (
	longestViewName  = 80
	longestViewQuery = 4000
)

// viewed are the parts of the page's address that a view keeps.
var viewed = []string{"status", "search", "template", "range", "tag", "sort", "columns", "trend", "figure"}

// CheckRunView refuses what no view can be.
func CheckRunView(v RunView) error {
	n := len([]rune(v.Name))
	if n == 0 || n > longestViewName || strings.TrimSpace(v.Name) != v.Name || CleanText(v.Name) != v.Name ||
		strings.ContainsFunc(v.Name, textsafe.Obeyed) {
		return engine.InvalidField("name", "cannot be used", fmt.Sprintf(
			"choose 1 to %d characters that are seen, without a space at either end", longestViewName))
	}
	if len([]rune(v.Query)) > longestViewQuery {
		return engine.InvalidField("query", "is too long", fmt.Sprintf("at most %d characters", longestViewQuery))
	}
	parts, err := url.ParseQuery(v.Query)
	if err != nil || CleanText(v.Query) != v.Query {
		return engine.InvalidField("query", "is no query of an address", "write status=FAILED&sort=-p95_ms")
	}
	for part := range parts {
		if !slices.Contains(viewed, part) {
			return engine.InvalidField("query", fmt.Sprintf("has %q", textsafe.Shorten(textsafe.OneLine(part), 40)),
				"a view keeps "+strings.Join(viewed, ", "))
		}
	}
	return nil
}

// TooManyRunViews is the ErrConflict about a view more than a user may keep.
func TooManyRunViews() error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict,
		Message: fmt.Sprintf("You keep %d views, and no more are kept for one user.", MostRunViews),
		Hint:    "Delete one first."}
}

// OwnerlessRunView is the ErrConflict about a shared view of a user that is gone, which somebody wants to keep for
// itself.
func OwnerlessRunView(name string) error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict,
		Message: fmt.Sprintf("The view %q belongs to nobody: nobody would see it.", name), Hint: "Delete it instead."}
}
